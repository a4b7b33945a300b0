"""Unknown regimes: when does the mechanism change, and which stretches share one?

The loss profile of linear models that are refitted to stretches of time, always judged on blocks
they were not fitted to. Cutting a stretch in two pays only if two models forecast such blocks
better than one; where the mechanism never changes, every cut costs, because each model then has
fewer rows to learn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from forecause.common.arrays import Array, Index
from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.data.windows import Windows, batches_of, moments_of
from forecause.errors import InputError
from forecause.progress import QUIET, Progress
from forecause.regression.moments import Moments, unexplained

# Time and memory:
MOST_BLOCKS = 100  # the grid on which cuts are looked for
SEARCH_WORK = 4e9  # multiplications that the search may cost, which bounds the blocks

# Numerics:
RIDGE = 1e-3

COLUMNS = ["row", "earliest", "latest", "before", "after", "certainty"]


@dataclass(frozen=True, eq=False)
class Regimes:
    """Which stretches of rows follow which mechanism.

    `changes` has one line per change point: row (the first of the new regime), earliest and
    latest (between which it lies), before and after (the regimes), certainty (by how many standard
    errors two models forecast better than one).
    """

    names: tuple[str, ...]
    of_row: Index  # (row,) index into names
    changes: pd.DataFrame

    def applied(self, panel: Panel) -> Panel:
        """The panel with the regimes as its domains."""
        return panel.with_domain(self.of_row, self.names)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; stretches are [first row, regime]."""
        first = np.concatenate([[0], np.flatnonzero(np.diff(self.of_row)) + 1])
        return {
            "names": list(self.names),
            "stretches": [[int(row), self.names[self.of_row[row]]] for row in first],
            "changes": self.changes.to_dict(orient="list"),
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any], rows: int) -> Regimes:
        """Back from `to_dict`, for data of this many rows."""
        names = tuple(saved["names"])
        first = [row for row, _ in saved["stretches"]]
        places = np.array([names.index(name) for _, name in saved["stretches"]], dtype=np.int64)
        of_row = np.repeat(places, np.diff([*first, rows]))
        return cls(names, of_row, pd.DataFrame(saved["changes"], columns=COLUMNS))

    @property
    def sentence(self) -> str:
        """The finding in plain words."""
        if self.changes.empty:
            return "No change of the mechanism over time was found: one regime."
        cuts = [
            f"row {row:,} (between {first:,} and {last:,})"
            for row, first, last in self.changes[["row", "earliest", "latest"]].to_numpy()[:5]
        ]
        more = len(self.changes) - len(cuts)
        listed = ", ".join(cuts) + (f" and {more} more" if more else "")
        return f"The mechanism changes at {listed}: {len(self.names)} regimes."


def find_regimes(windows: Windows, count: int | None = None, progress: Progress = QUIET) -> Regimes:
    """Find the regimes; `count` of them if given, otherwise as many as pay."""
    if count is not None and count < 1:
        raise InputError(f"The number of regimes must be at least 1, found {count}.")
    search = _Search(windows, progress)
    cuts = search.cuts(count)
    rows = [search.sharpened(cuts, place) for place in range(1, len(cuts) - 1)]
    groups = search.grouped(cuts, count)
    names = tuple(f"regime {i + 1}" for i in range(max(groups) + 1))
    ends = [0, *(best for best, _, _ in rows), windows.panel.rows]
    of_row = np.repeat(np.array(groups), np.diff(ends)).astype(np.int64)
    lines = [
        (*row, names[before], names[after], round(search.certainty(cuts, place + 1), 2))
        for place, (row, (before, after)) in enumerate(zip(rows, pairwise(groups), strict=True))
        if before != after
    ]
    return Regimes(names, of_row, pd.DataFrame(lines, columns=COLUMNS))


class _Search:
    """Moments of consecutive blocks of windows; even blocks are judged by fits to odd ones."""

    def __init__(self, windows: Windows, progress: Progress) -> None:
        self.windows, self.progress = windows, progress
        inputs = windows.shape[0] * windows.shape[1] + 1
        affordable = int(np.sqrt(SEARCH_WORK / inputs**3 * 3))
        blocks = min(
            MOST_BLOCKS, affordable, len(windows) // thresholds().regimes.windows_per_block
        )
        if blocks < 4:
            raise InputError(
                f"Too few rows to look for regimes: {len(windows)} windows for {inputs - 1} "
                "inputs; use a smaller lag, fewer variables or more rows."
            )
        # Folds alternate within a block, so that every stretch of blocks has both.
        self.edges = np.linspace(0, len(windows), blocks + 1).astype(np.int64)
        halves = []
        for low, high in pairwise(self.edges):
            middle = (low + high) // 2
            parts = (np.arange(low, middle), np.arange(middle, high))
            halves.append([moments_of(windows.at(part)) for part in parts])
        self.sums = tuple(_Cumulative([half[fold] for half in halves]) for fold in (0, 1))
        self.least = max(2, int(np.ceil(inputs / np.diff(self.edges).min())))  # blocks of a stretch
        self.blocks = blocks
        self.noise = self._judged_group([(0, blocks)]) / len(windows)  # (target,)

    def costs(self, lows: Index, high: int) -> Array:
        """Of the stretches low .. high: squared errors of each half of the blocks by a fit to the
        other, in units of the noise, summed over targets, (low,)."""
        a, b = (fold.up_to(lows, high) for fold in self.sums)
        return np.asarray((_judged(a, b) / self.noise).sum(1))

    def cuts(self, count: int | None) -> list[int]:
        """Block edges of the best stretches: optimal partitioning at a price per cut."""
        price = thresholds().regimes.price * np.log(len(self.windows))
        best = np.full(self.blocks + 1, np.inf)
        best[0], before = -price, np.zeros(self.blocks + 1, dtype=int)
        costs = np.full((self.blocks + 1, self.blocks + 1), np.inf)
        for high in range(self.least, self.blocks + 1):
            self.progress.step("looking for regimes", high / self.blocks)
            lows = np.array([0, *range(self.least, high - self.least + 1)])
            costs[lows, high] = self.costs(lows, high)
            total = best + costs[:, high] + price
            before[high] = int(np.argmin(total))
            best[high] = total[before[high]]
        cuts = [self.blocks]
        while cuts[-1]:
            cuts.append(int(before[cuts[-1]]))
        cuts = self._believed(cuts[::-1])
        return cuts if count is None or len(cuts) > count else _partition(costs, count)

    def _believed(self, cuts: list[int]) -> list[int]:
        """Without the cuts that do not pay for sure, the least sure taken out first."""
        while len(cuts) > 2:
            sure = [self.certainty(cuts, place) for place in range(1, len(cuts) - 1)]
            if min(sure) >= thresholds().regimes.sure:
                break
            del cuts[1 + int(np.argmin(sure))]
        return cuts

    def certainty(self, cuts: Sequence[int], place: int) -> float:
        """Standard errors by which two models beat one on the blocks around a cut."""
        low, cut, high = cuts[place - 1 : place + 2]
        gains = []
        for fit, judge in (self.sums, self.sums[::-1]):
            one = fit.between(low, high).solve(RIDGE)
            before, after = (fit.between(*s).solve(RIDGE) for s in ((low, cut), (cut, high)))
            for block in range(low, high):
                held = judge.between(block, block + 1)
                gain = (held.loss(one) - held.loss(before if block < cut else after)) / self.noise
                gains.append(float(gain.sum()) * int(held.count))
        values = np.array(gains)
        return float(values.mean() / max(values.std() / np.sqrt(len(values)), 1e-12))

    def sharpened(self, cuts: Sequence[int], place: int) -> tuple[int, int, int]:
        """The row at which the models before and after a cut change places, within its blocks; the
        earliest and the latest that are about as likely."""
        low, cut, high = cuts[place - 1 : place + 2]
        reach_low, reach_high = max(low + 1, cut - 3), min(high - 1, cut + 3)
        near = self.windows.at(np.arange(self.edges[reach_low], self.edges[reach_high]))
        before, after = (
            self._errors(near, *stretch)
            for stretch in ((low, max(cut - 1, low + 1)), (min(cut + 1, high - 1), high))
        )
        worse = before - after
        # Cutting before window i: those from i on are forecast by the model after the cut.
        loss = np.concatenate([[0.0], np.cumsum(worse)])
        likely = np.flatnonzero(loss <= loss.min() + thresholds().regimes.likely_rise)
        rows = np.append(near.rows, near.rows[-1] + 1)
        return int(rows[np.argmin(loss)]), int(rows[likely[0]]), int(rows[likely[-1]])

    def _errors(self, windows: Windows, low: int, high: int) -> Array:
        """Squared errors per window by a fit to a stretch, in units of the noise, summed over
        targets."""
        fit = Moments.added([fold.between(low, high) for fold in self.sums]).solve(RIDGE)
        return np.asarray((unexplained(batches_of(windows), fit) ** 2 / self.noise).sum(1))

    def grouped(self, cuts: Sequence[int], count: int | None) -> list[int]:
        """The regime of each stretch: stretches that one model forecasts as well share one."""
        groups = [[stretch] for stretch in pairwise(cuts)]
        while len(groups) > 1:
            prices = {
                (i, j): self._price_of_merging(groups[i], groups[j])
                for i in range(len(groups))
                for j in range(i)
            }
            (i, j), price = min(prices.items(), key=lambda item: item[1])
            if price > 0 if count is None else len(groups) <= count:
                break
            groups[j] += groups.pop(i)
        of = {stretch: g for g, group in enumerate(groups) for stretch in group}
        order: dict[int, int] = {}  # regimes are numbered as they first appear
        return [order.setdefault(of[stretch], len(order)) for stretch in pairwise(cuts)]

    def _price_of_merging(self, one: list[tuple[int, int]], two: list[tuple[int, int]]) -> float:
        """Growth of the judged errors, in units of the noise, beyond the price of a cut."""
        separate = self._judged_group(one) + self._judged_group(two)
        together = self._judged_group(one + two)
        growth = float(((together - separate) / self.noise).sum())
        return growth - thresholds().regimes.price * float(np.log(len(self.windows)))

    def _judged_group(self, stretches: Sequence[tuple[int, int]]) -> Array:
        a, b = (Moments.added([fold.between(*s) for s in stretches]) for fold in self.sums)
        return _judged(a, b)


class _Cumulative:
    """Moments of any stretch of blocks, as a difference of running sums."""

    def __init__(self, parts: Sequence[Moments]) -> None:
        self.counts = np.cumsum([0, *(part.count for part in parts)])
        sums = (np.stack([getattr(p, kind) for p in parts]) for kind in ("gram", "cross", "square"))
        self.gram, self.cross, self.square = (
            np.concatenate([np.zeros_like(each[:1]), each.cumsum(0)]) for each in sums
        )

    def up_to(self, lows: Index, high: int) -> Moments:
        """The moments of each of the stretches low .. high; a first axis (low,)."""
        counts = (self.counts[high] - self.counts[lows]).astype(np.float64)
        kinds = (self.gram, self.cross, self.square)
        return Moments(counts, *(kind[high] - kind[lows] for kind in kinds))

    def between(self, low: int, high: int) -> Moments:
        kinds = (self.counts, self.gram, self.cross, self.square)
        return Moments(*(kind[high] - kind[low] for kind in kinds))


def _judged(a: Moments, b: Moments) -> Array:
    """Squared errors (..., target) of each half by the fit to the other."""
    first, second = (
        judge.loss(fit.solve(RIDGE)) * np.asarray(judge.count)[..., None]
        for fit, judge in ((a, b), (b, a))
    )
    return first + second


def _partition(costs: Array, count: int) -> list[int]:
    """Edges of exactly `count` stretches with the least cost, as far as there are blocks."""
    blocks = len(costs) - 1
    best = costs[0].copy()
    steps = []
    for _ in range(count - 1):
        total = best[:, None] + costs
        steps.append(np.argmin(total, axis=0))
        best = total.min(axis=0)
    if not np.isfinite(best[blocks]):
        raise InputError(f"Too few rows for {count} regimes; ask for fewer or use more rows.")
    edges = [blocks]
    for step in reversed(steps):
        edges.append(int(step[edges[-1]]))
    return [0, *edges[::-1]]
