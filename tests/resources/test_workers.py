"""Work spread over processes and over Ray: nothing lost, nothing done twice, nothing waits."""

import os
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import errands
import forecause as fc
from forecause.config import Config
from forecause.edges.knowledge import Candidates
from forecause.errors import InputError, MissingExtra
from forecause.resources import workers as module
from forecause.resources.fitting import fit_as_asked, fit_parts
from forecause.resources.workers import (
    LOCAL,
    Isolation,
    TimeLimit,
    WorkerDied,
    Workers,
    fan_out,
    gather,
)
from heard import Heard
from systems import chain


@pytest.fixture(params=["processes", "ray"])
def workers(request):
    return Workers(2) if request.param == "processes" else request.getfixturevalue("ray")


def test_work_is_done_here_unless_asked_otherwise():
    assert gather(lambda number: number + 1, [1, 2]) == [2, 3]  # a lambda cannot travel
    with pytest.raises(InputError, match="at least 1, found 0"):
        Workers(0)


def test_every_item_has_its_answer_and_errors_are_those_of_one_item(workers):
    answers = {a.number: a for a in fan_out(errands.square_of_all_but_three, range(6), workers)}
    assert {n: a.found for n, a in answers.items() if not a.error} == {0: 0, 1: 1, 2: 4, 5: 25}
    with pytest.raises(InputError, match=r"^three$"):
        _ = answers[3].value
    with pytest.raises(InputError, match=r"\.\[numbers\]"):  # though it cannot be pickled
        _ = answers[4].value
    with pytest.raises(InputError, match="three"):
        gather(errands.square_of_all_but_three, range(4), workers)


def test_a_worker_that_dies_is_replaced_and_its_work_done(workers, tmp_path):
    found = gather(errands.die_once, [tmp_path / "first", tmp_path / "second"], workers)
    assert len(found) == 2
    assert os.getpid() not in found


@pytest.mark.parametrize(("breakdowns", "is_done"), [(1, True), (9, False)])
def test_a_pool_that_breaks_down_is_replaced_a_few_times(monkeypatch, breakdowns, is_done):
    """As when a worker dies before the pool knows what it works on."""
    pools = []

    def answers(task, numbers):
        pools.append(list(numbers))
        yield from whole(task, numbers[:1])
        if len(pools) <= breakdowns:
            raise BrokenProcessPool
        yield from whole(task, numbers[1:])

    whole = module._answers_of_pool
    monkeypatch.setattr(module, "_answers_of_pool", answers)
    found = {a.number: a for a in fan_out(errands.square, range(6), Workers(2), retries=1)}
    if is_done:
        assert {n: a.value for n, a in found.items()} == {n: n * n for n in range(6)}
        assert pools == [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]  # what was answered is not done again
    else:
        assert [a.found for a in found.values()] == [0, 1, 4, None, None, None]
        assert all(isinstance(found[n].error, WorkerDied) for n in (3, 4, 5))


def test_work_that_always_kills_its_worker_fails_alone(workers):
    answers = {a.number: a for a in fan_out(errands.die_at_two, range(4), workers, retries=1)}
    assert {n: a.found for n, a in answers.items()} == {0: 0, 1: 1, 2: None, 3: 3}
    assert isinstance(answers[2].error, WorkerDied)
    assert "piece 3 died 2 times" in str(answers[2].error)


def test_answers_come_when_they_are_ready_not_in_order(workers, tmp_path):
    late = tmp_path / "now"
    order = []
    for answer in fan_out(errands.wait_for, [late, None, None], workers):
        order.append(answer.number)
        if len(order) == 2:
            late.write_text("")  # only now can the first item end
    assert sorted(order[:2]) == [1, 2]
    assert order[2] == 0


def test_every_worker_has_one_thread(workers):
    assert gather(errands.threads, [0, 1], workers) == ["1", "1"]


def test_work_over_its_time_is_ended_with_all_it_started(workers, tmp_path):
    """Also where its worker's caller is a worker of Ray; what follows is done all the same."""
    files = [tmp_path / "first", tmp_path / "second"]
    for seconds in (2.0, 20.0, 200.0):  # enough to begin, however busy the machine is
        limited = Isolation(seconds=seconds)
        found = list(fan_out(errands.start_a_child_and_wait, files, workers, isolation=limited))
        assert [type(answer.error) for answer in found] == [TimeLimit, TimeLimit]
        if all(file.exists() and file.read_text() for file in files):
            break
    for file in files:
        child = int(file.read_text())
        errands.wait_until(lambda child=child: not errands.is_alive(child))
    unhurried = Isolation(seconds=600.0)
    assert [a.value for a in fan_out(errands.square, [3], workers, isolation=unhurried)] == [9]


def test_isolated_work_has_a_fresh_process_each_even_if_one_alone_is_asked_for():
    answers = list(fan_out(errands.process, range(3), isolation=Isolation(seconds=600.0)))
    assert len({answer.value for answer in answers} | {os.getpid()}) == 4


def test_what_isolated_work_prints_is_in_its_log_and_no_output_of_the_caller(tmp_path, capfd):
    log = tmp_path / "log.txt"
    limited = Isolation(seconds=600.0, log=log)
    assert [a.value for a in fan_out(errands.speak, ["hello"], isolation=limited)] == [None]
    assert log.read_text() == "hello"
    assert capfd.readouterr() == ("", "")


def test_workers_end_with_their_caller_however_suddenly_it_ends(tmp_path):
    file = tmp_path / "pid"
    script = (
        "import errands; from forecause.resources.workers import Isolation, Workers, fan_out\n"
        f"list(fan_out(errands.start_a_child_and_wait, [{str(file)!r}], "
        "isolation=Isolation(seconds=600.0)))"
    )
    paths = [os.path.dirname(errands.__file__), *sys.path]
    caller = subprocess.Popen(
        [sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
    )
    errands.wait_until(lambda: file.exists() and file.read_text())
    caller.kill()
    caller.wait()
    errands.wait_until(lambda: not errands.is_alive(int(file.read_text())))


def test_power_is_the_same_whoever_measures_it():
    found = fc.discover(pd.DataFrame(chain(300), columns=list("abc")), 2, forecaster="linear")
    heard = Heard()
    spread = found.power(repeats=2, workers=Workers(2), progress=heard)
    pd.testing.assert_frame_equal(spread.table, found.power(repeats=2).table)
    assert heard.shares == [0, 0.5, 1]


def test_cross_fits_are_the_same_whoever_makes_them(ray, chain_windows):
    config = Config.of(max_lag=2, forecaster="additive")
    candidates = Candidates.of(config.edges, chain_windows.panel.variables, 2)
    fit = partial(fit_as_asked, config=config, candidates=candidates)
    here, spread = (fit_parts(fit, chain_windows, 2, workers=w) for w in (LOCAL, ray))
    assert len(spread) == 2
    for one, other in zip(here, spread, strict=True):
        for name, values in one.state().items():
            np.testing.assert_allclose(other.state()[name], values)
    first, second = (forecaster.noise_variance for forecaster in spread)
    assert (first != second).any()


@pytest.mark.skipif(find_spec("ray") is None, reason="the extra 'ray' is not installed")
def test_a_cluster_that_is_not_there_is_said_so_at_once():
    script = (
        "from forecause.resources.workers import Workers, gather\n"
        "gather(str, [1], Workers(ray='127.0.0.1:1'))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "InputError: No Ray cluster answers at '127.0.0.1:1' ([Errno 111]" in ended.stderr


def test_without_ray_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"\.\[ray\]"):
        list(fan_out(errands.square, [1], Workers(ray="local")))


@pytest.mark.skipif(
    find_spec("ray") is None or sys.platform != "linux", reason="needs the extra 'ray', and /proc"
)
def test_what_ray_starts_ends_with_a_process_that_is_killed():
    script = (
        "from forecause.resources.over_ray import connect, _WATCHERS; import time\n"
        "from forecause.resources.workers import Workers\n"
        "connect(Workers(2, 'local')); print(_WATCHERS[0].args[-1], flush=True); time.sleep(600)"
    )
    there = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    driver = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=there
    )
    mark = driver.stdout.readline().strip().encode()

    def left():
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
        return [one for one in found if errands.is_alive(one)]

    assert len(left()) > 2
    driver.kill()
    driver.wait()
    driver.stdout.close()
    errands.wait_until(lambda: not left())
