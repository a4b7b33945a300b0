"""TCDF (Nauta et al. 2019): attention over depthwise causal convolutions, one network per target.

With the published depth (no hidden layers) the dilation plays no part: each source has one kernel
that reaches over all lags. A pair of variables has at most one lag.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from forecause.data import Panel
from forecause.graph import LaggedGraph
from forecause.refine.links import graph_of
from forecause_bench.rivals.autoregression import Design

# The authors' published settings.
EPOCHS = 1000
LEARNING_RATE = 0.01
SIGNIFICANCE = 0.8  # a source whose permutation leaves this share of the gain is no cause
SMALL_SYSTEM = 5  # variables up to which every attention above its start counts
ATTENTION_START = 1.0
CHUNK_VALUES = 20_000_000  # activations of the targets that are trained together


def tcdf(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """Attended sources that pass the permutation test, at the lag of their largest kernel weight.

    The score is the attention of a source, shared among its lags by kernel weight. As published,
    other variables are also seen at lag 0; what is found there is left out of the answer.
    """
    design = Design.of(panel, max_lag)
    inputs = np.concatenate([design.target[:, None], design.past], axis=1)  # (window, lag, source)
    x = torch.from_numpy(inputs.transpose(2, 0, 1).astype(np.float32))  # (source, window, lag)
    generator = torch.Generator().manual_seed(seed)
    blocks = torch.arange(len(x)).split(max(1, CHUNK_VALUES // (x.shape[0] * x.shape[1])))
    trained = [_trained(x, targets, generator) for targets in blocks]
    return graph_of(
        panel,
        np.concatenate([scores for scores, _ in trained])[:, :, 1:],
        np.concatenate([chosen for _, chosen in trained])[:, :, 1:],
    )


@dataclass(frozen=True, eq=False)
class Networks:
    """The parameters of the networks of several targets."""

    attention: torch.Tensor  # (source, target)
    kernel: torch.Tensor  # (source, lag, target)
    bias: torch.Tensor  # (source, target)
    slope: torch.Tensor  # (source, target): of the activation below zero
    mix: torch.Tensor  # (source, target): the pointwise convolution
    shift: torch.Tensor  # (target,)
    visible: torch.Tensor  # (source, lag, target): 0 for a target's own value at lag 0

    @classmethod
    def started(
        cls, sources: int, lags: int, targets: torch.Tensor, generator: torch.Generator
    ) -> Networks:
        """Equal attention and small random weights."""

        def uniform(reach: float, *shape: int) -> torch.Tensor:
            return torch.empty(shape).uniform_(-reach, reach, generator=generator)

        pairs = (sources, len(targets))
        visible = torch.ones(sources, lags, len(targets))
        visible[targets, 0, torch.arange(len(targets))] = 0
        return cls(
            attention=torch.full(pairs, ATTENTION_START),
            kernel=torch.randn(visible.shape, generator=generator) * 0.1,
            bias=uniform(lags**-0.5, *pairs),
            slope=torch.full(pairs, 0.25),
            mix=uniform(sources**-0.5, *pairs),
            shift=uniform(sources**-0.5, len(targets)),
            visible=visible,
        )

    def parameters(self) -> list[torch.Tensor]:
        """All that is trained."""
        trained = {k: v for k, v in vars(self).items() if k != "visible"}
        return [value.requires_grad_() for value in trained.values()]

    def contributions(self, x: torch.Tensor) -> torch.Tensor:
        """What each source adds to the forecast, (source, window, target)."""
        weights = self.kernel * self.visible * self.attention.softmax(0)[:, None]
        signal = torch.baddbmm(self.bias[:, None], x, weights)
        return torch.where(signal > 0, signal, signal * self.slope[:, None]) * self.mix[:, None]


def _trained(
    x: torch.Tensor, targets: torch.Tensor, generator: torch.Generator
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
    """Train the networks of `targets`; scores and edges (target, source, lag 0 ..)."""
    truth = x[targets, :, 0].T  # (window, target)
    networks = Networks.started(len(x), x.shape[2], targets, generator)
    optimizer = torch.optim.Adam(networks.parameters(), lr=LEARNING_RATE)
    losses = []
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        forecast = networks.contributions(x).sum(0) + networks.shift
        loss = (forecast - truth).square().mean(0)  # (target,)
        loss.sum().backward()
        optimizer.step()
        losses.append(loss.detach())
    with torch.no_grad():
        caused = missed_when_shuffled(networks, x, truth, losses[0], losses[-1], generator)
        weights = (networks.kernel * networks.visible).abs()  # (source, lag, target)
        shares = weights / weights.sum(1, keepdim=True)
        scores = networks.attention.softmax(0)[:, None] * shares
        largest = weights == weights.amax(1, keepdim=True)
        for column, attention in enumerate(networks.attention.T.numpy()):
            ignored = np.setdiff1d(np.arange(len(attention)), attended(attention))
            caused[ignored, column] = False
        chosen = largest & caused[:, None]
    return scores.permute(2, 0, 1).numpy(), chosen.permute(2, 0, 1).numpy()


def missed_when_shuffled(
    networks: Networks,
    x: torch.Tensor,
    truth: torch.Tensor,
    first_loss: torch.Tensor,
    last_loss: torch.Tensor,
    generator: torch.Generator,
) -> torch.Tensor:
    """Which sources (source, target) a network misses when their values are shuffled in time."""
    shuffled = torch.empty_like(x)
    for source in range(len(x)):
        for lag in range(x.shape[2]):
            order = torch.randperm(x.shape[1], generator=generator)
            shuffled[source, :, lag] = x[source, order, lag]
    parts = networks.contributions(x)
    residual = parts.sum(0) + networks.shift - truth
    # A source's part depends on its own values alone, so all sources are tested in one go.
    loss = (networks.contributions(shuffled) - parts + residual).square().mean(1)
    return first_loss - loss <= SIGNIFICANCE * (first_loss - last_loss)


def attended(attention: npt.NDArray[np.float32]) -> npt.NDArray[np.int64]:
    """The sources above the widest gap in a target's sorted attention (source,).

    The gap must lie below the first place, in the upper half, and not below the starting value.
    """
    order = np.argsort(-attention, kind="stable")
    ranked = attention[order]
    if len(attention) <= SMALL_SYSTEM:
        return order[ranked > ATTENTION_START]
    gaps = ranked[:-1] - ranked[1:]
    place = np.arange(len(gaps))
    allowed = (place > 0) & (place < len(gaps) / 2) & (ranked[:-1] >= ATTENTION_START)
    last = int(np.where(allowed, gaps, -np.inf).argmax()) if allowed.any() else 0
    return order[: last + 1]
