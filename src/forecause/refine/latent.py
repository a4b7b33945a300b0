"""Hidden common causes: which discovered edges are causes, and which are confounding.

LPCMCI (Gerhardus and Runge 2020) is run on the discovered edges alone, and on the lag-0 pairs
whose residuals move together; nothing drives anything within a row here, so such a pair can only
be confounded. Its collider rules take a weak indirect effect for none, so many of its verdicts
of confounding are wrong; one stands only if the edge is weak beside the others of its target, as
an effect at second hand is, and no instrument speaks for it. Otherwise the edge is marked as
undecided (o->).

Instruments are causes of a source that reach the target through it. If a hidden variable drives
both ends of an edge, what drives its source tells nothing about its target; if the edge is a
cause, it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from forecause.common.arrays import Array, Mask
from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.edges.knowledge import Knowledge
from forecause.graph.axes import AXES, empty_scores
from forecause.graph.edge_table import (
    CAUSAL,
    CAUSE,
    CONFOUNDED,
    POSSIBLE_CAUSE,
    edge_records,
    edge_table,
)
from forecause.graph.lagged import LaggedGraph
from forecause.progress import QUIET, Progress
from forecause.refine.candidates import (
    LaggedProducts,
    Place,
    candidate_mask,
    check_variables,
    lagged_places,
    screen_instantaneous,
)
from forecause.refine.links import Links
from forecause.refine.tigramite_search import by_target, search_latent

# Time and memory:
# Bounds on conditioning sets, without which ten variables can take many minutes.
MAX_SIZE = 2
MAX_SETS_PER_SIZE = 5
NOTHING = Knowledge()


@dataclass(frozen=True, eq=False)
class _Verdicts:
    """What LPCMCI says, over (target, source, lag 0 ..)."""

    marks: npt.NDArray[np.str_]
    strength: Array


def refine_latent(
    panel: Panel,
    graph: LaggedGraph,
    knowledge: Knowledge = NOTHING,
    progress: Progress = QUIET,
) -> LaggedGraph:
    """The graph without the edges that hidden causes explain away, each edge with its `mark`.

    Edges marked <-> are kept in the table; `LaggedGraph.causal` leaves them out. A new edge at
    lag 0 can only be of that kind; its score is a partial correlation.
    """
    check_variables(panel, graph)
    what = "refine: hidden causes"
    progress.step(what, 0.0)
    pairs = screen_instantaneous(panel, graph)
    links = Links.of(panel, graph.max_lag, knowledge).within(candidate_mask(graph, pairs))
    progress.step(what, 0.1)
    verdicts = _search(panel, graph.max_lag, links)
    progress.step(what, 0.9)
    scores = _all_scores(graph)
    marks = _believed(panel, graph, verdicts, scores)
    lagged_first = np.where(scores["lag"].values > 0, scores.values, -np.inf)
    causal = links.completed(lagged_first, np.isin(marks, CAUSAL))
    marks = np.where(causal & ~np.isin(marks, CAUSAL) | links.fixed, CAUSE, marks)
    confounded = (marks == CONFOUNDED) & links.allowed
    confounded[:, :, 0] &= np.tri(len(marks), k=-1, dtype=bool)  # one edge per pair
    progress.step(what, 1.0)
    return _refined(graph, causal | confounded, marks, scores, verdicts.strength)


def _search(panel: Panel, max_lag: int, links: Links) -> _Verdicts:
    """LPCMCI on these links."""
    results = search_latent(
        panel,
        max_lag,
        links.for_lpcmci_without_instantaneous_causes(),
        pc_alpha=thresholds().hidden.lpcmci_level,
        max_p_global=MAX_SIZE,
        max_q_global=MAX_SETS_PER_SIZE,
    )
    strength = np.abs(by_target(results["val_matrix"]))
    return _Verdicts(by_target(results["graph"]), strength)


def _believed(
    panel: Panel, graph: LaggedGraph, verdicts: _Verdicts, scores: xr.DataArray
) -> npt.NDArray[np.str_]:
    """LPCMCI's marks, where confounding stands only for weak edges without an instrument."""
    marks = verdicts.marks.copy()
    places: list[Place] = lagged_places(graph)
    reached = instrument_p_values(panel, places, graph.max_lag)
    strongest = scores.max(["source", "lag"]).values  # (target,)
    for place in places:
        if marks[place] != CONFOUNDED:
            continue
        weak = scores.values[place] < thresholds().hidden.weak_score * strongest[place[0]]
        if not weak or reached[place] < thresholds().hidden.instrument_level:
            marks[place] = POSSIBLE_CAUSE
    return marks


def _all_scores(graph: LaggedGraph) -> xr.DataArray:
    """Scores (target, source, lag 0 ..): the graph's, or else those of its edges; 0 elsewhere."""
    scores = empty_scores(graph.variables, graph.max_lag, 0)
    if graph.scores is not None:
        named = graph.scores.reindex(lag=scores["lag"].values)
        return scores.copy(data=np.nan_to_num(named.values))
    for target, source, lag, score in graph.edges[[*AXES, "score"]].itertuples(index=False):
        scores.loc[{"target": target, "source": source, "lag": lag}] = np.nan_to_num(score)
    return scores


def _refined(
    graph: LaggedGraph,
    kept: Mask,
    marks: npt.NDArray[np.str_],
    scores: xr.DataArray,
    strength: Array,
) -> LaggedGraph:
    """The kept edges with all that was known of them, and scores without the explained ones."""
    names = graph.variables
    known = {(r["target"], r["source"], r["lag"]): r for r in edge_records(graph.edges)}
    records: list[Mapping[str, Any]] = []
    for i, j, lag in np.argwhere(kept).tolist():
        score = float(strength[i, j, 0] if lag == 0 else scores.values[i, j, lag])
        new = {"source": names[j], "target": names[i], "lag": lag, "score": score}
        before = known.get((names[i], names[j], lag), new)
        records.append({**before, "mark": str(marks[i, j, lag])})
    explained = [place for place in lagged_places(graph) if marks[place] not in CAUSAL]
    left = scores.copy()
    for place in explained:
        left.values[place] = 0.0
    return LaggedGraph(names, graph.max_lag, edge_table(records), left.sel(lag=slice(1, None)))


def instrument_p_values(panel: Panel, places: Sequence[Place], max_lag: int) -> dict[Place, float]:
    """For every edge (target, source, lag), how surely its instruments reach the target.

    Instruments are parents of the source that are variables without an edge of their own into the
    target; the F-test has the other parents of both ends beside them. No instrument: p = 1.
    """
    moments = LaggedProducts.of(panel, 2 * max_lag)
    parents: list[list[tuple[int, int]]] = [[] for _ in panel.coding.variables]
    for target, source, lag in places:
        parents[target].append((source, lag))
    return {place: _instrument_p_value(moments, parents, place) for place in places}


def _instrument_p_value(
    moments: LaggedProducts, parents: list[list[tuple[int, int]]], place: Place
) -> float:
    target, source, lag = place
    known = {variable for variable, _ in parents[target]} | {source, target}
    earlier = [(variable, lag + more) for variable, more in parents[source]]
    instruments = [cell for cell in earlier if cell[0] not in known]
    if not instruments:
        return 1.0
    others = {cell for cell in (*parents[target], *earlier) if cell[0] in known}
    others.discard((source, lag))
    cells = [moments.columns(*cell) for cell in (*instruments, *sorted(others))]
    outcome = moments.columns(target, 0)
    fit = moments.regress(np.concatenate(cells), outcome)
    tested = sum(len(cell) for cell in cells[: len(instruments)])
    return min(float(fit.group_p(np.arange(tested)).min()) * len(outcome), 1.0)
