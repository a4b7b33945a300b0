"""Studies of our own discovery: rules, screens and refinements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import xarray as xr

from forecause.config import ForecastOptions
from forecause.data.panel import Panel
from forecause.data.windows import Windows, moments_of, past_and_targets, place_knots
from forecause.discovery import Discovery
from forecause.edges.select import false_discovery
from forecause.forecast.additive import Additive, AdditiveModel
from forecause.forecast.forecaster import MANY_INPUTS
from forecause.forecast.input_tests.protocol import link_q_values as adjusted
from forecause.forecast.selection import (
    FitContext,
    closed_forms,
    fit_best,
    strongest_inputs,
)
from forecause.graph import LaggedGraph, empty_scores
from forecause.graph.axes import by_lag
from forecause.method import discover
from forecause.refine.latent import refine_latent
from forecause.refine.run import refine_instantaneous
from forecause.regression import screen
from forecause_bench.methods import Answer

HELD_OUT = 0.2  # as in a discovery


def selection_rules(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The default discovery under rules that need no truth, its own among them."""
    answers, found = _levels(panel, max_lag, seed)
    scores, q_values = found.relevance["relevance"], found.relevance["q_value"]
    for share in (0.0, 0.01):
        chosen = false_discovery(scores, q_values, 0.1, share)
        answers.append(_answer(scores, chosen, f"tests, floor {share:.0%}, 10%"))
    classical = _classical_p_values(Windows.of(panel, max_lag))
    chosen = false_discovery(scores, classical.copy(data=adjusted(classical.values)), 0.1)
    answers.append(_answer(scores, chosen, "additive F-tests, 10%"))
    answers.append(_answer(scores, widest_gap(scores), "widest gap of log scores"))
    return answers


def error_levels(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The default discovery at several accepted shares of false edges."""
    return _levels(panel, max_lag, seed)[0]


def _levels(panel: Panel, max_lag: int, seed: int) -> tuple[list[Answer], Discovery]:
    found = discover(panel, max_lag, seed=seed, device="cpu")
    statistics = found.relevance
    least = statistics.get("least_share", found.config.thresholds.edges.least_share)
    alarm = {"misfit": float(any(alert.code == "misfit" for alert in found.alerts))}
    answers = []
    for fdr in (0.02, 0.05, 0.1, 0.2):
        chosen = false_discovery(statistics["relevance"], statistics["q_value"], fdr, least)
        answer = _answer(found.scores, chosen, f"tests and floor, {fdr:.0%}")
        answers.append(replace(answer, extra=alarm))
    return answers, found


def screened_inputs(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """Every input that a network would read as an edge; all of them where there are few."""
    windows = Windows.of(panel, max_lag)
    variables = windows.shape[1]
    reads = np.ones((variables, windows.inputs), dtype=bool)
    if windows.inputs > MANY_INPUTS:
        kinds = closed_forms(windows)
        asked = [ForecastOptions(forecaster=kind(), held_out=HELD_OUT) for kind in kinds]
        models = [fit_best(windows, one, FitContext(seed)).forecaster for one in asked]
        places = strongest_inputs(models, windows.split(HELD_OUT)[0])
        reads[:] = False
        np.put_along_axis(reads, places, True, axis=1)
    return _inputs_as_edges(reads, windows)


def inputs_screened_in_rounds(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """Every input that is fitted and tested where inputs are very many as an edge."""
    windows = Windows.of(panel, max_lag)
    steps, variables = windows.shape
    latest = np.arange(variables) + (steps - 1) * variables
    found = screen.screened_inputs(*past_and_targets(windows), latest)
    return _inputs_as_edges(found.mask(windows.inputs), windows)


def _inputs_as_edges(reads: npt.NDArray[np.bool_], windows: Windows) -> list[Answer]:
    """The inputs read (target, step * variable) as the edges of a graph."""
    steps, variables = windows.shape
    by_step = reads.reshape(variables, steps, variables)
    scores = empty_scores(windows.panel.variables, steps)
    scores = scores.copy(data=by_lag(by_step).astype(float))
    return [Answer(LaggedGraph.from_scores(scores, scores > 0))]


def latent_refinement(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The discovered graph, and the one without what hidden causes explain."""
    return past_latents(panel, discover(panel, max_lag, seed=seed, device="cpu").graph)


def past_latents(panel: Panel, graph: LaggedGraph) -> list[Answer]:
    """A graph, and what is left of it without what hidden causes explain."""
    return [Answer(graph, "as discovered"), Answer(refine_latent(panel, graph), "refined")]


def instantaneous_refinement(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The discovered graph, and those with edges at lag 0 by either method."""
    return with_edges_now(panel, discover(panel, max_lag, seed=seed, device="cpu").graph)


def with_edges_now(panel: Panel, graph: LaggedGraph) -> list[Answer]:
    """A graph of lagged edges, and what either method makes of it and adds at lag 0."""
    return [
        Answer(graph, "as discovered (lagged)"),
        Answer(refine_instantaneous(panel, graph), "refined by PCMCI+"),
        Answer(refine_instantaneous(panel, graph, method="dynotears"), "refined by DYNOTEARS"),
    ]


def _classical_p_values(windows: Windows) -> xr.DataArray:
    """F-tests in the additive spline model under constant noise, (target, source, lag)."""
    model = AdditiveModel(windows.shape, Additive())
    model.knots = place_knots(windows, model.settings.knots)
    steps, variables = windows.shape
    groups = np.arange(steps * variables * (model.settings.knots - 1)).reshape(
        steps * variables, -1
    )
    tested = moments_of(windows, model.design).group_p_values(list(groups))
    by_step = tested.reshape(variables, steps, variables)
    empty = empty_scores(windows.panel.variables, steps)
    return empty.copy(data=by_step[:, ::-1].transpose(0, 2, 1))


def widest_gap(scores: xr.DataArray) -> xr.DataArray:
    """Cut at the widest gap of the sorted log scores, in the upper half of all candidates."""
    logs = np.sort(np.log(np.maximum(scores.values.ravel(), 1e-12)))
    upper = logs[len(logs) // 2 :]
    place = int(np.argmax(np.diff(upper)))
    return np.log(np.maximum(scores, 1e-12)) > (upper[place] + upper[place + 1]) / 2


def _answer(scores: xr.DataArray, chosen: xr.DataArray, label: str) -> Answer:
    return Answer(LaggedGraph.from_scores(scores, chosen), label)
