"""How many threads a piece of work gets: one, unless it is large enough to gain from more.

Threads that share a small product wait for each other at its end, and where the other cores are
busy every such wait costs a time slice: a product of one millisecond then takes forty. So a run
works on one thread, and large work is cut into pieces that threads of their own do, each piece on
one thread. Whoever is free takes the next piece: a busy core loses nothing, and since the pieces
and the order of their sums do not depend on who did them, neither does the result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

import torch
from threadpoolctl import threadpool_limits

LARGE = 2e8  # floating-point operations of a piece from which it is worth a thread of its own

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Allowed:
    """How many threads the user granted, remembered while a run works on one."""

    threads: int | None = None

    @classmethod
    def most(cls) -> int:
        return torch.get_num_threads() if cls.threads is None else cls.threads


@contextmanager
def one_thread() -> Iterator[None]:
    """Everything inside is computed on one thread, unless it asks for more; then all is as before.

    What the user granted, by OMP_NUM_THREADS or torch.set_num_threads, is the most that large work
    inside can get.
    """
    granted, before = _Allowed.threads, torch.get_num_threads()
    _Allowed.threads = _Allowed.most()
    torch.set_num_threads(1)  # its pool is not among those that threadpoolctl finds
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        _Allowed.threads = granted
        torch.set_num_threads(before)


@contextmanager
def threads_for(is_large: bool) -> Iterator[None]:
    """All granted threads for one large piece of work that torch itself can share, else one."""
    before = torch.get_num_threads()
    torch.set_num_threads(_Allowed.most() if is_large else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def shared(
    function: Callable[[Item], Result], items: Iterable[Item], operations: float
) -> Iterator[Result]:
    """`function` of every item, in order; by all granted threads if each is so many operations.

    No more pieces are begun than there are threads and one more, so that little is held at once.
    """
    most = _Allowed.most()
    if most == 1 or operations < LARGE:
        yield from map(function, items)
        return
    left = iter(items)
    with one_thread(), ThreadPoolExecutor(most) as pool:
        begun: deque[Future[Result]] = deque(
            pool.submit(function, item) for item in islice(left, most + 1)
        )
        try:
            while begun:
                found = begun.popleft().result()
                begun.extend(pool.submit(function, item) for item in islice(left, 1))
                yield found
        finally:
            for piece in begun:
                piece.cancel()
