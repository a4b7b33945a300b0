"""A study of the screen: which inputs a network is given where there are many."""

from __future__ import annotations

import numpy as np

from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.forecast import fit_forecaster
from forecause.forecast.fitting import closed_forms
from forecause.forecast.screen import MANY, strongest_inputs
from forecause.graph import LaggedGraph, empty_scores
from forecause_bench.methods import Answer

HELD_OUT = 0.2  # as in a discovery


def screened_inputs(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """Every input that a network would read as an edge; all of them where there are few."""
    windows = Windows.of(panel, max_lag)
    steps, variables = windows.shape
    reads = np.ones((variables, windows.inputs), dtype=bool)
    if windows.inputs > MANY:
        kinds = closed_forms(windows)
        models = [fit_forecaster(k, windows, held_out=HELD_OUT, seed=seed)[0] for k in kinds]
        places = strongest_inputs(models, windows.split(HELD_OUT)[0]).numpy()
        reads[:] = False
        np.put_along_axis(reads, places, True, axis=1)
    by_step = reads.reshape(variables, steps, variables)  # the last step is lag 1
    scores = empty_scores(panel.variables, steps)
    scores = scores.copy(data=by_step[:, ::-1].transpose(0, 2, 1).astype(float))
    return [Answer(LaggedGraph.from_scores(scores, scores > 0))]
