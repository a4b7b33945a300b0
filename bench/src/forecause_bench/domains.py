"""Studies of systems that change: known domains, and regimes that have to be found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from forecause.config import Config, TopK
from forecause.data.panel import Panel
from forecause.edges.select import top_k
from forecause.graph import LaggedGraph, empty_scores
from forecause.method import discover
from forecause_bench.methods import Answer
from forecause_bench.rivals import run_baseline

K = 3  # the paper's row top-k


def known_domains(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The default discovery with the segments given, by its own rule and by row top-k."""
    return _both_rules(discover(panel, max_lag, seed=seed, device="cpu").graph, "")


def domain_input(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The transformer that is told the domain, and the one that must tell it from the past."""
    answers = []
    for known, label in ((True, "index as input, "), (False, "context alone, ")):
        found = discover(
            panel,
            max_lag,
            seed=seed,
            device="cpu",
            forecaster="transformer",
            select=TopK(K),
            config=Config(domain_input=known),
        )
        losses = {"loss": float(found.losses["transformer"].mean())}
        answers.append(Answer(found.graph, f"{label}top-{K} per target", losses))
    return answers


def baseline_by_domain(name: str, panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """A baseline run on the rows of each known segment by itself."""
    graphs = {
        domain: run_baseline(name, rows_of(panel, code), max_lag, seed)
        for code, domain in enumerate(panel.domain_names)
    }
    union = {edge for graph in graphs.values() for edge in _edges(graph)}
    whole = LaggedGraph.from_edges(panel.variables, max_lag, sorted(union))
    blank = empty_scores(panel.variables, max_lag)
    return [Answer(replace(whole, scores=blank, domains=graphs))]


def unknown_regimes(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """Regimes found without being told of any, and how far their change points are off.

    `changes` counts those found, `missed` those without a found one within 2 % of the rows,
    `error` is the largest distance of a true one from a found one as a share of the rows.
    """
    untold = replace(panel, domain=None, domain_names=())
    found = discover(untold, max_lag, seed=seed, device="cpu", forecaster="linear", regimes="auto")
    assert found.regimes is not None
    cuts = found.regimes.changes["row"].to_numpy(dtype=np.int64)
    true = np.flatnonzero(np.diff(panel.domain)) + 1 if panel.domain is not None else np.array([])
    error = _distances(true, cuts, panel.rows)
    extra = {
        "changes": float(len(cuts)),
        "invented": float((_distances(cuts, true, panel.rows) > 0.02).sum()),
        "missed": float((error > 0.02).sum()),
        "error": float(error.max()) if len(error) else 0.0,
    }
    return [Answer(_named_as(found.graph, panel.domain_names), "", extra)]


def rows_of(panel: Panel, domain: int) -> Panel:
    """The rows of one domain as a panel; its stretches do not touch each other."""
    assert panel.domain is not None
    rows = np.flatnonzero(panel.domain == domain)
    fresh = np.isin(rows, panel.starts) | np.concatenate([[True], np.diff(rows) > 1])
    return replace(
        panel,
        values=panel.values[rows],
        starts=np.flatnonzero(fresh).astype(np.int64),
        series=panel.series[rows],
        time=None if panel.time is None else panel.time[rows],
        domain=None,
        domain_names=(),
    )


def _both_rules(graph: LaggedGraph, label: str) -> list[Answer]:
    parts = {
        name: LaggedGraph.from_scores(part.scores, top_k(part.scores, K))
        for name, part in graph.domains.items()
        if part.scores is not None
    }
    return [
        Answer(graph, f"{label}default"),
        Answer(replace(graph, domains=parts), f"{label}top-{K} per target"),
    ]


def _distances(
    points: npt.NDArray[np.int64], others: npt.NDArray[np.int64], rows: int
) -> npt.NDArray[np.float64]:
    """Of each point from the nearest other one, as a share of the rows; 1 if there is none."""
    if not len(others):
        return np.ones(len(points))
    return np.asarray(np.abs(points[:, None] - others[None]).min(1) / rows)


def _named_as(graph: LaggedGraph, names: tuple[str, ...]) -> LaggedGraph:
    """Regimes in the order they appear under the segments' names, if there are as many."""
    if len(graph.domains) != len(names):
        return replace(graph, domains={})
    return replace(graph, domains=dict(zip(names, graph.domains.values(), strict=True)))


def _edges(graph: LaggedGraph) -> set[tuple[str, str, int]]:
    columns = graph.edges[["source", "target", "lag"]]
    return set(columns.itertuples(index=False, name=None))
