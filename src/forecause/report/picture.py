"""The summary graph as a picture."""

from __future__ import annotations

from io import StringIO

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from forecause.graph.lagged import LaggedGraph

DRIVES_UP, DRIVES_DOWN = "#0072b2", "#d55e00"  # told apart by colour-blind readers too


def graph_svg(graph: LaggedGraph) -> str:
    """Variables on a circle, an arrow per edge labelled with its lag; width is the score."""
    count = len(graph.variables)
    size = 5.5 + min(count, 60) * 0.07
    figure = Figure(figsize=(size, size))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set(xlim=(-1.35, 1.35), ylim=(-1.35, 1.35), aspect="equal")
    angles = np.pi / 2 - 2 * np.pi * np.arange(count) / count
    places = {
        name: (float(np.cos(a)), float(np.sin(a)))
        for name, a in zip(graph.variables, angles, strict=True)
    }
    top = max(float(graph.edges["score"].max()), 1e-12) if len(graph) else 1.0
    for edge in graph.edges.to_dict(orient="records"):
        colour = DRIVES_DOWN if edge.get("effect", 1.0) < 0 else DRIVES_UP
        width = 0.8 + 3.0 * float(np.sqrt(max(edge["score"], 0.0) / top))
        _arrow(axes, places[edge["source"]], places[edge["target"]], edge["lag"], colour, width)
    for name, place in places.items():
        label = name if len(name) <= 14 else name[:13] + "…"
        axes.text(
            place[0],
            place[1],
            label.replace("$", r"\$"),
            ha="center",
            va="center",
            zorder=5,
            bbox={"boxstyle": "round,pad=0.35", "fc": "white", "ec": "#444444"},
        )
    out = StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()[out.getvalue().index("<svg") :]


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    lag: int,
    colour: str,
    width: float,
) -> None:
    (x, y), (u, v) = start, end
    if start == end:  # a self-link is a loop outside the circle
        start, end = (
            (1.08 * x - 0.12 * y, 1.08 * y + 0.12 * x),
            (1.08 * x + 0.12 * y, 1.08 * y - 0.12 * x),
        )
        bend, label = -1.6, (1.3 * x, 1.3 * y)
    else:
        bend = 0.14
        label = (x + 0.62 * (u - x) + 0.06 * (v - y), y + 0.62 * (v - y) + 0.06 * (x - u))
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-|>",
            mutation_scale=12,
            shrinkA=18,
            shrinkB=20,
            color=colour,
            linewidth=width,
            alpha=0.8,
        )
    )
    axes.text(*label, str(lag), fontsize=8, color=colour, ha="center", va="center")
