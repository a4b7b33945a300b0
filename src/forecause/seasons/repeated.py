"""Seasons: how long they are, and the forecast that repeats the last one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.config.thresholds import thresholds
from forecause.data.panel import Panel
from forecause.data.windows import Windows

# Time and memory:
LONGEST_SEASON = 400
SEASON_ROWS, SEASON_STRETCHES = 20_000, 50  # the most that are looked at for a season

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
Season = int | Literal["auto"] | None


def seasons_of(known: Panel, season: Season) -> Rows:
    """Rows of a season per variable, (variable,)."""
    if season != "auto":
        return np.full(len(known.variables), season or 1)
    columns = [sorted(_stretches(known, c), key=len) for c in range(len(known.variables))]
    looked_at = [[p[-SEASON_ROWS:] for p in parts[-SEASON_STRETCHES:]] for parts in columns]
    return np.array([find_season(parts) for parts in looked_at])


def find_season(stretches: Sequence[Array]) -> int:
    """The season of a variable in rows, from its autocorrelation; 1 if there is none.

    The lag whose multiples are correlated most on average, the shortest of nearly equal ones. It
    must be a peak, and one in the first and the second half of the record as well.
    """
    longest = max(len(stretch) for stretch in stretches)
    most = min(LONGEST_SEASON, longest // 4)
    if most < 2:
        return 1
    far = min(4 * most, longest // 2)
    correlation, least = autocorrelation(stretches, far), thresholds().seasons.naive_correlation
    comb = np.array([correlation[m : 4 * m + 1 : m].mean() for m in range(1, most + 2)])
    inner = comb[1:-1]  # of the lags 2 .. most
    high = (inner > comb[:-2]) & (inner >= comb[2:]) & (inner >= least)
    if not high.any():
        return 1
    season = int(np.flatnonzero(high & (inner >= 0.9 * inner[high].max()))[0]) + 2
    for half in ([s[: len(s) // 2] for s in stretches], [s[len(s) // 2 :] for s in stretches]):
        own = autocorrelation(half, season)
        if own[season] < least + max(0.0, own[1:season].min()):
            return 1
    return season


def autocorrelation(stretches: Sequence[Array], most: int) -> Array:
    """Autocorrelation at the lags 0 .. most, each stretch freed of its linear trend."""
    products, pairs = np.zeros(most + 1), np.zeros(most + 1)
    for values in stretches:
        known = np.isfinite(values)
        if known.sum() < 3:
            continue
        time = np.linspace(-1, 1, len(values))
        trend = np.polynomial.Polynomial.fit(time[known], values[known], 1, domain=[-1, 1])
        centred = np.where(known, values - trend(time), 0.0)
        near = slice(0, min(most + 1, len(values)))
        for sums, x in ((products, centred), (pairs, known.astype(np.float64))):
            waves = np.fft.rfft(x, 2 * len(x))
            sums[near] += np.fft.irfft(np.abs(waves) ** 2, 2 * len(x))[near]
    covariance = products / np.maximum(pairs, 1.0)
    return covariance / max(covariance[0], np.finfo(float).tiny)


def naive_error(known: Windows, seasons: Rows) -> Array:
    """Mean absolute error of seasonal naive one season ahead, the sd where it is 0, (variable,)."""
    errors = known.scale.sd.copy()
    for column, season in enumerate(seasons.tolist()):
        parts = _stretches(known.panel, column)
        change = np.concatenate([np.abs(part[season:] - part[:-season]) for part in parts])
        if np.nansum(change) > 0:
            errors[column] = np.nanmean(change)
    return errors


def repeated(history: Array, season: int, steps: int) -> Array:
    """The latest known value of each place in the season, over and over, (step,)."""
    season = season if len(history) >= season else 1
    cycles = history[len(history) % season :].reshape(-1, season)
    if np.isnan(cycles[-1]).any():
        cycles = pd.DataFrame(cycles).ffill().fillna(history[-1]).to_numpy()
    return np.resize(cycles[-1], steps)


def _stretches(panel: Panel, column: int) -> list[Array]:
    return np.split(np.asarray(panel.values[:, column], dtype=np.float64), panel.starts[1:])
