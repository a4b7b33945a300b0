"""The graph by which an event is explained, the run's or the user's own, and the ways in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from forecause.effects.periods import data_of
from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph
from forecause.result import Result

Link = tuple[str, str, int]  # source, target, lag


def graph_and_links(found: Result, graph: Any) -> tuple[LaggedGraph, list[Link]]:
    """The run's graph, or the user's: a LaggedGraph, or pairs (source, target) at every lag; and
    its links, which may name columns that never moved in the run's data."""
    own = found.graph
    if graph is None or isinstance(graph, LaggedGraph):
        known = own if graph is None else graph
        if known.variables != own.variables:
            raise InputError("The graph given has other variables than the run.")
        edges = known.causal.edges
        return known, list(zip(edges["source"], edges["target"], edges["lag"], strict=True))
    still = {str(change.column) for change in data_of(found).changes}
    links: list[Link] = []
    pairs = getattr(graph, "edges", graph)
    for pair in pairs if isinstance(pairs, Iterable) else [pairs]:
        if (
            not isinstance(pair, tuple | list)
            or len(pair) != 2
            or not set(pair) <= {*own.variables, *still}
        ):
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


def followers(loud: Collection[str], links: Collection[Link]) -> set[str]:
    """What a loud cause in the user's own graph accounts for, whose links may act within a row."""
    return {end for start, end, _ in links if start in loud and start != end}
