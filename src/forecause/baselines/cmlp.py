"""Neural Granger causality (Tank et al. 2018): one MLP per target, sparse in its inputs.

A group lasso on the first-layer weights of each (source, lag) is minimised by proximal gradient
descent, so that the weights of inputs a target does without become exactly zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from forecause.baselines.answer import graph_of
from forecause.baselines.design import Design
from forecause.data import Panel
from forecause.graph import LaggedGraph

HIDDEN = 10  # units per target, as in the authors' example
RIDGE = 0.01  # on the output weights, else they grow while the penalised ones shrink
PRETRAINING = 0.1  # share of the penalty that the first fit, from a random start, is given
STEPS = 500  # of each fit, at most
TOLERANCE = 1e-5  # relative gain over CHECK_EVERY steps below which a fit has converged
CHECK_EVERY = 20
MEMORY = 5  # a step may be worse than the last, not than all of the last five
STEP_SIZES = (1e-3, 10.0)
HALVINGS = 12
CHUNK_VALUES = 20_000_000  # activations of the targets that are trained together


def cmlp(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """Inputs whose first-layer weights are not zero, scored by the norm of those weights.

    The authors sweep the penalty; here it is set to the level of noise, see `noise_penalty`.
    """
    design = Design.of(panel, max_lag)
    windows, _, variables = design.past.shape
    x = torch.from_numpy(design.past.reshape(windows, -1).astype(np.float32))
    y = torch.from_numpy(design.target.astype(np.float32))
    penalty = noise_penalty(windows, variables, max_lag)
    generator = torch.Generator().manual_seed(seed)
    norms = []
    for targets in torch.arange(variables).split(max(1, CHUNK_VALUES // (windows * HIDDEN))):
        networks = Networks.started(x.shape[1], len(targets), generator)
        networks = fit(networks, x, y[:, targets], PRETRAINING * penalty)
        norms.append(fit(networks, x, y[:, targets], penalty).norms())
    by_lag = torch.cat(norms).view(variables, max_lag, variables)  # (target, lag, source)
    scores = by_lag.transpose(1, 2).numpy().astype(np.float64)
    return graph_of(panel, scores, scores > 0)


def noise_penalty(windows: int, variables: int, max_lag: int) -> float:
    """The penalty that the gradient of an irrelevant input hardly ever exceeds.

    The squared error's gradient by the weights of such an input has a norm near 2 |v| / sqrt(n)
    with output weights v, |v| about 1.5; the largest of m candidates is sqrt(2 log m) times that.
    """
    candidates = variables * variables * max_lag
    return float(3 * np.sqrt(2 * np.log(candidates) / windows))


@dataclass(frozen=True, eq=False)
class Networks:
    """The parameters of the networks of all targets, one hidden layer each."""

    first: torch.Tensor  # (target, input, hidden)
    bias: torch.Tensor  # (target, hidden)
    output: torch.Tensor  # (target, hidden)
    shift: torch.Tensor  # (target, 1)

    @classmethod
    def started(cls, inputs: int, targets: int, generator: torch.Generator) -> Networks:
        """Random weights within one over the root of a unit's inputs."""

        def uniform(fan_in: int, *shape: int) -> torch.Tensor:
            reach = fan_in**-0.5
            return torch.empty(shape).uniform_(-reach, reach, generator=generator)

        return cls(
            uniform(inputs, targets, inputs, HIDDEN),
            uniform(inputs, targets, HIDDEN),
            uniform(HIDDEN, targets, HIDDEN),
            torch.zeros(targets, 1),
        )

    def parts(self) -> list[torch.Tensor]:
        """The four parameter tensors; the first axis of each is the target."""
        return [self.first, self.bias, self.output, self.shift]

    def norms(self) -> torch.Tensor:
        """Norms of the first-layer weights by input, (target, input)."""
        return self.first.norm(dim=2)

    def forecast(self, x: torch.Tensor) -> torch.Tensor:
        """Of windows (window, input): (window, target)."""
        targets, inputs, hidden = self.first.shape
        weights = self.first.permute(1, 0, 2).reshape(inputs, targets * hidden)
        active = torch.addmm(self.bias.flatten(), x, weights).relu() * self.output.flatten()
        return active.view(-1, targets, hidden).sum(2) + self.shift[:, 0]

    def smooth_loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Mean squared error with the ridge penalty, (target,)."""
        return (self.forecast(x) - y).square().mean(0) + RIDGE * self.output.square().sum(1)


def fit(networks: Networks, x: torch.Tensor, y: torch.Tensor, penalty: float) -> Networks:
    """Generalised iterative shrinkage and thresholding, all targets side by side.

    Each target has its own step size: guessed from its last step (Barzilai-Borwein), then halved
    until the objective falls enough. A target whose step cannot be made small enough stays.
    """
    slopes = _slopes(networks, x, y)
    history = [_objective(networks, x, y, penalty)]
    size = torch.full((len(networks.first),), 0.05)
    for step in range(1, STEPS + 1):
        moved, objective = _line_search(networks, slopes, size, history, x, y, penalty)
        new_slopes = _slopes(moved, x, y)
        way = [new - old for new, old in zip(moved.parts(), networks.parts(), strict=True)]
        bend = [new - old for new, old in zip(new_slopes, slopes, strict=True)]
        size = (_dot(way, way) / _dot(way, bend).clamp_min(1e-12)).clamp(*STEP_SIZES)
        networks, slopes = moved, new_slopes
        history.append(objective)
        if step % CHECK_EVERY == 0:
            gain = (history[-1 - CHECK_EVERY] - objective) / objective
            if float(gain.max()) < TOLERANCE:
                break
    return networks


def _line_search(
    networks: Networks,
    slopes: list[torch.Tensor],
    size: torch.Tensor,
    history: list[torch.Tensor],
    x: torch.Tensor,
    y: torch.Tensor,
    penalty: float,
) -> tuple[Networks, torch.Tensor]:
    """The networks one proximal step on, and their objective (target,)."""
    allowed = torch.stack(history[-MEMORY:]).amax(0)
    for _ in range(HALVINGS):
        moved = _proximal_step(networks, slopes, size, penalty)
        objective = _objective(moved, x, y, penalty)
        way = [new - old for new, old in zip(moved.parts(), networks.parts(), strict=True)]
        good = objective <= allowed - 5e-5 * _dot(way, way) / size
        if bool(good.all()):
            return moved, objective
        size = torch.where(good, size, size / 2)
    kept = [
        torch.where(_spread(good, new), new, old)
        for new, old in zip(moved.parts(), networks.parts(), strict=True)
    ]
    return Networks(*kept), torch.where(good, objective, history[-1])


def _proximal_step(
    networks: Networks, slopes: list[torch.Tensor], size: torch.Tensor, penalty: float
) -> Networks:
    """A gradient step, after which the weights of every input shrink towards zero."""
    pairs = zip(networks.parts(), slopes, strict=True)
    stepped = Networks(*(part - _spread(size, part) * slope for part, slope in pairs))
    norms = stepped.norms()
    kept = (1 - penalty * size[:, None] / norms.clamp_min(1e-12)).clamp_min(0)
    return Networks(stepped.first * kept[:, :, None], *stepped.parts()[1:])


@torch.no_grad()
def _objective(
    networks: Networks, x: torch.Tensor, y: torch.Tensor, penalty: float
) -> torch.Tensor:
    """What is minimised, (target,)."""
    return networks.smooth_loss(x, y) + penalty * networks.norms().sum(1)


def _slopes(networks: Networks, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """Gradients of the smooth loss by every parameter tensor."""
    leaves = [part.detach().requires_grad_() for part in networks.parts()]
    loss = Networks(*leaves).smooth_loss(x, y).sum()
    return list(torch.autograd.grad(loss, leaves))


def _dot(left: list[torch.Tensor], right: list[torch.Tensor]) -> torch.Tensor:
    """Inner products per target, (target,)."""
    products = [(a * b).flatten(1).sum(1) for a, b in zip(left, right, strict=True)]
    return torch.stack(products).sum(0)


def _spread(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Values (target,) with as many axes as `like`."""
    return values.view(-1, *[1] * (like.dim() - 1))
