"""What caused an event: the variables at which something new entered, most likely first.

Normal is what calm rows taught (`event_rows`); what is new is measured against it (`surprise`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from forecause.common.arrays import Array, Index, Mask
from forecause.common.views import card
from forecause.config.thresholds import thresholds
from forecause.data.windows import past_and_targets
from forecause.effects.answering import variable_place
from forecause.effects.event_rows import Stretch, known_mean, rows_of_data, rows_of_run
from forecause.effects.periods import data_of, zone_of
from forecause.effects.surprise import (
    Normal,
    conformal_p_value,
    evidence,
    evidence_alone,
    joint_rank,
)
from forecause.errors import InputError
from forecause.forecast.refit import Causes
from forecause.graph.edge_table import edge_keys
from forecause.graph.lagged import LaggedGraph
from forecause.result import Result

# Looks:
SHOWN = 5  # variables in a picture


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
        axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        axes.tick_params(axis="x", labelrotation=20)
        return axes

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return card(self.sentence, [*self.notes, self.caveat], self.causes)

    def __repr__(self) -> str:
        return f"Explanation({self.sentence})"


@dataclass(frozen=True, eq=False)
class _News:
    """What is new in an event: in the run's columns, then in those that never moved in calm."""

    normal: Normal
    innovations: Array  # (row, column) of the run's columns, NaN where nothing was observed
    whole: Array  # (row, column) with the rows before, what was missing being forecast
    moved: Array  # (row, column) of what never moves in calm
    time: pd.Index
    names: tuple[str, ...]  # of the variables
    owner: Index  # (column,) the variable of every column

    @classmethod
    def of(cls, stretch: Stretch, graph: LaggedGraph, zone: Any = None) -> _News:
        """Of the rows of an event, given the causes in a graph; dates are told in a zone."""
        normal = _normal(stretch, graph)
        innovations, whole, left_out = _innovations(normal, stretch)
        time = pd.Index(stretch.time[left_out:], name="time")
        if zone is not None and isinstance(time, pd.DatetimeIndex):
            time = time.tz_localize("UTC").tz_convert(zone)
        still = [off[left_out:] for off in stretch.moved.values()]
        moved = np.array(still).reshape(-1, len(time)).T
        coding = stretch.calm.panel.coding
        after = len(coding.variables) + np.arange(len(still))
        names = (*coding.variables, *stretch.moved)
        owner = np.concatenate([coding.of_column, after])
        return cls(normal, innovations, whole, moved, time, names, owner)

    @cached_property
    def every(self) -> Array:
        """All innovations, (row, column)."""
        return np.concatenate([self.innovations, self.moved], axis=1)

    @cached_property
    def size(self) -> Array:
        """Of every column, (column,): the root mean square of what is new."""
        return np.sqrt(known_mean(self.every**2))

    @cached_property
    def columns(self) -> list[Index]:
        """Of every variable."""
        return [np.flatnonzero(self.owner == variable) for variable in range(len(self.names))]

    @cached_property
    def loudest(self) -> Index:
        """The column of every variable in which most is new, (variable,)."""
        return np.array([own[self.size[own].argmax()] for own in self.columns])

    @property
    def loud(self) -> set[str]:
        """The variables in which much is new."""
        is_loud = self.size[self.loudest] >= thresholds().events.loud
        return {name for name, much in zip(self.names, is_loud, strict=True) if much}

    @property
    def silence(self) -> list[str]:
        """A sentence on the variables of which nothing was observed."""
        seen: Mask = np.asarray(np.isfinite(self.every).any(axis=0))
        silent = [n for n, own in zip(self.names, self.columns, strict=True) if not seen[own].any()]
        return [f"Without a value in the event, so unknown: {', '.join(silent)}."] if silent else []

    def scores(self, max_lag: int) -> Array:
        """Of every variable, (variable,), from 0 to 1 for the likeliest cause."""
        proof = [
            evidence(self.normal, self.innovations, self.whole, max_lag),
            evidence_alone(self.moved),
        ]
        of_column = joint_rank(self.size, np.concatenate(proof), len(self.every))
        return np.array([of_column[own].max() for own in self.columns])

    def shares(self, target: str | None) -> Array:
        """What share of the event came through each variable, (variable,), NaN where unknown."""
        coding = self.owner[: self.innovations.shape[1]]
        watched = np.ones(len(coding), bool)
        if target is not None:
            watched = coding == self.names.index(target)
        known = _shares(self.normal, self.innovations, coding, watched)
        return np.concatenate([known, np.full(self.moved.shape[1], np.nan)])


def explain(
    found: Result,
    event: Any = None,
    until: Any = None,
    target: str | None = None,
    data: Any = None,
    graph: Any = None,
) -> Explanation:
    """The likely causes of an event, ranked."""
    if target is not None:
        variable_place(found, target)
    known, links = graph_and_links(found, graph)
    if data is None:
        stretch = rows_of_run(found, event, until)
    else:
        stretch = rows_of_data(found, event, until, data)
    news = _News.of(stretch, known, zone_of((event, until), data))
    ways = ways_to(links, target)
    doubtful = set() if target is None else set(news.names) - {target, *ways}
    if graph is not None:
        loud = news.loud  # their links may act within a row
        doubtful |= {end for start, end, _ in links if start in loud and start != end}
    causes = _causes(news, known.max_lag, target, doubtful)
    listed = [(name, *ways[name]) for name in causes["variable"] if name in ways]
    p_value, blocks = conformal_p_value(news.normal.errors, news.innovations)
    return Explanation(
        news.time[0],
        news.time[-1],
        len(news.time),
        target,
        causes,
        p_value,
        blocks,
        pd.DataFrame(listed, columns=["cause", "path", "lags"]),
        pd.DataFrame(news.every[:, news.loudest], index=news.time, columns=list(news.names)),
        notes=(*stretch.notes, *news.silence),
    )


def graph_and_links(found: Result, graph: Any) -> tuple[LaggedGraph, list[Link]]:
    """The graph by which an event is explained, and its links: the run's, or the user's, a
    LaggedGraph or pairs (source, target) at every lag, which may name columns that never moved in
    the run's data."""
    own = found.graph
    if graph is None or isinstance(graph, LaggedGraph):
        known = own if graph is None else graph
        if known.variables != own.variables:
            raise InputError("The graph given has other variables than the run.")
        return known, edge_keys(known.causal.edges)
    still = {str(change.column) for change in data_of(found).changes}
    links: list[Link] = []
    pairs = getattr(graph, "edges", graph)
    for pair in pairs if isinstance(pairs, Iterable) else [pairs]:
        is_pair = isinstance(pair, tuple | list) and len(pair) == 2
        if not is_pair or not set(pair) <= {*own.variables, *still}:
            raise InputError(
                f"Expected pairs (source, target) of the run's variables, found {pair!r:.80}."
            )
        links += [(*pair, lag) for lag in range(1, own.max_lag + 1)]
    inner = [link for link in links if set(link[:2]) <= set(own.variables)]
    return LaggedGraph.from_edges(list(own.variables), own.max_lag, inner), links


def ways_to(links: list[Link], target: str | None) -> dict[str, tuple[str, str]]:
    """For every ancestor of the target: the way there with the fewest links, and its lags."""
    if target is None:
        return {}
    import networkx as nx

    backwards = nx.DiGraph()
    backwards.add_node(target)
    for source, end, lag in links:
        known = backwards.get_edge_data(end, source, {"lag": lag})
        backwards.add_edge(end, source, lag=min(lag, known["lag"]))
    ways = {}
    for name, way in nx.single_source_shortest_path(backwards, target).items():
        if name != target:
            lags = [backwards.edges[pair]["lag"] for pair in pairwise(way)]
            ways[name] = (" -> ".join(way[::-1]), " + ".join(map(str, lags[::-1])))
    return ways


def _causes(
    news: _News, max_lag: int, target: str | None, doubtful: Collection[str]
) -> pd.DataFrame:
    """The variables, likeliest first; those that are doubtful count less."""
    less = [name in doubtful for name in news.names]
    score = news.scores(max_lag)
    table = pd.DataFrame(
        {
            "variable": news.names,
            "score": np.where(less, thresholds().events.no_path * score, score),
            "surprise": news.size[news.loudest],
            "first": _told([_first(news.every[:, c], news.time) for c in news.loudest]),
            "share": news.shares(target),
        }
    )
    return table.sort_values(["score", "surprise"], ascending=False, ignore_index=True)


def _normal(stretch: Stretch, graph: LaggedGraph) -> Normal:
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


def _innovations(normal: Normal, stretch: Stretch) -> tuple[Array, Array, int]:
    """What is new in the event, the rows with their past, and how many rows were past alone."""
    lags, left_out = len(stretch.past), 0
    past, rows = stretch.past, stretch.rows
    if np.isnan(past).all() and len(rows) >= thresholds().events.rows_per_lag * lags:
        past, rows, left_out = rows[:lags], rows[lags:], lags
    found, whole = normal.innovations(past, rows)
    if not np.isfinite(found).any():
        raise InputError("Nothing was observed in the event: every cell is missing.")
    return found, np.nan_to_num(whole), left_out


def _first(innovations: Array, time: pd.Index) -> Any:
    """When a variable first surprised."""
    loud = np.flatnonzero(np.abs(np.nan_to_num(innovations)) >= thresholds().events.first_surprise)
    return time[loud[0]] if len(loud) else None


def _told(moments: list[Any]) -> pd.Series:
    """Moments as dates, or as they are: a row number stays a whole one beside what is unknown."""
    is_dated = any(isinstance(one, pd.Timestamp) for one in moments)
    return pd.Series(moments) if is_dated else pd.Series(moments, dtype=object)


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
