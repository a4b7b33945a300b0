"""When not to believe a run: one plain sentence for every sign that an assumption fails.

Each check needs both significance and a size that matters, so that neither few nor many rows
raise an alarm by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.data.variables import Variables
from forecause.data.windows import Windows
from forecause.diagnostics import stationarity
from forecause.diagnostics.doubts import Doubt, find_doubts
from forecause.forecast.comparison import over_mean
from forecause.forecast.forecaster import residuals_of
from forecause.forecast.selection import Fitted
from forecause.graph.lagged import LaggedGraph
from forecause.regression.residuals import Array, Residuals
from forecause.regression.screen import inputs_at_once
from forecause.work_sharing import shared

NO_PROMISE = "No error rate can be promised"
MOST_CHECKED_WINDOWS = 20_000  # looked at
CORRELATION_WORK = 100_000_000  # windows * variables^2 correlated per lag, at most
LEVEL = 0.001  # of each check, shared by all it compares
LEAST_CORRELATION = 0.1  # of residuals, below which it does not matter
FURTHEST = 30  # rows back that residuals are compared, or twice the lag window if longer
WINDOWS_PER_TERM = 5
TERMS = 4  # numbers a curved effect takes, per input
SAME = 0.98  # correlation from which two variables are nearly one
LEAST_LEVEL = 0.5  # change of the mean, in standard deviations
LEAST_RATIO = 2.0  # change of the noise's variance, as a factor
LEAST_GAIN = 0.05  # share of the noise explained by effects that change
NEAR_ONE = 0.95  # autoregressive coefficients that add up to this hardly forget
HARDLY = 0.98  # of the mean's loss: a forecast that explains hardly anything
SHOWN = 3  # examples in a sentence


@dataclass(frozen=True)
class Alert:
    """A reason for doubt: a short code, a sentence with figures, the variables it is about.

    With a `grave` one no error rate can be promised for the graph.
    """

    code: str
    sentence: str
    variables: tuple[str, ...] = ()
    grave: bool = False

    def __str__(self) -> str:
        return self.sentence


def find_alerts(windows: Windows, fitted: Fitted, graph: LaggedGraph) -> tuple[Alert, ...]:
    """Every alert about a run."""
    forecaster, losses = fitted.forecaster, fitted.losses
    variables = windows.shape[1]
    most = int(np.clip(CORRELATION_WORK // variables**2, 2000, MOST_CHECKED_WINDOWS))
    looked = windows.spread(most)
    residuals = residuals_of(forecaster, looked)
    coding = windows.panel.coding
    from_sample = (
        *_duplicates(looked),
        *_instantaneous(residuals, coding),
        *_memory(residuals, coding, windows.max_lag),
        *_changes(looked, residuals),
    )
    if len(looked) < len(windows):
        seen = f"Seen in {len(looked):,} of {len(windows):,} windows, spread over all rows."
        from_sample = tuple(replace(a, sentence=f"{a.sentence} {seen}") for a in from_sample)
    found = (
        *_skill(losses, graph),
        *_few_rows(windows, losses),
        *_few_rows_in_domains(windows, graph),
        *_misfit(graph),
        *_odd_values(windows),
        *from_sample,
    )
    return _with_doubts(found, find_doubts(windows))


def _with_doubts(alerts: Sequence[Alert], doubts: Sequence[Doubt]) -> tuple[Alert, ...]:
    """The grave ones first; of an alert and a doubt about the same thing, one sentence stays."""
    grave = {d.code: Alert(d.code, d.sentence, d.variables, True) for d in doubts}
    said = {alert.code: replace(alert, grave=True) for alert in alerts if alert.code in grave}
    others = [alert for alert in alerts if alert.code not in grave]
    return (*(said.get(code, alert) for code, alert in grave.items()), *others)


def _skill(losses: pd.DataFrame, graph: LaggedGraph) -> Iterator[Alert]:
    """Variables that the mean or the last value forecasts as well on held-out rows."""
    losses = over_mean(losses)
    share = {str(name): float(row[row["chosen"]]) for name, row in losses.iterrows()}
    naive = {str(name): float(value) for name, value in losses["naive"].items()}
    driven = set(graph.edges["target"])
    believed = [name for name in share if name in driven and not share[name] < 1]
    unexplained = [name for name in share if name not in driven and not share[name] < HARDLY]
    if believed:
        shown = _listed([f"{name} ({share[name]:.2f})" for name in believed])
        yield Alert(
            "no-skill",
            f"The mean forecasts {shown} at least as well as the forecaster does (held-out loss "
            "over the mean's), so the edges found there are weak at best; try more rows, a longer "
            "lag window or another forecaster.",
            tuple(believed),
        )
    if unexplained:
        shown = _listed([f"{name} ({share[name]:.2f})" for name in unexplained])
        yield Alert(
            "unpredictable",
            f"Hardly anything among the columns helps to forecast {shown}; in brackets, the "
            "held-out error over the mean's. Either nothing drives such a variable, or its causes "
            "were not recorded.",
            tuple(unexplained),
        )
    lazy = [name for name in share if naive[name] <= min(share[name], 1)]
    if lazy:
        shown = _listed([f"{name} ({naive[name]:.3f} against {share[name]:.3f})" for name in lazy])
        yield Alert(
            "naive-wins",
            f"Repeating the last value forecasts {shown} at least as well as the forecaster does "
            "(held-out loss), so the edges found there carry little weight; try --difference, more "
            "rows or another forecaster.",
            tuple(lazy),
        )


def _few_rows(windows: Windows, losses: pd.DataFrame) -> Iterator[Alert]:
    inputs = windows.inputs
    curved = bool((losses["chosen"] != "linear").any())
    fitted = inputs_at_once(inputs, len(windows)) * (TERMS if curved else 1)
    if len(windows) < WINDOWS_PER_TERM * fitted:
        effects = f"curved effects of {TERMS} numbers each" if curved else "one number each"
        yield Alert(
            "few-rows",
            f"There are {len(windows):,} windows for {inputs} inputs ({effects}), fewer than "
            f"{WINDOWS_PER_TERM} for every number to be fitted, so edges will be missed; use more "
            "rows, a smaller lag window, fewer variables"
            + (" or --forecaster linear." if curved else "."),
        )


def _few_rows_in_domains(windows: Windows, graph: LaggedGraph) -> Iterator[Alert]:
    """Domains that were too short to be given a graph."""
    names = windows.panel.domain_names
    short = [name for name in names if name not in graph.domains] if len(names) > 1 else []
    if short:
        counts = [f"{name} ({len(windows.in_domain(names.index(name)))})" for name in short]
        yield Alert(
            "few-rows-in-domain",
            f"Too few windows for a graph of their own have the domains {_listed(counts)}; join "
            "them with others or use a smaller lag window.",
        )


def _misfit(graph: LaggedGraph) -> Iterator[Alert]:
    """Edges that may be there only because the learner misses something; see edges.misfit."""
    if "doubtful" not in graph.edges or not graph.edges["doubtful"].any():
        return
    edges = graph.edges[graph.edges["doubtful"].astype(bool)]
    shown = [f"{e.source} -> {e.target} at lag {e.lag}" for e in edges.itertuples()]
    targets = [name for name in graph.variables if name in set(edges["target"])]
    yield Alert(
        "misfit",
        f"The learner misses something about {_listed(targets)}: no error rate is promised there. "
        f"Doubtful are {_listed(shown)}, whose source may only carry a copy of what was missed.",
        tuple(targets),
    )


def _odd_values(windows: Windows) -> Iterator[Alert]:
    """Values that look like a code for missing or like an error, as the reader noticed them."""
    for change in windows.panel.changes:
        if change.kind == "doubtful":
            yield Alert("odd-values", change.sentence, (change.column,) if change.column else ())


def _duplicates(windows: Windows) -> Iterator[Alert]:
    values = windows.targets()
    values -= values.mean(0)
    size = np.sqrt((values**2).sum(0))
    correlation = (values.T @ values) / np.maximum(np.outer(size, size), 1e-300)
    coding = windows.panel.coding
    correlation, _ = _of_variables(correlation, np.ones_like(correlation), coding)
    names = coding.variables
    pairs = _strongest(np.triu(correlation, 1), np.abs(np.triu(correlation, 1)) > SAME)
    if pairs:
        shown = [f"{names[i]} and {names[j]} ({correlation[i, j]:.3f})" for i, j in pairs]
        yield Alert(
            "near-duplicates",
            f"Some variables are nearly the same (correlation): {_listed(shown)}; which of them is "
            "the cause cannot be told, so keep one of each.",
            _named(names, pairs),
        )


def _instantaneous(residuals: Residuals, coding: Variables) -> Iterator[Alert]:
    names = coding.variables
    found = _correlation(residuals, 0, coding)
    correlation, p_values = (np.triu(one, 1) for one in found)
    tests = max(len(names) * (len(names) - 1) // 2, 1)
    real = (np.abs(correlation) > LEAST_CORRELATION) & (p_values < LEVEL / tests)
    pairs = _strongest(correlation, real)
    if pairs:
        shown = [f"{names[i]} and {names[j]} ({correlation[i, j]:+.2f})" for i, j in pairs]
        yield Alert(
            "within-a-row",
            "What the past leaves unexplained moves together within the same row (correlation): "
            f"{_listed(shown)}; a cause acts faster than the rows are apart, or a hidden variable "
            "drives both. Look closer with forecause refine --instantaneous or --latent, or add "
            "the missing variable.",
            _named(names, pairs),
        )


def _memory(residuals: Residuals, coding: Variables, max_lag: int) -> Iterator[Alert]:
    """Residuals that earlier residuals still tell about: too short a window, or a poor fit."""
    names = coding.variables
    furthest = max(FURTHEST, 2 * max_lag)
    found: list[tuple[float, int, int, int]] = []  # correlation, now, earlier, lag
    lags = range(1, furthest + 1)
    work = 2 * len(residuals.values) * residuals.values.shape[1] ** 2
    each = shared(lambda lag: _correlation(residuals, lag, coding), lags, work)
    for lag, (correlation, p_values) in zip(lags, each, strict=True):
        level = LEVEL / (furthest * correlation.size)
        real = (np.abs(correlation) > LEAST_CORRELATION) & (p_values < level)
        found += [(float(correlation[i, j]), i, j, lag) for i, j in _strongest(correlation, real)]
    found.sort(key=lambda one: -abs(one[0]))
    beyond = [one for one in found if one[3] > max_lag]
    within = [one for one in found if one[3] <= max_lag]
    if beyond:
        yield Alert(
            "short-window",
            "Something older than the lag window still tells about what the forecaster leaves "
            f"unexplained (correlation): {_described(beyond, names)}; try --max-lag "
            f"{beyond[0][3]} or more, or name the period of a season with --season.",
            _named(names, [(i, j) for _, i, j, _ in beyond]),
        )
    if within:
        yield Alert(
            "poor-fit",
            "The forecaster does not use all that its lag window tells (correlation of what is "
            f"left): {_described(within, names)}; try another forecaster, or a longer lag window "
            "for a cause that lingers.",
            _named(names, [(i, j) for _, i, j, _ in within]),
        )


def _changes(windows: Windows, residuals: Residuals) -> Iterator[Alert]:
    """Non-stationarity: a level that wanders, noise or effects that change."""
    coding, level = windows.panel.coding, LEVEL / windows.shape[1]
    names = [coding.variables[place] for place in coding.of_column]  # of every column
    numeric = np.isin(np.arange(len(names)), coding.numeric_columns)
    if not stationarity.enough_rows(windows):
        return
    persistence, wanders = stationarity.persistence(windows)
    unsettled = wanders & (persistence > NEAR_ONE) & numeric
    if unsettled.any():
        yield _wandering(names, persistence, np.flatnonzero(unsettled).tolist())
    moved = stationarity.level_change(windows)
    shifts = (moved.p_value < level) & (np.abs(moved.size) > LEAST_LEVEL) & ~unsettled
    yield from _change(
        "level",
        names,
        _one_each(shifts, moved.size, coding),
        [f"{size:+.2f} sd" for size in moved.size],
        "The mean of {} differs between the earlier and the later half of the data; let --trend "
        "auto take it out, try --difference or find regimes with --regimes auto.",
    )
    noise = stationarity.noise_change(windows, residuals)
    far = np.abs(np.log(np.maximum(noise.size, 1e-12))) > np.log(LEAST_RATIO)
    yield from _change(
        "noise",
        names,
        (noise.p_value < level) & far & numeric,  # a label's noise follows from its chances
        [f"{size:.2g} times" for size in noise.size],
        "The unexplained variance of {} changed from the earlier to the later half of the data; "
        "look at each part by itself or transform the variable (a logarithm, say).",
    )
    effects = stationarity.effect_change(windows, residuals)
    yield from _change(
        "effects",
        names,
        _one_each((effects.p_value < level) & (effects.size > LEAST_GAIN), effects.size, coding),
        [f"{size:.0%} of the noise" for size in effects.size],
        "What drives {} changes over time (in brackets: what a model for each part would "
        "explain), so one graph cannot be right for all rows; name the regimes with --domain or "
        "find them with --regimes auto.",
    )


def _wandering(names: Sequence[str], persistence: Array, places: Sequence[int]) -> Alert:
    shown = _listed([f"{names[i]} ({persistence[i]:.3f})" for i in places])
    return Alert(
        "wandering",
        f"{shown} may wander without a level to return to (the share of a shock that stays, "
        "about 1), which makes unrelated variables look related; try --difference.",
        tuple(names[i] for i in places),
    )


def _change(
    what: str,
    names: Sequence[str],
    changed: npt.NDArray[np.bool_],
    figures: Sequence[str],
    sentence: str,
) -> Iterator[Alert]:
    places = np.flatnonzero(changed).tolist()
    if places:
        shown = _listed([f"{names[i]} ({figures[i]})" for i in places])
        yield Alert(f"changing-{what}", sentence.format(shown), tuple(names[i] for i in places))


def _correlation(residuals: Residuals, lag: int, coding: Variables) -> tuple[Array, Array]:
    """Correlation (now, earlier) of variables and its p-value where it is large enough to tell."""
    least = 0.0 if coding.labels else LEAST_CORRELATION  # of labels, significance decides first
    return _of_variables(*residuals.correlation(lag, least), coding)


def _of_variables(correlation: Array, p_values: Array, coding: Variables) -> tuple[Array, Array]:
    """Correlations (column, column) as (variable, variable): for labels the most significant or
    strongest of their columns, its p-value times how many there are."""
    if not coding.labels:
        return correlation, p_values
    count = len(coding.variables)
    found, chance = np.zeros((count, count)), np.ones((count, count))
    for i, j in np.ndindex(count, count):
        block = np.ix_(coding.columns(i), coding.columns(j))
        order = np.lexsort((-np.abs(correlation[block]).ravel(), p_values[block].ravel()))
        found[i, j] = correlation[block].ravel()[order[0]]
        chance[i, j] = min(p_values[block].min() * p_values[block].size, 1.0)
    return found, chance


def _one_each(
    changed: npt.NDArray[np.bool_], size: Array, coding: Variables
) -> npt.NDArray[np.bool_]:
    """Of a label's changed columns (column,) the one that changed most."""
    kept = changed.copy()
    for label in coding.labels:
        own = label.columns
        most = own[np.argmax(np.where(changed[own], np.abs(size[own]), -1.0))]
        kept[own] = changed[own] & (own == most)
    return kept


def _strongest(values: Array, chosen: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Places of the chosen cells, the largest size first."""
    rows, columns = np.nonzero(chosen)
    order = np.argsort(-np.abs(values[rows, columns]), kind="stable")
    return [(int(rows[k]), int(columns[k])) for k in order]


def _described(found: Sequence[tuple[float, int, int, int]], names: Sequence[str]) -> str:
    """Examples like `a with b 7 rows earlier (+0.31)`."""
    return _listed(
        [
            f"{names[i]} with {'itself' if i == j else names[j]} "
            f"{lag} row{'s' if lag > 1 else ''} earlier ({r:+.2f})"
            for r, i, j, lag in found
        ]
    )


def _listed(items: Sequence[str]) -> str:
    """The first few items, and how many more there are."""
    more = len(items) - SHOWN
    shown = [*items[:SHOWN], f"{more} more"] if more > 0 else list(items)
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _named(names: Sequence[str], pairs: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    """The variables of some pairs, in the data's order."""
    return tuple(names[i] for i in sorted({place for pair in pairs for place in pair}))
