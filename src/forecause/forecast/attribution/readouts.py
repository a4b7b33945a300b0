"""The readouts: signed relevance of every input for every forecast of a batch of windows.

Gradients tell how far a forecast moves when an input moves a little, the score how the likelihood
of what followed does; LRP is input times a gradient with other local rules; an intervention shifts
the input itself. Attention weights are kept to compare with, not recommended. LRP is covered by
patents in some countries when used commercially; the gradient readouts are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from forecause.common.arrays import Floats
from forecause.data.variables import LabelColumns, Variables
from forecause.data.windows import Window
from forecause.errors import InputError
from forecause.forecast.forecaster import PLAIN, Forecaster, Rules

PerSample = Callable[[Forecaster, Window], Floats]
"""Signed relevance (batch, target, step, source) of a batch of windows."""

# AttnLRP: relevance flows through the softmax as well as through the values.
ATTN_LRP = Rules(query_key=0.25, value=0.5, linearise=True)
# AttnLRP halves what passes attention and not the residual beside it, which carries the target's
# own last value: over four layers a factor of up to 16. Here both are halved.
BALANCED_LRP = Rules(query_key=0.25, value=0.5, residual=0.5, linearise=True)
# CP-LRP: attention weights are constants, relevance flows through the values alone.
CP_LRP = Rules(query_key=0.0, value=1.0, linearise=True)


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
        comparable = relevance.copy()
        for label in self.labels:
            own = relevance[..., label.columns]
            if self.sums_sources:
                comparable[..., label.columns] = 0.0
                comparable[..., label.columns.stop - 1] = own.sum(-1)
            else:
                comparable[..., label.columns] = _against_each_other(own, label)
        for label in self.labels if self.sums_targets else ():
            # an average over the levels follows
            added = comparable[:, label.columns].sum(1, keepdims=True)
            comparable[:, label.columns] = added
        return comparable

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
        of_variables = self.of_variables(signed)
        for place, own in enumerate(self.coding.slices):
            if own.stop - own.start > 2:
                of_variables[:, place] = np.nan
                of_variables[..., place] = np.nan
        return of_variables


def _against_each_other(slopes: Floats, label: LabelColumns) -> Floats:
    """sqrt(p_k) (b_k - mean of b), or for two levels sd (b_2 - b_1) in the second's place."""
    share, sd = label.moments(slopes)
    effect = slopes / sd
    if len(share) == 2:
        second = (effect[..., 1] - effect[..., 0]) * sd[1]
        return np.stack([np.zeros_like(second), second], axis=-1)
    return np.asarray(np.sqrt(share) * (effect - (share * effect).sum(-1, keepdims=True)))


def gradient(forecaster: Forecaster, window: Window) -> Floats:
    """d forecast / d input; its mean square is the gradient energy of the paper's theorem."""
    return forecaster.jacobian(window.past, domain=window.domain)


def score(forecaster: Forecaster, window: Window) -> Floats:
    """d log p(X_t | past) / d input; its mean square is the score gradient energy.

    It sees whatever an input does to the distribution, a change of variance too if the
    forecaster's head has learned it.
    """
    return forecaster.score(window)


def times_input(rules: Rules) -> PerSample:
    """The gradient under some rules times the input's own value: its share of the forecast, by LRP
    or, under the plain rules, to first order."""

    def read(forecaster: Forecaster, window: Window) -> Floats:
        slopes = forecaster.jacobian(window.past, rules, domain=window.domain)
        return slopes * window.past[:, None]

    return read


def intervention(forecaster: Forecaster, window: Window) -> Floats:
    """Change of every forecast when one input is raised by one sd, all else held fixed."""
    past, before = window.past, forecaster.forecast(window)
    effect = np.empty((*before.shape, past.shape[1], before.shape[1]), dtype=before.dtype)
    for step in range(past.shape[1]):
        for source in range(before.shape[1]):
            shifted = past.copy()
            shifted[:, step, source] += 1.0  # inputs are standardised
            effect[:, :, step, source] = forecaster(shifted, domain=window.domain) - before
    return effect


def raw_attention(forecaster: Forecaster, window: Window) -> Floats:
    """Attention of the last step's tokens, averaged over heads and layers."""
    layers = forecaster.attentions(window.past, window.domain)
    return _of_targets(np.stack(layers).mean((0, 2)), window.past)


def attention_rollout(forecaster: Forecaster, window: Window) -> Floats:
    """Attention multiplied through the layers, half of every layer being the residual."""
    layers = [layer.mean(1) for layer in forecaster.attentions(window.past, window.domain)]
    identity = np.eye(layers[0].shape[-1], dtype=layers[0].dtype)
    rolled = np.broadcast_to(identity, (len(window), *identity.shape))
    for layer in layers:
        rolled = (0.5 * layer + 0.5 * identity[-layer.shape[1] :]) @ rolled
    return _of_targets(rolled, window.past)


def _of_targets(weights: Floats, past: Floats) -> Floats:
    """(batch, query token, key token) -> (batch, target, step, source): the last step's queries."""
    steps, variables = past.shape[1:]
    return weights[:, -variables:].reshape(len(weights), variables, steps, variables)


@dataclass(frozen=True)
class Readout:
    """Signed relevance per sample (batch, target, step, source), and how it is averaged.

    It is read from windows: the past and what followed.
    """

    per_sample: PerSample
    power: int  # 2: mean square (an energy); 1: mean absolute value
    direction: PerSample | None = None  # if not per_sample's own
    sums_sources: bool = False  # over the columns of a label; see VariableRelevance
    sums_targets: bool = False

    def columns(self, forecaster: Forecaster) -> VariableRelevance:
        """How the columns of a forecaster add up to variables under this readout."""
        sums = (self.sums_sources, self.sums_targets)
        return VariableRelevance.of(forecaster, *sums)


READOUTS = {
    "gradient": Readout(gradient, power=2),
    # The mean of a score is zero whatever the effect, so the gradient tells the direction.
    "score": Readout(score, power=2, direction=gradient, sums_targets=True),
    "input-gradient": Readout(times_input(PLAIN), power=1, sums_sources=True),
    "lrp": Readout(times_input(ATTN_LRP), power=1, sums_sources=True),
    "balanced-lrp": Readout(times_input(BALANCED_LRP), power=1, sums_sources=True),
    "cp-lrp": Readout(times_input(CP_LRP), power=1, sums_sources=True),
    "attention": Readout(raw_attention, power=1, sums_sources=True),
    "rollout": Readout(attention_rollout, power=1, sums_sources=True),
    "intervention": Readout(intervention, power=1),
}


def find_readout(name: str) -> Readout:
    """The readout of this name, or an InputError that lists them."""
    if name not in READOUTS:
        raise InputError(f"Unknown readout {name!r}; choose one of {', '.join(READOUTS)}.")
    return READOUTS[name]
