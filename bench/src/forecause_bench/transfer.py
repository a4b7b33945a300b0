"""Does pretraining on simulated systems help on a new one? The paper's question, on our ground."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.edges.reading import READ_WINDOWS
from forecause.edges.select import uniform
from forecause.forecast.additive import Additive
from forecause.forecast.attribution import relevance
from forecause.forecast.forecaster import FitData, ForecasterSettings, squared_errors
from forecause.forecast.linear import Linear
from forecause.graph.lagged import LaggedGraph
from forecause.networks.settings import QUICK_STEPS, ContextSettings, Pretrained, Transformer
from forecause_bench.methods import Answer

HELD_OUT = 0.2
LONGER = {"learning_rate": 3e-3, "max_steps": 200, "patience": 4}  # training that starts from none
WEIGHTS = (
    "FORECAUSE_WEIGHTS"  # in the environment: a folder of weights, instead of those that come along
)


def transfer_arms(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """Pretrained or not, told apart or not, tuned or not: graphs by one rule that needs no truth.

    `loss` is the squared error on held-out rows that neither taught nor stopped anything.
    """
    windows = Windows.of(panel, max_lag)
    early, late = windows.split(HELD_OUT)
    places = np.arange(len(late))
    tuning, judging = late.at(places[::2]), late.at(places[1::2])
    sample = windows.sample(READ_WINDOWS, np.random.default_rng(seed))
    answers = []
    for label, settings in _arms().items():
        model = settings.seeded_build(windows.shape, seed)
        start = time.perf_counter()
        model.fit(FitData(early, tuning, seed))
        took = time.perf_counter() - start
        scores = relevance(model, sample)["relevance"]
        extra = {"loss": float(squared_errors(model, judging).mean()), "fit_seconds": took}
        answers.append(Answer(LaggedGraph.from_scores(scores, uniform(scores)), label, extra))
    return answers


def _arms() -> dict[str, ForecasterSettings]:
    """The settings of every arm."""
    weights = os.environ.get(WEIGHTS)
    zero_shot = _changed(Pretrained.zero_shot(), weights=weights)
    tuned = _changed(Pretrained(), weights=weights)
    untaught: dict[str, Any] = {"weights": None, "network": ContextSettings()}
    longer = tuned.training.model_copy(update=LONGER)
    return {
        "zero-shot, no node vectors": _changed(zero_shot, node_scale=0.0),
        "zero-shot, random node vectors": zero_shot,
        "fine-tuned, norms and nodes": _changed(tuned, tuned="norms"),
        "fine-tuned, everything": _changed(tuned, tuned="everything"),
        "same, untrained": _changed(zero_shot, **untaught),
        "same, from scratch": _changed(tuned, tuned="everything", training=longer, **untaught),
        "transformer, from scratch": Transformer().trained_with(
            max_steps=QUICK_STEPS, rate_drops=1
        ),
        "linear": Linear(),
        "additive": Additive(),
    }


def _changed(settings: Pretrained, **changes: Any) -> Pretrained:
    return settings.model_copy(update=changes)
