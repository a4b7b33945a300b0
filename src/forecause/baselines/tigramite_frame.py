"""A panel in the form that tigramite reads, and its results in ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.baselines.third_party import load
from forecause.data import Panel
from forecause.errors import InputError

MISSING = -1e300  # what tigramite is told to read as a missing value; it refuses NaN


def frame_of(panel: Panel, max_lag: int) -> Any:
    """A tigramite DataFrame; each unbroken stretch of the panel is a dataset of its own.

    tigramite leaves out the samples of a test that touch a missing value.
    """
    if max_lag < 1:
        raise InputError(f"The largest lag must be at least 1, found {max_lag}.")
    # Tests condition on the parents of a lagged variable, so they reach back 2 * max_lag.
    stretches = [
        np.nan_to_num(values.astype(np.float64), nan=MISSING)
        for values in np.split(panel.values, panel.starts[1:])
        if len(values) > 2 * max_lag
    ]
    if not stretches:
        raise InputError(
            f"tigramite needs an unbroken stretch of more than {2 * max_lag} rows for a largest "
            f"lag of {max_lag}, found none; use a smaller lag or more rows."
        )
    frames = load("tigramite.data_processing")
    several = len(stretches) > 1
    return frames.DataFrame(
        dict(enumerate(stretches)) if several else stretches[0],
        analysis_mode="multiple" if several else "single",
        missing_flag=MISSING,
    )


def partial_correlation() -> Any:
    """tigramite's linear conditional independence test with analytic p-values."""
    return load("tigramite.independence_tests.parcorr").ParCorr(verbosity=0)


def by_target(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """tigramite's (source, target, lag 0 ..) as (target, source, lag 0 ..)."""
    return matrix.transpose(1, 0, 2)


def lagged(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """tigramite's (source, target, lag 0 ..) as (target, source, lag 1 ..)."""
    return by_target(matrix)[:, :, 1:]
