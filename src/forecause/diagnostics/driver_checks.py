"""Something that is not a column moves several of them: a hidden driver, one sum, a failing logger.

A common driver leaves traces: what the past leaves unexplained moves together, its largest values
come together, columns determine one another within a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from scipy.special import ndtri, pdtrc

from forecause.advice import Advice, hint
from forecause.arrays import Mask
from forecause.diagnostics.examined import Examined, by_size, named
from forecause.diagnostics.finding import Finding, Links, between, listed, strongest, within
from forecause.edges.certainty import gone_in_calm
from forecause.regression.least_squares import principal_axes

ROWS_PER_INPUT = 3  # before residuals of all pairs are taken as one
DEPENDENT = 1e-6  # share of its variance that a column keeps beside the others, at most
LEAST_LOADING = 0.01  # of a column in the combination that is nearly constant

MOVES_WITH_SOME = 0.05  # p-value that a variable moves with no other, below which it is named

LARGEST_SHOCK = 9.0  # usual sizes of a residual: about six standard deviations
SHOCK_MEMORY = 60  # rows over which the size of residuals may have a memory of its own
FEWEST_SHOCK_ROWS = 100

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
    if len(columns) < 3 or len(run.looked) < ROWS_PER_INPUT * inputs:
        return
    found = run.residuals.together(columns, inputs)
    if found.p_value > run.bounds.level or found.size < run.bounds.least_together:
        return
    moving = [run.column_names[i] for i in columns[found.of_each < MOVES_WITH_SOME].tolist()]
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
    left, groups = set(np.flatnonzero(pairs.any(0)).tolist()), []
    while left:
        group, open_places = set[int](), {min(left)}
        while open_places:
            place = open_places.pop()
            group.add(place)
            open_places |= set(np.flatnonzero(pairs[place]).tolist()) - group
        groups.append(sorted(group))
        left -= group
    return groups


def common_shocks(run: Examined) -> Iterator[Finding]:
    """Variables whose largest residuals come together, in the same row or a few rows apart.

    What an event sets off in several columns, each after its own delay, looks like links between
    them. Residuals of linked variables are not large at the same time: the link explains that.
    """
    columns = run.coding.numeric_columns
    sizes = run.residuals.sizes(columns, LARGEST_SHOCK)
    lags, count = run.windows.max_lag, len(columns)
    if count < run.bounds.least_shocked or len(sizes.rows) < FEWEST_SHOCK_ROWS:
        return
    together = np.stack([sizes.correlation(lag)[0] for lag in range(lags + 1)])
    together = np.maximum(together, together.transpose(0, 2, 1)).max(0)
    np.fill_diagonal(together, 0.0)
    memory = sizes.memory(SHOCK_MEMORY)
    spread = np.sqrt(np.maximum(1 + 2 * memory.T @ memory, 1.0) / len(sizes.rows))
    level = run.bounds.level / (count * (count - 1) // 2 * (2 * lags + 1))
    clear = (together > run.bounds.least_correlation) & (together > -ndtri(level) * spread)
    for group in joined(clear):
        if len(group) < run.bounds.least_shocked:
            continue
        names = tuple(run.column_names[columns[place]] for place in group)
        pairs = by_size(together, np.triu(clear) & np.isin(np.arange(count), group))
        yield Finding(
            "common-shocks",
            f"Surprises of {listed(names)} are large at about the same time: events that are not "
            "in the table may reach all of them, and links between them may only be the order in "
            f"which they show it{run.sampled}",
            gravity="doubt",
            about=within(names, run.names),
            variables=names,
            evidence=strongest(
                (
                    f"{run.column_names[columns[i]]} and {run.column_names[columns[j]]}",
                    float(together[i, j]),
                )
                for i, j in pairs
            ),
            advice=(EVENT_COLUMN, *REMEDIES),
        )


def only_in_events(run: Examined) -> Iterator[Finding]:
    """Links that a fifth of the windows, those with the largest inputs, carry alone.

    A cause acts on calm days too. What shows only where something is far off may be the order in
    which an event reached the columns; it may also be an effect that begins at a threshold.
    """
    edges = run.graph.edges
    edges = edges[edges["source"] != edges["target"]]
    if len(edges) < run.bounds.least_gone:
        return
    place = {name: k for k, name in enumerate(run.names)}
    source, target = (edges[end].map(place).to_numpy(np.int64) for end in ("source", "target"))
    lag = edges["lag"].to_numpy(np.int64)
    edges = edges[gone_in_calm(run.windows)[target, source, lag - 1]]
    if len(edges) < run.bounds.least_gone:
        return
    ends = edges["source"], edges["target"], edges["lag"]
    found = [Links(str(a), str(b), int(c)) for a, b, c in zip(*ends, strict=True)]
    shown = [f"{one.source} -> {one.target} (lag {one.lag})" for one in found]
    yield Finding(
        "only-in-events",
        f"{listed(shown)}: seen only where some input is far from its usual values; an event that "
        "is not in the table may have reached both, or the effect begins at a threshold",
        gravity="doubt",
        about=tuple(found),
        variables=tuple(name for name in run.names if edges.isin([name]).any(axis=None)),
        evidence={"links": len(found), "of": len(lag)},
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
    places = np.flatnonzero((np.abs(vectors[:, values < DEPENDENT]) > LEAST_LOADING).any(1))
    if not len(places):
        return
    names = tuple(run.column_names[columns[place]] for place in places.tolist())
    yield Finding(
        "dependent-columns",
        f"{listed(names)} determine one another within every row, as shares or parts of a sum do; "
        "which of them is a cause cannot be told, and true links may be missed",
        gravity="doubt",
        about=within(names, run.names),
        variables=names,
        evidence={"smallest eigenvalue of their correlations": float(values[0])},
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
    yield Finding(
        "common-outages",
        f"In {rows} rows all numbers have the very value that each has most often, as a logger "
        "writes that fails: such rows link everything with everything",
        gravity="doubt",
        about=within(names, run.names),
        variables=tuple(names),
        evidence={"rows": rows, "by chance": by_chance},
        advice=(Advice("missing", words="read that value as missing with {}"),),
    )
