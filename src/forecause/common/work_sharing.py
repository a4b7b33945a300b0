"""Who does a piece of work: one thread, all threads if it is large, or helpers elsewhere.

Threads that share a small product wait for each other at its end, and where the other cores are
busy every such wait costs a time slice: a product of one millisecond then takes forty. So a run
works on one thread, and large work is cut into pieces that threads of their own do, each piece on
one thread. Whoever is free takes the next piece: a busy core loses nothing, and since the pieces
and the order of their sums do not depend on who did them, neither does the result.

A stage that falls into independent pieces hands them to `parallel_map`. How it is cut, and the
order in which the parts are put together, is the stage's own and does not depend on who does them.
`resources.workers` knows who the helpers of a run are.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache, partial
from itertools import islice
from typing import Any, Protocol, TypeVar

from threadpoolctl import threadpool_limits

# Time and memory:
LARGE = 2e8  # floating-point operations of a piece from which it is worth a thread of its own

Common = TypeVar("Common")
Item = TypeVar("Item")
Result = TypeVar("Result")


class _Torch:
    """torch's own thread pool, which threadpoolctl does not find; nothing where it is not loaded.

    Importing it takes seconds, and most runs do without.
    """

    @staticmethod
    def threads() -> int | None:
        get = getattr(sys.modules.get("torch"), "get_num_threads", None)
        return None if get is None else int(get())

    @staticmethod
    def limit(threads: int) -> None:
        set_threads = getattr(sys.modules.get("torch"), "set_num_threads", None)
        if set_threads is not None:
            set_threads(threads)


class _Allowed:
    """How many threads the user granted, remembered while a run works on one."""

    threads: int | None = None

    @classmethod
    def most(cls) -> int:
        return cls.threads or _Torch.threads() or _granted()


@cache
def _granted() -> int:
    """What the environment grants: OMP_NUM_THREADS, or the cores that this process may use."""
    named = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0]
    if named.isdecimal() and int(named) > 0:
        return int(named)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def granted_threads() -> int:
    """How many threads the user granted, also inside `one_thread`."""
    return _Allowed.most()


@contextmanager
def one_thread() -> Iterator[None]:
    """Everything inside is computed on one thread, unless it asks for more; then all is as before.

    What the user granted, by OMP_NUM_THREADS or torch.set_num_threads, is the most that large work
    inside can get.
    """
    outside = _Allowed.threads
    most = _Allowed.most()
    before = _Torch.threads() or (most if outside is None else 1)
    _Allowed.threads = most
    _Torch.limit(1)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        _Allowed.threads = outside
        _Torch.limit(before)


def limit_loaded_torch() -> None:
    """Called where torch is loaded: inside a run that works on one thread it does so too."""
    if _Allowed.threads is not None:
        _Torch.limit(1)


@contextmanager
def threads_for(is_large: bool) -> Iterator[None]:
    """All granted threads for one large piece of work that torch itself can share, else one."""
    before = _Torch.threads() or 1
    _Torch.limit(_Allowed.most() if is_large else 1)
    try:
        yield
    finally:
        _Torch.limit(before)


def shared(
    function: Callable[[Item], Result], items: Iterable[Item], operations: float
) -> Iterator[Result]:
    """`function` of every item, in order; by all granted threads if each is so many operations.

    No more pieces are begun than there are threads and one more, so that little is held at once.
    Threads see the caller's context, such as the thresholds of the run.
    """
    most = _Allowed.most()
    if most == 1 or operations < LARGE:
        yield from map(function, items)
        return
    left = iter(items)
    with one_thread(), ThreadPoolExecutor(most) as pool:
        begun: deque[Future[Result]] = deque(
            pool.submit(copy_context().run, function, item) for item in islice(left, most + 1)
        )
        try:
            while begun:
                done = begun.popleft().result()
                begun.extend(pool.submit(copy_context().run, function, x) for x in islice(left, 1))
                yield done
        finally:
            for piece in begun:
                piece.cancel()


class Helpers(Protocol):
    """Those who do pieces elsewhere."""

    def each(
        self, function: Callable[[Any, Any], Any], common: Any, items: Sequence[Any]
    ) -> Iterator[Any]:
        """`function(common, item)` of every item, in order; `common` travels once."""


class _Asked:
    """The helpers of the run that is at work."""

    helpers: Helpers | None = None


@contextmanager
def helped_by(helpers: Helpers | None) -> Iterator[None]:
    """What `parallel_map` is given inside is done by these helpers, or here if there are none."""
    before = _Asked.helpers
    _Asked.helpers = helpers
    try:
        yield
    finally:
        _Asked.helpers = before


def helped() -> bool:
    """Whether there are helpers."""
    return _Asked.helpers is not None


def parallel_map(
    function: Callable[[Common, Item], Result],
    common: Common,
    items: Sequence[Item],
    operations: float = LARGE,
) -> Iterator[Result]:
    """`function(common, item)` of every item, in order, each of about so many operations.

    The function is importable by name and changes nothing: helpers work on copies.
    """
    if _Asked.helpers is None or len(items) < 2:
        return shared(partial(function, common), items, operations)
    return _Asked.helpers.each(function, common, items)


def in_blocks(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    """Neighbours together, `size` in each block: a piece should be worth its way."""
    return [items[start : start + size] for start in range(0, len(items), size)]
