"""Neural Granger causality (Tank et al. 2018): one MLP per target, sparse in its inputs.

A group lasso on the first-layer weights of each (source, lag) is minimised by proximal gradient
descent, so that the weights of inputs a target does without become exactly zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from forecause.data import Panel
from forecause.graph import LaggedGraph
from forecause.refine.links import graph_of
from forecause_bench.rivals.autoregression import Design

HIDDEN = 10  # units per target, as in the authors' example
PATH = (0.1, 0.3, 1.0, 1.0)  # shares of the penalty; each fit starts from the one before
STEPS = 200  # of each fit, at most
TOLERANCE = 1e-5  # relative gain over CHECK_EVERY steps below which a fit has converged
CHECK_EVERY = 20
MEMORY = 5  # a step may be worse than the last, not than all of the last five
STEP_SIZES = (1e-3, 10.0)
HALVINGS = 12
CHUNK_VALUES = 20_000_000  # activations of the targets that are trained together


def cmlp(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """Inputs whose first-layer weights are not zero at the last penalty of a rising path.

    The authors sweep the penalty; here it rises to the level of noise, see `noise_penalty`. The
    score is the norm of an input's weights, summed over the path, so that inputs that vanish late
    rank above those that vanish early.
    """
    design = Design.of(panel, max_lag)
    windows, _, variables = design.past.shape
    x = torch.from_numpy(design.past.reshape(windows, -1).astype(np.float32))
    y = torch.from_numpy(design.target.astype(np.float32))
    candidates = max(2, variables * variables * max_lag)
    generator = torch.Generator().manual_seed(seed)
    norms = []  # of blocks of targets, (penalty, target, lag * source)
    for targets in torch.arange(variables).split(max(1, CHUNK_VALUES // (windows * HIDDEN))):
        networks = Networks.started(x.shape[1], len(targets), generator)
        path = []
        for share in PATH:
            penalty = share * noise_penalty(networks, x, y[:, targets], candidates)
            networks = fit(networks, x, y[:, targets], penalty)
            path.append(networks.norms())
        norms.append(torch.stack(path))
    by_lag = torch.cat(norms, dim=1).view(len(PATH), variables, max_lag, variables)
    by_edge = by_lag.transpose(2, 3).numpy().astype(np.float64)  # (penalty, target, source, lag)
    return graph_of(panel, by_edge.sum(0), by_edge[-1] > 0)


@torch.no_grad()
def noise_penalty(
    networks: Networks, x: torch.Tensor, y: torch.Tensor, candidates: int
) -> torch.Tensor:
    """The penalty (target,) that the gradient of an irrelevant input hardly ever exceeds.

    That gradient of the squared error is about 2 s / sqrt(n) times a normal variable, s being the
    residual sd, and the largest of m normal variables is about sqrt(2 log m).
    """
    residual_sd = (networks.forecast(x) - y).square().mean(0).sqrt()
    return 2 * residual_sd * float(np.sqrt(2 * np.log(candidates) / len(x)))


@dataclass(frozen=True, eq=False)
class Networks:
    """The parameters of several targets' networks, one hidden layer each.

    Output weights have unit norm, else they would grow to let the penalised ones shrink (the
    authors put a ridge on them instead, which then needs tuning).
    """

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
            torch.nn.functional.normalize(uniform(HIDDEN, targets, HIDDEN)),
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

    def squared_error(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Mean squared error, (target,)."""
        return (self.forecast(x) - y).square().mean(0)


def fit(networks: Networks, x: torch.Tensor, y: torch.Tensor, penalty: torch.Tensor) -> Networks:
    """Generalised iterative shrinkage and thresholding, all targets side by side.

    Each target has its own step size: guessed from its last step (Barzilai-Borwein), then halved
    until the objective falls enough. A target whose step cannot be made small enough stays.
    """
    slopes = slopes_of(networks, x, y)
    history = [_objective(networks, x, y, penalty)]
    size = torch.full((len(networks.first),), 0.05)
    for step in range(1, STEPS + 1):
        moved, objective = line_search(networks, slopes, size, history, x, y, penalty)
        new_slopes = slopes_of(moved, x, y)
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


def line_search(
    networks: Networks,
    slopes: list[torch.Tensor],
    size: torch.Tensor,
    history: list[torch.Tensor],
    x: torch.Tensor,
    y: torch.Tensor,
    penalty: torch.Tensor,
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
    networks: Networks, slopes: list[torch.Tensor], size: torch.Tensor, penalty: torch.Tensor
) -> Networks:
    """A gradient step, then the proximal map: inputs' weights shrink, output weights get norm 1."""
    pairs = zip(networks.parts(), slopes, strict=True)
    stepped = Networks(*(part - _spread(size, part) * slope for part, slope in pairs))
    norms = stepped.norms()
    kept = (1 - (penalty * size)[:, None] / norms.clamp_min(1e-12)).clamp_min(0)
    unit = stepped.output / stepped.output.norm(dim=1, keepdim=True)
    return Networks(stepped.first * kept[:, :, None], stepped.bias, unit, stepped.shift)


@torch.no_grad()
def _objective(
    networks: Networks, x: torch.Tensor, y: torch.Tensor, penalty: torch.Tensor
) -> torch.Tensor:
    """What is minimised, (target,)."""
    return networks.squared_error(x, y) + penalty * networks.norms().sum(1)


def slopes_of(networks: Networks, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """Gradients of the squared error by every parameter tensor."""
    leaves = [part.detach().requires_grad_() for part in networks.parts()]
    loss = Networks(*leaves).squared_error(x, y).sum()
    return list(torch.autograd.grad(loss, leaves))


def _dot(left: list[torch.Tensor], right: list[torch.Tensor]) -> torch.Tensor:
    """Inner products per target, (target,)."""
    products = [(a * b).flatten(1).sum(1) for a, b in zip(left, right, strict=True)]
    return torch.stack(products).sum(0)


def _spread(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Values (target,) with as many axes as `like`."""
    return values.view(-1, *[1] * (like.dim() - 1))
