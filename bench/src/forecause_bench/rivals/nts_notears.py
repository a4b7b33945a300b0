"""NTS-NOTEARS (Sun et al. 2021): one small convolutional network per target, acyclic at lag 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from forecause.common.arrays import Array
from forecause.data import Panel
from forecause.graph import LaggedGraph
from forecause.refine.dynotears import cycle_strength, dual_ascent
from forecause.refine.links import graph_of
from forecause_bench.rivals.autoregression import Design

# The authors' published settings.
HIDDEN = 10  # kernels per target, each over the whole window
LASSO = 0.005  # on the kernels
RIDGE = 0.01  # on the kernels and the top weights
THRESHOLD = 0.3  # on the norm of an input's kernel weights
CHUNK = 4096  # windows at once: few enough to stay in the cache


def nts_notears(panel: Panel, max_lag: int, seed: int) -> LaggedGraph:
    """Lagged inputs whose kernel weights have a norm of at least 0.3, scored by that norm.

    Effects at lag 0 are fitted, kept free of cycles and left out of the answer.
    """
    design = Design.of(panel, max_lag)
    inputs = np.concatenate([design.target[:, None], design.past], axis=1)  # lag 0 first
    kernels = Networks(inputs, design.target).fit(np.random.default_rng(seed))
    norms = np.sqrt((kernels**2).sum(2)).transpose(2, 1, 0)[:, :, 1:]  # (target, source, lag)
    return graph_of(panel, norms, norms >= THRESHOLD)


@dataclass(frozen=True, eq=False)
class Networks:
    """The networks of all targets: forecast = sum over kernels of top * sigmoid(kernel * window).

    Their parameters are one vector: the kernels' positive and negative parts (so that the lasso
    is smooth within bounds), hidden biases, top weights and top biases.
    """

    inputs: Array  # (window, lag 0 .., source)
    target: Array  # (window, target)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the kernels: (lag, source, hidden, target)."""
        _, lags, variables = self.inputs.shape
        return lags, variables, HIDDEN, variables

    @property
    def sizes(self) -> list[int]:
        """How many parameters of each kind there are."""
        kernels, units = int(np.prod(self.shape)), HIDDEN * self.shape[3]
        return [kernels, kernels, units, units, self.shape[3]]

    def fit(self, rng: np.random.Generator) -> Array:
        """The kernels after dual ascent from a random start."""
        from scipy.optimize import Bounds, minimize

        bounds = Bounds(*self.bounds())

        def minimise(start: Array, weight: float, price: float) -> tuple[Array, float]:
            found = minimize(
                self.objective, start, (weight, price), "L-BFGS-B", jac=True, bounds=bounds
            ).x
            return found, _cycles(self.kernels(found))[0]

        return self.kernels(dual_ascent(self.start(rng), minimise))

    def start(self, rng: np.random.Generator) -> Array:
        """Uniform within one over the root of a unit's inputs, as is usual for such layers."""
        width = np.sqrt([self.shape[0] * self.shape[1]] * 3 + [HIDDEN] * 2)
        reach = np.repeat(1 / width, self.sizes)
        return np.clip(rng.uniform(-reach, reach), *self.bounds())

    def bounds(self) -> tuple[Array, Array]:
        """Parts of kernels are not negative, and zero from a variable to itself at lag 0."""
        kernel_high = np.full(self.shape, np.inf)
        itself = np.arange(self.shape[3])
        kernel_high[0, itself, :, itself] = 0
        free = np.full(sum(self.sizes[2:]), np.inf)
        low = np.concatenate([np.zeros(2 * kernel_high.size), -free])
        return low, np.concatenate([*[kernel_high.ravel()] * 2, free])

    def parts(self, parameters: Array) -> list[Array]:
        """The vector cut into its five kinds."""
        return np.split(parameters, np.cumsum(self.sizes)[:-1])

    def kernels(self, parameters: Array) -> Array:
        """The kernels (lag, source, hidden, target)."""
        positive, negative, *_ = self.parts(parameters)
        return (positive - negative).reshape(self.shape)

    def objective(self, parameters: Array, weight: float, price: float) -> tuple[float, Array]:
        """Half the mean squared error, penalties and the price of cycles; with the gradient."""
        positive, negative, bias, top, shift = self.parts(parameters)
        kernels = self.kernels(parameters)
        error, (kernel_slope, *other_slopes) = self.squared_error(kernels, bias, top, shift)
        h, h_slope = _cycles(kernels)
        kernel_slope += RIDGE * kernels
        kernel_slope[0] += (weight * h + price) * h_slope
        other_slopes[1] += RIDGE * top
        value = error + 0.5 * weight * h * h + price * h
        value += 0.5 * RIDGE * ((kernels**2).sum() + (top**2).sum())
        value += LASSO * (positive.sum() + negative.sum())
        flat = kernel_slope.ravel()
        return value, np.concatenate([LASSO + flat, LASSO - flat, *other_slopes])

    def squared_error(
        self, kernels: Array, bias: Array, top: Array, shift: Array
    ) -> tuple[float, list[Array]]:
        """Half the mean squared error over windows, summed over targets, and its gradients."""
        windows, variables = self.target.shape
        inputs, target = torch.from_numpy(self.inputs), torch.from_numpy(self.target)
        flat = torch.from_numpy(kernels).view(-1, HIDDEN * variables)
        hidden, weights = torch.from_numpy(bias), torch.from_numpy(top)
        total, slopes = 0.0, [torch.zeros_like(flat), *(torch.zeros(n) for n in self.sizes[2:])]
        for at in range(0, windows, CHUNK):
            part = inputs[at : at + CHUNK].flatten(1)
            active = torch.addmm(hidden, part, flat).sigmoid_()  # (window, hidden * target)
            forecast = (active * weights).view(len(part), HIDDEN, variables).sum(1)
            residual = forecast.add_(torch.from_numpy(shift)) - target[at : at + CHUNK]
            total += 0.5 / windows * float(residual.square().sum())
            spread = (residual / windows).repeat(1, HIDDEN) * active
            inner = spread * weights * (1 - active)
            steps = (part.T @ inner, inner.sum(0), spread.sum(0), residual.sum(0) / windows)
            slopes = [slope + step for slope, step in zip(slopes, steps, strict=True)]
        kernel_slope, *others = (slope.numpy() for slope in slopes)
        return total, [kernel_slope.reshape(self.shape), *others]


def _cycles(kernels: Array) -> tuple[float, Array]:
    """The strength of cycles at lag 0, and its gradient (source, hidden, target)."""
    h, slope = cycle_strength((kernels[0] ** 2).sum(1))
    return h, slope[:, None] * 2 * kernels[0]
