"""Who does the pieces of a long stage: the threads of this process, or helpers elsewhere.

A stage that falls into independent pieces hands them to `spread`. How it is cut, and the order in
which the parts are put together, is the stage's own and does not depend on who does them, so
neither does the result. `resources.workers` knows who the helpers of a run are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

from forecause.threads import LARGE, shared

Common = TypeVar("Common")
Item = TypeVar("Item")
Result = TypeVar("Result")


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
    """What is spread inside is done by these helpers, or here if there are none."""
    before = _Asked.helpers
    _Asked.helpers = helpers
    try:
        yield
    finally:
        _Asked.helpers = before


def spread(
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
