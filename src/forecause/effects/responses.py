"""Responses: the total effect of one variable on all others over time, whatever path it takes.

The point is what the causal forecaster says: by the recursion of impulse responses where it is
straight, by simulation from states of the data where it is curved, both arms with the same noise.
A band holds the interval of lines on the causes alone, which takes the graph for granted, and that
of a dense fit, which knows of no graph: half of the latter where both agree, all where they differ
(bench responses).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from forecause.common.arrays import Array, Mask
from forecause.common.views import card, figure
from forecause.data.summary import Timing, delay_text
from forecause.data.windows import Windows, past_and_targets
from forecause.effects.answering import (
    FARTHEST,
    Models,
    caveat_of,
    check_count,
    column_place,
    finite_number,
    noise_of,
    variable_place,
    windows_of,
)
from forecause.effects.coefficient_draws import coefficient_errors, has_dense_fit
from forecause.effects.direct_effect import Effect, level_change
from forecause.effects.intervals import LEVEL
from forecause.effects.pushes import Raise, cases_of, recursion
from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster
from forecause.result import Result

# Time and memory:
DRAWS = 300  # of coefficients, for the bands
MOST_WINDOWS = 20_000  # for the bands
MOST_HORIZON = 500

# Looks:
NORMAL_90 = 1.6449  # standard errors of a 90 % interval
SHOWN = 6  # targets in a picture


GIVEN_GRAPH = "The bands take the graph as given: there are too few rows for a fit on all inputs."
NO_BANDS = "The bands are unknown: the run's data is not where it was."


@dataclass(frozen=True, eq=False)
class Response:
    """What follows after one variable is raised, in all variables, in the data's units.

    `table` has a line per target and row after the push: source, target, after, effect, low, high;
    low to high is a 90 % band. `direct` has the part that goes through no third variable.
    """

    source: str
    amount: float  # in the source's units
    held: bool  # raised from then on, not once
    through: str | None  # only what passes through this variable
    table: pd.DataFrame
    direct: pd.DataFrame  # target, after, effect
    level: float
    caveat: str
    timing: Timing
    sd: pd.Series  # of every target
    own: tuple[str, ...]  # the columns of the source: its name, or all levels of a label

    @property
    def direct_share(self) -> pd.Series:
        """Per target: the largest direct effect over the largest total one, between 0 and 1.

        NaN for what does not move, and for the source itself.
        """
        total = self._largest(self.table)
        share = (self._largest(self.direct) / total.where(total > 0)).clip(upper=1.0)
        return share.drop(list(self.own)).rename("direct_share")

    def at(self, target: str, after: int) -> pd.Series:
        """Effect, low and high on one target so many rows later."""
        own = self.table[(self.table["target"] == target) & (self.table["after"] == after)]
        if own.empty:
            raise InputError(
                f"No response of {target!r} after {after} rows; ask for a longer horizon or one "
                f"of {', '.join(dict.fromkeys(self.table['target']))}."
            )
        return own.iloc[0]

    @property
    def sentence(self) -> str:
        """The strongest answer in words."""
        others = self.table[~self.table["target"].isin([*self.own, self.through])]
        how = "held" if self.held else "once"
        push = f"{self.source} {self._size}, {how}:"
        by = f" by way of {self.through}" if self.through else ""
        sizes = others["effect"].abs() / others["target"].map(self.sd)
        if not len(others) or not (others["effect"] != 0).any():
            return f"{push} nothing else moves{by}."
        best = others.iloc[int(np.argmax(sizes.to_numpy()))]
        band = ""
        if np.isfinite(best["low"]):
            band = f" [{self.level:.0%}: {best['low']:+.3g} to {best['high']:+.3g}]"
        share = self.direct_share.get(best["target"], np.nan)
        direct = "" if self.through or not np.isfinite(share) else f"; {share:.0%} of it is direct"
        when = delay_text(int(best["after"]), self.timing)
        return f"{push} {best['target']} {best['effect']:+.3g}{band} after {when}{by}{direct}."

    def plot(self, targets: Sequence[str] | None = None) -> Any:
        """The courses with their bands, a panel per target (those that move most); a figure."""
        from matplotlib import pyplot as plt

        moved = self._largest(self.table).drop(list(self.own))
        order = (moved / self.sd[moved.index]).sort_values(ascending=False)
        names = list(targets or order[order > 0].index[:SHOWN]) or [self.source]
        figure, axes = plt.subplots(
            1,
            len(names),
            figsize=(2.6 * len(names) + 0.6, 2.6),
            layout="constrained",
            squeeze=False,
        )
        for axis, name in zip(axes[0], names, strict=True):
            own = self.table[self.table["target"] == name]
            axis.axhline(0, color="#9aa5b1", linewidth=0.8)
            axis.fill_between(own["after"], own["low"], own["high"], alpha=0.25, linewidth=0)
            axis.plot(own["after"], own["effect"])
            axis.set_title(str(name).replace("$", r"\$"), fontsize=10)
            axis.set_xlabel("rows after")
            axis.xaxis.get_major_locator().set_params(integer=True)
        axes[0][0].set_ylabel(f"{self.source.replace('$', '')} {self._size}")
        return figure

    @property
    def _size(self) -> str:
        return f"{self.amount:+.3g}" if len(self.own) == 1 else "instead of another level"

    @staticmethod
    def _largest(table: pd.DataFrame) -> pd.Series:
        return table["effect"].abs().groupby(table["target"], sort=False).max()

    @property
    def moved(self) -> pd.DataFrame:
        """The table of the targets that move; the source is the same in all lines."""
        moves = self.table["effect"].ne(0).groupby(self.table["target"]).transform("any")
        return self.table[moves].drop(columns="source")

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return card(self.sentence, [self.caveat], self.moved)

    def __repr__(self) -> str:
        return f"Response({self.sentence})"


def response(
    found: Result,
    source: str,
    horizon: int = 12,
    amount: float | None = None,
    held: bool = False,
    through: str | None = None,
    data: Any = None,
    seed: int = 0,
) -> Response:
    """What raising `source` by `amount` (one sd), once or held, does to all variables."""
    check_count("horizon", horizon, most=MOST_HORIZON)
    check_count("seed", seed, least=0)
    push, size = _push(found, source, horizon, amount, held)
    sd = found.data.sd
    between = _between(found, push, through)
    model = Models.of(found).causal
    told = _told(found, model, push, between, seed)
    ends, said = _ends(found, push, between, told, data, seed)
    columns = list(found.data.columns)
    table = pd.DataFrame(
        {
            "source": source,
            "target": np.repeat(columns, horizon),
            "after": np.tile(np.arange(1, horizon + 1), len(columns)),
            "effect": (told.total * sd).T.ravel(),
        }
    )
    for name, end in zip(("low", "high"), ends, strict=True):
        table[name] = (end * sd).T.ravel()
    parts = table[["target", "after"]].assign(effect=(told.direct * sd).T.ravel())
    caveat = " ".join(filter(None, [caveat_of(found), said]))
    spread = pd.Series(sd, index=columns)
    own = tuple(columns[column] for column in push.columns)
    return Response(
        *(source, size, held, through, table, parts, LEVEL, caveat, found.timing, spread, own)
    )


def _push(
    found: Result, source: str, horizon: int, amount: float | None, held: bool
) -> tuple[Raise, float]:
    """What is done to the source, and its size in the source's units."""
    place, course = column_place(found, source), found.data.course
    level = level_change(found, place)
    sums = np.zeros(len(found.data.columns), bool)
    if course is not None and course.levels is not None:
        sums[found.data.coding.numeric_columns] = True
    if level is not None:
        if amount is not None:
            raise InputError(f"{source!r} is a level, which holds or not; leave the amount out.")
        return Raise(level.columns, level.step, horizon, held, sums, level), 1.0
    sd = float(found.data.sd[place])
    size = sd if amount is None else finite_number("amount", amount)
    if size == 0 or abs(size) > FARTHEST * sd:
        raise InputError(
            f"The amount must be a number other than 0 of at most {FARTHEST:,.0f} standard "
            f"deviations ({figure(FARTHEST * sd)}), found {amount!r}."
        )
    step = np.array([size / sd])
    return Raise([place], step, horizon, held, sums), size


def total_effect(found: Result, source: str, target: str, lag: int) -> Effect:
    """The response of a target so many rows after its source was raised once by one sd."""
    column_place(found, target)
    check_count("lag", lag, most=MOST_HORIZON)
    answer = response(found, source, lag)
    change, low, high = answer.at(target, lag)[["effect", "low", "high"]].astype(float)
    samples = np.array([change])
    return Effect(
        *(source, target, lag, answer.amount, samples, change, low, high),
        caveat=answer.caveat,
        total=True,
        is_level=len(answer.own) > 1,
    )


def variance_shares(found: Result, horizon: int = 12) -> pd.DataFrame:
    """What share of a forecast's error variance comes from the noise of each source.

    A line per target, source and number of rows ahead. Noise is taken to be unrelated between
    variables, so no order of them matters; shares add up to 1.
    """
    model = Models.of(found).causal
    check_count("horizon", horizon, most=MOST_HORIZON)
    noise = noise_of(found, model, -1).std(0)
    columns = list(found.data.columns)
    added = np.zeros((horizon, len(columns), len(columns)))  # (row ahead, target, source)
    for source in range(len(columns)):
        push = Raise([source], noise[[source]].astype(np.float64), horizon)
        moved = np.zeros((1, horizon + 1, len(columns)))
        if noise[source] > 0:
            moved = cases_of(found, model, push, 0)(())
        added[:, :, source] = (moved[:, :-1] ** 2).mean(0)
    total = np.cumsum(added, axis=0)
    share = total / np.maximum(total.sum(axis=2, keepdims=True), 1e-300)
    index = pd.MultiIndex.from_product(
        [range(1, horizon + 1), columns, columns], names=["after", "target", "source"]
    )
    table = pd.DataFrame({"share": share.ravel()}, index=index).reset_index()
    return table[["target", "source", "after", "share"]].sort_values(
        ["target", "after"], kind="stable", ignore_index=True
    )


def _between(found: Result, push: Raise, through: str | None) -> list[int]:
    """The columns of the variable that must be passed."""
    if through is None:
        return []
    place = variable_place(found, through)
    own = found.data.coding.slices[place]
    if own.start in push.columns:
        raise InputError(f"A path from {through!r} through itself is every path; name another.")
    return list(range(own.start, own.stop))


class _Told(NamedTuple):
    """What the causal forecaster says, (row after, column), standardised."""

    total: Array
    direct: Array
    error: Array | None  # of a mean over states of the data, where it is curved


def _told(
    found: Result, model: Forecaster, push: Raise, between: Collection[int], seed: int
) -> _Told:
    """Total and direct effects."""
    cases = cases_of(found, model, push, seed)

    def ask(kept: Collection[int]) -> Array:
        return push.summed(cases(kept))

    total = ask(())
    if between:
        total = total - ask(between)
    direct = np.zeros(total.shape[1:])
    for target in np.flatnonzero(model.allowed[:, :, push.columns].any(axis=(1, 2))).tolist():
        kept = [c for c in range(model.n_variables) if c not in (target, *push.columns)]
        direct[:, target] = ask(kept).mean(0)[:, target]
    error = None if len(total) == 1 else total.std(0) / np.sqrt(len(total))
    return _Told(total.mean(0), direct, error)


def _ends(
    found: Result, push: Raise, between: Collection[int], told: _Told, data: Any, seed: int
) -> tuple[tuple[Array, Array], str]:
    """The ends of the bands (row after, column), standardised, and what to know of them.

    A band holds two intervals: that of the causes alone, about what the unshrunken lines say, and
    that of a fit on all inputs, where a link that the graph lacks shows: half of it if both say
    the same, all of it from a quarter of its width on. Where the forecaster is curved, the mean
    over states and what curves change count besides.
    """
    windows = windows_of(found, data)
    if windows is None:
        unknown = np.full(told.total.shape, np.nan)
        return (unknown, unknown), NO_BANDS
    windows = windows.thin(MOST_WINDOWS)
    causes = Models.of(found).causal.allowed
    on_causes = _lines(windows, push, between, seed, causes.reshape(len(causes), -1))
    is_dense = has_dense_fit(len(windows), windows.inputs)
    dense = _lines(windows, push, between, seed) if is_dense else on_causes
    centre, own, other = on_causes.point, on_causes.half, dense.half
    if told.error is not None:
        curves = np.hypot(NORMAL_90 * told.error, told.total - on_causes.point)
        centre, own, other = told.total, np.hypot(own, curves), np.hypot(other, curves)
    apart = dense.point - on_causes.point
    other = np.minimum(0.5 * other + 2 * np.abs(apart), other)
    low = np.minimum(centre - own, centre + apart - other)
    high = np.maximum(centre + own, centre + apart + other)
    ends = np.minimum(low, told.total), np.maximum(high, told.total)
    return ends, "" if is_dense else GIVEN_GRAPH


class _Lines(NamedTuple):
    """The response of lines, and half the width of 90 % of its draws, (row after, column)."""

    point: Array
    half: Array


def _lines(
    windows: Windows,
    push: Raise,
    between: Collection[int],
    seed: int,
    causes: Mask | None = None,
) -> _Lines:
    """Of a fit on all inputs, or on the causes (column, step * column) alone."""
    past, targets = (part.astype(np.float64) for part in past_and_targets(windows))
    fitted, errors = coefficient_errors(past, targets, DRAWS, seed, causes)
    weight = np.concatenate([fitted[None], fitted + errors])
    weight = weight.reshape(DRAWS + 1, targets.shape[1], *windows.shape)
    moved = push.summed(recursion(weight, push))
    if between:
        moved = moved - push.summed(recursion(weight, push, between))
    low, high = np.quantile(moved[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    return _Lines(moved[0], np.asarray((high - low) / 2))
