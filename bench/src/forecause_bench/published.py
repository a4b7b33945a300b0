"""The paper's transformer, fitted once to a system and read in every way that the paper compares.

How long the paper trains is not said. Here a fit is 300 steps of 256 windows, the rate falling to
zero in the last 100, so that all of the paper's tables can be made on two cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
import xarray as xr

from forecause.config import ForecastOptions
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.edges.select import global_top_k, top_k, uniform
from forecause.forecast.attribution import READOUTS, relevance
from forecause.forecast.forecaster import Forecaster
from forecause.forecast.selection import FitContext, fit_best
from forecause.graph import LaggedGraph
from forecause.graph.lagged import with_domains
from forecause.networks.settings import DeepTransformer
from forecause_bench.methods import Answer
from forecause_bench.studies import past_latents, with_edges_now

DEEP, SHALLOW = 4, 1  # layers
STEPS, COOLDOWN = 300, 100
READ = 500  # windows, of all rows
LEAST_READ = 200  # of a segment
SHIFTED = 100  # windows whose inputs are shifted, one at a time
K = 3  # the paper's row top-k
ROW_KS = (1, 2, 4, 5)  # besides
GLOBAL_KS = range(3, 37, 3)
SMALL_GLOBAL_K = 15  # of the paper's analysis of uncertainty

Rule = Callable[[xr.DataArray], xr.DataArray]
Read = Mapping[str, xr.Dataset]  # by readout
PER_TARGET = f"top-{K} per target"


def deep(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """Four layers."""
    return _answers(panel, max_lag, seed, DEEP)


def shallow(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """One layer."""
    return _answers(panel, max_lag, seed, SHALLOW)


def settings(layers: int) -> DeepTransformer:
    """The published model with the training of this study."""
    return DeepTransformer(layers=layers).trained_with(
        max_steps=STEPS, cooldown=COOLDOWN, rounds=0, look_every=50
    )


def told_the_segment(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """Four layers, with the number of the segment as a further input."""
    return _answers(panel, max_lag, seed, DEEP, domain_input=True)[:1]


def refined_latent(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The published graph, and the one without what hidden causes explain."""
    return past_latents(panel, _own_graph(panel, max_lag, seed))


def refined_instantaneous(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The published graph, and those with edges at lag 0 by either method."""
    return with_edges_now(panel, _own_graph(panel, max_lag, seed))


def _own_graph(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """LRP and the top 3 per target, of four layers."""
    windows = Windows.of(panel, max_lag)
    model, _ = _fit(windows, seed, DEEP)
    scores = _lrp(_read(model, windows.sample(READ, np.random.default_rng(seed))))
    return LaggedGraph.from_scores(scores, top_k(scores, K))


def _fit(
    windows: Windows, seed: int, layers: int, *, domain_input: bool = False
) -> tuple[Forecaster, float]:
    """The published model, and its held-out loss."""
    options = ForecastOptions(forecaster=settings(layers), domain_input=domain_input)
    fitted = fit_best(windows, options, FitContext(seed))
    return fitted.forecaster, float(fitted.losses[fitted.forecaster.label].mean())


def _answers(
    panel: Panel, max_lag: int, seed: int, layers: int, *, domain_input: bool = False
) -> list[Answer]:
    """Every readout under every rule; where the panel has segments, a graph for each."""
    windows = Windows.of(panel, max_lag)
    model, loss = _fit(windows, seed, layers, domain_input=domain_input)
    rng = np.random.default_rng(seed)
    whole = _read(model, windows.sample(READ, rng))
    segments = {
        name: _read(model, windows.in_domain(code).sample(LEAST_READ, rng))
        for code, name in enumerate(panel.domain_names)
    }
    found = [
        Answer(_graph(whole, segments, scores, rule), label, {"loss": loss})
        for label, scores, rule in _ways(windows.inputs, len(panel.variables))
    ]
    if segments:
        return found
    return found + _agreements(model, windows.sample(SHIFTED, rng))


def _read(forecaster: Forecaster, sample: Windows) -> Read:
    return {name: relevance(forecaster, sample, name) for name in ("lrp", "attention")}


def _graph(
    whole: Read, segments: Mapping[str, Read], scores: Callable[[Read], xr.DataArray], rule: Rule
) -> LaggedGraph:
    def of(read: Read) -> LaggedGraph:
        values = scores(read)
        return LaggedGraph.from_scores(values, rule(values))

    parts = {name: of(read) for name, read in segments.items()}
    return with_domains(of(whole), parts) if parts else of(whole)


def _ways(
    candidates: int, targets: int
) -> Iterator[tuple[str, Callable[[Read], xr.DataArray], Rule]]:
    """Label, scores and rule of every answer; the first, without a label, is the paper's own."""
    row, whole = partial(top_k, k=K), partial(global_top_k, k=SMALL_GLOBAL_K)
    yield "", _lrp, row
    yield "LRP, threshold", _lrp, uniform
    yield f"attention, {PER_TARGET}", _attention, row
    yield "attention, threshold", _attention, uniform
    for k in ROW_KS:
        if k <= candidates:
            yield f"top-{k} per target", _lrp, partial(top_k, k=k)
    for k in GLOBAL_KS:
        if k <= candidates * targets:
            yield f"top-{k} overall", _lrp, partial(global_top_k, k=k)
    by_rank = {"mean rank": _mean_rank, "1 / sd of rank": _steady, "mean / sd of rank": _both}
    for name, scores in by_rank.items():
        yield f"{name}, {PER_TARGET}", scores, row
        yield f"{name}, top-{SMALL_GLOBAL_K} overall", scores, whole


def _lrp(read: Read) -> xr.DataArray:
    return read["lrp"]["relevance"]


def _attention(read: Read) -> xr.DataArray:
    return read["attention"]["relevance"]


def _mean_rank(read: Read) -> xr.DataArray:
    return read["lrp"]["mean_rank"]


def _steady(read: Read) -> xr.DataArray:
    """The steadier an edge's rank, the surer."""
    return 1 / read["lrp"]["sd_rank"].clip(min=1e-9)


def _both(read: Read) -> xr.DataArray:
    return _mean_rank(read) * _steady(read)


def _agreements(forecaster: Forecaster, sample: Windows) -> list[Answer]:
    """Correlation of each readout's relevance with the mean effect of shifting an input."""
    effects = relevance(forecaster, sample, "intervention")["relevance"]
    answers = []
    for name in ("intervention", "gradient", "lrp"):
        scores = relevance(forecaster, sample, name)["relevance"]
        size = scores ** (1 / READOUTS[name].power)  # an energy is a square
        graph = LaggedGraph.from_scores(scores, top_k(scores, K))
        answers.append(Answer(graph, f"by {name}", _correlations(size, effects)))
    return answers


def _correlations(scores: xr.DataArray, effects: xr.DataArray) -> dict[str, float]:
    """Pearson and Spearman over all candidates."""
    from scipy.stats import rankdata

    x, y = scores.values.ravel(), effects.values.ravel()
    return {
        "pearson": float(np.corrcoef(x, y)[0, 1]),
        "spearman": float(np.corrcoef(rankdata(x), rankdata(y))[0, 1]),
    }
