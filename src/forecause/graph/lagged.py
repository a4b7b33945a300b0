"""LaggedGraph: which variable drives which, with which delay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from forecause.common.bounded import check_candidates
from forecause.common.views import card, figure
from forecause.errors import InputError
from forecause.graph.axes import AXES, empty_scores
from forecause.graph.edge_table import (
    CAUSAL,
    EDGE_COLUMNS,
    between_variables,
    marks_of,
    plain_cells,
    plain_column,
)

EDGE = ["source", "target", "lag"]
EVERYWHERE = "all"
WIDGETS = "forecause.report.widget"  # a layer above, imported when one is asked for
# Looks:
SHOWN_EDGES = 10  # of a graph that is printed
SHOWN_COLUMNS = (*EDGE, "mark", "change", "change_low", "change_high", "score", "grade")


@dataclass(frozen=True, eq=False, repr=False)
class LaggedGraph:
    """Edges `source --lag--> target` between named variables.

    `edges` is a tidy table with at least the columns source, target, lag and score, strongest
    first. `scores`, where known, ranks every candidate and has the axes (target, source, lag).
    Lag 0 marks an instantaneous edge. A column `mark` tells of edges that are not, or not surely,
    causes (see graph.edge_table). `domains` holds one graph per known domain or regime.
    `summary`, where known, tells for every pair of variables whether one drives the other at all:
    source, target, p and q.

    Examples
    --------
    >>> import forecause as fc
    >>> graph = fc.LaggedGraph.from_edges(["rain", "river"], 3, [("rain", "river", 2)])
    >>> len(graph), graph.max_lag
    (1, 3)
    >>> sorted(graph.to_networkx().nodes)
    ['rain', 'river']
    """

    variables: tuple[str, ...]
    max_lag: int
    edges: pd.DataFrame
    scores: xr.DataArray | None = None
    domains: Mapping[str, LaggedGraph] = field(default_factory=dict)
    summary: pd.DataFrame | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(str(name) for name in self.variables))
        _check_frame(self.variables, self.max_lag)
        object.__setattr__(self, "max_lag", int(self.max_lag))
        object.__setattr__(self, "edges", _checked_edges(self.edges, self.variables, self.max_lag))
        if self.scores is not None:
            _check_scores(self.scores, self.variables)
        for name, graph in self.domains.items():
            if (graph.variables, graph.max_lag) != (self.variables, self.max_lag):
                raise InputError(f"The graph of domain {name!r} has other variables or lags.")

    @classmethod
    def from_edges(
        cls,
        variables: Sequence[str],
        max_lag: int,
        edges: Sequence[tuple[str, str, int]] | Sequence[tuple[str, str, int, float]],
    ) -> LaggedGraph:
        """Build from (source, target, lag) or (source, target, lag, score) tuples."""
        rows = [(e[0], e[1], e[2], e[3] if len(e) > 3 else 1.0) for e in edges]
        return cls(tuple(variables), max_lag, pd.DataFrame(rows, columns=list(EDGE_COLUMNS)))

    @classmethod
    def from_scores(
        cls,
        scores: xr.DataArray,
        chosen: xr.DataArray | np.ndarray[Any, Any],
        details: Mapping[str, xr.DataArray] | None = None,
    ) -> LaggedGraph:
        """Build from scores and a boolean mask, both (target, source, lag).

        Every array in `details` becomes a further column of the edge table.
        """
        targets, sources, lags = np.nonzero(np.asarray(chosen))
        names = [str(name) for name in scores["target"].values]
        columns: dict[str, Any] = {
            "source": [names[j] for j in sources],
            "target": [names[i] for i in targets],
            "lag": scores["lag"].values[lags],
            "score": scores.values[targets, sources, lags],
        }
        for name, values in (details or {}).items():
            columns[name] = values.values[targets, sources, lags]
        return cls(tuple(names), int(scores["lag"].max()), pd.DataFrame(columns), scores)

    @property
    def adjacency(self) -> xr.DataArray:
        """Boolean (target, source, lag); lags start at 1, or at 0 if there are such edges."""
        first = 0 if (self.edges["lag"] == 0).any() else 1
        check_candidates(len(self.variables), self.max_lag + 1)
        mask = empty_scores(self.variables, self.max_lag, first).astype(bool)
        index = {name: i for i, name in enumerate(self.variables)}
        targets = self.edges["target"].map(index).to_numpy(dtype=int)
        sources = self.edges["source"].map(index).to_numpy(dtype=int)
        mask.values[targets, sources, self.edges["lag"].to_numpy(dtype=int) - first] = True
        return mask

    @property
    def causal(self) -> LaggedGraph:
        """The graph of the edges that are, or may be, causes: what metrics count.

        Confounding (<->) and edges without a direction (o-o, x-x) are left out.
        """
        edges = self.edges[marks_of(self.edges).isin(CAUSAL)]
        domains = {name: graph.causal for name, graph in self.domains.items()}
        return replace(self, edges=edges, domains=domains)

    def __eq__(self, other: object) -> bool:
        """Same variables, lag window, edges with all their details, scores and domains."""
        if not isinstance(other, LaggedGraph):
            return NotImplemented
        same_scores = (
            self.scores is None
            if other.scores is None
            else self.scores is not None and self.scores.equals(other.scores)
        )
        return (
            (self.variables, self.max_lag) == (other.variables, other.max_lag)
            and _same_edges(self.edges, other.edges)
            and same_scores
            and dict(self.domains) == dict(other.domains)
        )

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.edges)

    def __repr__(self) -> str:
        """The first links as a table."""
        title, table, rest = self._shown()
        lines = [title, *([table.to_string(index=False)] if len(table) else []), *rest]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        title, table, rest = self._shown()
        return card(title, rest, table if len(table) else None)

    def _shown(self) -> tuple[str, pd.DataFrame, list[str]]:
        """The heading, the first links in a few columns, and how many more there are."""
        columns = [name for name in SHOWN_COLUMNS if name in self.edges]
        between = between_variables(self.edges)
        links = self.edges[between] if between.any() else self.edges
        table = links[columns].head(SHOWN_EDGES)
        table = table.map(lambda cell: figure(cell) if isinstance(cell, float) else cell)
        more, own = len(links) - len(table), len(self) - len(links)
        rest = [f"... and {more} more in .edges"] if more else []
        past = [f"and {_count(own, 'link')} of a variable to its own past"] if own else []
        title = f"{links_among(self)}, delays up to {_count(self.max_lag, 'row')}"
        return title, table, [*rest, *past]

    @property
    def invariant(self) -> LaggedGraph:
        """The edges found in every domain."""
        if not self.domains:
            return self
        shared = set.intersection(*(_edges(part) for part in self.domains.values()))
        tables = [self.edges, *(part.edges for part in self.domains.values())]
        rows = pd.concat(tables, ignore_index=True).drop_duplicates(EDGE)
        keep = [edge in shared for edge in rows[EDGE].itertuples(index=False, name=None)]
        edges = rows[keep].drop(columns="domains", errors="ignore")
        return replace(self, edges=edges, domains={})

    @property
    def changes(self) -> pd.DataFrame:
        """Scores, per domain, of the edges that some domains have and others lack."""
        columns = {name: part.edges.set_index(EDGE)["score"] for name, part in self.domains.items()}
        table = pd.DataFrame(columns).sort_index()
        return table[table.isna().any(axis=1)]

    def widget(self, height: int = 780) -> Any:
        """The graph to touch in a notebook: filter, click a link or a variable. Needs `anywidget`.

        `run.widget()` has the curves of the run too.
        """
        return import_module(WIDGETS).graph_widget(self, height)

    def to_json(self, path: str | Path | None = None) -> str:
        """The graph as `forecause.graph/1` JSON; written to `path` if given."""
        from forecause.graph.json_format import to_json

        return to_json(self, path)

    @staticmethod
    def from_json(source: str | Path) -> LaggedGraph:
        """Read a `forecause.graph/1` file."""
        from forecause.graph.json_format import read_json

        return read_json(source)

    def to_csv(self, path: str | Path | None = None) -> str:
        """The edge table as CSV; written to `path` if given."""
        from forecause.graph.export import to_csv

        return to_csv(self, path)

    def to_networkx(self) -> Any:
        """A networkx MultiDiGraph; the key of an edge is its lag."""
        from forecause.graph.export import to_networkx

        return to_networkx(self)

    def to_graphml(self, path: str | Path | None = None) -> str:
        """The graph as GraphML; written to `path` if given."""
        from forecause.graph.export import to_graphml

        return to_graphml(self, path)

    def to_dot(self, path: str | Path | None = None) -> str:
        """The graph in Graphviz's language; written to `path` if given."""
        from forecause.graph.export import to_dot

        return to_dot(self, path)

    def to_tigramite(self) -> np.ndarray[Any, Any]:
        """tigramite's string array [source, target, lag 0..max_lag] of marks such as '-->'."""
        from forecause.graph.export import to_tigramite

        return to_tigramite(self)


def links_among(graph: LaggedGraph) -> str:
    """14 links among 8 variables; those of a variable to its own past are not counted."""
    between = int(between_variables(graph.edges).sum())
    links = _count(between, "link") if between else "No link"
    return f"{links} among {_count(len(graph.variables), 'variable')}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _same_edges(edges: pd.DataFrame, others: pd.DataFrame) -> bool:
    """Whatever the order of the columns; without edges, the columns do not matter."""
    if len(edges) == len(others) == 0:
        return True
    return set(edges) == set(others) and edges.equals(others[list(edges)])


def _check_frame(variables: tuple[str, ...], max_lag: int) -> None:
    repeated = sorted(name for name, count in Counter(variables).items() if count > 1)
    if repeated:
        raise InputError(
            f"The names of a graph's variables must differ; found twice: {repeated[:5]}."
        )
    if any("\0" in name for name in variables):
        raise InputError("A variable's name must not hold the null character.")
    if not isinstance(max_lag, int | np.integer) or max_lag < 1:
        raise InputError(f"A graph's largest lag must be a whole number from 1, found {max_lag!r}.")


def _check_scores(scores: xr.DataArray, variables: tuple[str, ...]) -> None:
    """Every axis must carry its names: an order that is only assumed may be the wrong one."""
    if scores.dims != AXES:
        raise InputError(f"Scores must have the axes {AXES}, found {scores.dims}.")
    for axis in AXES:
        if axis not in scores.coords:
            raise InputError(f"Scores need a coordinate along {axis!r}.")
        if axis != "lag" and tuple(map(str, scores[axis].values)) != variables:
            raise InputError(f"The {axis}s of the scores are not the graph's variables in order.")


def _checked_edges(edges: pd.DataFrame, variables: Sequence[str], max_lag: int) -> pd.DataFrame:
    missing = [name for name in EDGE_COLUMNS if name not in edges.columns]
    if missing:
        raise InputError(f"An edge table needs the columns {EDGE_COLUMNS}; {missing} are missing.")
    names = [*EDGE_COLUMNS, *(name for name in edges.columns if name not in EDGE_COLUMNS)]
    edges = pd.DataFrame({str(name): _column(str(name), edges[name]) for name in names})
    unknown = sorted(set(edges["source"]).union(edges["target"]).difference(variables))
    if unknown:
        raise InputError(f"Edges name the variables {unknown}, which are not among the graph's.")
    edges["lag"] = _checked_lags(edges["lag"], max_lag)
    edges["score"] = _checked_scores(edges["score"])
    if edges.duplicated(["source", "target", "lag"]).any():
        raise InputError("The same edge (source, target, lag) appears twice.")
    if ((edges["lag"] == 0) & (edges["source"] == edges["target"])).any():
        raise InputError("A variable cannot drive itself without delay (lag 0).")
    order = ["score", "target", "source", "lag"]
    return edges.sort_values(order, ascending=[False, True, True, True], ignore_index=True)


def _column(name: str, values: pd.Series[Any]) -> pd.Series[Any]:
    if name in ("source", "target"):
        return pd.Series([str(cell) for cell in plain_cells(name, values.to_list())], dtype=object)
    return plain_column(name, values.to_list())


def _checked_lags(lags: pd.Series[Any], max_lag: int) -> pd.Series[Any]:
    for lag in lags:
        if isinstance(lag, bool | str) or lag != lag or lag not in range(max_lag + 1):
            raise InputError(f"Edge lags must be whole numbers from 0 to {max_lag}, found {lag!r}.")
    return lags.astype("int64")


def _checked_scores(scores: pd.Series[Any]) -> pd.Series[Any]:
    if scores.dtype == object:
        raise InputError(f"Edge scores must be numbers, found {scores.iloc[0]!r}.")
    return scores.astype("float64")


def with_domains(graph: LaggedGraph, domains: Mapping[str, LaggedGraph]) -> LaggedGraph:
    """The graph of all data with those of its domains; the column `domains` names where an edge
    was found, `all` if everywhere."""
    present = {name: _edges(part) for name, part in domains.items()}
    column = []
    for edge in graph.edges[EDGE].itertuples(index=False, name=None):
        having = [name for name, edges in present.items() if edge in edges]
        column.append(EVERYWHERE if len(having) == len(present) else ", ".join(having) or None)
    edges = graph.edges.assign(domains=pd.Series(column, dtype=object))
    return replace(graph, edges=edges, domains=dict(domains))


def _edges(graph: LaggedGraph) -> set[tuple[str, str, int]]:
    return set(graph.edges[EDGE].itertuples(index=False, name=None))
