"""Studies of one fitted transformer: several readouts, rules and scores from a single training."""

from __future__ import annotations

import numpy as np
import torch
import xarray as xr

from forecause.attribute import READOUTS, relevance
from forecause.benchmark.methods import Answer
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.forecast import Forecaster, build
from forecause.forecast.transformer import TransformerSettings
from forecause.graph.lagged import LaggedGraph
from forecause.graph.select import global_top_k, top_k, uniform
from forecause.pipeline import READ_WINDOWS

DEEP, SHALLOW = 4, 1  # layers
K = 3  # the paper's row top-k
ROW_KS = range(1, 6)
GLOBAL_KS = range(3, 37, 3)
UNCERTAINTY_GLOBAL_K = 15


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
    settings = TransformerSettings.paper(layers=layers)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build("transformer", windows.shape, settings.model_dump(mode="json"))
    early, late = windows.split(0.2)
    model.fit(early, late, seed)
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
