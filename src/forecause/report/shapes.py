"""The shape of an effect that does not push on average: said instead of a push."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from forecause.data.summary import DataSummary

THROUGH_SIZE = "through its size"  # the target moves alike for high and low values of the source
WITH_OTHERS = "with others"  # the direction depends on the other inputs
BOTH_WAYS = "up and down"  # the direction depends on the source's own value
ADDS_UP = 0.5  # of the slopes, what the mean curve must show for the effect to be its own

Edge = tuple[str, str, int]  # source, target, lag


def edge_shapes(data: DataSummary, evidence: Mapping[str, Any]) -> dict[Edge, str]:
    """The shape of every edge whose curves the run has kept; labels have none."""
    names, labels = data.variables, {label.name for label in data.labels}
    sd = data.variable_sd
    found = {}
    for entry in evidence.get("edges", ()):
        source, target, lag = entry["edge"]
        if labels.isdisjoint((names[source], names[target])):
            told = curve_shape(entry["response"], entry["influence"], sd[source], sd[target])
            if told:
                found[names[source], names[target], lag] = told
    return found


def curve_shape(
    response: Mapping[str, Any], influence: list[float | None], source_sd: float, target_sd: float
) -> str:
    """How a source acts, from its mean response and from the mean size of its slopes.

    Slopes that the mean over the other inputs cancels act with others; a curve that is more even
    than odd about the middle of the source acts through its size. Empty where nothing is known.
    """
    pairs = zip(response["x"], response["y"], strict=True)
    curve = [(x, y) for x, y in pairs if x is not None and y is not None]
    slopes = [slope for slope in influence if slope is not None and slope == slope]
    if len(curve) < 3 or not slopes:
        return ""
    x, y = np.array(curve).T
    shown = np.abs(np.diff(y)).sum() / target_sd
    travelled = float(np.mean(slopes)) * (x.max() - x.min()) / source_sd
    if shown < ADDS_UP * travelled:
        return WITH_OTHERS
    even, odd = (y + y[::-1]) / 2, (y - y[::-1]) / 2
    return THROUGH_SIZE if even.var() > odd.var() else BOTH_WAYS
