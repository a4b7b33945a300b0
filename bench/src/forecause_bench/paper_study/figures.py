"""Figures from the store: F1 along the paper's axes and by rows, training, lags, ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forecause_bench.paper import paper_figure
from forecause_bench.paper_study.answers import Kind, Study, Summary
from forecause_bench.paper_study.queue import DEEP, NONLINEARITY, TWO_SEGMENTS
from forecause_bench.paper_study.readout_study import READOUTS, SQUARES, stationary
from forecause_bench.paper_study.scores import Mask, of_target
from forecause_bench.paper_study.store import StoredFit
from forecause_bench.paper_study.tables import BY_ROWS, SECTIONS, Column

PANELS = SECTIONS[:7]
LINES = (  # label, readout or rival, colour, width
    ("DOT, LRP as published", "lrp", "#d55e00", 2.4),
    ("DOT, gradient energy", "gradient", "#e69f00", 1.6),
    ("VAR coefficients, top 3", "var", "#999999", 1.2),
    ("Forecause, default", "rival:forecause", "#0072b2", 2.4),
    ("PCMCI at 5 %", "rival:pcmci", "#a6d8c4", 1.2),
    ("PCMCI+", "rival:pcmci+", "#009e73", 1.2),
)
CHANGING = (  # system, the paper's table, title
    ("regular-2", "ns_regular_seg2", "Two linear segments"),
    ("extreme-2", "ns_extreme_seg2", "Two monotonic segments"),
)
CROWDED = 6  # columns of a panel
LAGS = 5
MARKS = ((False, "#bbbbbb", 6, "no cause"), (True, "#d55e00", 14, "cause"))
RANK_BINS = range(0, 52, 2)
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")


def axes_figure(study: Study) -> Figure:
    """A panel for each of the paper's axes; hollow diamonds are the paper's own figures."""
    figure = Figure(figsize=(13, 6.2))
    grid = figure.subplots(2, 4, sharey=True)
    for axes, section in zip(grid.flat, PANELS, strict=False):
        _draw_panel(axes, study, section.columns)
        axes.set_title(section.short or section.title, fontsize=9.5, loc="left", fontweight="bold")
    for axes in grid.flat[len(PANELS) :]:
        axes.axis("off")
    for axes in grid[:, 0]:
        axes.set_ylabel("F1 of the lagged graph")
    handles, labels = grid.flat[0].get_legend_handles_labels()
    grid.flat[-1].legend(handles, labels, loc="center", frameon=False, fontsize=9.5)
    figure.tight_layout(h_pad=1.5)
    return figure


def means_figure(study: Study) -> Figure:
    """Mean F1 of every method over the systems that all of them were run on, and the paper's."""
    columns = {column.kind: column for section in PANELS for column in section.columns}
    means = {
        kind: [_mean(_figure(study, kind, source)) for _, source, _, _ in LINES] for kind in columns
    }
    kinds = [kind for kind, found in means.items() if not np.isnan(found).any()]
    published = [_published(columns[kind]) for kind in kinds]
    figure = Figure(figsize=(7.5, 3.2))
    axes = figure.subplots()
    height = np.mean([means[kind] for kind in kinds], axis=0) if kinds else [0.0] * len(LINES)
    axes.barh([line[0] for line in LINES], height, color=[line[2] for line in LINES])
    for place, value in enumerate(height):
        axes.text(value + 0.01, place, f"{value:.2f}", va="center", fontsize=9)
    if kinds and not np.isnan(published).all():
        axes.plot(np.nanmean(published), 0, "D", color="white", markeredgecolor="#000000")
    axes.set_xlim(0, 1.08)
    axes.invert_yaxis()
    axes.set_xlabel(f"mean F1 over {len(kinds)} kinds of systems; diamond: the paper's own figure")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def course_figure(study: Study) -> Figure:
    """Held-out error over that of a VAR, step by step."""
    figure = Figure(figsize=(7.5, 4))
    axes = figure.subplots()
    for system, colour in zip((*NONLINEARITY, *TWO_SEGMENTS), COLOURS, strict=True):
        for number, fit in enumerate(study.fits.get(Kind(system), {}).values()):
            course, var = fit.content["course"], fit.content["var_held_out_loss"]
            label = system if number == 0 else None
            losses = [loss / var for loss in course["held_out_loss"]]
            axes.plot(course["steps"], losses, "-", color=colour, linewidth=1.3, label=label)
    axes.axhline(1, color="#bbbbbb", linewidth=0.8)
    axes.set_xlabel("step of 256 windows")
    axes.set_ylabel("held-out error over that of a VAR")
    _dress(axes)
    axes.legend(frameon=False, fontsize=8, ncols=2)
    figure.tight_layout()
    return figure


def rows_figure(study: Study) -> Figure:
    """F1 by rows on systems with two segments, which the paper varies the rows of."""
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    grid = figure.subplots(1, 2, sharey=True)
    for axes, (system, table, title) in zip(grid, CHANGING, strict=True):
        columns = [
            Column(size, Kind(system, rows), (table, size.upper())) for rows, size in BY_ROWS
        ]
        _draw_panel(axes, study, columns)
        axes.set_title(title, fontsize=9.5, loc="left", fontweight="bold")
        axes.set_xlabel("rows")
    grid[0].set_ylabel("F1, mean over segments")
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    return figure


def lag_figure(study: Study) -> Figure:
    """Mean share of relevance by lag, of causes and of candidates that are none."""
    readouts = ("gradient", "lrp", "balanced-lrp", "attention")
    figure = Figure(figsize=(9, 3.6))
    grid = figure.subplots(1, 2)
    fits = [fit for fit in stationary(study) if fit.shape[2] == LAGS]
    for axes, causes in zip(grid, (True, False), strict=True):
        for readout, colour in zip(readouts, COLOURS, strict=False):
            shares = [_share_by_lag(fit, readout, causes) for fit in fits]
            if shares:
                mean = 100 * np.nanmean(shares, axis=0)
                lags = range(1, LAGS + 1)
                axes.plot(lags, mean, "o-", color=colour, label=READOUTS[readout], linewidth=1.6)
        axes.set_xticks(range(1, LAGS + 1))
        axes.set_ylim(bottom=0)
        axes.set_xlabel("lag of a cause" if causes else "lag of a candidate that is no cause")
        _dress(axes)
    grid[0].set_ylabel("mean share of a target's relevance, %")
    grid[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    return figure


def rank_figure(study: Study) -> Figure:
    """Ranks over windows, by LRP: mean and spread in one fit, and how often each mean in all."""
    figure = Figure(figsize=(10, 6))
    grid = figure.subplots(2, 3, sharex=True, sharey="row")
    for (above, below), system in zip(grid.T, ("linear", "monotonic", "mlp-concat"), strict=True):
        fits = list(study.fits.get(Kind(system, layers=DEEP), {}).values())
        means: dict[bool, list[float]] = {True: [], False: []}
        for fit in fits:
            mean = fit.relevance("lrp", what="mean_rank")
            for causes, found in means.items():
                found += mean[_truth(fit) == causes].tolist()
        for causes, colour, size, label in MARKS:
            for fit in fits[:1]:
                mean, spread = (
                    fit.relevance("lrp", what=f"{name}_rank") for name in ("mean", "sd")
                )
                here = _truth(fit) == causes
                above.scatter(mean[here], spread[here], s=size, color=colour, label=label)
            share = np.full(len(means[causes]), 100 / max(len(means[causes]), 1))
            below.hist(means[causes], bins=RANK_BINS, weights=share, color=colour, alpha=0.75)
        above.set_title(system, fontsize=10, loc="left")
        below.set_xlabel("mean rank among a target's candidates")
        below.set_title(f"{len(fits)} fits", fontsize=8, loc="left")
        for axes in (above, below):
            _dress(axes)
    grid[0, 0].set_ylabel("standard deviation of the rank")
    grid[1, 0].set_ylabel("share of causes, of others, %")
    grid[0, 0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    return figure


def _share_by_lag(fit: StoredFit, readout: str, causes: bool) -> list[float]:
    """Of energies the root, as everywhere that shares are compared."""
    found = fit.relevance(readout)
    shares = of_target(np.sqrt(found) if readout in SQUARES else found)
    asked = _truth(fit) == causes
    return [
        float(shares[:, :, lag][asked[:, :, lag]].mean()) if asked[:, :, lag].any() else math.nan
        for lag in range(LAGS)
    ]


def _truth(fit: StoredFit) -> Mask:
    """The true graph of a system that has only one."""
    (true,) = fit.truths.values()
    return true


def _draw_panel(axes: Axes, study: Study, columns: Sequence[Column]) -> None:
    for label, source, colour, width in LINES:
        ys = [_mean(_figure(study, column.kind, source)) for column in columns]
        size = 2.2 * width
        axes.plot(ys, "o-", color=colour, linewidth=width, markersize=size, label=label)
    ys = [_published(column) for column in columns]
    style = {"markerfacecolor": "white", "markersize": 5.5, "linewidth": 1}
    axes.plot(ys, "D:", color="#d55e00", label="DOT in the paper", **style)  # type: ignore[arg-type]
    names = [fill(column.name, 9, break_long_words=False) for column in columns]
    axes.set_xticks(range(len(columns)), names, fontsize=8 if len(columns) < CROWDED else 6.5)
    axes.set_ylim(0, 1.04)
    _dress(axes)


def _figure(study: Study, kind: Kind, source: str) -> Summary | None:
    method = source.removeprefix("rival:")
    return study.rival(kind, method) if method != source else study.read(kind, source)


def _published(column: Column) -> float:
    """The paper's F1 of its transformer."""
    found = paper_figure(*column.paper, "dot", "f1") if column.paper else None
    return found.mean if found else math.nan


def _mean(found: Summary | None) -> float:
    return found.mean if found else math.nan


def _dress(axes: Axes) -> None:
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
