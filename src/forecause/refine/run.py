"""A later look at a run with its data at hand: the graph past one of the assumptions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from forecause.edges.knowledge import Knowledge
from forecause.errors import InputError
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
    if latent:
        graph = refine_latent(panel, start, knowledge, progress)
    else:
        graph = refine_instantaneous(panel, start, knowledge, method, progress)
    note = _sentence(start, graph, "hidden common causes" if latent else f"lag 0 by {method}")
    return replace(found, graph=graph, data=replace(found.data, notes=(*found.data.notes, note)))


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
