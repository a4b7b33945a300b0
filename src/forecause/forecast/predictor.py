"""What the test asks of a forecaster: forecasts, and which inputs they look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from forecause.arrays import Array, Index


class Predictor(Protocol):
    """Anything that forecasts one target from inputs; it need not be differentiable."""

    @property
    def reads(self) -> Index:
        """The input columns that it looks at; the others cannot become edges."""

    def predict(self, inputs: Array) -> Array:
        """Forecasts (row,) from inputs (row, input)."""


@runtime_checkable
class HasParts(Protocol):
    """A predictor that is a sum, of which it can compute a part: faster, the result is the same."""

    def part(self, inputs: Array, columns: Index) -> Array:
        """The terms (row,) that involve any of some columns, up to a constant."""


@runtime_checkable
class HasTerms(Protocol):
    """A predictor that can name the joint functions of inputs which it is made of."""

    def terms(self, inputs: Array) -> tuple[list[tuple[int, ...]], Array]:
        """The input columns of every term, and their values (row, term)."""


@runtime_checkable
class KnowsEffects(Protocol):
    """A predictor that works out for all targets at once what a group of inputs does."""

    def effect(self, replaced: Callable[[int], list[Array]], group: int) -> Array:
        """h_c (row,) on the rows of its test; `replaced` gives copies of the inputs in which a
        group has other values."""


def part_of(predictor: Predictor, inputs: Array, columns: Index) -> Array:
    """Forecasts (row,) up to terms that some columns have no part in."""
    if isinstance(predictor, HasParts):
        return predictor.part(inputs, columns)
    return predictor.predict(inputs)
