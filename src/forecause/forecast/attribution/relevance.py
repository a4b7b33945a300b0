"""Relevance of every (source, lag) for every target, averaged over windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr

from forecause.common.arrays import Array, Floats
from forecause.data.windows import Window, Windows
from forecause.errors import InputError
from forecause.forecast.attribution.readouts import (
    Readout,
    VariableRelevance,
    find_readout,
    gradient,
)
from forecause.forecast.forecaster import Forecaster
from forecause.graph.axes import by_lag, labelled_together
from forecause.progress import QUIET, Progress

# Time and memory:
BATCH_NUMBERS = 4_000_000  # per-sample relevances held at once
READ_NUMBERS = 60_000_000  # per-sample relevances read in all: 1,200 windows of 50,000 candidates
LEAST_WINDOWS = 200  # read, however many candidates there are
MOST_RANKED = 10_000  # candidates; with n times as many, every n-th window is ranked


def relevance(
    forecaster: Forecaster, windows: Windows, readout: str = "gradient", progress: Progress = QUIET
) -> xr.Dataset:
    """Read the relevance of every (target, source, lag) from a fitted forecaster.

    The result's variables are described in RelevanceStream.result.
    """
    chosen = find_readout(readout)
    windows = _enough(forecaster, windows, chosen)
    stream = RelevanceStream(chosen.power)
    for window in _batches(windows):
        direction = chosen.direction(forecaster, window) if chosen.direction else None
        signed = chosen.per_sample(forecaster, window)
        if forecaster.labels:
            signed, direction = _of_variables(forecaster, chosen, signed, direction)
        stream.add(signed, direction)
        progress.step("reading out", stream.count / len(windows))
    return stream.result(windows.panel.coding.variables).assign_attrs(readout=readout)


def cross_fitted(
    forecasters: Sequence[Forecaster],
    windows: Windows,
    readout: str = "gradient",
    progress: Progress = QUIET,
) -> xr.DataArray:
    """Relevance from several forecasters fitted on disjoint data, (target, source, lag).

    The mean, over samples and pairs of forecasters, of the product of their signed relevance at
    the same input. What a forecaster learned from noise is independent between them, so it
    averages to zero (and may be negative) instead of adding a floor as a square does.
    """
    if len(forecasters) < 2:
        raise InputError(f"Cross-fitting needs at least 2 parts, found {len(forecasters)}.")
    chosen, pairs = find_readout(readout), len(forecasters) * (len(forecasters) - 1)
    stream = RelevanceStream(power=1)
    columns = chosen.columns(forecasters[0]) if forecasters[0].labels else None
    for window in _batches(windows):
        each = [chosen.per_sample(f, window) for f in forecasters]
        signed = np.stack([columns.signed(one) for one in each] if columns else each)
        # sum over a != b of g_a g_b = (sum g)^2 - sum g^2
        products = (np.square(signed.sum(0)) - np.square(signed).sum(0)) / pairs
        stream.add(columns.energies(products) if columns else products)
        progress.step("reading out the parts", stream.count / len(windows))
    return stream.result(windows.panel.coding.variables)["effect"].rename("relevance")


def _of_variables(
    forecaster: Forecaster, readout: Readout, signed: Floats, direction: Floats | None
) -> tuple[Floats, Floats]:
    """Relevance and direction of variables from those of columns."""
    columns = readout.columns(forecaster)
    comparable = columns.signed(signed)
    if direction is None:
        return columns.of_variables(comparable), columns.without_direction(comparable)
    slopes = VariableRelevance.of(forecaster)
    way = slopes.without_direction(slopes.signed(direction))
    return columns.of_variables(comparable), way


def _enough(forecaster: Forecaster, windows: Windows, readout: Readout) -> Windows:
    """One window where all are alike, and fewer where each has very many candidates."""
    if readout.per_sample is gradient and forecaster.is_straight:
        return windows.at(np.arange(min(len(windows), 1)))
    steps, variables = windows.shape
    return windows.thin(max(LEAST_WINDOWS, READ_NUMBERS // (steps * variables**2)))


def _batches(windows: Windows) -> Iterator[Window]:
    """All windows, few enough at a time for their relevance to fit in memory."""
    steps, variables = windows.shape
    return windows.batches(max(1, min(512, BATCH_NUMBERS // (steps * variables**2))))


class RelevanceStream:
    """Collects signed relevance of samples (batch, target, step, source), oldest step first.

    `power` turns it into a magnitude: 2 for an energy, 1 for an absolute value.
    """

    def __init__(self, power: int) -> None:
        self.power = power
        self.count = 0
        self.sums: dict[str, Array] = {}
        self.counts: dict[str, int] = {}  # of the samples in every sum

    def add(self, signed: Floats, direction: Floats | None = None) -> None:
        """Take in one batch; effect and sign are those of `direction` if it is given, and NaN
        where that is."""
        direction = signed if direction is None else direction
        magnitude = np.abs(signed) if self.power == 1 else np.abs(signed) ** self.power
        every = -(-magnitude[0].size // MOST_RANKED)
        rank = _ranks(magnitude[::every])
        self.count += len(signed)
        self._sum("relevance", magnitude)
        self._sum("squared", np.square(magnitude, dtype=np.float64))
        self._sum("effect", direction)
        self._sum("sign", np.sign(direction))
        self._sum("mean_rank", rank)
        self._sum("squared_rank", np.square(rank))

    def result(self, variables: Sequence[str]) -> xr.Dataset:
        """Means over samples, each (target, source, lag).

        relevance: mean magnitude; sd: its standard deviation; effect: mean signed relevance;
        sign_consistency: |mean sign|; mean_rank, sd_rank: rank among a target's candidates, the
        strongest having the highest.
        """
        mean = {name: by_lag(total / self.counts[name]) for name, total in self.sums.items()}
        statistics = {
            "relevance": mean["relevance"],
            "sd": np.sqrt(np.maximum(mean["squared"] - mean["relevance"] ** 2, 0)),
            "effect": mean["effect"],
            "sign_consistency": np.abs(mean["sign"]),
            "mean_rank": mean["mean_rank"],
            "sd_rank": np.sqrt(np.maximum(mean["squared_rank"] - mean["mean_rank"] ** 2, 0)),
        }
        return labelled_together(statistics, variables, {"samples": self.count})

    def _sum(self, name: str, values: Floats) -> None:
        total = values.sum(0, dtype=np.float64)
        self.sums[name] = self.sums[name] + total if name in self.sums else total
        self.counts[name] = self.counts.get(name, 0) + len(values)


def _ranks(magnitude: Floats) -> Floats:
    """Rank 1 (weakest) .. candidates (strongest) within each sample and target."""
    flat = magnitude.reshape(*magnitude.shape[:2], -1)
    order = np.argsort(flat, axis=2, kind="stable")
    places = np.arange(1, flat.shape[2] + 1, dtype=flat.dtype)
    ranks = np.empty_like(flat)
    np.put_along_axis(ranks, order, np.broadcast_to(places, flat.shape), axis=2)
    return ranks.reshape(magnitude.shape)
