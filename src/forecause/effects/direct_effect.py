"""The direct effect of one earlier value: all other inputs are held where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.data.windows import Windows
from forecause.effects.answering import CAVEAT, Models, caveat_of, number_place
from forecause.effects.intervals import COLUMNS, LEVEL, UNKNOWN, Interval, average_effect
from forecause.errors import InputError
from forecause.result import Result
from forecause.views import card, figure

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Effect:
    """The effect of one earlier value: how a forecast moves when it is raised by one sd.

    Direct: all other values are held where they are, so what goes through other variables in
    between is left out; unless it is `total`. In the data's own units.
    `change` is the average over the rows of the data, per standard deviation of the source, with a
    confidence interval from `low` to `high`; `samples` holds what the causal forecaster says in
    every window that was tried.
    """

    source: str
    target: str
    lag: int
    shift: float  # one standard deviation of the source
    samples: Array  # (window,)
    change: float = float("nan")
    low: float = float("nan")  # of the interval; NaN where it is not known
    high: float = float("nan")
    level: float = LEVEL
    caveat: str = CAVEAT
    total: bool = False

    @property
    def mean(self) -> float:
        """Average change of the target's forecast."""
        return float(self.samples.mean())

    @property
    def sd(self) -> float:
        """How much the change differs between windows: 0 if the effect is linear."""
        return float(self.samples.std())

    def quantile(self, share: float | Sequence[float]) -> Any:
        """Quantiles of the change over the windows."""
        return np.quantile(self.samples, share)

    def __repr__(self) -> str:
        change = self.mean if np.isnan(self.change) else self.change
        interval = f"{self.level:.0%} interval {self.low:+.3g} to {self.high:+.3g}"
        if np.isnan(self.low):
            interval = "interval unknown without the data"
        return (
            f"Effect({self.source} + {self.shift:.3g} -> {self.target} {change:+.3g} after "
            f"{self.lag}, {'total' if self.total else 'direct'}, {interval})"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        change = self.mean if np.isnan(self.change) else self.change
        span = {"from": self.low, "to": self.high} if self.low == self.low else {}
        told = {"rows later": str(self.lag), f"change of {self.target}": change, **span}
        kind = "total" if self.total else "direct"
        title = (
            f"{self.source} raised by {figure(self.shift)}, one standard deviation: {kind} effect"
        )
        return card(title, [self.caveat], pd.DataFrame([told]))


def effect(found: Result, source: str, target: str, lag: int) -> Effect:
    """The direct effect: raise `source`, `lag` rows back, by one sd in windows of all the data."""
    cause, outcome = number_place(found, source), number_place(found, target)
    if not 1 <= lag <= found.graph.max_lag:
        raise InputError(f"The lag must lie between 1 and {found.graph.max_lag}, found {lag}.")
    window, model = found.data.sampled, Models.of(found).causal
    raised = window.past.copy()
    raised[:, -lag, cause] += 1.0  # inputs are standardised
    before, after = (model(past, domain=window.domain) for past in (window.past, raised))
    change = (after - before)[:, outcome].astype(np.float64)
    sd = found.data.sd
    interval = _interval(found, source, target, lag)
    caveat = caveat_of(found)
    samples = change * sd[outcome]
    return Effect(source, target, lag, float(sd[cause]), samples, *interval, caveat=caveat)


def _interval(found: Result, source: str, target: str, lag: int) -> Interval:
    """Read from the table of edges; for what is no edge, estimated from the data if it is there."""
    edges = found.graph.edges
    own = (edges["source"] == source) & (edges["target"] == target) & (edges["lag"] == lag)
    if own.any() and COLUMNS[0] in edges:
        return Interval(*edges.loc[own, list(COLUMNS)].to_numpy(dtype=float)[0])
    windows = found.windows
    if windows is None:
        try:
            windows = Windows.of(found.deseasonalised_panel(), found.graph.max_lag)
        except InputError:  # a loaded run whose data is gone
            return UNKNOWN
    return average_effect(found.graph, windows, source, target, lag)
