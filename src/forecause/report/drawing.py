"""Drawing into matplotlib axes; no figure is made and no state is kept here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import PowerNorm
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from forecause.common.arrays import Array, Mask
from forecause.graph.edge_table import edge_records
from forecause.graph.lagged import LaggedGraph
from forecause.report.layout import WIDE, positions
from forecause.report.words import direction

COLOURS = {"raises": "#0072b2", "lowers": "#d55e00", "moves": "#6c7480"}
LEGEND = {"raises": "raises", "lowers": "lowers", "moves": "either, by the state"}
LINES: dict[str, Literal["-", "--", ":"]] = {"firm": "-", "likely": "--", "tentative": ":"}
PREDICTED, TRUE, OTHER = "#d55e00", "#009e73", "#9aa5b1"
LAG_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
TRIANGLE = 0.38  # of a cell


def plain(name: str) -> str:
    """A variable's name, shortened, that matplotlib does not take for a formula."""
    return (name if len(name) <= 16 else name[:15] + "…").replace("$", r"\$")


def summary_graph(axes: Axes, graph: LaggedGraph, self_links: bool, unit: str) -> None:
    """Variables at their places, one arrow per pair of variables."""
    places = positions([graph])
    index = {name: i for i, name in enumerate(graph.variables)}
    axes.set_axis_off()
    axes.set(xlim=(-WIDE - 0.3, WIDE + 0.3), ylim=(-1.25, 1.25))
    pairs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for edge in edge_records(graph.edges):
        if self_links or edge["source"] != edge["target"]:
            pairs.setdefault((str(edge["source"]), str(edge["target"])), []).append(dict(edge))
    top = _top(graph)
    for (source, target), edges in pairs.items():
        label = ", ".join(str(lag) for lag in sorted(edge["lag"] for edge in edges))
        verb, mixed = dominant(edges)
        label += " ±" if mixed else ""
        colour, width = COLOURS[verb], _width(edges[0]["score"], top)
        style = LINES.get(str(edges[0].get("grade")), "-")
        start, end = places[index[source]], places[index[target]]
        if source == target:
            axes.set_ylim(-1.5, 1.5)
            _loop(axes, start, label, colour, width, style)
        else:
            _arrow(axes, start, end, label, colour, width, style, (source, target))
    for name, (x, y) in zip(graph.variables, places, strict=True):
        box = {"boxstyle": "round,pad=0.35", "fc": "white", "ec": "#56616f", "lw": 0.8}
        axes.text(x, y, plain(name), ha="center", va="center", fontsize=9, bbox=box, zorder=5)
    _legend(axes, graph, [dominant(edges) for edges in pairs.values()], f"number: delay in {unit}")


def dominant(edges: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """The direction with the larger sum of scores, and whether there are both directions."""
    sums: dict[str, float] = {}
    for edge in edges:
        verb = direction(edge)
        sums[verb] = sums.get(verb, 0.0) + max(float(edge["score"]), 0.0)
    return max(sums, key=lambda verb: sums[verb]), {"raises", "lowers"} <= set(sums)


def _legend(
    axes: Axes, graph: LaggedGraph, drawn: Sequence[tuple[str, bool]], note: str = ""
) -> None:
    """What colours, widths and lines mean, of those that occur, below the picture."""
    entries = [
        Line2D([], [], color=COLOURS[verb], linewidth=2, label=LEGEND[verb])
        for verb in COLOURS
        if any(verb == one for one, _ in drawn)
    ]
    scores = [float(score) for score in graph.edges["score"] if score > 0]
    for score in sorted({min(scores), max(scores)}) if scores else []:
        width, label = _width(score, _top(graph)), f"score {score:.2g}"
        entries.append(Line2D([], [], color="#56616f", linewidth=width, label=label))
    grades = set(graph.edges["grade"]) if "grade" in graph.edges else set()
    for grade in [name for name in LINES if name in grades]:
        entries.append(Line2D([], [], color="#56616f", linestyle=LINES[grade], label=grade))
    if any(mixed for _, mixed in drawn):
        note += " · ±: the other way at a further delay"
    if entries:
        axes.legend(
            handles=entries,
            title=note or None,
            title_fontsize=8,
            fontsize=8,
            frameon=False,
            ncols=min(len(entries), 4),
            loc="upper center",
            bbox_to_anchor=(0.5, 0.0),
        )


def time_graph(axes: Axes, graph: LaggedGraph) -> None:
    """Columns are rows of the past, arrows point into the present."""
    count, steps = len(graph.variables), graph.max_lag
    row = {name: count - 1 - i for i, name in enumerate(graph.variables)}
    axes.set(xlim=(-steps - 0.3, 0.4), ylim=(-0.6, count - 0.4))
    grid = np.array([(-lag, y) for lag in range(steps + 1) for y in range(count)])
    axes.scatter(
        grid[:, 0],
        grid[:, 1],
        s=70,
        facecolor="white",
        edgecolor="#56616f",
        linewidth=0.8,
        zorder=3,
    )
    top = _top(graph)
    for edge in edge_records(graph.edges):
        start = (-int(edge["lag"] or 0), row[str(edge["source"])])
        patch = FancyArrowPatch(
            start,
            (0, row[str(edge["target"])]),
            arrowstyle="-|>",
            mutation_scale=9,
            connectionstyle=f"arc3,rad={0.25 if edge['lag'] == 0 else 0.06}",
            shrinkA=5,
            shrinkB=5,
            color=COLOURS[direction(edge)],
            linewidth=_width(edge["score"], top),
            linestyle=LINES.get(str(edge.get("grade")), "-"),
            alpha=0.85,
            zorder=2,
        )
        axes.add_patch(patch)
    labels = ["t" if lag == 0 else f"t − {lag}" for lag in range(steps + 1)]
    axes.set_xticks([-lag for lag in range(steps + 1)], labels)
    axes.xaxis.tick_top()
    axes.set_yticks(list(row.values()), [plain(name) for name in row])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    _legend(axes, graph, [dominant([edge]) for edge in edge_records(graph.edges)])


def heatmap(
    axes: Axes, values: xr.DataArray, graph: LaggedGraph, truth: LaggedGraph | None, title: str
) -> None:
    """Target x (lag, source), lags side by side, with the marks of predicted and true edges."""
    lags = [int(lag) for lag in values["lag"].values]
    count = len(graph.variables)
    flat = values.transpose("target", "lag", "source").values.reshape(count, -1)
    # weak edges would vanish beside the strongest on a linear scale of relevance
    norm = PowerNorm(0.5, vmin=0) if title == "relevance" else None
    image = axes.imshow(flat, cmap="Blues", norm=norm, aspect="auto", interpolation="nearest")
    axes.figure.colorbar(image, ax=axes, label=title.replace("_", " "), pad=0.01, fraction=0.04)
    for block in range(1, len(lags)):
        axes.axvline(block * count - 0.5, color="#18212c", linewidth=1)
    _marks(axes, graph, graph.variables, lags, PREDICTED, right=False)
    if truth is not None:
        _marks(axes, truth, graph.variables, lags, TRUE, right=True)
    names = [plain(name) for name in graph.variables]
    axes.set_yticks(range(count), names, fontsize=8)
    if count * len(lags) <= 60:
        axes.set_xticks(range(count * len(lags)), names * len(lags), rotation=90, fontsize=7)
    else:
        axes.set_xticks([])
    above = axes.secondary_xaxis("top")
    middles = [(i + 0.5) * count - 0.5 for i in range(len(lags))]
    above.set_xticks(middles, [f"lag {lag}" for lag in lags])
    above.tick_params(length=0)
    axes.set(xlabel="source", ylabel="target")
    raised = ScaledTranslation(0, 18 / 72, axes.figure.dpi_scale_trans)
    axes.legend(
        frameon=False,
        fontsize=8,
        ncols=2,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        bbox_transform=axes.transAxes + raised,
        borderpad=0,
    )


def candidates(
    axes: Axes, x: xr.DataArray, y: xr.DataArray, graph: LaggedGraph, truth: LaggedGraph | None
) -> None:
    """A point per candidate; chosen ones stand out, true ones are ringed."""
    chosen = _mask(graph, graph, x)
    axes.scatter(x.values[~chosen], y.values[~chosen], s=10, color=OTHER, label="not chosen")
    axes.scatter(
        x.values[chosen], y.values[chosen], s=26, color=PREDICTED, marker="^", label="predicted"
    )
    if truth is not None:
        true = _mask(truth, graph, x)
        axes.scatter(
            x.values[true],
            y.values[true],
            s=70,
            facecolor="none",
            edgecolor=TRUE,
            linewidth=1.3,
            label="true",
        )
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def histograms(
    axes: Axes,
    scores: xr.DataArray,
    groups: Mapping[str, Sequence[int]],
    graph: LaggedGraph,
    bins: int,
) -> None:
    """One stacked histogram per group of lags, on a logarithmic scale of scores."""
    positive = scores.values[scores.values > 0]
    low, high = (positive.min(), positive.max()) if len(positive) else (0.1, 1.0)
    edges = np.geomspace(max(low, high * 1e-9), high * (1 + 1e-9), bins + 1)
    heaps = [
        scores.sel(lag=list(lags)).values.ravel().clip(edges[0], edges[-1])
        for lags in groups.values()
    ]
    colours = [LAG_COLOURS[place % len(LAG_COLOURS)] for place in range(len(groups))]
    axes.hist(
        heaps, bins=list(edges), stacked=True, color=colours, label=list(groups), edgecolor="white"
    )
    for lags, colour in zip(groups.values(), colours, strict=True):
        mine = graph.edges.loc[graph.edges["lag"].isin(list(lags)), "score"]
        below = np.full(len(mine), -0.02)
        across = axes.get_xaxis_transform()
        axes.plot(mine, below, "|", color=colour, ms=8, clip_on=False, transform=across)
    axes.set_xscale("log")
    axes.set(xlabel="score", ylabel="candidates")
    axes.tick_params(axis="x", pad=8)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def forecast(axes: Axes, near: Mapping[str, Any], place: int, max_lag: int) -> None:
    """What happened, the forecast one row ahead, and 1.64 error sds around it."""
    happened = np.array(near["values"][place][max_lag:], dtype=float)
    ahead = np.array(near["forecast"][place], dtype=float)
    reach = 1.64 * near["error_sd"][place]
    rows = np.arange(len(ahead))
    axes.fill_between(rows, ahead - reach, ahead + reach, color=COLOURS["raises"], alpha=0.18, lw=0)
    axes.plot(rows, happened, color="#56616f", linewidth=1, label="held-out rows")
    axes.plot(rows, ahead, color=COLOURS["raises"], linewidth=1.5, label="forecast, 90 % interval")
    axes.set_xticks(
        [share * (len(rows) - 1) for share, _ in near["ticks"]],
        [str(label) for _, label in near["ticks"]],
    )
    axes.margins(x=0)
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    axes.spines[["top", "right"]].set_visible(False)


def _marks(
    axes: Axes,
    graph: LaggedGraph,
    names: Sequence[str],
    lags: Sequence[int],
    colour: str,
    right: bool,
) -> None:
    """Triangles in a top corner of the cells of a graph's edges."""
    place = {name: i for i, name in enumerate(names)}
    corners = []
    for source, target, lag in graph.edges[["source", "target", "lag"]].itertuples(index=False):
        if lag in lags:
            x = lags.index(lag) * len(names) + place[source] + (0.5 if right else -0.5)
            y = place[target] - 0.5
            inward = -TRIANGLE if right else TRIANGLE
            corners.append([(x, y), (x + inward, y), (x, y + TRIANGLE)])
    label = "true" if right else "predicted"
    marks = PolyCollection(corners, facecolor=colour, edgecolor="white", linewidth=0.4, label=label)
    axes.add_collection(marks, autolim=False)


def _mask(graph: LaggedGraph, like: LaggedGraph, values: xr.DataArray) -> Mask:
    """Where among the candidates the edges of `graph` are, (target, source, lag)."""
    mask = np.zeros(values.shape, dtype=bool)
    place = {name: i for i, name in enumerate(like.variables)}
    lags = [int(lag) for lag in values["lag"].values]
    for source, target, lag in graph.edges[["source", "target", "lag"]].itertuples(index=False):
        if lag in lags:
            mask[place[target], place[source], lags.index(lag)] = True
    return mask


def _top(graph: LaggedGraph) -> float:
    return max(float(graph.edges["score"].max()), 1e-300) if len(graph) else 1.0


def _width(score: Any, top: float) -> float:
    return 0.5 + 3.5 * float(np.sqrt(max(float(score), 0.0) / top))


def _arrow(
    axes: Axes,
    start: Array,
    end: Array,
    label: str,
    colour: str,
    width: float,
    style: str,
    names: tuple[str, str],
) -> None:
    sideways = np.array([-(end - start)[1], (end - start)[0]])
    control = (start + end) / 2 + 0.16 * sideways  # of the quadratic curve
    leaves, arrives = _to_border(names[0], control - start), _to_border(names[1], end - control)
    axes.add_patch(
        FancyArrowPatch(
            tuple(start),
            tuple(end),
            connectionstyle="arc3,rad=-0.16",
            arrowstyle="-|>",
            mutation_scale=11,
            shrinkA=leaves,
            shrinkB=arrives + 2,
            color=colour,
            linewidth=width,
            linestyle=style,
            alpha=0.9,
        )
    )
    _label(axes, (start + end) / 4 + control / 2, label, colour)


def _to_border(name: str, way: Array) -> float:
    """Points from the middle of a name's box to its border, about, along a way."""
    half_width, half_height = 2.7 * len(plain(name)) + 6, 10.0
    x, y = np.abs(way) / max(float(np.linalg.norm(way)), 1e-9)
    return min(half_width / max(x, 1e-9), half_height / max(y, 1e-9)) + 3


def _loop(axes: Axes, place: Array, label: str, colour: str, width: float, style: str) -> None:
    up = 1.0 if place[1] >= -1e-9 else -1.0
    corners = [(-0.05, 0.09 * up), (-0.2, 0.42 * up), (0.2, 0.42 * up), (0.05, 0.09 * up)]
    path = Path(np.add(place, corners), [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    axes.add_patch(
        FancyArrowPatch(
            path=path,
            arrowstyle="-|>",
            mutation_scale=9,
            color=colour,
            linewidth=width,
            linestyle=style,
            alpha=0.9,
            fill=False,
        )
    )
    _label(axes, np.add(place, (0.0, 0.335 * up)), label, colour)


def _label(axes: Axes, place: Array, label: str, colour: str) -> None:
    box = {"boxstyle": "round,pad=0.2", "fc": "white", "ec": colour, "lw": 0.7}
    axes.text(
        float(place[0]),
        float(place[1]),
        label,
        fontsize=7,
        ha="center",
        va="center",
        bbox=box,
        zorder=4,
    )
