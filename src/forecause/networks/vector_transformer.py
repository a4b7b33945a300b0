"""The low-complexity transformer: one token per time step, for data with few rows."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from forecause.forecast.rules import PLAIN, Rules
from forecause.networks.backward import layer_norm
from forecause.networks.deep_transformer import Block, Prior, run_blocks
from forecause.networks.settings import VectorTransformer
from forecause.networks.training import Trained

QUIET = 0.3  # size of a value's first weights against the embedding of its step


class VectorTransformerModel(Trained):
    """A token holds all variables of one step and sees its own and earlier steps; the last one
    gives the forecast of every variable.

    Each step has its own value embedding: with a shared one, one head could only scale the effect
    of a lag as a whole, and could not tell a lag's parents from those of another.
    """

    settings: VectorTransformer

    def __init__(self, shape: tuple[int, int], settings: VectorTransformer) -> None:
        super().__init__(shape, settings, settings.head)
        steps, p, width = self.max_lag, self.n_variables, settings.width
        # LayerNorm would wipe out a token that is mostly its values, so the embeddings dominate.
        self.value = nn.Parameter(torch.randn(steps, p, width) * QUIET / p**0.5)
        self.time = nn.Parameter(torch.randn(steps, width))
        self.domain = nn.Parameter(torch.randn(self.domains, width))
        self.blocks = nn.ModuleList(Block(steps, settings.block) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, p * self.likelihood.outputs)
        mask = torch.full((steps, steps), -math.inf).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def outputs(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return self.without_forbidden(past, lambda seen: self._run(seen, domain, rules))

    def states(
        self, past: Tensor, asked: int, rules: Rules = PLAIN, domain: Tensor | None = None
    ) -> Tensor:
        """The last `asked` tokens after all blocks, (batch, step, width)."""
        tokens, prior = self._tokens(past, domain), Prior.of(self, domain)
        return run_blocks(self.blocks, tokens, prior, asked, rules)

    def _tokens(self, past: Tensor, domain: Tensor | None) -> Tensor:
        """past (batch, step, variable) -> tokens (batch, step, width)."""
        tokens = torch.einsum("bsv,svw->bsw", past, self.value) + self.time
        if self.domains:
            tokens = tokens + self.domain[domain][:, None]
        return tokens

    def _run(self, past: Tensor, domain: Tensor | None, rules: Rules) -> Tensor:
        """What the head gives for every variable, (batch, variable, output)."""
        last = self.states(past, 1, rules, domain)[:, -1]
        normed = layer_norm(last, self.norm.weight, self.norm.bias, rules, self.norm.eps)
        return self.head(normed).unflatten(1, (self.n_variables, -1))
