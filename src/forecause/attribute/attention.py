"""Attention weights as relevance: kept to compare with, not recommended."""

from __future__ import annotations

import torch
from torch import Tensor

from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster
from forecause.forecast.models.deep_transformer import DeepTransformer
from forecause.forecast.models.transformer import Transformer


def raw_attention(forecaster: Forecaster, window: Tensor) -> Tensor:
    """Attention of the last step's tokens, averaged over heads and layers."""
    transformer, past = _transformer(forecaster), window[:, :-1]
    with torch.no_grad():
        weights = torch.stack(transformer.attentions(past)).mean((0, 2))
    return _of_targets(weights, forecaster.inputs(past))


def attention_rollout(forecaster: Forecaster, window: Tensor) -> Tensor:
    """Attention multiplied through the layers, half of every layer being the residual."""
    transformer, past = _transformer(forecaster), window[:, :-1]
    with torch.no_grad():
        layers = [layer.mean(1) for layer in transformer.attentions(past)]
    tokens = layers[0].shape[-1]
    identity = torch.eye(tokens, device=past.device)
    rolled = identity.expand(len(past), -1, -1)
    for layer in layers:
        rolled = (0.5 * layer + 0.5 * identity[-layer.shape[1] :]) @ rolled
    return _of_targets(rolled, forecaster.inputs(past))


def _of_targets(weights: Tensor, past: Tensor) -> Tensor:
    """(batch, query token, key token) -> (batch, target, step, source): the last step's queries."""
    steps, variables = past.shape[1:]
    return weights[:, -variables:].unflatten(2, (steps, variables))


def _transformer(forecaster: Forecaster) -> Transformer | DeepTransformer:
    if not isinstance(forecaster, Transformer | DeepTransformer):
        raise InputError(
            f"Attention can only be read from the transformer, found the forecaster "
            f"{forecaster.kind!r}; use --forecaster transformer or --readout gradient."
        )
    return forecaster
