"""The published transformers: one token per variable and time step, or one per time step."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from forecause.forecast.forecaster import PLAIN, Rules
from forecause.networks.backward import activation, layer_norm, scale_gradient
from forecause.networks.linear import quick_linear
from forecause.networks.network import NetworkModule, TensorWindow
from forecause.networks.settings import DeepTransformer, VectorTransformer
from forecause.networks.training import Trained

# Shape of the model:
SHARPER = 3.0  # times PyTorch's usual first weights of queries and keys
QUIETER = 0.5  # times those of what a block adds
VALUE_SIZE = 0.3  # of a vector token's first weights against the embedding of its step

# Time and memory:
TOKENS_PER_PASS = 1600  # whose activations stay in a processor's cache


@dataclass(frozen=True)
class Prior:
    """What attention starts from: who may see whom, and whose static bias counts."""

    mask: Tensor  # (token, token), minus infinity where a token is in the future
    domain: Tensor  # (batch,) or (1,): the domain's index, 0 where there are none

    @classmethod
    def of(cls, model: NetworkModule, domain: Tensor | None) -> Prior:
        """That of a model with a buffer `mask`."""
        mask = model.get_buffer("mask")
        if domain is None or not model.domains:
            domain = torch.zeros(1, dtype=torch.long, device=mask.device)
        return cls(mask, domain)


class Block(nn.Module):
    """Pre-LayerNorm attention and a two-layer ReLU network, both residual."""

    def __init__(self, tokens: int, settings: DeepTransformer) -> None:
        super().__init__()
        width, self.heads = settings.width, settings.heads
        self.norm_attention, self.norm_network = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.mix = nn.Linear(width, width), nn.Linear(width, width)
        self.expand, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        shape = (max(settings.domains, 1), self.heads, tokens, tokens)
        self.bias = nn.Parameter(torch.zeros(shape)) if settings.static_bias else None
        with torch.no_grad():  # attention that starts even over all tokens is slow to leave that
            for linear in (self.query, self.key):
                linear.weight *= SHARPER
            for linear in (self.mix, self.shrink):
                linear.weight *= QUIETER

    def forward(self, x: Tensor, prior: Prior, asked: int, rules: Rules) -> Tensor:
        """x (batch, token, width) -> its last `asked` tokens after this block."""
        normed = layer_norm(self.norm_attention, x, rules)
        value = scale_gradient(self._heads(self.value(normed)), rules.value)
        mixed = self.attention(normed, prior, asked, rules) @ value
        residual = scale_gradient(x[:, -asked:], rules.residual)
        x = residual + self.mix(mixed.transpose(1, 2).flatten(2))
        hidden = activation(torch.relu, self.expand(layer_norm(self.norm_network, x, rules)), rules)
        return x + self.shrink(hidden)

    def fused(self, x: Tensor, mask: Tensor) -> Tensor:
        """The same for all tokens without a bias, by fewer and larger kernels, for training.

        They have no second derivative and no rules, and so cannot be used for readouts.
        """
        normed = layer_norm(self.norm_attention, x, PLAIN)
        three = (self.query, self.key, self.value)
        weight, bias = (
            torch.cat([linear.weight for linear in three]),
            torch.cat([linear.bias for linear in three]),
        )
        parts = quick_linear(normed, weight, bias).chunk(3, dim=-1)
        query, key, value = (self._heads(part) for part in parts)
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        mixed = mixed.transpose(1, 2).flatten(2)
        x = x + quick_linear(mixed, self.mix.weight, self.mix.bias)
        normed = layer_norm(self.norm_network, x, PLAIN)
        hidden = torch.relu(quick_linear(normed, self.expand.weight, self.expand.bias))
        return x + quick_linear(hidden, self.shrink.weight, self.shrink.bias)

    def attention(self, normed: Tensor, prior: Prior, asked: int, rules: Rules) -> Tensor:
        """Weights (batch, head, query, key) of the last `asked` tokens on all tokens.

        Written out: with so few queries and a learnable bias it beats the fused kernels on a CPU.
        """
        query = scale_gradient(self._heads(self.query(normed[:, -asked:])), rules.query_key)
        key = scale_gradient(self._heads(self.key(normed)), rules.query_key)
        logits = query @ key.transpose(-1, -2) / math.sqrt(key.shape[-1])
        logits = logits + prior.mask[-asked:]
        if self.bias is not None:
            logits = logits + self.bias[:, :, -asked:][prior.domain]
        return torch.softmax(logits, dim=-1)

    def _heads(self, x: Tensor) -> Tensor:
        """(batch, token, width) -> (batch, head, token, width / head)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def run_blocks(blocks: nn.ModuleList, x: Tensor, prior: Prior, asked: int, rules: Rules) -> Tensor:
    """x (batch, token, width) -> its last `asked` tokens after all blocks."""
    for block in list(blocks)[:-1]:
        x = block(x, prior, x.shape[1], rules)
    last: Tensor = blocks[-1](x, prior, asked, rules)
    return last


class DeepTransformerModel(Trained):
    """A token sees every token of its own and earlier time steps; the output at the token of
    variable i and step tau is the forecast of variable i at tau + 1."""

    settings: DeepTransformer

    def __init__(self, shape: tuple[int, int], settings: DeepTransformer) -> None:
        super().__init__(shape, settings, settings.head)
        width, tokens = settings.width, self.max_lag * self.n_variables
        self.windows_per_pass = max(1, TOKENS_PER_PASS // tokens)
        self.value = nn.Linear(1, width)
        # LayerNorm would wipe out a token that is mostly its value, so the embeddings dominate.
        self.node = nn.Parameter(torch.randn(self.n_variables, width))
        self.time = nn.Parameter(torch.randn(self.max_lag, width))
        self.domain = nn.Parameter(torch.randn(self.domains, width))
        self.blocks = nn.ModuleList(Block(tokens, settings) for _ in range(settings.layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, self.likelihood.outputs)
        step = torch.arange(tokens) // self.n_variables
        future = step[None, :] > step[:, None]
        mask = torch.zeros(tokens, tokens).masked_fill(future, -math.inf)
        self.register_buffer("mask", mask, persistent=False)

    def outputs(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return self.without_forbidden(
            past, lambda seen: self._run(seen, domain, self.n_variables, rules)[:, -1]
        )

    def forecasts(self, past: Tensor, domain: Tensor | None = None) -> Tensor:
        """The forecast at every position: (batch, step, variable), each for the next step."""
        return self.likelihood.mean(self._everywhere(past, domain))

    def attentions(self, past: Tensor, domain: Tensor | None = None) -> list[Tensor]:
        """The attention weights of every layer, (batch, head, query token, key token)."""
        x, prior, weights = self._tokens(past, domain), Prior.of(self, domain), list[Tensor]()
        for block in self.blocks:
            assert isinstance(block, Block)
            normed = layer_norm(block.norm_attention, x, PLAIN)
            weights.append(block.attention(normed, prior, x.shape[1], PLAIN))
            x = block(x, prior, x.shape[1], PLAIN)
        return weights

    def loss(self, window: TensorWindow) -> Tensor:
        """Mean error per target, (variable,), at the last position or at every one."""
        forced = self.settings.teacher_forcing and bool(self.get_buffer("allowed").all())
        if not forced:  # at earlier positions the same input has another lag
            return super().loss(window)
        outputs = self._everywhere(window.past, window.domain)
        return self.likelihood.errors(outputs, window.rows[:, 1:]).mean((0, 1))

    def _tokens(self, past: Tensor, domain: Tensor | None) -> Tensor:
        """past (batch, step, variable) -> tokens (batch, step * variable, width)."""
        identity = (self.time[:, None] + self.node[None]).flatten(0, 1)
        tokens = self.value(past.flatten(1).unsqueeze(-1)) + identity
        if self.domains:
            tokens = tokens + self.domain[domain][:, None]
        return tokens

    def _everywhere(self, past: Tensor, domain: Tensor | None) -> Tensor:
        if self.settings.static_bias:
            return self._run(past, domain, self.max_lag * self.n_variables, PLAIN)
        x = self._tokens(past, domain)
        for block in self.blocks:
            assert isinstance(block, Block)
            x = block.fused(x, self.get_buffer("mask"))
        return self._from_head(x, PLAIN)

    def _run(self, past: Tensor, domain: Tensor | None, asked: int, rules: Rules) -> Tensor:
        """What the head gives at the last `asked` tokens, (batch, step, variable, output)."""
        tokens, prior = self._tokens(past, domain), Prior.of(self, domain)
        return self._from_head(run_blocks(self.blocks, tokens, prior, asked, rules), rules)

    def _from_head(self, x: Tensor, rules: Rules) -> Tensor:
        out: Tensor = self.head(layer_norm(self.norm, x, rules))
        return out.unflatten(1, (-1, self.n_variables))


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
        self.value = nn.Parameter(torch.randn(steps, p, width) * VALUE_SIZE / p**0.5)
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
        normed = layer_norm(self.norm, last, rules)
        return self.head(normed).unflatten(1, (self.n_variables, -1))
