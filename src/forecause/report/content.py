"""The data of the page: graph, evidence and words as one JSON document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from forecause.errors import InputError
from forecause.graph.edge_table import edge_records
from forecause.graph.lagged import LaggedGraph
from forecause.report.history import lag_text, short
from forecause.report.layout import positions
from forecause.report.words import chosen_losses, edge_sentence

if TYPE_CHECKING:
    from forecause.result import Result

FORMAT = "forecause.report/1"
GLOSSARY = {
    "score": "How much the forecast of the target depends on this input; what edges are chosen by.",
    "effect": "Mean signed relevance, in standard deviations.",
    "sign": "1 raises, -1 lowers.",
    "share": "Share of all that moves the target.",
    "confidence": "One minus the q-value, unless the run says otherwise.",
    "certainty": "Roughly the chance that the edge is true: its q-value, and how it survives in "
    "each half of time, with a longer window, and with lines as well as curves.",
    "grade": "firm, likely or tentative: the word for the certainty; all tentative where no error "
    "rate can be promised.",
    "q_value": "Expected share of false edges among those at least as significant.",
    "mean_rank": "Mean place among the target's candidates over the samples; the strongest ranks "
    "highest.",
    "sd_rank": "Standard deviation of that place.",
    "sign_consistency": "1: always the same direction; 0: as often up as down.",
    "stability": "Share of repetitions in which the edge was found.",
    "domains": "The domains or regimes in which the edge was found.",
    "mark": "--> a cause; o-> perhaps a hidden common cause; <-> a hidden common cause; o-o and "
    "x-x without a known direction.",
}


def page_data(
    found: Result, compare: Result | None = None, truth: LaggedGraph | None = None
) -> dict[str, Any]:
    """Everything the page's script works on."""
    graph = found.graph
    others = [compare.graph] if compare else []
    if truth is not None:
        check_same_variables(graph, truth)
    time = found.evidence.get("time", {})
    return {
        "format": FORMAT,
        "graph": document(graph),
        "compare": _other_run(found, compare) if compare else None,
        "truth": document(truth) if truth is not None else None,
        "layout": _layout(graph, others),
        "signs": _signs(found),
        "sentences": sentences(found),
        "lag_names": [lag_text(lag, time) for lag in range(_longest(graph, others) + 1)],
        "glossary": GLOSSARY,
        "sd": short(found.data.spread),
        "evidence": {k: v for k, v in found.evidence.items() if k != "origin"},
    }


def document(graph: LaggedGraph) -> Any:
    """The graph as the plain content of its JSON file."""
    return json.loads(graph.to_json())


def sentences(found: Result) -> list[str]:
    """One sentence of evidence per edge, in the order of the edge table."""
    place = {name: i for i, name in enumerate(found.graph.variables)}
    shown = {tuple(entry["edge"]): entry for entry in found.evidence.get("edges", [])}
    time, spread = found.evidence.get("time", {}), found.data.spread
    return [
        edge_sentence(
            edge,
            shown.get((place[str(edge["source"])], place[str(edge["target"])], edge["lag"])),
            float(spread[place[str(edge["target"])]]),
            time,
        )
        for edge in edge_records(found.graph.edges)
    ]


def check_same_variables(graph: LaggedGraph, truth: LaggedGraph) -> None:
    """A truth must speak of the variables that were analysed."""
    if set(graph.variables) != set(truth.variables):
        differing = sorted(set(graph.variables) ^ set(truth.variables))[:5]
        raise InputError(
            f"The true graph must have the variables of the run; these differ: {differing}."
        )


def _other_run(found: Result, other: Result) -> dict[str, Any]:
    """The other run's graph, and who forecasts how many of the shared variables better."""
    here, there = chosen_losses(found.losses).align(chosen_losses(other.losses), join="inner")
    ratio = here / there
    better = {
        "here": int((ratio < 0.99).sum()),
        "there": int((ratio > 1.01).sum()),
        "same": int(((ratio >= 0.99) & (ratio <= 1.01)).sum()),
    }
    return {"graph": document(other.graph), "better": better}


def _layout(graph: LaggedGraph, others: list[LaggedGraph]) -> dict[str, Any]:
    """All variables that any of the graphs has, and their places."""
    graphs = [graph, *graph.domains.values(), *others]
    names = list(dict.fromkeys(name for g in graphs for name in g.variables))
    longest = max(g.max_lag for g in graphs)
    widened = [LaggedGraph(tuple(names), longest, g.edges) for g in graphs]
    return {"names": names, "places": positions(widened).round(4).tolist()}


def _signs(found: Result) -> str:
    """One of + - 0 for every candidate, in the order (target, source, lag)."""
    if "effect" not in found.relevance:
        return ""
    signs = np.sign(np.nan_to_num(found.relevance["effect"].values)).astype(int).ravel()
    return "".join("0+-"[sign] for sign in signs)


def _longest(graph: LaggedGraph, others: list[LaggedGraph]) -> int:
    return max(g.max_lag for g in [graph, *others])
