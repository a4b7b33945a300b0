"""From columns to variables: the relevance of a label is that of all its levels together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forecause.data.variables import LabelColumns, Variables
from forecause.forecast.forecaster import Floats, Forecaster


@dataclass(frozen=True)
class VariableRelevance:
    """Which columns of a forecaster belong together, and how their relevance adds up.

    A readout is either a slope or, with `sums_sources`, a share of the forecast that adds up over
    the columns of a label. Slopes along a label's columns mean something only against each other,
    for its levels always add up to 1: with b_k the effect of level k and p_k its frequency, their
    energy is the variance of b over the levels, as b^2 Var(x) is that of a number. Of a label as a
    target, energies are averaged over its levels, or relevance is added with `sums_targets`.
    """

    coding: Variables
    labels: Sequence[LabelColumns]
    sums_sources: bool = False
    sums_targets: bool = False

    @classmethod
    def of(
        cls, forecaster: Forecaster, sums_sources: bool = False, sums_targets: bool = False
    ) -> VariableRelevance:
        """Those of a forecaster."""
        known = Variables.of_label_columns(forecaster.n_variables, forecaster.labels)
        return cls(known, forecaster.labels, sums_sources, sums_targets)

    def signed(self, relevance: Floats) -> Floats:
        """Comparable columns of relevance (batch, target column, step, source column)."""
        found = relevance.copy()
        for label in self.labels:
            own = relevance[..., label.columns]
            if self.sums_sources:
                found[..., label.columns] = 0.0
                found[..., label.columns.stop - 1] = own.sum(-1)
            else:
                found[..., label.columns] = _against_each_other(own, label)
        for label in self.labels if self.sums_targets else ():
            # an average over the levels follows
            added = found[:, label.columns].sum(1, keepdims=True)
            found[:, label.columns] = added
        return found

    def energies(self, products: Floats) -> Floats:
        """Products of two signed relevances -> those of variables (batch, target, step, source)."""
        slices = self.coding.slices
        by_source = np.stack([products[..., own].sum(-1) for own in slices], axis=-1)
        return np.stack([by_source[:, own].mean(1) for own in slices], axis=1)

    def of_variables(self, signed: Floats) -> Floats:
        """Signed columns -> relevance (batch, target, step, source) of variables.

        It has a sign between numbers and labels of two levels, whose second is what is raised.
        """
        size = np.sqrt(self.energies(np.square(signed)))
        last = np.array([own.stop - 1 for own in self.coding.slices])
        sign = np.sign(signed[:, last][..., last])
        ordered = np.array([own.stop - own.start <= 2 for own in self.coding.slices])
        known = ordered[:, None, None] & ordered
        return np.where(known, size * sign, size)

    def without_direction(self, signed: Floats) -> Floats:
        """Relevance of variables, NaN where a label of several levels knows no up and down."""
        found = self.of_variables(signed)
        for place, own in enumerate(self.coding.slices):
            if own.stop - own.start > 2:
                found[:, place] = np.nan
                found[..., place] = np.nan
        return found


def _against_each_other(slopes: Floats, label: LabelColumns) -> Floats:
    """sqrt(p_k) (b_k - mean of b), or for two levels sd (b_2 - b_1) in the second's place."""
    share, sd = label.moments(slopes)
    effect = slopes / sd
    if len(share) == 2:
        second = (effect[..., 1] - effect[..., 0]) * sd[1]
        return np.stack([np.zeros_like(second), second], axis=-1)
    return np.asarray(np.sqrt(share) * (effect - (share * effect).sum(-1, keepdims=True)))
