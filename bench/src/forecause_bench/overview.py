"""The paper's second figure from our own runs: python -m forecause_bench.overview.

One panel for every axis of the paper: variables, largest lag, mechanism, segments; and the mean
over all columns. It is drawn from the results that `make paper` keeps.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forecause_bench.aggregate import Column, Results, Row
from forecause_bench.jobs import Store, jobs_of
from forecause_bench.methods import METHODS
from forecause_bench.paper import paper_figure
from forecause_bench.run import narrowed
from forecause_bench.suites import find_suite

LINES = {  # method -> colour
    "forecause": "#0072b2",
    "dot": "#d55e00",
    "pcmci+": "#009e73",
    "var-fdr": "#cc79a7",
    "var-lingam": "#e69f00",
    "dynotears": "#56b4e9",
    "granger": "#999999",
}
ROWS = 10_000


@dataclass(frozen=True)
class Panel:
    """An axis: the columns of some suites and what to write below each."""

    title: str
    columns: tuple[tuple[str, str, str], ...]  # suite, column, text below


PANELS = (
    Panel(
        "Mechanisms",
        (
            ("nonlinearity", "Linear", "linear"),
            ("nonlinearity", "CAM-M", "monotonic"),
            ("nonlinearity", "CAM-PL+M", "PL + mon."),
            ("nonlinearity", "MLP-Add", "MLP"),
            ("nonlinearity", "MLP-Cat", "MLP, noise in"),
        ),
    ),
    Panel(
        "Variables (linear)",
        (("highdim-linear", "Base", "5"), ("highdim-linear", "n=25", "13")),
    ),
    Panel(
        "Largest lag (linear)",
        (
            ("longrange-linear", "Base", "3"),
            ("longrange-linear", "k=10", "5"),
            ("longrange-linear", "k=25", "13"),
        ),
    ),
    Panel(
        "Segments (linear, fresh graphs)",
        (
            ("ns-regular", "Base", "1"),
            ("ns-regular", "2 segments", "2"),
            ("ns-regular", "5 segments", "5"),
        ),
    ),
    Panel(
        "Segments (monotonic, own lags)",
        (("ns-extreme", "2 segments", "2"), ("ns-extreme", "5 segments", "5")),
    ),
    Panel(
        "Hidden causes",
        (
            ("latent", "Base", "0"),
            ("latent", "3 Latent", "1"),
            ("latent", "5 Latent", "2"),
            ("latent", "10 Latent", "5"),
        ),
    ),
)


def overview(store: Store, seeds: int = 1) -> Figure:
    """All panels; a method without a result has no point."""
    figure = Figure(figsize=(11, 5.6))
    grid = figure.subplots(2, 3)
    for axes, panel in zip(grid.flat, PANELS, strict=True):
        found = [(*_found(store, *place[:2], seeds), place[2]) for place in panel.columns]
        for place, method in enumerate(LINES):
            _draw(axes, found, method, shift=0.03 * (place - len(LINES) / 2))
        _draw_paper(axes, [column for _, column, _ in found])
        axes.set_xticks(range(len(found)), [text for *_, text in found], fontsize=8)
        axes.set_title(panel.title, fontsize=10)
        axes.set_xlim(-0.4, len(found) - 0.6)
        axes.set_ylim(-0.03, 1.05)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    for axes in grid[:, 0]:
        axes.set_ylabel("F1 of the lagged graph", fontsize=9)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.11, 1, 1))
    return figure


def _found(store: Store, suite: str, column: str, seeds: int) -> tuple[Results, Column]:
    """One column of a suite at half size, with what is finished of it."""
    halved = find_suite(suite).halved()
    chosen = narrowed(halved, rows=[ROWS], seeds=seeds, methods=list(LINES), columns=[column])
    known = [result for job in jobs_of(chosen) if (result := store.load(job)) is not None]
    results = Results(chosen, known)
    return results, results.columns()[0]


def _draw(
    axes: Axes, found: Sequence[tuple[Results, Column, str]], method: str, shift: float
) -> None:
    entries = [results.entry(Row(method), column, "f1") for results, column, _ in found]
    points = [(x + shift, entry.mean) for x, entry in enumerate(entries) if entry.complete]
    ours = METHODS[method].ours
    label = "DOT, the paper's model as reproduced" if method == "dot" else METHODS[method].label
    axes.plot(
        *(zip(*points, strict=True) if points else ([], [])),
        color=LINES[method],
        marker="o",
        markersize=4,
        linewidth=2.0 if ours else 1.0,
        linestyle="-" if ours else "--",
        label=label,
    )


def _draw_paper(axes: Axes, columns: Sequence[Column]) -> None:
    """What the paper reports of its model, at its own sizes."""
    places = [(x, column.cell.paper_column(column.rows)) for x, column in enumerate(columns)]
    found = [(x, paper_figure(*place, "dot", "f1")) for x, place in places if place]
    points = [(x, figure.mean) for x, figure in found if figure]
    axes.plot(*(zip(*points, strict=True) if points else ([], [])), "kx", label="DOT in the paper")


def main() -> None:
    """Draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("bench-paper/results"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("docs/img/paper-axes.png"))
    asked = parser.parse_args()
    overview(Store(asked.results), asked.seeds).savefig(asked.out, dpi=110)


if __name__ == "__main__":
    main()
