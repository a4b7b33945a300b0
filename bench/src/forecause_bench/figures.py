"""The paper's figures, redrawn from our runs: F1 along the columns of every table, and time and
memory against size."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from forecause.common.files import whole_file
from forecause_bench.aggregate import Column, Results, Row
from forecause_bench.document import Picture
from forecause_bench.methods import METHODS
from forecause_bench.paper import paper_figure
from forecause_bench.tables import NAMES

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
MARKERS = "osD^vPX<>*"
APART = 0.01  # of the distance of columns, or of the width along which sizes lie


def draw_figures(results: Results, folder: Path) -> list[Picture]:
    """Write every figure as PNG and SVG into `folder`, and say where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    metric = results.suite.metrics[0]
    drawn = {
        f"{NAMES[metric]}, {title}": along_columns(results, columns, metric)
        for title, columns in results.layouts()
    }
    for axis, columns in results.axes():
        for cost in ("seconds", "memory_mb"):
            drawn[f"{NAMES[cost]}, by {axis}"] = against_size(results, axis, columns, cost)
    drawn[f"{NAMES[metric]}, mean over all columns"] = mean_bars(results, metric)
    for title, figure in drawn.items():
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        with whole_file(folder / f"{name}.png") as file:
            figure.savefig(file, format="png", dpi=120, bbox_inches="tight")
        with whole_file(folder / f"{name}.svg") as file:
            figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
        pictures.append(Picture(title, f"{folder.name}/{name}"))
    return pictures


def along_columns(results: Results, columns: Sequence[Column], metric: str) -> Figure:
    """One line per method with its spread over seeds; the paper's DOT as black crosses."""
    figure = Figure(figsize=(1.4 * len(columns) + 5, 5))
    axes = figure.add_subplot()
    rows = results.rows(oracle=False)
    for place, row in enumerate(rows):
        # Points of different methods are moved apart a little, so that none hides another.
        shift = APART * (place - (len(rows) - 1) / 2)
        _draw_row(axes, results, columns, row, metric, place, shift)
    _draw_paper(axes, columns, metric)
    axes.set_xticks(range(len(columns)), [column.heading for column in columns], rotation=20)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    along = columns[0].cell.along
    axes.set_xlabel(along[0] if along else results.suite.axis)
    _finish(axes, metric)
    _legend(axes)
    return figure


def against_size(results: Results, axis: str, columns: Sequence[Column], metric: str) -> Figure:
    """A cost against size, both logarithmic; an open marker at the limit is a job over it."""
    figure = Figure(figsize=(8, 5))
    axes = figure.add_subplot()
    rows = results.rows(oracle=False)
    sizes = [column.size for column in columns]
    for place, row in enumerate(rows):
        shift = (sizes[-1] / sizes[0]) ** (APART * (place - (len(rows) - 1) / 2))
        _draw_costs(axes, results, columns, row, metric, place, shift)
    if metric == "seconds":
        axes.axhline(results.suite.limit, color="#999999", linewidth=0.8, linestyle=":")
        axes.text(columns[0].size, 1.08 * results.suite.limit, "limit", color="#666666", fontsize=8)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.minorticks_off()
    axes.set_xlabel(axis)
    axes.set_ylabel(NAMES[metric])
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    _legend(axes)
    return figure


def mean_bars(results: Results, metric: str) -> Figure:
    """The mean over the columns that each method finished; how many of them is written beside."""
    rows = results.rows(oracle=False)
    figure = Figure(figsize=(8, 0.32 * len(rows) + 1.2))
    axes = figure.add_subplot()
    total = len(results.columns())
    for place, row in enumerate(reversed(rows)):
        entries = [results.entry(row, column, metric) for column in results.columns()]
        means = [entry.mean for entry in entries if entry.complete]
        mean = sum(means) / len(means) if means else 0.0
        colour = PALETTE[0] if METHODS[row.method].ours else PALETTE[-1]
        axes.barh(place, mean, color=colour)
        beside = f" {mean:.2f}, {len(means)} of {total}" if means else " no result"
        axes.text(mean, place, beside, va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), [row.label for row in reversed(rows)], fontsize=8)
    axes.set_xlabel(f"{NAMES[metric]}, mean over the columns with a result")
    axes.set_xlim(0, 1.2)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _draw_row(
    axes: Axes,
    results: Results,
    columns: Sequence[Column],
    row: Row,
    metric: str,
    place: int,
    shift: float,
) -> None:
    entries = [results.entry(row, column, metric) for column in columns]
    known = [(x, entry) for x, entry in enumerate(entries) if entry.complete]
    if not known:
        return
    ours = METHODS[row.method].ours
    axes.errorbar(
        [x + shift for x, _ in known],
        [entry.mean for _, entry in known],
        yerr=[entry.sd or 0.0 for _, entry in known],
        label=row.label,
        color=PALETTE[place % len(PALETTE)],
        marker=MARKERS[place % len(MARKERS)],
        markersize=5,
        linewidth=2.2 if ours else 1.0,
        linestyle="-" if ours else "--",
        elinewidth=0.7,
        capsize=2,
    )


def _draw_costs(
    axes: Axes,
    results: Results,
    columns: Sequence[Column],
    row: Row,
    metric: str,
    place: int,
    shift: float,
) -> None:
    """One method's costs, and where it ran out of time if time is what is drawn."""
    entries = {c.size: results.entry(row, c, metric) for c in columns}
    known = {size: e.mean for size, e in entries.items() if e.complete and e.mean > 0}
    over = {
        size: results.suite.limit
        for size, entry in entries.items()
        if metric == "seconds" and "timeout" in entry.troubles
    }
    if not known and not over:
        return
    colour, marker = PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]
    ours = METHODS[row.method].ours

    def draw(points: Mapping[int, float], line: str, width: float, shape: str, **more: Any) -> None:
        x, y = [size * shift for size in points], list(points.values())
        axes.plot(x, y, color=colour, linestyle=line, linewidth=width, marker=shape, **more)

    draw(known, "-" if ours else "--", 2.2 if ours else 1.0, marker, markersize=5, label=row.label)
    draw(dict([*known.items()][-1:]) | over, ":", 0.7, "")
    draw(over, "", 0.0, marker, markersize=6, markerfacecolor="white", zorder=4)


def _legend(axes: Axes) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)


def _draw_paper(axes: Axes, columns: Sequence[Column], metric: str) -> None:
    found = [
        (x, paper_figure(*place, "dot-paper", metric))
        for x, column in enumerate(columns)
        if (place := column.cell.paper_column(column.rows))
    ]
    points = [(x, figure.mean) for x, figure in found if figure]
    if points:
        axes.plot(*zip(*points, strict=True), "kx", label="DOT in the paper", zorder=5)


def _finish(axes: Axes, metric: str) -> None:
    axes.set_ylabel(NAMES[metric])
    axes.set_ylim(-0.03 if metric not in ("spearman", "pearson") else -1.03, 1.03)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
