"""Statistics of per-sample relevance, gathered batch by batch and never stored per sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from forecause.graph.axes import by_lag, labelled_together


class RelevanceStream:
    """Collects signed relevance of samples (batch, target, step, source), oldest step first.

    `power` turns it into a magnitude: 2 for an energy, 1 for an absolute value.
    """

    def __init__(self, power: int) -> None:
        self.power = power
        self.count = 0
        self.sums: dict[str, Tensor] = {}

    def add(self, signed: Tensor, direction: Tensor | None = None) -> None:
        """Take in one batch; effect and sign are those of `direction` if it is given, and NaN
        where that is."""
        direction = signed if direction is None else direction
        magnitude = signed.abs().pow(self.power)
        rank = _ranks(magnitude)
        self.count += len(signed)
        self._sum("relevance", magnitude)
        self._sum("squared", magnitude.double().square())
        self._sum("effect", direction)
        self._sum("sign", torch.where(direction.isnan(), direction, direction.sign()))
        self._sum("mean_rank", rank)
        self._sum("squared_rank", rank.square())

    def result(self, variables: Sequence[str]) -> xr.Dataset:
        """Means over samples, each (target, source, lag).

        relevance: mean magnitude; sd: its standard deviation; effect: mean signed relevance;
        sign_consistency: |mean sign|; mean_rank, sd_rank: rank among a target's candidates, the
        strongest having the highest.
        """
        mean = {name: by_lag(total / self.count) for name, total in self.sums.items()}
        found = {
            "relevance": mean["relevance"],
            "sd": np.sqrt(np.maximum(mean["squared"] - mean["relevance"] ** 2, 0)),
            "effect": mean["effect"],
            "sign_consistency": np.abs(mean["sign"]),
            "mean_rank": mean["mean_rank"],
            "sd_rank": np.sqrt(np.maximum(mean["squared_rank"] - mean["mean_rank"] ** 2, 0)),
        }
        return labelled_together(found, variables, {"samples": self.count})

    def _sum(self, name: str, values: Tensor) -> None:
        total = values.sum(0, dtype=torch.float64).cpu()
        self.sums[name] = self.sums[name] + total if name in self.sums else total


def _ranks(magnitude: Tensor) -> Tensor:
    """Rank 1 (weakest) .. candidates (strongest) within each sample and target."""
    flat = magnitude.flatten(2)
    order = flat.argsort(dim=2, stable=True)
    places = torch.arange(1, flat.shape[2] + 1, dtype=flat.dtype, device=flat.device)
    ranks = torch.empty_like(flat).scatter_(2, order, places.expand_as(flat))
    return ranks.view_as(magnitude)
