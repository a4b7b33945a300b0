"""The graphs of finished fits refined: python -m forecause_bench.paper_study.refinement.

Hidden causes by LPCMCI from the predicted edges, effects within a row by PCMCI+ from the predicted
edges and every pair at lag 0, both as in the paper; beside them the rules of `forecause refine`.
Nothing is trained: the three edges per target are read from the stored relevance.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from forecause.data.panel import Panel
from forecause.edges.knowledge import Knowledge
from forecause.graph.axes import labelled
from forecause.graph.lagged import LaggedGraph
from forecause.refine.latent import refine_latent
from forecause.refine.links import Links
from forecause.refine.run import refine_instantaneous
from forecause.refine.tigramite_search import (
    by_target,
    frame_of,
    graph_plus,
    load,
    partial_correlation,
    quiet,
)
from forecause_bench.document import Block, Heading, Lines, Paragraph, Table, Text, to_markdown
from forecause_bench.paper_study.answers import Summary
from forecause_bench.paper_study.queue import DEEP, HIDDEN, Fit, in_order
from forecause_bench.paper_study.quick_pcmci import by_moments, plus_by_moments
from forecause_bench.paper_study.rivals import LIMIT, at_most
from forecause_bench.paper_study.scores import Mask, metrics, top_k
from forecause_bench.paper_study.store import STORE, WHOLE, StoredFit, edges_by_segment, write
from forecause_bench.paper_study.systems import commit, recorded

FOLDER = "refined"
NOW = ("instantaneous-1",)
LEVEL = 0.01  # tigramite's own of LPCMCI
COMMAND = "python -m forecause_bench.paper_study.refinement"


def predicted(fit: StoredFit, variables: tuple[str, ...]) -> LaggedGraph:
    """The published graph: three edges per target by LRP."""
    relevance = fit.relevance("lrp")
    return LaggedGraph.from_scores(labelled(relevance, variables), top_k(relevance))


def plain_lpcmci(panel: Panel, graph: LaggedGraph) -> LaggedGraph:
    """What LPCMCI keeps as a cause of the predicted edges, its marks taken as they are."""
    links = Links.of(panel, graph.max_lag, Knowledge()).within(_lagged(graph, now=False))
    frame, test = frame_of(panel, graph.max_lag), partial_correlation(panel)
    searcher = by_moments(load("tigramite.lpcmci").LPCMCI(frame, test), graph.max_lag)
    with quiet():
        results = searcher.run_lpcmci(
            link_assumptions=links.for_lpcmci(), tau_max=graph.max_lag, pc_alpha=LEVEL
        )
    causes = np.isin(by_target(results["graph"])[:, :, 1:], ("-->", "o->"))
    strength = np.abs(by_target(results["val_matrix"])[:, :, 1:])
    return LaggedGraph.from_scores(labelled(strength, graph.variables), causes)


def plain_pcmci_plus(panel: Panel, graph: LaggedGraph) -> LaggedGraph:
    """PCMCI+ from the predicted edges and every pair at lag 0."""
    links = Links.of(panel, graph.max_lag, Knowledge()).within(_lagged(graph, now=True))
    return graph_plus(panel, plus_by_moments(panel, graph.max_lag, links), links)


REFINED: dict[str, dict[str, Callable[[Panel, LaggedGraph], LaggedGraph]]] = {
    "hidden": {"LPCMCI, as in the paper": plain_lpcmci, "forecause refine": refine_latent},
    "now": {
        "PCMCI+, as in the paper": plain_pcmci_plus,
        "forecause refine": refine_instantaneous,
    },
}


def refined(fit: Fit, stored: StoredFit, before: dict[str, Any], limit: float) -> dict[str, Any]:
    """The edges (target, source, lag) before and after, by method, and the true ones.

    What `before` has is kept. `limit` is in seconds of processor time for a method.
    """
    panel, truth = recorded(fit.rows, fit.seed, **fit.settings)
    graph = predicted(stored, panel.variables)
    about = {"system": fit.system, "seed": fit.seed, "rows": fit.rows, "commit": commit()}
    about |= {"shape": list(stored.shape), "truth": edges_by_segment(truth)[WHOLE]}
    found: dict[str, Any] = {**about, "as predicted": {"edges": edges_by_segment(graph)[WHOLE]}}
    found |= before
    for name, refine in REFINED[_kind(fit)].items():
        if name in found:
            continue
        began = time.process_time()
        try:
            with at_most(limit):
                answer = refine(panel, graph).causal
        except TimeoutError:
            found[name] = {"stopped_after": limit}
            continue
        seconds = round(time.process_time() - began, 1)
        found[name] = {"edges": edges_by_segment(answer)[WHOLE], "seconds": seconds}
    return found


def _kind(fit: Fit) -> str:
    return "hidden" if fit.system in HIDDEN else "now"


def page(store: Path) -> list[Block]:
    """Lagged edges of both kinds, and those within a row."""
    files = [json.loads(p.read_text(encoding="utf-8")) for p in sorted(_files(store))]
    blocks: list[Block] = [
        Heading("The published graph, refined", 1),
        Lines([f"Command: `{COMMAND}`", f"{len(files)} fits of `bench/paper-fits`"]),
        Paragraph(
            "Three edges per target by LRP are the start. LPCMCI judges these edges alone, at its "
            "own level of 1 %; an edge stays if it is marked as a cause (--> or o->). PCMCI+ "
            "starts from them and from every pair at lag 0. `forecause refine` screens the pairs "
            "at lag 0, and lets a verdict of confounding stand only where no instrument speaks "
            "for the edge. Means over seeds of precision / recall / F1."
        ),
    ]
    for title, systems, lagged in (
        ("Hidden causes: lagged edges", HIDDEN, True),
        ("Effects within a row: lagged edges", NOW, True),
        ("Effects within a row: edges at lag 0", NOW, False),
    ):
        of_title = [one for one in files if one["system"] in systems]
        blocks += [Heading(title, 2), _table(of_title, systems, lagged=lagged)]
    return blocks


def _table(files: list[dict[str, Any]], systems: Iterable[str], *, lagged: bool) -> Table:
    methods = list(dict.fromkeys(n for one in files for n, v in one.items() if _is_method(v)))
    body = []
    for method in methods:
        row = [Text(method)]
        for system in systems:
            of_system = [one for one in files if one["system"] == system]
            own = [one for one in of_system if "edges" in one.get(method, {})]
            each = [_scored(one, method, lagged) for one in own]
            figures = [
                Summary.of([m[name] for m in each]) for name in ("precision", "recall", "f1")
            ]
            told = " / ".join(f"{figure.mean:.2f}" for figure in figures if figure)
            stopped = sum(method in one for one in of_system) - len(own)
            over = f"{stopped} stopped at the limit" if stopped else ""
            parts = [f"{told} ({len(own)})" if own else "", over]
            row.append(Text(", ".join(filter(None, parts)) or "not run"))
        body.append(row)
    return Table(["", *[f"{system} (seeds)" for system in systems]], body)


def _is_method(value: Any) -> bool:
    return isinstance(value, dict) and ("edges" in value or "stopped_after" in value)


def _scored(one: dict[str, Any], method: str, lagged: bool) -> dict[str, float]:
    masks = [_mask(edges, one["shape"]) for edges in (one[method]["edges"], one["truth"])]
    chosen, true = (mask[:, :, 1:] if lagged else mask[:, :, :1] for mask in masks)
    return metrics(chosen, true)


def _mask(edges: list[list[int]], shape: list[int]) -> Mask:
    mask = np.zeros((shape[0], shape[1], shape[2] + 1), dtype=bool)
    for target, source, lag in edges:
        mask[target, source, lag] = True
    return mask


def _lagged(graph: LaggedGraph, *, now: bool) -> Mask:
    """The predicted edges over (target, source, lag 0 ..), with every pair at lag 0 or none."""
    edges = edges_by_segment(graph)[WHOLE]
    mask = _mask(edges, [len(graph.variables), len(graph.variables), graph.max_lag])
    mask[:, :, 0] = now & ~np.eye(len(mask), dtype=bool)
    return mask


def _files(store: Path) -> Iterable[Path]:
    return (store / FOLDER).glob("*.json")


def main() -> None:
    """Refine the fits that were not refined yet, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks/paper-refinement"))
    parser.add_argument("--only-page", action="store_true")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of processor time")
    parser.add_argument("--only", default="", help="only systems whose name holds this")
    asked = parser.parse_args()
    fits = [f for f in in_order() if f.system in (*HIDDEN, *NOW) and f.layers == DEEP]
    for fit in [] if asked.only_page else fits:
        stored, path = (asked.store / part / f"{fit.name}.json" for part in ("", FOLDER))
        if asked.only not in fit.system or not stored.exists():
            continue
        before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if set(REFINED[_kind(fit)]) - set(before):
            write(path, refined(fit, StoredFit.read(stored), before, asked.limit))
            Console().print(fit.name)
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "table.md").write_text(to_markdown(page(asked.store)), encoding="utf-8")


if __name__ == "__main__":
    main()
