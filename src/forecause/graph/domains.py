"""Graphs of several domains or regimes side by side: what stays and what changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from forecause.graph.lagged import LaggedGraph

EDGE = ["source", "target", "lag"]
EVERYWHERE = "all"


def with_domains(graph: LaggedGraph, domains: Mapping[str, LaggedGraph]) -> LaggedGraph:
    """The graph of all data with those of its domains; the column `domains` names where an edge
    was found, `all` if everywhere."""
    present = {name: _edges(part) for name, part in domains.items()}
    column = []
    for edge in graph.edges[EDGE].itertuples(index=False, name=None):
        found = [name for name, edges in present.items() if edge in edges]
        column.append(EVERYWHERE if len(found) == len(present) else ", ".join(found) or None)
    edges = graph.edges.assign(domains=pd.Series(column, dtype=object))
    return replace(graph, edges=edges, domains=dict(domains))


def invariant(graph: LaggedGraph) -> LaggedGraph:
    """The edges found in every domain, with the details they have over all data where known."""
    if not graph.domains:
        return graph
    shared = set.intersection(*(_edges(part) for part in graph.domains.values()))
    tables = [graph.edges, *(part.edges for part in graph.domains.values())]
    rows = pd.concat(tables, ignore_index=True).drop_duplicates(EDGE)
    keep = [edge in shared for edge in rows[EDGE].itertuples(index=False, name=None)]
    return replace(graph, edges=rows[keep].drop(columns="domains", errors="ignore"), domains={})


def changes(graph: LaggedGraph) -> pd.DataFrame:
    """Edges that some domains have and others lack: their score in each domain, NaN where absent.

    One row per edge, indexed by source, target and lag, the domains as columns.
    """
    columns = {name: part.edges.set_index(EDGE)["score"] for name, part in graph.domains.items()}
    table = pd.DataFrame(columns).sort_index()
    return table[table.isna().any(axis=1)]


def _edges(graph: LaggedGraph) -> set[tuple[str, str, int]]:
    return set(graph.edges[EDGE].itertuples(index=False, name=None))
