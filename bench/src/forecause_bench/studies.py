"""Studies of one fit or one graph: readouts, rules and scores of a training, and refinements."""

from __future__ import annotations

import numpy as np
import xarray as xr

from forecause.attribute import READOUTS, cross_fitted, relevance
from forecause.config import ForecastOptions
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.edges.reading import LEAST_SHARE, READ_WINDOWS
from forecause.edges.select import false_discovery, global_top_k, top_k, uniform
from forecause.forecast.forecaster import FitData, Forecaster
from forecause.forecast.models.additive import Additive, AdditiveModel
from forecause.forecast.models.deep_transformer import DeepTransformer
from forecause.forecast.models.separate import MANY
from forecause.forecast.selection import (
    FitContext,
    closed_forms,
    fit_best,
    seeded_build,
    strongest_inputs,
)
from forecause.graph import LaggedGraph, empty_scores
from forecause.method import discover
from forecause.refine.instantaneous import refine_instantaneous
from forecause.refine.latent import refine_latent
from forecause.regression.moments import Moments
from forecause.regression.splines import place_knots
from forecause_bench.methods import Answer

DEEP, SHALLOW = 4, 1  # layers
K = 3  # the paper's row top-k
ROW_KS = range(1, 6)
GLOBAL_KS = range(3, 37, 3)
UNCERTAINTY_GLOBAL_K = 15
HELD_OUT = 0.2  # as in a discovery


def deep_variants(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """LRP and attention, each with top-k and threshold, from the paper's deep transformer."""
    return _variants(panel, max_lag, seed, DEEP)


def shallow_variants(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The same from the paper's one-layer transformer."""
    return _variants(panel, max_lag, seed, SHALLOW)


def k_sensitivity(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """Graphs by row top-k and global top-k over a range of k, as far as there are candidates."""
    scores = _read(panel, max_lag, seed, "lrp")["relevance"]
    rows = [
        _answer(scores, top_k(scores, k), f"top-{k} per target")
        for k in ROW_KS
        if k <= scores[0].size
    ]
    whole = [
        _answer(scores, global_top_k(scores, k), f"top-{k} overall")
        for k in GLOBAL_KS
        if k <= scores.size
    ]
    return rows + whole


def rank_scores(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """Edges chosen by relevance and by the mean and spread of ranks over samples."""
    found = _read(panel, max_lag, seed, "lrp")
    steadiness = 1 / found["sd_rank"].clip(min=1e-9)  # the steadier an edge's rank, the surer
    by = {
        "mean relevance": found["relevance"],
        "mean rank": found["mean_rank"],
        "1 / sd of rank": steadiness,
        "mean / sd of rank": found["mean_rank"] * steadiness,
    }
    answers = []
    for name, scores in by.items():
        whole = min(UNCERTAINTY_GLOBAL_K, scores.size)
        answers.append(_answer(scores, top_k(scores, K), f"{name}, top-{K} per target"))
        answers.append(_answer(scores, global_top_k(scores, whole), f"{name}, top-{whole} overall"))
    return answers


def intervention_agreement(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """Correlation of each readout's relevance with the mean effect of shifting an input."""
    windows = Windows.of(panel, max_lag)
    forecaster = _fitted(windows, DEEP, seed)
    sample = windows.sample(READ_WINDOWS, np.random.default_rng(seed))
    effects = relevance(forecaster, sample, "intervention")["relevance"]
    answers = []
    for readout in ("intervention", "gradient", "input-gradient", "lrp"):
        scores = relevance(forecaster, sample, readout)["relevance"]
        size = scores ** (1 / READOUTS[readout].power)  # an energy is a square
        agreement = _correlations(size, effects)
        answers.append(_answer(scores, top_k(scores, K), readout, agreement))
    return answers


def selection_rules(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The default discovery under rules that need no truth, its own among them."""
    windows = Windows.of(panel, max_lag)
    found = discover(panel, max_lag, seed=seed, device="cpu")
    scores, p_values = found.scores, found.relevance["p_value"]
    parts = [
        fit_best(part, ForecastOptions(forecaster="mlp"), FitContext(seed))[0]
        for part in windows.interleaved(2)
    ]
    sample = windows.sample(READ_WINDOWS, np.random.default_rng(seed))
    crossed = cross_fitted(parts, sample)
    classical = _classical_p_values(windows)
    answers = []
    for fdr in (0.02, 0.05, 0.1, 0.2):
        chosen = false_discovery(scores, p_values, fdr, LEAST_SHARE)
        answers.append(_answer(scores, chosen, f"tests and floor, {fdr:.0%}"))
    for share in (0.0, 0.01):
        chosen = false_discovery(scores, p_values, 0.1, share)
        answers.append(_answer(scores, chosen, f"tests, floor {share:.0%}, 10%"))
    chosen = false_discovery(scores, classical, 0.1)
    answers.append(_answer(scores, chosen, "additive F-tests, 10%"))
    answers.append(_answer(crossed, mirror(crossed, 0.1), "mirror of cross-fitted MLPs, 10%"))
    answers.append(_answer(scores, widest_gap(scores), "widest gap of log scores"))
    return answers


def screened_inputs(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """Every input that a network would read as an edge; all of them where there are few."""
    windows = Windows.of(panel, max_lag)
    steps, variables = windows.shape
    reads = np.ones((variables, windows.inputs), dtype=bool)
    if windows.inputs > MANY:
        kinds = closed_forms(windows)
        asked = [ForecastOptions(forecaster=kind(), held_out=HELD_OUT) for kind in kinds]
        models = [fit_best(windows, one, FitContext(seed))[0] for one in asked]
        places = strongest_inputs(models, windows.split(HELD_OUT)[0]).numpy()
        reads[:] = False
        np.put_along_axis(reads, places, True, axis=1)
    by_step = reads.reshape(variables, steps, variables)  # the last step is lag 1
    scores = empty_scores(panel.variables, steps)
    scores = scores.copy(data=by_step[:, ::-1].transpose(0, 2, 1).astype(float))
    return [Answer(LaggedGraph.from_scores(scores, scores > 0))]


def latent_refinement(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The discovered graph, and the one without what hidden causes explain."""
    graph = discover(panel, max_lag, seed=seed, device="cpu").graph
    return [
        Answer(graph, "as discovered"),
        Answer(refine_latent(panel, graph), "refined"),
    ]


def instantaneous_refinement(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The discovered graph, and those with edges at lag 0 by either method."""
    graph = discover(panel, max_lag, seed=seed, device="cpu").graph
    return [
        Answer(graph, "as discovered (lagged)"),
        Answer(refine_instantaneous(panel, graph), "refined by PCMCI+"),
        Answer(refine_instantaneous(panel, graph, method="dynotears"), "refined by DYNOTEARS"),
    ]


def _classical_p_values(windows: Windows) -> xr.DataArray:
    """F-tests in the additive spline model under constant noise, (target, source, lag)."""
    model = AdditiveModel(windows.shape, Additive())
    model.get_buffer("knots").copy_(place_knots(windows, model.settings.knots))
    steps, variables = windows.shape
    groups = np.arange(steps * variables * (model.settings.knots - 1)).reshape(
        steps * variables, -1
    )
    tested = Moments.of(windows, model.design).group_p_values(list(groups))
    by_step = tested.reshape(variables, steps, variables)
    empty = empty_scores(windows.panel.variables, steps)
    return empty.copy(data=by_step[:, ::-1].transpose(0, 2, 1))


def mirror(scores: xr.DataArray, fdr: float) -> xr.DataArray:
    """Scores that are symmetric about 0 for non-edges: cut where the mirror image says so.

    The smallest t with (1 + scores below -t) / scores above t <= fdr.
    """
    values = scores.values.ravel()
    for t in np.sort(np.abs(values)):
        if (1 + (values < -t).sum()) / max((values > t).sum(), 1) <= fdr:
            return scores > t
    return xr.zeros_like(scores, dtype=bool)


def widest_gap(scores: xr.DataArray) -> xr.DataArray:
    """Cut at the widest gap of the sorted log scores, in the upper half of all candidates."""
    logs = np.sort(np.log(np.maximum(scores.values.ravel(), 1e-12)))
    upper = logs[len(logs) // 2 :]
    place = int(np.argmax(np.diff(upper)))
    return np.log(np.maximum(scores, 1e-12)) > (upper[place] + upper[place + 1]) / 2


def _variants(panel: Panel, max_lag: int, seed: int, layers: int) -> list[Answer]:
    windows = Windows.of(panel, max_lag)
    forecaster = _fitted(windows, layers, seed)
    sample = windows.sample(READ_WINDOWS, np.random.default_rng(seed))
    answers = []
    for readout, name in (("lrp", "LRP"), ("attention", "attention")):
        scores = relevance(forecaster, sample, readout)["relevance"]
        answers.append(_answer(scores, top_k(scores, K), f"{name}, top-{K} per target"))
        answers.append(_answer(scores, uniform(scores), f"{name}, threshold"))
    return answers


def _read(panel: Panel, max_lag: int, seed: int, readout: str) -> xr.Dataset:
    windows = Windows.of(panel, max_lag)
    sample = windows.sample(READ_WINDOWS, np.random.default_rng(seed))
    return relevance(_fitted(windows, DEEP, seed), sample, readout)


def _fitted(windows: Windows, layers: int, seed: int) -> Forecaster:
    """The paper's transformer with this many layers, trained as published."""
    settings = DeepTransformer(layers=layers)
    model = seeded_build(settings, windows.shape, seed)
    early, late = windows.split(0.2)
    model.fit(FitData(early, late, seed))
    return model.eval().requires_grad_(False)


def _answer(
    scores: xr.DataArray,
    chosen: xr.DataArray,
    label: str,
    extra: dict[str, float] | None = None,
) -> Answer:
    return Answer(LaggedGraph.from_scores(scores, chosen), label, extra or {})


def _correlations(scores: xr.DataArray, effects: xr.DataArray) -> dict[str, float]:
    """Pearson and Spearman over all candidates."""
    from scipy.stats import rankdata

    x, y = scores.values.ravel(), effects.values.ravel()
    return {
        "pearson": float(np.corrcoef(x, y)[0, 1]),
        "spearman": float(np.corrcoef(rankdata(x), rankdata(y))[0, 1]),
    }
