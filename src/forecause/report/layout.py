"""Where the variables of a graph are drawn: computed once, the same for the same graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forecause.common.arrays import Array, Index
from forecause.graph.lagged import LaggedGraph

CIRCLE = 14  # up to this many variables a circle reads best
GROUPED_FROM = 25  # with more variables, the matrix puts linked ones side by side
ROUNDS, LEAST_ROUNDS = 120, 16  # of moving variables; each takes time by their squared number
MANY = 500  # variables; with more there are fewer rounds
WIDE = 1.45  # width over height of the picture


def positions(graphs: Sequence[LaggedGraph]) -> Array:
    """Places (variable, 2) in [-WIDE, WIDE] x [-1, 1] that suit all the graphs together."""
    pull = sum((_pull(graph) for graph in graphs), np.zeros((len(graphs[0].variables),) * 2))
    if len(pull) <= CIRCLE:
        return _circle(pull)
    linked = pull.any(axis=1)
    if linked.all() or not linked.any():
        return _springs(pull)
    places = np.empty((len(pull), 2))
    placed = _circle if linked.sum() <= CIRCLE else _springs
    places[linked] = placed(pull[np.ix_(linked, linked)]) * [1.0, 0.87] + [0.0, 0.13]
    alone = int((~linked).sum())  # a row of their own at the bottom
    places[~linked, 0] = WIDE * (2 * (np.arange(alone) + 0.5) / alone - 1)
    places[~linked, 1] = -1.0
    return places


def grouped(graphs: Sequence[LaggedGraph]) -> list[int]:
    """The variables in an order that keeps linked ones together; a few stay as they are."""
    pull = sum((_pull(graph) for graph in graphs), np.zeros((len(graphs[0].variables),) * 2))
    if len(pull) <= GROUPED_FROM or not pull.any():
        return list(range(len(pull)))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    apart = 1 / (1 + 5 * pull)
    np.fill_diagonal(apart, 0.0)
    return [int(place) for place in leaves_list(linkage(squareform(apart), "average"))]


def _pull(graph: LaggedGraph) -> Array:
    """How strongly pairs belong together, symmetric (variable, variable), at most 1."""
    place = {name: i for i, name in enumerate(graph.variables)}
    pull = np.zeros((len(place), len(place)))
    if len(graph):
        shares = np.sqrt(np.maximum(graph.edges["score"].to_numpy(), 0))
        shares = 0.3 + 0.7 * shares / max(shares.max(), 1e-300)
        for source, target, share in zip(
            graph.edges["source"], graph.edges["target"], shares, strict=True
        ):
            i, j = place[source], place[target]
            if i != j:
                pull[i, j] = pull[j, i] = max(pull[i, j], share)
    return pull


def _circle(pull: Array) -> Array:
    """An ellipse whose order keeps linked variables close: swaps that shorten the chords."""
    count = len(pull)
    angles = np.pi / 2 - 2 * np.pi * np.arange(count) / count
    places = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    chords = np.linalg.norm(places[:, None] - places[None], axis=2)
    order = np.arange(count)
    for _ in range(20):
        improved = False
        for a in range(count):
            for b in range(a + 1, count):
                swapped = order.copy()
                swapped[[a, b]] = swapped[[b, a]]
                if _length(pull, chords, swapped) < _length(pull, chords, order) - 1e-9:
                    order, improved = swapped, True
        if not improved:
            break
    return places[order] * [WIDE, 1.0]


def _length(pull: Array, chords: Array, order: Index) -> float:
    return float((pull * chords[np.ix_(order, order)]).sum())


def _springs(pull: Array) -> Array:
    """A seeded spring layout, spread over the picture, names moved off each other."""
    import networkx as nx

    network = nx.from_numpy_array(pull)
    rounds = int(np.clip(ROUNDS * (MANY / len(pull)) ** 2, LEAST_ROUNDS, ROUNDS))
    coordinates = nx.spring_layout(network, k=2.2 / np.sqrt(len(pull)), iterations=rounds, seed=0)
    places = _evened(np.array([coordinates[i] for i in range(len(pull))]))
    for _ in range(rounds // 2):
        places = _filled(places + _pushes(places))
    return places


def _evened(places: Array) -> Array:
    """Places moved half-way to their rank along each axis, so that no outlier squeezes the rest."""
    ranks = places.argsort(0).argsort(0) / max(len(places) - 1, 1)
    return _filled(0.7 * (2 * ranks - 1) + 0.3 * _filled(places) / [WIDE, 1.0])


def _filled(places: Array) -> Array:
    low, high = places.min(0), places.max(0)
    return (2 * (places - low) / np.maximum(high - low, 1e-9) - 1) * [WIDE, 1.0]


def _pushes(places: Array) -> Array:
    """Moves (variable, 2) away from neighbours closer than a label's room."""
    room = np.array([2.2, 1.3]) / np.sqrt(len(places))
    gap = places[:, None] - places[None]
    distance = np.linalg.norm(gap / room, axis=2)
    np.fill_diagonal(distance, np.inf)
    push = np.maximum(1 - distance, 0) / np.maximum(distance, 1e-3)
    return 0.3 * (gap * push[..., None]).sum(1).clip(-room, room)
