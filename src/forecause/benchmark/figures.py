"""The paper's figures, redrawn from our runs: F1 along the columns of every table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forecause.benchmark.aggregate import Column, Results, Row
from forecause.benchmark.document import Picture
from forecause.benchmark.methods import METHODS
from forecause.benchmark.paper import paper_figure
from forecause.benchmark.tables import NAMES

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
MARKERS = "osD^vPX<>*"


def draw_figures(results: Results, folder: Path) -> list[Picture]:
    """Write every figure as PNG and SVG into `folder`, and say where they are."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    metric = results.suite.metrics[0]
    drawn = {
        f"{NAMES[metric]}, {title}": along_columns(results, columns, metric)
        for title, columns in results.layouts()
    }
    drawn[f"{NAMES[metric]}, mean over all columns"] = mean_bars(results, metric)
    for title, figure in drawn.items():
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")
        figure.savefig(folder / f"{name}.png", dpi=120, bbox_inches="tight")
        figure.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
        pictures.append(Picture(title, f"{folder.name}/{name}"))
    return pictures


def along_columns(results: Results, columns: Sequence[Column], metric: str) -> Figure:
    """One line per method with its spread over seeds; the paper's DOT as black crosses."""
    figure = Figure(figsize=(1.4 * len(columns) + 5, 5))
    axes = figure.add_subplot()
    rows = results.rows(oracle=False)
    for place, row in enumerate(rows):
        _draw_row(axes, results, columns, row, metric, place)
    _draw_paper(axes, columns, metric)
    axes.set_xticks(range(len(columns)), [column.heading for column in columns], rotation=20)
    axes.set_xlabel(results.suite.axis)
    _finish(axes, metric)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8)
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
    axes: Axes, results: Results, columns: Sequence[Column], row: Row, metric: str, place: int
) -> None:
    entries = [results.entry(row, column, metric) for column in columns]
    known = [(x, entry) for x, entry in enumerate(entries) if entry.complete]
    if not known:
        return
    ours = METHODS[row.method].ours
    # Points of different methods are moved apart a little, so that none hides another.
    shift = 0.012 * (place - 9)
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
