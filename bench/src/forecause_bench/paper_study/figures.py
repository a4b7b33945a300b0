"""Figures from the store: F1 along the paper's axes, training, relevance by lag, ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from forecause_bench.paper import paper_figure
from forecause_bench.paper_study.answers import Kind, Study, Summary
from forecause_bench.paper_study.queue import DEEP
from forecause_bench.paper_study.readout_study import stationary
from forecause_bench.paper_study.scores import of_target
from forecause_bench.paper_study.tables import SECTIONS, Column

PANELS = SECTIONS[:7]
LINES = (  # label, readout or rival, colour, width
    ("DOT, LRP as published", "lrp", "#d55e00", 2.4),
    ("DOT, gradient energy", "gradient", "#e69f00", 1.6),
    ("VAR coefficients, top 3", "var", "#999999", 1.2),
    ("Forecause, default", "rival:forecause", "#0072b2", 2.4),
    ("PCMCI at 5 %", "rival:pcmci", "#a6d8c4", 1.2),
    ("PCMCI+", "rival:pcmci+", "#009e73", 1.2),
)
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
    lines = [line for line in LINES if line[1] != "rival:pcmci"]  # too slow for most systems
    means = {
        kind: [_mean(_figure(study, kind, source)) for _, source, _, _ in lines] for kind in columns
    }
    kinds = [kind for kind, found in means.items() if not np.isnan(found).any()]
    published = [_published(columns[kind]) for kind in kinds]
    figure = Figure(figsize=(7.5, 3.2))
    axes = figure.subplots()
    height = np.mean([means[kind] for kind in kinds], axis=0) if kinds else [0.0] * len(lines)
    axes.barh([line[0] for line in lines], height, color=[line[2] for line in lines])
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
    systems = list(dict.fromkeys(fit.system for fit in stationary(study)))[:7]
    for system, colour in zip(systems, COLOURS, strict=False):
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


def lag_figure(study: Study) -> Figure:
    """Mean share of relevance by lag of candidates that are no causes: is lag 1 favoured?"""
    readouts = ("gradient", "lrp", "balanced-lrp", "attention")
    figure = Figure(figsize=(7.5, 3.6))
    axes = figure.subplots()
    fits = [fit for fit in stationary(study) if fit.shape[2] == 5]
    for readout, colour in zip(readouts, COLOURS, strict=False):
        shares = []
        for fit in fits:
            found = of_target(fit.relevance(readout) ** (0.5 if readout == "gradient" else 1))
            true = next(iter(fit.truths.values()))
            shares.append([found[:, :, lag][~true[:, :, lag]].mean() for lag in range(5)])
        if shares:
            mean = 100 * np.mean(shares, axis=0)
            axes.plot(range(1, 6), mean, "o-", color=colour, label=readout, linewidth=1.6)
    axes.set_xticks(range(1, 6))
    axes.set_xlabel("lag of a candidate that is no cause")
    axes.set_ylabel("mean share of relevance, %")
    _dress(axes)
    axes.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    return figure


def rank_figure(study: Study) -> Figure:
    """Mean and standard deviation of ranks over windows: causes against the others."""
    figure = Figure(figsize=(9, 3.6))
    grid = figure.subplots(1, 2, sharey=True)
    for axes, system in zip(grid, ("linear", "monotonic"), strict=True):
        for fit in list(study.fits.get(Kind(system, layers=DEEP), {}).values())[:1]:
            mean = fit.relevance("lrp", what="mean_rank")
            spread = fit.relevance("lrp", what="sd_rank")
            true = next(iter(fit.truths.values()))
            axes.scatter(mean[~true], spread[~true], s=6, color="#bbbbbb", label="no cause")
            axes.scatter(mean[true], spread[true], s=14, color="#d55e00", label="cause")
        axes.set_title(system, fontsize=10, loc="left")
        axes.set_xlabel("mean rank among a target's candidates, by LRP")
        _dress(axes)
    grid[0].set_ylabel("standard deviation of the rank")
    grid[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    return figure


def _draw_panel(axes: Axes, study: Study, columns: Sequence[Column]) -> None:
    for label, source, colour, width in LINES:
        ys = [_mean(_figure(study, column.kind, source)) for column in columns]
        size = 2.2 * width
        axes.plot(ys, "o-", color=colour, linewidth=width, markersize=size, label=label)
    ys = [_published(column) for column in columns]
    style = {"markerfacecolor": "white", "markersize": 5.5, "linewidth": 1}
    axes.plot(ys, "D:", color="#d55e00", label="DOT in the paper", **style)  # type: ignore[arg-type]
    names = [fill(column.name, 9, break_long_words=False) for column in columns]
    axes.set_xticks(range(len(columns)), names, fontsize=8)
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
