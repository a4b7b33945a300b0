"""Where steps and lags meet: the axes of every array over pairs of variables.

A forecaster reads a window step by step, oldest first: its arrays are (target, step, source). A
graph speaks of lags, lag 1 first: its arrays are (target, source, lag). The last step is lag 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

AXES = ("target", "source", "lag")


def by_lag(values: Any) -> npt.NDArray[Any]:
    """(..., step, source), oldest step first -> (..., source, lag), lag 1 first.

    Takes arrays, and tensors that want no gradient and are on the processor.
    """
    return np.asarray(values)[..., ::-1, :].swapaxes(-1, -2).copy()  # torch refuses a view


def by_step(values: Any) -> npt.NDArray[Any]:
    """(..., source, lag), lag 1 first -> (..., step, source), oldest step first."""
    return np.asarray(values)[..., ::-1].swapaxes(-1, -2).copy()


def coordinates(variables: Sequence[str], max_lag: int, first_lag: int = 1) -> dict[str, Any]:
    """The names along (target, source, lag)."""
    names = list(variables)
    return {"target": names, "source": names, "lag": np.arange(first_lag, max_lag + 1)}


def labelled(values: npt.ArrayLike, variables: Sequence[str], first_lag: int = 1) -> xr.DataArray:
    """Values (target, source, lag) with their names; the first lag is `first_lag`."""
    array: npt.NDArray[Any] = np.asarray(values)
    max_lag = array.shape[2] + first_lag - 1
    return xr.DataArray(array, dims=AXES, coords=coordinates(variables, max_lag, first_lag))


def labelled_together(
    arrays: Mapping[str, npt.ArrayLike],
    variables: Sequence[str],
    attributes: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Several arrays (target, source, lag), each under its name; lags count from 1."""
    parts = {name: labelled(values, variables) for name, values in arrays.items()}
    return xr.Dataset(parts, attrs=dict(attributes or {}))


def empty_scores(variables: Sequence[str], max_lag: int, first_lag: int = 1) -> xr.DataArray:
    """Zeros over (target, source, lag), with the variables' names as coordinates."""
    shape = (len(variables), len(variables), max_lag + 1 - first_lag)
    return labelled(np.zeros(shape), variables, first_lag)
