"""Independent pieces of work, done here, by processes on this machine, or over Ray.

Results come as they are ready, so that the caller can store each at once. A worker that dies is
replaced and its piece tried again; a piece that keeps killing its worker fails alone. The pool of
processes is pebble's.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import connection
from pathlib import Path
from typing import Any, Generic, TypeVar

from forecause.common.work_sharing import helped_by
from forecause.config.thresholds import THRESHOLDS, call_with, thresholds
from forecause.errors import ForecauseError, InputError

# Time and memory:
RETRIES = 2  # of a piece whose worker died
THREADS = "OMP_NUM_THREADS"
Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerDied(ForecauseError, RuntimeError):
    """A piece of work whose worker died every time."""


class TimeLimit(ForecauseError, TimeoutError):
    """A piece of work that took longer than it may."""


@dataclass(frozen=True)
class Workers:
    """Where the work is done: in this process unless more processes or Ray are asked for.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.Workers().here, fc.Workers(processes=4).here
    (True, False)
    """

    processes: int = 1  # on this machine
    ray: str | None = None  # local: started here; auto: one that runs; or a cluster's address

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise InputError(f"The number of processes must be at least 1, found {self.processes}.")

    @property
    def here(self) -> bool:
        """Whether nothing leaves this process."""
        return self.processes == 1 and self.ray is None


LOCAL = Workers()


@dataclass(frozen=True)
class Answer(Generic[Result]):
    """What became of the piece with this number: a value or an error."""

    number: int
    found: Result | None = None
    error: Exception | None = None

    @property
    def value(self) -> Result:
        """The result; raises what went wrong."""
        if self.error is not None:
            raise self.error
        return self.found  # type: ignore[return-value]  # None is a result, too


@dataclass(frozen=True)
class Isolation:
    """Every piece in a fresh process, which is ended with all it started when its time is over.

    The process is forked from one that has imported `modules`, since importing anew takes longer
    than most pieces.
    """

    seconds: float  # per piece
    modules: tuple[str, ...] = ()
    log: Path | None = None  # what pieces print and complain; None: where this process does


@contextmanager
def helping(workers: Workers) -> Iterator[None]:
    """The stages of a run inside are spread over Ray, if the workers are there.

    Processes on this machine are no help: its threads do the same work without copies.
    """
    if workers.ray is None:
        yield
        return
    from forecause.resources.over_ray import RayHelpers

    with helped_by(RayHelpers(workers)):
        yield


def fan_out(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    workers: Workers = LOCAL,
    retries: int = RETRIES,
    isolation: Isolation | None = None,
) -> Iterator[Answer[Result]]:
    """`function` of every item, each answer as soon as it is there.

    Unless all is done here, the function, the items and the results travel as pickles: the
    function must be importable by name, or a functools.partial of one that is. With `isolation`
    nothing is done here, and a piece over its time answers with `TimeLimit`.
    """
    if thresholds() != THRESHOLDS:
        function = partial(call_with, thresholds(), function)
    if workers.ray is not None:
        from forecause.resources.over_ray import RayHelpers

        if isolation is not None:
            function = partial(_alone, function=function, isolation=isolation, retries=retries)
        return RayHelpers(workers, retries).answers(_applied, function, items)
    if isolation is None and (workers.processes == 1 or len(items) < 2):
        return _answers_here(function, items)
    return _answers_of_processes(function, items, workers.processes, retries, isolation)


def gather(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    workers: Workers = LOCAL,
    done: Callable[[int], None] = lambda _count: None,
) -> list[Result]:
    """All results in the order of the items, or the first error; `done` hears the count."""
    found: dict[int, Result] = {}
    for answer in fan_out(function, items, workers):
        found[answer.number] = answer.value
        done(len(found))
    return [found[number] for number in range(len(items))]


def _applied(function: Callable[[Item], Result], item: Item) -> Result:
    return function(item)


def _perform(function: bytes, item: bytes) -> bytes:
    """What a worker does: unpickle, call, pickle the value or the error."""
    try:
        return pickle.dumps((pickle.loads(function)(pickle.loads(item)), None))
    except Exception as error:
        return pickle.dumps((None, portable(error)))


def died(number: int, tries: int, how: str) -> Answer[Any]:
    """The answer for a piece that is given up."""
    return Answer(
        number,
        error=WorkerDied(
            f"The worker at piece {number + 1} died {tries} times, at last {how}; it may have run "
            "out of memory: use fewer processes, or a larger machine."
        ),
    )


def _answers_here(
    function: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[Answer[Result]]:
    for number, item in enumerate(items):
        try:
            answer = Answer(number, function(item))
        except Exception as error:
            answer = Answer(number, error=error)
        yield answer


def _alone(item: Any, function: Any, isolation: Isolation, retries: int) -> Any:
    """A piece in a process beside this one, which is a worker of Ray."""
    (answer,) = _answers_of_processes(function, [item], 1, retries, isolation)
    return answer.value


def _answers_of_processes(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    processes: int,
    retries: int,
    isolation: Isolation | None,
) -> Iterator[Answer[Result]]:
    """Pieces are started in order; a pool that breaks down is replaced, and does what is left."""
    left, deaths, breakdowns = dict.fromkeys(range(len(items))), Counter[int](), 0
    while left:
        task = _Task(function, items, processes, retries, isolation, deaths)
        try:
            for answer in _answers_of_pool(task, list(left)):
                del left[answer.number]
                yield answer
        except BrokenProcessPool:  # a worker died before the pool knew what it worked on
            breakdowns += 1
            if breakdowns > retries + 1:
                yield from (died(number, breakdowns, "at its start") for number in left)
                return


@dataclass(frozen=True)
class _Task:
    """What a pool is asked to do, and how often each piece has killed its worker."""

    function: Callable[[Any], Any]
    items: Sequence[Any]
    processes: int
    retries: int
    isolation: Isolation | None
    deaths: Counter[int]


def _answers_of_pool(task: _Task, numbers: Sequence[int]) -> Iterator[Answer[Any]]:
    """Answers of these pieces; those whose worker died are started once more at the end."""
    from pebble import ProcessExpired

    pickled = pickle.dumps(task.function)
    seconds = task.isolation.seconds if task.isolation else None
    running: dict[Future[bytes], int] = {}
    with _pool(min(task.processes, len(numbers)), task.isolation) as pool:

        def start(number: int) -> None:
            arguments = [pickled, pickle.dumps(task.items[number])]
            try:
                running[pool.schedule(_perform, args=arguments, timeout=seconds)] = number
            except RuntimeError as error:  # it takes no more
                raise BrokenProcessPool from error

        for number in numbers:
            start(number)
        while running:
            ready, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in ready:
                number = running.pop(future)
                try:
                    answer: Answer[Any] = Answer(number, *pickle.loads(future.result()))
                except TimeoutError:
                    late = TimeLimit(f"Piece {number + 1} took longer than {seconds:g} s.")
                    answer = Answer(number, error=late)
                except ProcessExpired as expired:
                    task.deaths[number] += 1
                    if task.deaths[number] <= task.retries:
                        start(number)
                        continue
                    told = f"with code {expired.exitcode}"
                    answer = died(number, task.deaths[number], told)
                yield answer


@contextmanager
def _pool(processes: int, isolation: Isolation | None) -> Iterator[Any]:
    """Processes that end with this block, or with this process, however suddenly.

    None is forked from this process: a fork of a process with threads can hang.
    """
    from pebble import ProcessPool

    server = isolation is not None and "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if server else "spawn")
    if isolation is not None and server:
        _start_server(context, isolation.modules)
    log = None if isolation is None else isolation.log
    pool: Any = ProcessPool(
        processes,
        max_tasks=0 if isolation is None else 1,
        initializer=_begin,
        initargs=[log],
        context=context,
    )
    try:
        yield pool
    finally:
        pool.stop()
        pool.join()


def _start_server(context: Any, modules: Sequence[str]) -> None:
    """The process that all are forked from, with one thread each, as the libraries read it."""
    from multiprocessing.forkserver import ensure_running

    context.set_forkserver_preload(list(modules))
    before = os.environ.get(THREADS)
    os.environ[THREADS] = "1"
    try:
        ensure_running()
    finally:
        if before is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = before


def _begin(log: Path | None) -> None:
    """The first thing a process does: one thread, since every core has a process of its own."""
    if log is not None:
        with log.open("a", encoding="utf-8") as file:
            os.dup2(file.fileno(), 2)
    os.dup2(2, 1)  # what foreign code prints is no result of the caller's
    os.environ[THREADS] = "1"
    if "torch" in sys.modules:  # imported by the caller's script, before the line above
        sys.modules["torch"].set_num_threads(1)
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C is for the caller; and what a piece starts can be ended with it
        _end_together()


def _end_together() -> None:
    """On SIGTERM, or when the caller is gone, end this process and all it started.

    A thread waits for both, since a handler would have to wait for compiled code to return.
    """
    heard, told = socket.socketpair()
    told.setblocking(False)
    signal.signal(signal.SIGTERM, lambda _signal, _frame: None)
    signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        connection.wait([heard, *([parent.sentinel] if parent else [])])
        os.killpg(0, signal.SIGKILL)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.kept = (heard, told)  # type: ignore[attr-defined]  # open as long as the thread
    watcher.start()


def portable(error: Exception) -> Exception:
    """The error, or one like it if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        kind = InputError if isinstance(error, InputError) else RuntimeError
        name = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        return kind(f"{name}{error}")
    return error
