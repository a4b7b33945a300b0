"""A later look at a run with its data at hand: the graph past one of the assumptions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from forecause.config.spec import InstantaneousName
from forecause.config.thresholds import using
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.edges.knowledge import Knowledge
from forecause.errors import InputError
from forecause.forecast.causal import Causal
from forecause.forecast.guard import fit_causal
from forecause.forecast.selection import Fitted
from forecause.graph.edge_table import CONFOUNDED, WITHOUT_DIRECTION, marks_of
from forecause.graph.lagged import LaggedGraph
from forecause.progress import QUIET, Progress
from forecause.refine.candidates import candidate_mask, check_variables, screen_instantaneous
from forecause.refine.dynotears import graph_of_links
from forecause.refine.latent import refine_latent
from forecause.refine.links import Links
from forecause.refine.tigramite_search import graph_plus, search_plus
from forecause.result import Result

KEY = ["source", "target", "lag"]
NOTHING = Knowledge()


def refine_instantaneous(
    panel: Panel,
    graph: LaggedGraph,
    knowledge: Knowledge = NOTHING,
    method: InstantaneousName = "pcmci+",
    progress: Progress = QUIET,
) -> LaggedGraph:
    """The graph with edges at lag 0, and without the lagged ones that these explain.

    A forecaster sees the past alone. Where a -> b within a row, a's causes forecast b, so it draws
    edges from them to b that are none. PCMCI+ (Runge 2020) or DYNOTEARS (Pamfil et al. 2020) takes
    them away. Candidates are the discovered edges and the pairs that pass `screen_instantaneous`.
    By PCMCI+ the score is a partial correlation and the column `mark` tells which lag-0 edges have
    no direction (o-o, or x-x where the evidence conflicts); by DYNOTEARS, which assumes noise of
    similar size, it is a weight.
    """
    check_variables(panel, graph)
    if method not in ("pcmci+", "dynotears"):
        raise InputError(f"Unknown method {method!r}; choose pcmci+ or dynotears.")
    what = f"refine: within a row, {method}"
    progress.step(what, 0.0)
    pairs = screen_instantaneous(panel, graph)
    links = Links.of(panel, graph.max_lag, knowledge).within(candidate_mask(graph, pairs))
    progress.step(what, 0.1)
    if method == "pcmci+":
        refined = graph_plus(panel, search_plus(panel, graph.max_lag, links), links)
    else:
        refined = graph_of_links(panel, graph.max_lag, links)
    progress.step(what, 1.0)
    return _with_details(refined, graph)


def _with_details(refined: LaggedGraph, before: LaggedGraph) -> LaggedGraph:
    """Edges that were there before keep the details that the refinement has not."""
    new = [name for name in before.edges if name in KEY or name not in refined.edges]
    edges = refined.edges.merge(before.edges[new], on=KEY, how="left")
    return LaggedGraph(refined.variables, refined.max_lag, edges, refined.scores)


R = TypeVar("R", bound=Result)


def refine(
    run: R,
    *,
    latent: bool = False,
    instantaneous: bool = False,
    method: InstantaneousName = "pcmci+",
    data: Any = None,
    progress: Progress = QUIET,
) -> R:
    """The run with its graph refined for hidden common causes or for effects within a row.

    The graph of all rows is refined; graphs of domains are left out.
    """
    if latent == instantaneous:
        raise InputError("Ask for one refinement: latent or instantaneous.")
    panel = run.panel if data is None else None
    if panel is None:
        with using(run.config.thresholds):
            panel = run.data.read_again(data)
    panel = run.deseasonalised_panel(panel=panel)
    knowledge = Knowledge.of(run.config.edges.forbid, run.config.edges.require)
    start = replace(run.graph, domains={})
    with using(run.config.thresholds):
        if latent:
            graph = refine_latent(panel, start, knowledge, progress)
        else:
            graph = refine_instantaneous(panel, start, knowledge, method, progress)
        causal = _on_new_causes(run, panel, graph, same_data=data is None)
    note = _sentence(start, graph, "hidden common causes" if latent else f"lag 0 by {method}")
    summary = replace(run.data, notes=(*run.data.notes, note))
    return replace(run, graph=graph, causal=causal, data=summary)


def _on_new_causes(run: Result, panel: Panel, graph: LaggedGraph, same_data: bool) -> Causal | None:
    """The causal forecaster of the refined graph; effects within a row are not in it.

    None where there was none, or where the regimes that the run found are not at hand.
    """
    if run.causal is None:
        return None
    known = run.windows if same_data else None
    windows = known if known is not None else Windows.of(panel, run.graph.max_lag)
    if run.forecaster.domains and windows.panel.domain is None:
        return None
    options = run.config.forecasting
    early, late = windows.split(options.held_out)
    return fit_causal(windows, graph, Fitted(run.forecaster, run.losses, early, late), options)


def _sentence(before: LaggedGraph, after: LaggedGraph, what: str) -> str:
    marks = marks_of(after.edges)
    now = int((after.edges["lag"] == 0).sum())
    lagged = len(after) - now
    text = f"Refined for {what}: {lagged} of {len(before)} lagged edges are left"
    if now:
        text += f", new at lag 0: {now}"
    if (marks == CONFOUNDED).any():
        text += f", put down to a hidden cause (<->): {int((marks == CONFOUNDED).sum())}"
    if marks.isin(WITHOUT_DIRECTION).any():
        text += f", without a known direction: {int(marks.isin(WITHOUT_DIRECTION).sum())}"
    return text + "."
