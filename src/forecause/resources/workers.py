"""Independent pieces of work, done here, by processes on this machine, or over Ray.

Results come as they are ready, so that the caller can store each at once. A worker that dies is
replaced and its piece tried again; a piece that keeps killing its worker fails alone.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from forecause.errors import ForecauseError, InputError

RETRIES = 2  # of a piece whose worker died
Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkerDied(ForecauseError, RuntimeError):
    """A piece of work whose worker died every time."""


@dataclass(frozen=True)
class Workers:
    """Where the work is done: in this process unless more processes or Ray are asked for."""

    processes: int = 1  # on this machine
    ray: str | None = None  # local: started here; auto: one that runs; or a cluster's address

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise InputError(f"The number of processes must be at least 1, found {self.processes}.")

    @property
    def here(self) -> bool:
        """Whether nothing leaves this process."""
        return self.processes == 1 and self.ray is None


HERE = Workers()


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


def fan_out(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    workers: Workers = HERE,
    retries: int = RETRIES,
) -> Iterator[Answer[Result]]:
    """`function` of every item, each answer as soon as it is there.

    Unless all is done here, the function, the items and the results travel as pickles: the
    function must be importable by name, or a functools.partial of one that is.
    """
    if workers.ray is not None:
        from forecause.resources.over_ray import answers

        return answers(function, items, workers, retries)
    if workers.processes == 1 or len(items) < 2:
        return _answers_here(function, items)
    return _answers_of_processes(function, items, workers.processes, retries)


def gather(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    workers: Workers = HERE,
    done: Callable[[int], None] = lambda _count: None,
) -> list[Result]:
    """All results in the order of the items, or the first error; `done` hears the count."""
    found: dict[int, Result] = {}
    for answer in fan_out(function, items, workers):
        found[answer.number] = answer.value
        done(len(found))
    return [found[number] for number in range(len(items))]


def perform(function: bytes, item: bytes) -> bytes:
    """What a worker does: unpickle, call, pickle the value or the error."""
    try:
        return pickle.dumps((pickle.loads(function)(pickle.loads(item)), None))
    except Exception as error:
        return pickle.dumps((None, _portable(error)))


def received(number: int, answer: bytes) -> Answer[Any]:
    """The other end of `perform`."""
    found, error = pickle.loads(answer)
    return Answer(number, found, error)


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


class _Helper:
    """A process of this machine and the piece it is at.

    Spawned, not forked: a fork of a process with threads can hang. A pipe for each tells which of
    them died, which a pool does not.
    """

    def __init__(self, function: bytes) -> None:
        context = multiprocessing.get_context("spawn")
        self.number = -1
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, function), daemon=True)
        self.process.start()
        theirs.close()

    def start(self, number: int, item: Any) -> None:
        self.number = number
        with suppress(BrokenPipeError):  # a dead worker is noticed when its answer is read
            self.pipe.send_bytes(pickle.dumps(item))

    def answer(self) -> Answer[Any] | None:
        """None if the process died."""
        try:
            return received(self.number, self.pipe.recv_bytes())
        except (EOFError, ConnectionResetError):
            self.process.join()
            return None

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _answers_of_processes(
    function: Callable[[Item], Result], items: Sequence[Item], processes: int, retries: int
) -> Iterator[Answer[Result]]:
    pickled = pickle.dumps(function)
    waiting = list(range(len(items)))[::-1]  # taken from the end
    deaths: Counter[int] = Counter()
    busy: list[_Helper] = []

    def start(helper: _Helper) -> None:
        number = waiting.pop()
        helper.start(number, items[number])
        busy.append(helper)

    try:
        while waiting or busy:
            while waiting and len(busy) < processes:
                start(_Helper(pickled))
            ready = wait([helper.pipe for helper in busy])
            for helper in [one for one in busy if one.pipe in ready]:
                busy.remove(helper)
                answer, code = helper.answer(), helper.process.exitcode
                if answer is None:
                    helper.stop()
                    deaths[helper.number] += 1
                    if deaths[helper.number] <= retries:
                        waiting.append(helper.number)
                        continue
                    answer = died(helper.number, deaths[helper.number], f"with code {code}")
                elif waiting:
                    start(helper)
                else:
                    helper.stop()
                yield answer
    finally:
        for helper in busy:
            helper.stop()


def _serve(pipe: Connection, function: bytes) -> None:
    """The life of a helper: one thread each, since every core has a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, who ends the helpers
    os.dup2(2, 1)  # what foreign code prints is no result of the caller's
    os.environ["OMP_NUM_THREADS"] = "1"
    if "torch" in sys.modules:  # imported by the caller's script, before the line above
        sys.modules["torch"].set_num_threads(1)
    while True:
        try:
            item = pipe.recv_bytes()
        except EOFError:  # the caller is gone
            return
        pipe.send_bytes(perform(function, item))


def _portable(error: Exception) -> Exception:
    """The error, or one like it if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        kind = InputError if isinstance(error, InputError) else RuntimeError
        name = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
        return kind(f"{name}{error}")
    return error
