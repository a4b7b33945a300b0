"""The direct effect of one earlier value: all other inputs are held where they are.

A number is raised by one standard deviation; a level of a label (variable=level) stands in place of
the other levels. What a level of a label does as a target is the change of its probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from forecause.common.arrays import Array, Floats
from forecause.common.views import card, figure
from forecause.data.panel import Scale
from forecause.effects.answering import (
    CAVEAT,
    Models,
    caveat_of,
    check_count,
    column_place,
    windows_of,
)
from forecause.effects.intervals import COLUMNS, LEVEL, UNKNOWN, Interval, average_effect
from forecause.effects.levels import LevelChange, level_effect
from forecause.result import Result


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
    shift: float  # one standard deviation of the source; 1 for a level
    samples: Array  # (window,)
    change: float = float("nan")
    low: float = float("nan")  # of the interval; NaN where it is not known
    high: float = float("nan")
    level: float = LEVEL
    caveat: str = CAVEAT
    total: bool = False
    is_level: bool = False  # the source is a level, in place of the others

    @property
    def push(self) -> str:
        """What is done to the source, in words."""
        if self.is_level:
            return f"{self.source} instead of another level"
        return f"{self.source} raised by {figure(self.shift)}, one standard deviation"

    @property
    def mean(self) -> float:
        """Average change of the target's forecast."""
        return float(self.samples.mean())

    @property
    def sd(self) -> float:
        """How much the change differs between windows: 0 if the effect is linear."""
        return float(self.samples.std())

    def __repr__(self) -> str:
        change = self.mean if np.isnan(self.change) else self.change
        interval = f"{self.level:.0%} interval {self.low:+.3g} to {self.high:+.3g}"
        if np.isnan(self.low):
            interval = "interval unknown without the data"
        size = "instead of another level" if self.is_level else f"+ {self.shift:.3g}"
        return (
            f"Effect({self.source} {size} -> {self.target} {change:+.3g} after "
            f"{self.lag}, {'total' if self.total else 'direct'}, {interval})"
        )

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        change = self.mean if np.isnan(self.change) else self.change
        span = {"from": self.low, "to": self.high} if self.low == self.low else {}
        told = {"rows later": str(self.lag), f"change of {self.target}": change, **span}
        kind = "total" if self.total else "direct"
        title = f"{self.push}: {kind} effect"
        return card(title, [self.caveat], pd.DataFrame([told]))


def effect(found: Result, source: str, target: str, lag: int) -> Effect:
    """The direct effect of a source, `lag` rows back, in windows of all the data."""
    cause, outcome = column_place(found, source), column_place(found, target)
    check_count("lag", lag, most=found.graph.max_lag)
    level = level_change(found, cause)
    if level is None:
        shift, change = float(found.data.sd[cause]), _raised(found, cause, lag)
        interval = _interval(found, source, outcome, lag)
    else:
        shift, change = 1.0, _at_level(found, level, lag)
        interval = _level_interval(found, level, outcome, lag)
    samples = change[:, outcome].astype(np.float64) * found.data.sd[outcome]
    return Effect(
        *(source, target, lag, shift, samples, *interval),
        caveat=caveat_of(found),
        is_level=level is not None,
    )


def level_change(found: Result, column: int) -> LevelChange | None:
    """What a level changes, where the column is one."""
    return LevelChange.of(found.data.coding, Scale(found.data.mean, found.data.sd), column)


def _raised(found: Result, cause: int, lag: int) -> Floats:
    """What raising a column by one sd changes in every forecast, (window, column)."""
    window, model = found.data.sampled, Models.of(found).causal
    raised = window.past.copy()
    raised[:, -lag, cause] += 1.0  # inputs are standardised
    before, after = (model(past, domain=window.domain) for past in (window.past, raised))
    return np.asarray(after - before)


def _at_level(found: Result, change: LevelChange, lag: int) -> Floats:
    """What a level in place of the others changes in every forecast, (window, column)."""
    window, model = found.data.sampled, Models.of(found).causal

    def told(values: Array) -> Floats:
        past = window.past.copy()
        past[:, -lag, change.columns] = values
        return model(past, domain=window.domain)

    others = zip(change.chances, change.others, strict=True)
    return np.asarray(told(change.level) - sum(chance * told(other) for chance, other in others))


def _interval(found: Result, source: str, outcome: int, lag: int) -> Interval:
    """Read from the table of edges; for what is no edge, estimated from the data if it is there."""
    edges, target = found.graph.edges, found.data.coding.of_column[outcome]
    name = found.data.variables[target]
    own = (edges["source"] == source) & (edges["target"] == name) & (edges["lag"] == lag)
    if own.any() and COLUMNS[0] in edges and found.data.coding.label(target) is None:
        return Interval(*edges.loc[own, list(COLUMNS)].to_numpy(dtype=float)[0])
    windows = windows_of(found)
    if windows is None:
        return UNKNOWN
    return average_effect(found.graph, windows, source, name, lag, column=outcome)


def _level_interval(found: Result, change: LevelChange, outcome: int, lag: int) -> Interval:
    """Of a level's effect on a column, in the data's units."""
    windows = windows_of(found)
    if windows is None:
        return UNKNOWN
    causes = Models.of(found).causal.allowed[outcome].ravel()
    told = level_effect(windows, change, outcome, lag, causes)
    return Interval(*(float(found.data.sd[outcome]) * end for end in told))
