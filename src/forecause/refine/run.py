"""A later look at a run with its data at hand: the graph past one of the assumptions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

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
from forecause.refine.instantaneous import InstantaneousMethod, refine_instantaneous
from forecause.refine.latent import refine_latent
from forecause.result import Result

R = TypeVar("R", bound=Result)


def refine(
    found: R,
    *,
    latent: bool = False,
    instantaneous: bool = False,
    method: InstantaneousMethod = "pcmci+",
    data: Any = None,
    progress: Progress = QUIET,
) -> R:
    """The run with its graph refined for hidden common causes or for effects within a row.

    The graph of all rows is refined; graphs of domains are left out.
    """
    if latent == instantaneous:
        raise InputError("Ask for one refinement: latent or instantaneous.")
    known = found.panel if data is None else None
    panel = known if known is not None else found.data.read_again(data)
    panel = found.deseasonalised_panel(panel=panel)
    knowledge = Knowledge.of(found.config.edges.forbid, found.config.edges.require)
    start = replace(found.graph, domains={})
    with using(found.config.thresholds):
        if latent:
            graph = refine_latent(panel, start, knowledge, progress)
        else:
            graph = refine_instantaneous(panel, start, knowledge, method, progress)
        causal = _on_new_causes(found, panel, graph, same_data=data is None)
    note = _sentence(start, graph, "hidden common causes" if latent else f"lag 0 by {method}")
    summary = replace(found.data, notes=(*found.data.notes, note))
    return replace(found, graph=graph, causal=causal, data=summary)


def _on_new_causes(
    found: Result, panel: Panel, graph: LaggedGraph, same_data: bool
) -> Causal | None:
    """The causal forecaster of the refined graph; effects within a row are not in it.

    None where there was none, or where the regimes that the run found are not at hand.
    """
    if found.causal is None:
        return None
    known = found.windows if same_data else None
    windows = known if known is not None else Windows.of(panel, found.graph.max_lag)
    if found.forecaster.domains and windows.panel.domain is None:
        return None
    options = found.config.forecasting
    early, late = windows.split(options.held_out)
    return fit_causal(windows, graph, Fitted(found.forecaster, found.losses, early, late), options)


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
