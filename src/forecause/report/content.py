"""The data of the page: graph, evidence and words as one JSON document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from forecause.data.summary import delay_text
from forecause.errors import InputError
from forecause.forecast.comparison import chosen_losses
from forecause.graph.edge_table import edge_records
from forecause.graph.json_format import MOST_SCORES
from forecause.graph.lagged import LaggedGraph
from forecause.report.history import short
from forecause.report.layout import grouped, positions
from forecause.report.shapes import edge_shapes
from forecause.report.words import (
    change_text,
    claim,
    delay_unit,
    direction,
    edge_sentence,
    key_of,
    no_push,
    strongest_edges,
    top_links,
)

if TYPE_CHECKING:
    from forecause.result import Result

FORMAT = "forecause.report/1"
GLOSSARY = {
    "score": "How much the forecast of the target depends on this input, less of it the less "
    "chance is excluded; what edges are ordered by.",
    "effect": "Mean signed relevance, in standard deviations.",
    "change": "How far the target moves, in its own units, per standard deviation of the source: "
    "the average over the rows.",
    "change_low": "Lower end of the 90 % confidence interval of the change.",
    "change_high": "Upper end of the 90 % confidence interval of the change.",
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
    "decided_by": "The forecaster that the target keeps, whose tests decided; or the rule, where "
    "edges are chosen by relevance.",
    "domains": "The domains or regimes in which the edge was found.",
    "mark": "--> a cause; o-> perhaps a hidden common cause; <-> a hidden common cause; o-o and "
    "x-x without a known direction.",
}


def page_data(
    run: Result, compare: Result | None = None, truth: LaggedGraph | None = None
) -> dict[str, Any]:
    """Everything the page's script works on."""
    graph = run.graph
    others = [compare.graph] if compare else []
    if truth is not None:
        check_same_variables(graph, truth, "true graph")
    if compare is not None:
        check_same_variables(graph, compare.graph, "other run")
    time = run.timing
    return {
        "format": FORMAT,
        "graph": document(graph),
        "compare": _other_run(run, compare) if compare else None,
        "truth": document(truth) if truth is not None else None,
        "layout": _layout(graph, others),
        "signs": _signs(run),
        "sentences": sentences(run),
        "shapes": _shapes(run),
        "links": top_links(run),
        "domain_links": {name: top_links(run, part) for name, part in graph.domains.items()},
        "delay_unit": delay_unit(time),
        "delays": [delay_text(lag, time) for lag in range(_longest(graph, others) + 1)],
        "glossary": GLOSSARY,
        "sd": short(run.data.variable_sd),
        "evidence": {k: v for k, v in run.evidence.items() if k != "origin"},
    }


def graph_data(graph: LaggedGraph) -> dict[str, Any]:
    """The same of a graph without its run: all that the edge table tells, and no curves."""
    parts = {name: _graph_links(part) for name, part in graph.domains.items()}
    return {
        "format": FORMAT,
        "graph": document(graph),
        "compare": None,
        "truth": None,
        "layout": _layout(graph, []),
        "signs": "",
        "sentences": [_graph_sentence(edge) for edge in edge_records(graph.edges)],
        "shapes": [[list(key_of(e)), "no push"] for e in edge_records(graph.edges) if no_push(e)],
        "links": _graph_links(graph),
        "domain_links": parts,
        "delay_unit": "rows",
        "delays": [delay_text(lag, {}) for lag in range(graph.max_lag + 1)],
        "glossary": GLOSSARY,
        "sd": [],
        "evidence": {},
    }


def _graph_links(graph: LaggedGraph) -> list[dict[str, Any]]:
    return [
        {
            "edge": list(key_of(edge)),
            "claim": claim(edge, {}),
            "amount": "",
            "grade": edge.get("grade"),
            "direction": direction(edge),
        }
        for edge in edge_records(strongest_edges(graph))
    ]


def _graph_sentence(edge: dict[str, Any]) -> str:
    change = change_text(edge)
    much = "" if change == "-" else f": {change} per standard deviation of {edge['source']}"
    return f"{claim(edge, {})}{much}."


def document(graph: LaggedGraph) -> Any:
    """The graph as the plain content of its JSON file, without scores that it holds in part."""
    content = json.loads(graph.to_json())
    for part in (content, *content.get("domains", {}).values()):
        part.pop("strongest_scores", None)
    return content


def sentences(run: Result) -> list[str]:
    """One sentence of evidence per edge, in the order of the edge table."""
    place = {name: i for i, name in enumerate(run.graph.variables)}
    shown = {tuple(entry["edge"]): entry for entry in run.evidence.get("edges", [])}
    time, spread = run.timing, run.data.variable_sd.tolist()
    shapes = edge_shapes(run.data, run.evidence)
    told = []
    for edge in edge_records(run.graph.edges):
        source, target = place[str(edge["source"])], place[str(edge["target"])]
        curves = shown.get((source, target, edge["lag"]))
        shape = shapes.get(key_of(edge), "")
        told.append(edge_sentence(edge, curves, time, spread[source], spread[target], shape))
    return told


def _shapes(run: Result) -> list[tuple[list[Any], str]]:
    """How edges act that do not push on average: what the page shows instead of a change."""
    known = edge_shapes(run.data, run.evidence)
    keys = [key_of(edge) for edge in edge_records(run.graph.edges) if no_push(edge)]
    return [(list(key), known.get(key, "no push")) for key in keys]


def check_same_variables(graph: LaggedGraph, other: LaggedGraph, what: str) -> None:
    """Another graph must speak of the variables that were analysed."""
    only = {
        "only in this run": sorted(set(graph.variables) - set(other.variables)),
        f"only in the {what}": sorted(set(other.variables) - set(graph.variables)),
    }
    differing = [f"{', '.join(names[:5])} {where}" for where, names in only.items() if names]
    if differing:
        raise InputError(
            f"The {what} must have the variables of this run; {' and '.join(differing)}."
        )


def _other_run(run: Result, other: Result) -> dict[str, Any]:
    """The other run's graph, and who forecasts how many of the shared variables better."""
    here, there = chosen_losses(run.losses).align(chosen_losses(other.losses), join="inner")
    ratio = here / there
    better = {
        "here": int((ratio < 0.99).sum()),
        "there": int((ratio > 1.01).sum()),
        "same": int(((ratio >= 0.99) & (ratio <= 1.01)).sum()),
    }
    return {"graph": document(other.graph), "better": better}


def _layout(graph: LaggedGraph, others: list[LaggedGraph]) -> dict[str, Any]:
    """The variables, their places, and the order in which linked ones stand together."""
    graphs = [graph, *graph.domains.values(), *others]
    longest = max(g.max_lag for g in graphs)
    alike = [LaggedGraph(graph.variables, longest, g.edges) for g in graphs]
    return {
        "names": list(graph.variables),
        "places": positions(alike).round(4).tolist(),
        "order": grouped(alike),
    }


def _signs(run: Result) -> str:
    """One of + - 0 for every candidate, in the order (target, source, lag)."""
    if "effect" not in run.relevance or run.relevance["effect"].size > MOST_SCORES:
        return ""
    signs = np.sign(np.nan_to_num(run.relevance["effect"].values)).astype(int).ravel()
    return "".join("0+-"[sign] for sign in signs)


def _longest(graph: LaggedGraph, others: list[LaggedGraph]) -> int:
    return max(g.max_lag for g in [graph, *others])
