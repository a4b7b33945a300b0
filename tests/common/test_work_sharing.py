"""Claims about threads: one for small work, those the user granted for large, all restored."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import forecause as fc
from forecause.common.work_sharing import LARGE, one_thread, shared, threads_for


@pytest.fixture
def two_granted() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with threadpool_limits(limits=2):
        yield
    torch.set_num_threads(before)


def pools() -> set[int]:
    """Threads of every pool that this process has."""
    return {torch.get_num_threads(), *(pool["num_threads"] for pool in threadpool_info())}


def thread_of(_item: Any) -> int:
    return threading.get_ident()


@pytest.mark.usefixtures("two_granted")
class TestOneThread:
    def test_every_pool_has_one_thread_inside_and_its_own_again_outside(self) -> None:
        before = pools()
        with one_thread():
            assert pools() == {1}
        assert pools() == before
        assert 2 in before

    def test_an_error_inside_restores_them_too(self) -> None:
        with pytest.raises(ZeroDivisionError), one_thread():
            _ = 1 / 0
        assert torch.get_num_threads() == 2

    def test_large_work_inside_gets_what_was_granted_and_small_work_does_not(self) -> None:
        with one_thread(), one_thread():
            with threads_for(is_large=True):
                assert torch.get_num_threads() == 2
            with threads_for(is_large=False):
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 1

    def test_torch_that_is_loaded_inside_a_run_joins_it(self) -> None:
        script = (
            "from forecause.common.work_sharing import limit_loaded_torch, one_thread, _Allowed\n"
            "with one_thread():\n"
            "    assert _Allowed.most() == 2\n"
            "    import torch\n"
            "    limit_loaded_torch()\n"
            "    assert torch.get_num_threads() == 1\n"
            "assert torch.get_num_threads() == 2\n"
        )
        environment = {**os.environ, "OMP_NUM_THREADS": "2"}
        subprocess.run([sys.executable, "-c", script], env=environment, check=True)

    def test_a_discovery_works_on_one_thread_and_leaves_the_setting_alone(self) -> None:
        seen = set[int]()

        class Watch(fc.Progress):
            def step(self, what: str, share: float) -> None:
                seen.update(pools())

        table = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)), columns=list("abc"))
        fc.discover(table, max_lag=1, forecaster="linear", progress=Watch())
        assert seen == {1}
        assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_granted")
class TestShared:
    def test_pieces_of_large_work_are_done_at_the_same_time(self) -> None:
        meeting = threading.Barrier(2, timeout=300)  # passes only if two threads stand at it
        assert len(list(shared(lambda _item: meeting.wait(), range(4), LARGE))) == 4

    def test_small_work_stays_on_the_callers_thread(self) -> None:
        assert set(shared(thread_of, range(4), LARGE / 2)) == {threading.get_ident()}

    def test_nobody_gets_more_threads_than_were_granted(self) -> None:
        torch.set_num_threads(1)
        assert set(shared(thread_of, range(4), LARGE)) == {threading.get_ident()}

    def test_answers_come_in_the_order_of_the_items_whoever_ends_first(self) -> None:
        second_done = threading.Event()

        def first_waits(item: int) -> int:
            assert second_done.wait(300) if item == 0 else not second_done.set()
            return item

        assert list(shared(first_waits, range(5), LARGE)) == [0, 1, 2, 3, 4]

    def test_pieces_are_begun_only_as_they_are_needed(self) -> None:
        begun: list[int] = []
        answers = shared(lambda item: item, (begun.append(i) or i for i in range(100)), LARGE)
        next(answers)
        assert len(begun) <= 4

    def test_an_error_in_a_piece_reaches_the_caller(self) -> None:
        with pytest.raises(ZeroDivisionError):
            list(shared(lambda item: 1 / item, [1, 0, 1], LARGE))
        assert torch.get_num_threads() == 2
