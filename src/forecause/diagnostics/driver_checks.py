"""Something that is not a column moves several of them: a hidden driver, one sum, a failing logger.

A common driver leaves traces: what the past leaves unexplained moves together, its largest values
come together, columns determine one another within a row, and averages of all columns tell more
than any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import ndtri, pdtrc

from forecause.common.arrays import Array, Index, Mask
from forecause.config.advice import Advice, hint
from forecause.data.windows import moments_of
from forecause.diagnostics.examined import Examined, by_size, named
from forecause.diagnostics.finding import Finding, between, listed, strongest, within
from forecause.regression.least_squares import principal_axes, pseudo_inverse
from forecause.regression.moments import Moments
from forecause.regression.robust import f_p_values

# Numerics:
DEPENDENT = 1e-6  # share of its variance that a column keeps beside the others, at most


# Time and memory:
MOST_INPUTS = 1000  # of the models that are compared for averages


EVENT_COLUMN = hint("add a column that is 1 where such an event happens")
LOOK_CLOSER = (
    Advice("instantaneous", True, "look closer with {}", call="refine"),
    Advice("latent", True, call="refine"),
    hint("add the missing variable"),
)
REMEDIES = (
    hint("add what drives them as a variable"),
    Advice("latent", True, "look closer with {}", call="refine"),
)


def _doubt(
    run: Examined,
    kind: str,
    seen: str,
    names: Sequence[str],
    evidence: dict[str, float],
    **more: Any,
) -> Finding:
    """About the links into some variables from all others."""
    about = within(names, run.names)
    return Finding(kind, seen, "doubt", about, tuple(names), evidence, **more)


def within_a_row(run: Examined) -> Iterator[Finding]:
    """Residuals that move together: a cause faster than the rows, or a hidden one.

    Variables that are joined by such pairs may have it in common: links among them are doubted.
    """
    names = run.names
    correlation, p_values = (np.triu(one, 1) for one in run.correlation(0))
    level = run.bounds.level / max(len(names) * (len(names) - 1) // 2, 1)
    clear = (np.abs(correlation) > run.bounds.least_correlation) & (p_values < level)
    pairs = by_size(correlation, clear)
    if not pairs:
        yield from _all_pairs_as_one(run)
    else:
        shown = [f"{names[i]} and {names[j]} ({correlation[i, j]:+.2f})" for i, j in pairs]
        groups = joined(clear | clear.T)
        yield Finding(
            "within-a-row",
            "What the past leaves unexplained moves together within the same row (correlation): "
            f"{listed(shown)}; a cause acts faster than the rows are apart, or a hidden variable "
            f"drives both{run.sampled}",
            gravity="doubt",
            about=between(
                [(names[i], names[j]) for group in groups for i, j in combinations(group, 2)]
            ),
            variables=named(names, [place for pair in pairs for place in pair]),
            evidence=strongest(
                (f"{names[i]} and {names[j]}", float(correlation[i, j])) for i, j in pairs
            ),
            advice=LOOK_CLOSER,
        )


def _all_pairs_as_one(run: Examined) -> Iterator[Finding]:
    """Residuals that move together a little in many pairs, in none of them clearly."""
    columns, inputs = run.coding.numeric_columns, run.windows.inputs
    if len(columns) < 3 or len(run.looked) < run.bounds.windows_per_input * inputs:
        return
    found = run.residuals.together(columns, inputs)
    if found.p_value > run.bounds.level or found.size < run.bounds.least_together:
        return
    moving = [
        run.column_names[i] for i in columns[found.of_each < run.bounds.moves_with_none].tolist()
    ]
    names = tuple(moving if len(moving) > 1 else (run.column_names[i] for i in columns.tolist()))
    yield Finding(
        "within-a-row",
        f"What the past leaves unexplained of {listed(names)} moves together a little within the "
        f"same row, in all pairs taken as one (correlation about {found.size:.2f}); a hidden "
        f"variable may drive many of them, or a cause acts faster than the rows are apart"
        f"{run.sampled}",
        gravity="doubt",
        about=within(names, names),
        variables=names,
        evidence={"all pairs": found.size},
        advice=LOOK_CLOSER,
    )


def joined(pairs: Mask) -> list[list[int]]:
    """Groups of two or more places that are connected by pairs (place, place), symmetric."""
    from scipy.sparse.csgraph import connected_components

    count, group_of = connected_components(pairs)
    groups = [np.flatnonzero(group_of == group).tolist() for group in range(count)]
    return [group for group in groups if len(group) > 1]


def common_shocks(run: Examined) -> Iterator[Finding]:
    """Variables whose largest residuals come together, in the same row or a few rows apart.

    What an event sets off in several columns, each after its own delay, looks like links between
    them. Residuals of linked variables are not large at the same time: the link explains that.
    """
    columns = run.coding.numeric_columns
    sizes = run.residuals.sizes(columns, run.bounds.largest_shock)
    lags, count = run.windows.max_lag, len(columns)
    numbers = [run.column_names[column] for column in columns]
    if count < run.bounds.least_shocked or len(sizes.rows) < run.bounds.least_shock_rows:
        return
    together = np.stack([sizes.correlation(lag)[0] for lag in range(lags + 1)])
    together = np.maximum(together, together.transpose(0, 2, 1)).max(0)
    np.fill_diagonal(together, 0.0)
    memory = sizes.memory(run.bounds.shock_memory)
    spread = np.sqrt(np.maximum(1 + 2 * memory.T @ memory, 1.0) / len(sizes.rows))
    level = run.bounds.level / (count * (count - 1) // 2 * (2 * lags + 1))
    clear = (together > run.bounds.least_correlation) & (together > -ndtri(level) * spread)
    for group in joined(clear):
        if len(group) < run.bounds.least_shocked:
            continue
        names = tuple(numbers[place] for place in group)
        pairs = by_size(together, np.triu(clear) & np.isin(np.arange(count), group))
        yield _doubt(
            run,
            "common-shocks",
            f"Surprises of {listed(names)} are large at about the same time: events that are not "
            "in the table may reach all of them, and links between them may only be the order in "
            f"which they show it{run.sampled}",
            names,
            strongest((f"{numbers[i]} and {numbers[j]}", float(together[i, j])) for i, j in pairs),
            advice=(EVENT_COLUMN, *REMEDIES),
        )


def dependent_columns(run: Examined) -> Iterator[Finding]:
    """Columns that determine one another within a row: shares, sums, the same in other units."""
    columns = run.coding.numeric_columns
    now = run.batch.target[:, columns].astype(np.float64)
    now = now[:, now.std(0) > 0] if len(columns) else now
    if now.shape[1] != len(columns) or len(columns) < 2 or len(now) < 2 * len(columns):
        return
    values, vectors = principal_axes(np.asarray(np.corrcoef(now.T)))
    places = np.flatnonzero(
        (np.abs(vectors[:, values < DEPENDENT]) > run.bounds.least_loading).any(1)
    )
    if not len(places):
        return
    names = tuple(run.column_names[columns[place]] for place in places.tolist())
    yield _doubt(
        run,
        "dependent-columns",
        f"{listed(names)} determine one another within every row, as shares or parts of a sum do; "
        "which of them is a cause cannot be told, and true links may be missed",
        names,
        {"smallest eigenvalue of their correlations": float(values[0])},
        advice=(hint("leave one of them out"), hint("use logarithms of ratios instead of shares")),
    )


def common_outages(run: Examined) -> Iterator[Finding]:
    """Rows in which every column has its most frequent value, far more often than by chance."""
    columns = run.coding.numeric_columns
    now = run.batch.target[:, columns]
    if len(columns) < 2:
        return
    most = [np.unique(own, return_counts=True) for own in now.T]
    modes = np.array([values[counts.argmax()] for values, counts in most])
    is_mode = now == modes
    rows, by_chance = int(is_mode.all(1).sum()), float(len(now) * is_mode.mean(0).prod())
    many = rows >= run.bounds.least_outages and rows > run.bounds.outages_over_chance * by_chance
    if not many or pdtrc(rows - 1, by_chance) > run.bounds.level:
        return
    names: Sequence[str] = [run.column_names[i] for i in columns.tolist()]
    yield _doubt(
        run,
        "common-outages",
        f"In {rows} rows all numbers have the very value that each has most often, as a logger "
        "writes that fails: such rows link everything with everything",
        names,
        {"rows": rows, "by chance": by_chance},
        advice=(Advice("missing", words="read that value as missing with {}"),),
    )


def common_driver(run: Examined) -> Iterator[Finding]:
    """Targets that averages of all other variables forecast better than any of them alone.

    Per target, the lags of the other variables' first one or two principal components are tested
    given its own past, and the single lags of the others given both. A cause among the columns is
    told better by its own lags; a driver that none of them records is told by all of them together.
    """
    windows, columns = run.looked, run.coding.numeric_columns
    inputs, rows = windows.inputs, len(windows)
    if len(columns) < 3 or inputs > MOST_INPUTS or rows < run.bounds.windows_per_input * inputs:
        return
    averages = Averages(moments_of(windows), windows.max_lag, windows.shape[1], columns)
    level, bounds = run.bounds.level / len(columns), run.bounds
    driven: dict[int, float] = {}
    alone: dict[int, set[int]] = {1: set(), 2: set()}
    for place, column in enumerate(columns.tolist()):
        for count in (1, 2) if len(columns) >= bounds.variables_for_two_averages else (1,):
            p_value, beyond = averages.tests(place, count)
            if p_value < level:
                driven[column] = min(p_value, driven.get(column, 1.0))
                ahead = 1.0 if count == 1 else bounds.two_averages_ahead
                if beyond > bounds.single_lags_p and averages.best_single(place) * ahead > p_value:
                    alone[count].add(column)
    enough = len(alone[1] | alone[2]) >= bounds.least_driven_by_two
    if len(alone[1]) < bounds.least_driven and not enough:
        return
    names = tuple(run.column_names[i] for i in driven)
    yield _doubt(
        run,
        "common-driver",
        f"An average of all other variables forecasts {listed(names)}, and no variable by itself "
        "tells more: something that is not a column may move many of them, and links between them "
        f"may only be its echo{run.sampled}",
        names,
        strongest((run.column_names[i], p_value) for i, p_value in driven.items()),
        advice=REMEDIES,
    )


@dataclass(frozen=True)
class Averages:
    """F-tests of averages of the other variables, from moments of all lags of all columns."""

    moments: Moments
    max_lag: int
    columns: int
    looked: Index  # the columns that are numbers

    def tests(self, place: int, count: int) -> tuple[float, float]:
        """Two p-values of the number at a place: that so many averages of the others add nothing to
        its own past, and that single lags of the others add nothing to both."""
        own = np.concatenate([[0], self._lags[:, place]])
        every = np.concatenate([[0], self._lags.ravel()])
        features = np.zeros((len(self.moments.gram), len(own) + count * self.max_lag))
        features[own, np.arange(len(own))] = 1.0
        others = np.delete(np.arange(len(self.looked)), place)
        axes = principal_axes(self._now[np.ix_(others, others)])[1][:, : -count - 1 : -1]
        for step in range(self.max_lag):
            first = len(own) + step * count
            features[self._lags[step, others], first : first + count] = axes
        inside = features.T @ self.moments.gram @ features
        along = features.T @ self.moments.cross[:, self.looked[place]]
        averaged = self._left(place, inside, along)
        rows, width = int(self.moments.count), features.shape[1]
        return (
            f_p_value(self._left_by(place, own), averaged, width - len(own), rows - width),
            f_p_value(averaged, self._left_by(place, every), len(every) - width, rows - len(every)),
        )

    def best_single(self, place: int) -> float:
        """The smallest p-value that the lags of one other variable add nothing to the own past."""
        own = np.concatenate([[0], self._lags[:, place]])
        before = self._left_by(place, own)
        freedom = int(self.moments.count) - len(own) - self.max_lag
        others = np.delete(np.arange(len(self.looked)), place).tolist()
        left = [self._left_by(place, np.concatenate([own, self._lags[:, j]])) for j in others]
        return f_p_value(before, min(left), self.max_lag, freedom)

    @property
    def _lags(self) -> Index:
        """The features that are lags, (step, number), the oldest first."""
        return 1 + np.arange(self.max_lag)[:, None] * self.columns + self.looked

    @property
    def _now(self) -> Array:
        """Covariance of the latest values, (number, number)."""
        latest, count = self._lags[-1], self.moments.count
        mean = self.moments.gram[0, latest] / count
        return np.asarray(self.moments.gram[np.ix_(latest, latest)] / count - np.outer(mean, mean))

    def _left_by(self, place: int, features: Index) -> float:
        """What some features leave of the number at a place, a sum of squares."""
        along = self.moments.cross[features, self.looked[place]]
        return self._left(place, self.moments.gram[np.ix_(features, features)], along)

    def _left(self, place: int, gram: Array, along: Array) -> float:
        square = self.moments.square[self.looked[place]]
        return float(square - along @ pseudo_inverse(gram) @ along)


def f_p_value(before: float, after: float, more: int, freedom: int) -> float:
    """That so many more terms explain no more than chance does."""
    if more < 1 or freedom < 1:
        return 1.0
    f = (before - after) / more / max(after / freedom, 1e-300)
    return float(f_p_values(np.array(f), more, freedom))
