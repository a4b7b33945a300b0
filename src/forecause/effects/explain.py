"""What caused an event: the variables at which something new entered, most likely first.

Normal is what calm rows taught (`surprise.Normal`): seasons and trends are carried forward from
them, never estimated in the event. Without `data` the event is a stretch of the run's own rows,
which is left out of everything that is learned.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.data.streams import past_and_targets
from forecause.data.tables import plain_rows
from forecause.data.windows import Windows
from forecause.effects.periods import Time, between, ends_of, moment
from forecause.effects.surprise import (
    Normal,
    conformal_p_value,
    evidence,
    evidence_alone,
    joint_rank,
)
from forecause.effects.what_if import variable_place
from forecause.errors import InputError
from forecause.forecast.refit import Causes
from forecause.graph.lagged import LaggedGraph
from forecause.result import Result
from forecause.seasons.course import (
    differenced,
    positions_of,
    series_spans,
    time_taken_out,
)
from forecause.views import card

LEAST_ROWS = 10  # of an event of which only one moment is named
LEAST_CALM = 40  # windows
ENOUGH_BEFORE = 200  # calm windows before an event, from which on later ones are not needed
ROWS_PER_INPUT = 3  # the same, per lagged input
TREND_GOES_ON = 0.25  # of the calm rows' number: for how long after them a trend goes on
ROWS_PER_LAG = 4  # of an event without rows before it, whose first rows are then only past
SHOWN = 5  # variables in a picture

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Link = tuple[str, str, int]  # source, target, lag

CAVEAT = (
    "A cause outside the table shows up in the variables that it enters first; one that acts "
    "within a row on several variables, in all of them."
)


@dataclass(frozen=True, eq=False)
class Explanation:
    """The causes of an event, ranked, and whether it is one.

    `causes`: variable, score (0 to 1, first is most likely), surprise (the size of what is new, in
    calm standard deviations), first (when it first showed), share (how much of what the target, or
    all variables, did came through it: beside the ranking, no part of it). `p_value`: how often
    calm stretches of this length are as unlike the rest; None where calm is too short to say.
    """

    start: Any
    end: Any
    rows: int
    target: str | None
    causes: pd.DataFrame
    p_value: float | None
    calm_blocks: int  # as long as the event
    paths: pd.DataFrame  # cause, path, lags: the shortest way of each likely cause to the target
    surprises: pd.DataFrame  # (time, variable): innovations in calm sds
    caveat: str = CAVEAT
    notes: tuple[str, ...] = ()

    @property
    def is_event(self) -> bool | None:
        """Whether calm rows seldom look like this; None where calm is too short."""
        return None if self.p_value is None else self.p_value <= thresholds().events.level

    @property
    def sentence(self) -> str:
        """The answer in words."""
        first = self.causes.iloc[0]
        others = ", ".join(self.causes["variable"].iloc[1:3])
        when = "" if pd.isna(first["first"]) else f", first seen at {first['first']}"
        said = (
            f"Most likely it began at {first['variable']} ({first['surprise']:.1f} calm standard "
            f"deviations{when})" + (f"; then {others}." if others else ".")
        )
        if self.p_value is None:
            return (
                f"{said} Too little calm to say whether this is an event: {self.calm_blocks} calm "
                f"stretches of {self.rows} rows, at least "
                f"{thresholds().events.least_calm_blocks} are needed."
            )
        if not self.is_event:
            return f"This may be no event: calm rows look like it in {self.p_value:.0%}. {said}"
        return f"{said} Calm rows look like this in {self.p_value:.1%} of stretches."

    def plot(self, axes: Any = None) -> Any:
        """What is new in the likeliest causes over time, in calm standard deviations; the axes."""
        from matplotlib import pyplot as plt

        axes = plt.subplots(figsize=(7.0, 2.8), layout="constrained")[1] if axes is None else axes
        for name in self.causes["variable"].iloc[:SHOWN]:
            axes.plot(self.surprises.index, self.surprises[name], label=name.replace("$", r"\$"))
        axes.axhline(0, color="#9aa5b1", linewidth=0.8)
        axes.set_ylabel("surprise (calm sd)")
        axes.legend(fontsize=8, frameon=False)
        axes.tick_params(axis="x", labelrotation=20)
        return axes

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return card(self.sentence, [*self.notes, self.caveat], self.causes)

    def __repr__(self) -> str:
        return f"Explanation({self.sentence})"


@dataclass(frozen=True, eq=False)
class _Stretch:
    """Rows to be explained, standardised, and the calm ones they are compared with."""

    past: Array  # (max_lag, column): the rows before, NaN where there are none
    rows: Array  # (row, column), NaN where missing
    time: Time  # or row numbers
    calm: Windows
    floor: Array  # (column,) least standard deviation, in the data's units
    moved: dict[str, Array] = field(default_factory=dict)  # (row,) of what never moves in calm
    notes: list[str] = field(default_factory=list)


def explain(
    found: Result,
    event: Any = None,
    until: Any = None,
    target: str | None = None,
    data: Any = None,
    graph: Any = None,
) -> Explanation:
    """The likely causes of an event, ranked; see `Discovery.explain`."""
    if target is not None:
        variable_place(found, target)
    known, links = _own_graph(found, graph)
    own = data is None
    stretch = _of_run(found, event, until) if own else _of_new(found, event, until, data)
    calm, coding = stretch.calm, stretch.calm.panel.coding
    normal = _normal(stretch, known)
    innovations, whole, left_out = _innovations(normal, stretch)
    time = pd.Index(stretch.time[left_out:], name="time")
    p_value, blocks = conformal_p_value(normal.errors, innovations)
    moved = np.array([off[left_out:] for off in stretch.moved.values()]).reshape(-1, len(time)).T
    every = np.concatenate([innovations, moved], axis=1)
    names = (*coding.variables, *stretch.moved)
    owner = np.concatenate([coding.of_column, len(coding.variables) + np.arange(moved.shape[1])])
    size = np.sqrt(_known_mean(every**2))
    proof = np.concatenate(
        [evidence(normal, innovations, whole, calm.max_lag), evidence_alone(moved)]
    )
    of_column = joint_rank(size, proof, len(every))
    columns = [np.flatnonzero(owner == variable) for variable in range(len(names))]
    loudest = np.array([own[size[own].argmax()] for own in columns])
    score = np.array([of_column[own].max() for own in columns])
    ways = _ways_to(links, target)
    doubtful = _away_from(target, ways, names)
    if graph is not None:
        least = thresholds().events.loud
        loud = {name for name, own in zip(names, size[loudest], strict=True) if own >= least}
        doubtful |= _follow(loud, links)
    is_doubtful = [name in doubtful for name in names]
    score = np.where(is_doubtful, thresholds().events.no_path * score, score)
    watched = np.ones(len(coding.of_column), bool)
    if target is not None:
        watched = coding.of_column == names.index(target)
    table = pd.DataFrame(
        {
            "variable": names,
            "score": score,
            "surprise": size[loudest],
            "first": [_first(every[:, column], time) for column in loudest],
            "share": np.concatenate(
                [
                    _shares(normal, innovations, coding.of_column, watched),
                    np.full(len(stretch.moved), np.nan),
                ]
            ),
        }
    )
    table = table.sort_values(["score", "surprise"], ascending=False, ignore_index=True)
    listed = [(name, *ways[name]) for name in table["variable"] if name in ways]
    return Explanation(
        time[0],
        time[-1],
        len(innovations),
        target,
        table,
        p_value,
        blocks,
        pd.DataFrame(listed, columns=["cause", "path", "lags"]),
        pd.DataFrame(every[:, loudest], index=time, columns=list(names)),
        notes=tuple(stretch.notes),
    )


def _of_run(found: Result, event: Any, until: Any) -> _Stretch:
    """A stretch of the run's own rows; everything is learned without it."""
    if event is None:
        raise InputError("Name the event: a time or a row, or give it as data=.")
    read, lags = found.panel_of(), found.graph.max_lag
    rows = _event_rows(event, until, read.time, read.rows, lags)
    rows = rows[read.series[rows] == read.series[rows[-1]]]  # in one series
    first, end = int(rows[0]), int(rows[-1]) + 1
    hidden = np.array(read.values, dtype=np.float64)
    hidden[first:end] = np.nan
    free = time_taken_out(replace(read, values=hidden), found.config)
    calm = Windows.of(free, lags)
    calm = calm.at(np.flatnonzero((calm.rows < first) | (calm.rows >= end + lags)))
    before = calm.at(np.flatnonzero(calm.rows < first))
    needed = (thresholds().events.least_calm_blocks + 1) * len(rows)
    if len(before) >= max(ENOUGH_BEFORE, ROWS_PER_INPUT * calm.inputs, needed):
        calm = before  # later rows may still be part of what happened
    _check_calm(calm)
    observed = np.array(read.values, dtype=np.float64)
    if read.filled is not None:
        observed[read.filled] = np.nan
    if free.course is not None:
        if free.course.levels is not None:
            observed = differenced(replace(read, values=observed, filled=None)).values
        observed = observed - free.course.of_rows(read)
    scaled = (observed - calm.scale.mean) / calm.scale.sd
    start = int(read.starts[read.starts <= first].max())
    past = scaled[max(first - lags, start) : first]
    time = rows if read.time is None else read.time[first:end]
    return _Stretch(_padded(past, lags), scaled[first:end], time, calm, _floor(read))


def _of_new(found: Result, event: Any, until: Any, data: Any) -> _Stretch:
    """Rows of other data; normal is what the run's own rows taught, carried forward in time."""
    read, lags = found.panel_of(), found.graph.max_lag
    calm = found.windows
    if calm is None:
        calm = Windows.of(found.deseasonalised_panel(panel=read), lags)
    _check_calm(calm)
    values, time, apart = plain_rows(data, found.config.data, read)
    moved = _off_their_value(read, apart)
    rows = np.arange(len(values))
    if event is not None:
        rows = _event_rows(event, until, time, len(values), lags)
    first, end = int(rows[0]), int(rows[-1]) + 1
    moved = {name: off[first:end] for name, off in moved.items()}
    place = _places(read, time, len(values))
    follows = place is not None and int(place[0]) == _last_place(read) + 1
    if follows and place is not None:  # the last calm rows are its past
        values = np.concatenate([np.asarray(read.values[-lags - 1 :], dtype=np.float64), values])
        place = np.concatenate([place[0] - np.arange(lags + 1, 0, -1), place])
        first, end = first + lags + 1, end + lags + 1
    scaled = (_without_time(values, place, calm.panel) - calm.scale.mean) / calm.scale.sd
    past, notes = scaled[max(first - lags, 0) : first], []
    if len(past) and not follows:
        level = _known_mean(scaled[:first])
        scaled, past = scaled - level, past - level
        notes.append("Levels are those of the rows before the event in the data given.")
    shown = rows if time is None else time[rows]
    floor = _floor(read)
    return _Stretch(_padded(past, lags), scaled[first:end], shown, calm, floor, moved, notes)


def _off_their_value(read: Panel, apart: dict[str, Array]) -> dict[str, Array]:
    """Columns that hold one value in all calm rows: how far they are off it, in the least sds."""
    constant = {change.column: change.value for change in read.changes}
    share, found = thresholds().events.scale_floor, {}
    for name, values in apart.items():
        value = constant[name] or 0.0
        size = abs(value) or float(np.nanmax(np.abs(values), initial=0.0))
        found[name] = (values - value) / (share * size) if size else np.zeros(len(values))
    return found


def _event_rows(event: Any, until: Any, time: Time | None, rows: int, lags: int) -> Index:
    """The rows of an event: all between two moments, or those about a single one, from as long
    before it as lags reach."""
    if isinstance(event, slice | tuple) or (isinstance(event, str) and ".." in event):
        event, until = ends_of(event)
    if until is not None or event is None:
        return np.flatnonzero(between(event, until, time, rows))
    places = np.arange(rows) if time is None else time
    at = int(np.searchsorted(places, moment(event, time, rows)))
    if at >= rows:
        raise InputError(f"{event} lies after the data, whose last row is {places[-1]}.")
    return np.arange(max(at - lags, 0), min(at + max(lags, LEAST_ROWS), rows))


def _check_calm(calm: Windows) -> None:
    if len(calm) < LEAST_CALM:
        raise InputError(
            f"Too few calm rows to know what is normal: {len(calm)} windows, at least "
            f"{LEAST_CALM} are needed."
        )


def _floor(read: Panel) -> Array:
    """The least sd of every column (column,): a share of the median where nothing is negative."""
    low = np.nanmin(np.asarray(read.values, dtype=np.float64), axis=0)
    middle = np.nanmedian(np.asarray(read.values, dtype=np.float64), axis=0)
    floor = np.where(low >= 0, thresholds().events.scale_floor * np.abs(middle), 0.0)
    labels = np.ones(len(floor), bool)
    labels[read.coding.numeric_columns] = False
    return np.where(labels, 0.0, floor)


def _last_place(read: Panel) -> int:
    first, end = series_spans(read)[-1]
    return int(positions_of(read, first, end)[-1])


def _places(read: Panel, time: Time | None, rows: int) -> Index | None:
    """Where rows of other data stand in the last series, in steps; None where that is unknown."""
    if time is None or read.time is None or time.dtype.kind != read.time.dtype.kind:
        return None
    first, end = series_spans(read)[-1]
    own = read.time[first:end]
    if own.dtype.kind == "M":
        own, time = (part.astype("datetime64[ns]").astype(np.int64) for part in (own, time))
    step = float(np.median(np.diff(own)))
    since = (time.astype(np.float64) - float(own[-1])) / max(step, 1e-300)
    return np.asarray(np.round(since) + _last_place(read), dtype=np.int64)


def _without_time(values: Array, place: Index | None, calm: Panel) -> Array:
    """What is left of values (row, column) without what time explains, carried forward."""
    course = calm.course
    if course is None:
        return values
    if course.levels is not None:
        numeric = calm.coding.numeric_columns
        values = values.copy()
        values[1:, numeric] = np.diff(values[:, numeric], axis=0)
        values[0, numeric] = np.nan
    last = len(course.terms) - 1
    known = course.ends[last] + np.arange(len(values)) if place is None else place
    terms, weights = course.terms[last], course.weights[last]
    matrix = terms.matrix(known)
    if terms.knots:  # a trend goes on for a while, then it stays where it is
        most = (1 + TREND_GOES_ON) * course.ends[last]
        later = len(terms.shifts) + len(terms.odd_days)
        own = slice(matrix.shape[1] - later - len(terms.knots) + 1, matrix.shape[1] - later)
        matrix[:, own] = terms.matrix(np.clip(known, 0, most))[:, own]
    return np.asarray(values - weights[0] - matrix @ weights[1:])


def _padded(past: Array, lags: int) -> Array:
    """The rows before (max_lag, column), with NaN where there are fewer."""
    whole = np.full((lags, past.shape[1]), np.nan)
    if len(past):
        whole[-len(past) :] = past
    return whole


def _normal(stretch: _Stretch, graph: LaggedGraph) -> Normal:
    """What calm rows are like, given the causes in a graph and the own past of each column."""
    calm = stretch.calm
    columns = calm.shape[1]
    causes = Causes.of(graph, calm, by_domain=False).everywhere
    causes |= np.eye(columns, dtype=bool)[:, None, :]
    past, targets = (part.astype(np.float64) for part in past_and_targets(calm))
    filled = calm.panel.filled
    observed = None if filled is None or len(past) != len(calm) else ~filled[calm.rows]
    least = stretch.floor / calm.scale.sd  # of the column itself, standardised
    return Normal.of(past, targets, causes.reshape(columns, -1), observed, least)


def _innovations(normal: Normal, stretch: _Stretch) -> tuple[Array, Array, int]:
    """What is new in the event, the rows with their past, and how many rows were past alone."""
    lags, left_out = len(stretch.past), 0
    past, rows = stretch.past, stretch.rows
    if np.isnan(past).all() and len(rows) >= ROWS_PER_LAG * lags:
        past, rows, left_out = rows[:lags], rows[lags:], lags
    found, whole = normal.innovations(past, rows)
    if not np.isfinite(found).any():
        raise InputError("Nothing was observed in the event: every cell is missing.")
    return found, np.nan_to_num(whole), left_out


def _known_mean(values: Array) -> Array:
    """Means of columns without missing cells; 0 where all are missing."""
    known = np.isfinite(values)
    return np.asarray(np.where(known, values, 0.0).sum(0) / np.maximum(known.sum(0), 1))


def _first(innovations: Array, time: pd.Index) -> Any:
    """When a variable first surprised."""
    loud = np.flatnonzero(np.abs(np.nan_to_num(innovations)) >= thresholds().events.first_surprise)
    return time[loud[0]] if len(loud) else None


def _shares(normal: Normal, innovations: Array, of_column: Index, watched: Mask) -> Array:
    """The share of what the watched columns did that came through each variable, (variable,).

    What the innovations of one variable do, by the lines of the calm fit, projected on what all do
    together; the shares add up to 1.
    """
    shocks = np.nan_to_num(innovations) * normal.sd
    count = int(of_column.max()) + 1
    parts = np.zeros((count + 1, *shocks.shape))  # the last: of all together
    for variable in range(count):
        parts[variable][:, of_column == variable] = shocks[:, of_column == variable]
    parts[count] = shocks
    steps = normal.weight.shape[1] // len(of_column)
    by_step = normal.weight.reshape(len(of_column), steps, -1)
    for row in range(1, len(shocks)):
        for lag in range(1, min(steps, row) + 1):
            parts[:, row] += parts[:, row - lag] @ by_step[:, -lag].T
    parts = parts[:, :, watched]
    total = float((parts[count] ** 2).sum())
    if not total > 0:
        return np.full(count, np.nan)
    return np.asarray((parts[:count] * parts[count]).sum((1, 2)) / total)


def _own_graph(found: Result, graph: Any) -> tuple[LaggedGraph, list[Link]]:
    """The run's graph, or the user's: a LaggedGraph, or pairs (source, target) at every lag; and
    its links, which may name columns that never moved in the run's data."""
    own = found.graph
    if graph is None or isinstance(graph, LaggedGraph):
        known = own if graph is None else graph
        if known.variables != own.variables:
            raise InputError("The graph given has other variables than the run.")
        edges = known.causal.edges
        return known, list(zip(edges["source"], edges["target"], edges["lag"], strict=True))
    still = {str(change.column) for change in found.panel_of().changes}
    links: list[Link] = []
    for pair in getattr(graph, "edges", graph):
        if len(pair) != 2 or not set(pair) <= {*own.variables, *still}:
            raise InputError(
                f"Expected pairs (source, target) of the run's variables, found {pair!r:.80}."
            )
        links += [(*pair, lag) for lag in range(1, own.max_lag + 1)]
    inner = [link for link in links if set(link[:2]) <= set(own.variables)]
    return LaggedGraph.from_edges(list(own.variables), own.max_lag, inner), links


def _away_from(target: str | None, ways: Mapping[str, Any], names: Collection[str]) -> set[str]:
    """The variables without a way to the target."""
    return set() if target is None else set(names) - {target, *ways}


def _follow(loud: Collection[str], links: Collection[Link]) -> set[str]:
    """What a loud cause in the user's own graph accounts for, whose links may act within a row."""
    return {end for start, end, _ in links if start in loud and start != end}


def _ways_to(links: list[Link], target: str | None) -> dict[str, tuple[str, str]]:
    """For every ancestor of the target: the way there with the fewest links, and its lags."""
    if target is None:
        return {}
    into: dict[str, dict[str, int]] = {}
    for source, end, lag in links:
        if source != end:
            own = into.setdefault(str(end), {})
            own[str(source)] = min(int(lag), own.get(str(source), int(lag)))
    ways: dict[str, tuple[list[str], list[int]]] = {target: ([target], [])}
    border = [target]
    while border:
        reached = []
        for end in border:
            for source, lag in into.get(end, {}).items():
                if source not in ways:
                    names, lags = ways[end]
                    ways[source] = ([source, *names], [lag, *lags])
                    reached.append(source)
        border = reached
    del ways[target]
    return {
        n: (" -> ".join(names), " + ".join(map(str, lags))) for n, (names, lags) in ways.items()
    }
