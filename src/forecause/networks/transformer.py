"""The default transformer: one layer of attention over one token per variable and time step.

Of a single layer only the queries at the last step are needed, and before it a token knows nothing
but its own value x. Its normed keys and values are (x U + C) / sd with vectors U for all tokens and
C for each, so attention is computed from the values themselves: no key or value is written out, and
every target can attend to inputs of its own.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from forecause.forecast.forecaster import PLAIN, Rules
from forecause.networks.backward import activation, layer_norm, scale_gradient
from forecause.networks.separate import Separate
from forecause.networks.settings import Transformer


class _Parts(NamedTuple):
    """What tokens are made of before the norm, means over the width taken out; or a linear map of
    it, (..., head, width / head)."""

    value: Tensor  # (width,) times a token's value
    place: Tensor  # (target, input, width): which variable and step it is
    domain: Tensor  # (batch or 1, width)


class TransformerModel(Separate):
    """The query of target i is the token of its latest value; its output is the forecast."""

    asked_inputs = 500_000  # every input is a token of every target
    settings: Transformer

    def __init__(self, shape: tuple[int, int], settings: Transformer) -> None:
        super().__init__(shape, settings)
        width, self.heads = settings.width, settings.heads
        self.embed = nn.Linear(1, width)
        # LayerNorm would wipe out a token that is mostly its value, so the embeddings dominate.
        self.node = nn.Parameter(torch.randn(self.n_variables, width))
        self.time = nn.Parameter(torch.randn(self.max_lag, width))
        self.domain = nn.Parameter(torch.randn(self.domains, width))
        self.norm_attention, self.norm_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.value, self.mix = nn.Linear(width, width), nn.Linear(width, width)
        self.expand, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, self.likelihood.outputs)
        # a static logit for every head, target and input
        bias = torch.zeros(max(self.domains, 1), self.heads, self.n_variables, self.n_inputs)
        self.bias = nn.Parameter(bias)

    def read_only(self, places: Tensor) -> None:
        if not bool((places == self._latest_places()[:, None].to(places)).any(1).all()):
            raise ValueError("the latest value of a target is its query: it must be read")
        super().read_only(places)

    @property
    def work_per_window(self) -> int:
        return 40 * self.heads * self.n_variables * self.n_inputs

    def run(self, copies: Tensor, domain: Tensor | None, rules: Rules) -> Tensor:
        tokens, parts = self._latest_tokens(copies, domain), self._parts(domain)
        keys, values = (scale_gradient(copies, by) for by in (rules.query_key, rules.value))
        per_sd = self._per_sd(keys, parts, rules)
        weights = self._attention(tokens, keys, per_sd, domain, parts, rules)
        per_sd = per_sd if values is keys else self._per_sd(values, parts, rules)
        mixed = self.mix(self._mixed(weights * per_sd, values, parts))
        x = scale_gradient(tokens, rules.residual) + mixed
        normed = layer_norm(self.norm_network, x, rules)
        x = x + self.shrink(activation(torch.relu, self.expand(normed), rules))
        out: Tensor = self.head(layer_norm(self.norm, x, rules))
        return out.transpose(0, 1)

    def attentions(self, past: Tensor, domain: Tensor | None = None) -> list[Tensor]:
        """The attention of every target, (batch, head, target, step * variable)."""
        copies, parts = self.allowed_copies(past), self._parts(domain)
        tokens = self._latest_tokens(copies, domain)
        per_sd = self._per_sd(copies, parts, PLAIN)
        weights = self._attention(tokens, copies, per_sd, domain, parts, PLAIN).permute(2, 0, 1, 3)
        every = weights.new_zeros(*weights.shape[:3], self.max_lag * self.n_variables)
        return [every.scatter(3, self.get_buffer("reads").expand_as(weights), weights)]

    def _latest_places(self) -> Tensor:
        """The place of every target's latest value, (target,)."""
        return torch.arange(-self.n_variables, 0) + self.max_lag * self.n_variables

    def _latest_tokens(self, copies: Tensor, domain: Tensor | None) -> Tensor:
        """The token of every target's latest value, (target, batch, width)."""
        reads = self.get_buffer("reads")
        own = (reads == self._latest_places()[:, None].to(reads)).int().argmax(1)
        latest = copies.gather(2, own[:, None, None].expand(-1, copies.shape[1], 1))
        tokens: Tensor = self.embed(latest) + (self.time[-1] + self.node)[:, None]
        return tokens + self.domain[domain] if self.domains else tokens

    def _parts(self, domain: Tensor | None) -> _Parts:
        reads, variables = self.get_buffer("reads"), self.n_variables
        place = functional.embedding(reads // variables, _centred(self.time))
        place = place + functional.embedding(reads % variables, _centred(self.node))
        value, shift = _centred(self.embed.weight[:, 0]), _centred(self.embed.bias)
        if not self.domains:
            return _Parts(value, place + shift, torch.zeros_like(shift)[None])
        return _Parts(value, place + shift, _centred(self.domain)[domain])

    def _mapped(self, linear: nn.Linear, parts: _Parts) -> _Parts:
        """Each part after the norm's weight and a linear map, (..., head, width / head)."""
        weight = linear.weight * self.norm_attention.weight
        return _Parts(*((part @ weight.T).unflatten(-1, (self.heads, -1)) for part in parts))

    def _per_sd(self, copies: Tensor, parts: _Parts, rules: Rules) -> Tensor:
        """One over the standard deviation of every token, (target, batch, input)."""
        value, place, domain = parts
        width = len(value)
        linear, square = (place @ value)[:, None], place.square().sum(-1)[:, None]
        if self.domains:
            linear = linear + (domain @ value)[:, None]
            square = square + 2 * torch.einsum("tkw,bw->tbk", place, domain)
            square = square + domain.square().sum(-1)[:, None]
        variance = (copies * (copies * value.dot(value) + 2 * linear) + square) / width
        per_sd = torch.rsqrt(variance + self.norm_attention.eps)
        return per_sd.detach() if rules.linearise else per_sd

    def _attention(
        self,
        tokens: Tensor,
        copies: Tensor,
        per_sd: Tensor,
        domain: Tensor | None,
        parts: _Parts,
        rules: Rules,
    ) -> Tensor:
        """Weights (head, target, batch, input); what is the same for all inputs is left out."""
        query = self.query(layer_norm(self.norm_attention, tokens, rules))
        query = scale_gradient(query, rules.query_key).unflatten(-1, (self.heads, -1))
        query = query.permute(2, 0, 1, 3) / math.sqrt(query.shape[-1])  # (head, target, batch, .)
        key = self._mapped(self.key, parts)
        places = query @ key.place.permute(2, 0, 3, 1)
        logits = torch.addcmul(places, query @ key.value[:, None, :, None], copies)
        bias = self.bias[0][:, :, None]
        if self.domains:
            logits = logits + (query * key.domain.transpose(0, 1)[:, None]).sum(-1, keepdim=True)
            bias = self.bias[domain].permute(1, 2, 0, 3)
        return torch.softmax(torch.addcmul(bias, logits, per_sd), dim=-1)

    def _mixed(self, weights: Tensor, copies: Tensor, parts: _Parts) -> Tensor:
        """What weights over the tokens' standard deviations gather, (target, batch, width)."""
        value = self._mapped(self.value, parts)
        mixed = weights @ value.place.permute(2, 0, 1, 3)
        mixed = mixed + (weights * copies).sum(-1, keepdim=True) * value.value[:, None, None]
        if self.domains:
            mixed = mixed + weights.sum(-1, keepdim=True) * value.domain.transpose(0, 1)[:, None]
        constant = self.value(self.norm_attention.bias)
        return mixed.permute(1, 2, 0, 3).flatten(2) + constant


def _centred(x: Tensor) -> Tensor:
    return x - x.mean(-1, keepdim=True)
