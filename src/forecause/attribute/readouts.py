"""The readouts: signed relevance of every input for every forecast of a batch of windows.

Gradients tell how far a forecast moves when an input moves a little, the score how the likelihood
of what followed does; LRP is input times a gradient with other local rules; an intervention shifts
the input itself. Attention weights are kept to compare with, not recommended. LRP is covered by
patents in some countries when used commercially; the gradient readouts are not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from forecause.attribute.of_variables import VariableRelevance
from forecause.data.windows import Window
from forecause.errors import InputError
from forecause.forecast.forecaster import Floats, Forecaster
from forecause.forecast.rules import ATTN_LRP, BALANCED_LRP, CP_LRP


def gradient(forecaster: Forecaster, window: Window) -> Floats:
    """d forecast / d input; its mean square is the gradient energy of the paper's theorem."""
    return forecaster.jacobian(window.past, domain=window.domain)


def input_times_gradient(forecaster: Forecaster, window: Window) -> Floats:
    """Gradient times the input's own value: its share of the forecast, to first order."""
    slopes = forecaster.jacobian(window.past, domain=window.domain)
    return slopes * window.past[:, None]


def score(forecaster: Forecaster, window: Window) -> Floats:
    """d log p(X_t | past) / d input; its mean square is the score gradient energy.

    It sees whatever an input does to the distribution, a change of variance too if the
    forecaster's head has learned it.
    """
    return forecaster.score(window)


def attn_lrp(forecaster: Forecaster, window: Window) -> Floats:
    """AttnLRP: relevance flows through the softmax as well as through the values."""
    slopes = forecaster.jacobian(window.past, ATTN_LRP, domain=window.domain)
    return slopes * window.past[:, None]


def balanced_lrp(forecaster: Forecaster, window: Window) -> Floats:
    """AttnLRP with the residual beside attention halved as attention is."""
    slopes = forecaster.jacobian(window.past, BALANCED_LRP, domain=window.domain)
    return slopes * window.past[:, None]


def cp_lrp(forecaster: Forecaster, window: Window) -> Floats:
    """CP-LRP: attention weights are constants, relevance flows through the values alone."""
    slopes = forecaster.jacobian(window.past, CP_LRP, domain=window.domain)
    return slopes * window.past[:, None]


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

    per_sample: Callable[[Forecaster, Window], Floats]
    power: int  # 2: mean square (an energy); 1: mean absolute value
    direction: Callable[[Forecaster, Window], Floats] | None = None  # if not per_sample's own
    sums_sources: bool = False  # over the columns of a label; see attribute.variables
    sums_targets: bool = False

    def columns(self, forecaster: Forecaster) -> VariableRelevance:
        """How the columns of a forecaster add up to variables under this readout."""
        sums = (self.sums_sources, self.sums_targets)
        return VariableRelevance.of(forecaster, *sums)


READOUTS = {
    "gradient": Readout(gradient, power=2),
    # The mean of a score is zero whatever the effect, so the gradient tells the direction.
    "score": Readout(score, power=2, direction=gradient, sums_targets=True),
    "input-gradient": Readout(input_times_gradient, power=1, sums_sources=True),
    "lrp": Readout(attn_lrp, power=1, sums_sources=True),
    "balanced-lrp": Readout(balanced_lrp, power=1, sums_sources=True),
    "cp-lrp": Readout(cp_lrp, power=1, sums_sources=True),
    "attention": Readout(raw_attention, power=1, sums_sources=True),
    "rollout": Readout(attention_rollout, power=1, sums_sources=True),
    "intervention": Readout(intervention, power=1),
}


def find_readout(name: str) -> Readout:
    """The readout of this name, or an InputError that lists them."""
    if name not in READOUTS:
        raise InputError(f"Unknown readout {name!r}; choose one of {', '.join(READOUTS)}.")
    return READOUTS[name]
