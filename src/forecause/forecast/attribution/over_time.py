"""Which input mattered for the forecast of a target, and when."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from forecause.common.arrays import Floats, Index
from forecause.data.windows import Window, Windows
from forecause.errors import InputError
from forecause.forecast.attribution.readouts import find_readout
from forecause.forecast.attribution.relevance import BATCH_NUMBERS
from forecause.forecast.forecaster import Forecaster
from forecause.graph.axes import by_lag
from forecause.progress import QUIET, Progress

MOST_NUMBERS = 50_000_000  # contributions in one answer: 400 MB


def attribution_over_time(
    forecaster: Forecaster,
    windows: Windows,
    target: str,
    *,
    readout: str = "input-gradient",
    bins: int | None = None,
    progress: Progress = QUIET,
) -> xr.Dataset:
    """Relevance of every (source, lag) for one target along time, in sds of the target.

    With `bins`, means over about that many runs of neighbouring windows, which never mix series;
    without, every window by itself. The variables:
    contribution (time, source, lag): signed. The default readout is gradient times input, what an
    input adds to the forecast by not being at its mean, to first order; of a linear forecaster
    the contributions and the intercept add up to the forecast.
    magnitude: mean absolute contribution; in a bin, signs may cancel in the mean.
    forecast, actual (time,): of the target, standardised.
    The coordinates row, last_row and series say where a bin lies, windows how many are in it.
    """
    names = windows.panel.variables
    if target not in names:
        raise InputError(f"Unknown variable {target!r}; choose one of {', '.join(names)}.")
    per_sample = find_readout(readout).per_sample
    steps, variables = windows.shape
    bin_of = _bins(windows, bins)
    count = np.bincount(bin_of)
    if len(count) * steps * variables > MOST_NUMBERS:
        raise InputError(
            f"{len(count)} moments of {variables} sources and {steps} lags are too many to hold; "
            "ask for fewer rows, or for their means over bins."
        )
    sums = _Sums(len(count), steps, variables)
    size = max(1, min(512, BATCH_NUMBERS // (steps * variables**2)))
    for place, window in enumerate(windows.batches(size)):
        progress.step("reading out over time", place * size / len(windows))
        signed = per_sample(forecaster, window)
        sums.add(
            bin_of[place * size : place * size + len(window)],
            signed[:, names.index(target)],
            _both(forecaster, window)[:, names.index(target)],
        )
    means = sums.means(count, names).assign_coords(_places(windows, count))
    scale = {"mean": windows.scale.mean, "sd": windows.scale.sd}
    target_scale = {key: float(values[names.index(target)]) for key, values in scale.items()}
    return means.assign_attrs(target=target, readout=readout, **target_scale)


class _Sums:
    """Sums over the windows of each bin; the only thing that is kept of them."""

    def __init__(self, bins: int, steps: int, variables: int) -> None:
        self.signed = np.zeros((bins, steps, variables))
        self.absolute = np.zeros((bins, steps, variables))
        self.both = np.zeros((bins, 2))  # forecast and actual

    def add(self, bin_of: Index, signed: Floats, both: Floats) -> None:
        """Take in a batch: signed relevance (batch, step, source), forecast and actual."""
        touched, begins = np.unique(bin_of, return_index=True)  # bins are runs of windows
        values = signed.astype(np.float64)
        self.signed[touched] += np.add.reduceat(values, begins)
        self.absolute[touched] += np.add.reduceat(np.abs(values), begins)
        self.both[touched] += np.add.reduceat(both.astype(np.float64), begins)

    def means(self, count: Index, names: tuple[str, ...]) -> xr.Dataset:
        """Steps, oldest first, become lags, 1 first."""
        axes = ("time", "source", "lag")
        contribution, magnitude = (
            by_lag(sums / count[:, None, None]) for sums in (self.signed, self.absolute)
        )
        forecast, actual = (self.both / count[:, None]).T
        return xr.Dataset(
            {
                "contribution": (axes, contribution),
                "magnitude": (axes, magnitude),
                "forecast": ("time", forecast),
                "actual": ("time", actual),
            },
            coords={"source": list(names), "lag": np.arange(1, self.signed.shape[1] + 1)},
        )


def _both(forecaster: Forecaster, window: Window) -> Floats:
    """Forecast and what followed, (batch, variable, 2)."""
    return np.stack([forecaster.forecast(window), window.target], axis=2)


def _bins(windows: Windows, bins: int | None) -> Index:
    """The bin of every window: runs of equal length, begun anew with every series."""
    if bins is not None and bins < 1:
        raise InputError(f"The number of bins must be at least 1, found {bins}.")
    length = 1 if bins is None else -(-len(windows) // bins)
    series = windows.panel.series[windows.rows]
    begins = np.flatnonzero(np.diff(series, prepend=-1))
    place = np.arange(len(windows))
    since = place - np.repeat(begins, np.diff([*begins, len(windows)]))
    return np.cumsum(since % length == 0) - 1


def _places(windows: Windows, count: Index) -> dict[str, Any]:
    """Where each bin lies: coordinates along time."""
    panel = windows.panel
    first = np.cumsum(count) - count
    row, last = windows.rows[first], windows.rows[first + count - 1]
    names = np.array(panel.series_names)[panel.series[row]]
    places = {"row": row, "last_row": last, "series": names, "windows": count}
    time = row if panel.time is None else panel.time[row]
    return {"time": time} | {name: ("time", values) for name, values in places.items()}
