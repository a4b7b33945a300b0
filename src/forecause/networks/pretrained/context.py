"""Context: what the rows of a system say about it, as moments that a network can read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from forecause.common.arrays import Array
from forecause.regression.least_squares import precision
from forecause.regression.moments import Moments

# Shape of the model:
TERMS = 3  # an input enters as a line and two bends
PENALTIES = (0.5, 5.0, 50.0)  # ridge, over the number of windows
MOST_WINDOWS_TOLD = 1500  # a network never saw more, and is not told of more
LEAST_FREEDOM = 0.05  # share of the windows left to tell the noise from

# Numerics:
LEAST_VARIANCE = 1e-9
LEAST_NOISE = 1e-5  # as a share of the variance

SOLUTIONS = 2 * len(PENALTIES)  # with all terms, and with the line alone
ABOUT = SOLUTIONS * TERMS + TERMS + 8  # numbers that describe a token; see Context.read

# Mean and sd of the bends under a standard normal x, and the slope of x * bell on x.
_BELL, _BELL_SD = 2**-0.5, math.sqrt(3**-0.5 - 0.5)
_TILT, _TILT_SD = 2**-1.5, math.sqrt(3**-1.5 - 2**-3)


def terms(x: Tensor) -> Tensor:
    """x (...) -> (..., term): x, a bell and an odd bend, uncorrelated if x is standard normal."""
    bell = torch.exp(-x.square() / 2)
    bends = (bell - _BELL) / _BELL_SD, x * (bell - _TILT) / _TILT_SD
    return torch.stack([x, *bends], dim=-1)


class Reading(NamedTuple):
    """What a network gets to see of a context; a token is a (step, source) of a target."""

    solutions: Tensor  # (system, target, token, solution, term) ridge coefficients
    about: Tensor  # (system, target, token, ABOUT)


@dataclass(frozen=True, eq=False)
class Context:
    """Sums over the windows of one or several systems of the same shape (first axis).

    No gradient flows through it, so it is computed in NumPy.
    """

    shape: tuple[int, int]  # (max_lag, variables)
    moments: Moments  # (system, ...); a feature is a (step, source, term)

    @classmethod
    def of(cls, window: Tensor) -> Context:
        """The sums of standardised windows (system, window, max_lag + 1, variable)."""
        past, target = window[:, :, :-1], window[:, :, -1]
        features = terms(past).flatten(2).detach().cpu().numpy()
        moments = Moments.summed([(features, target.detach().cpu().numpy())])
        return cls((past.shape[2], past.shape[3]), moments)

    def __add__(self, other: Context) -> Context:
        return Context(self.shape, Moments.added([self.moments, other.moments]))

    @property
    def count(self) -> int:
        """Windows of each system."""
        return int(self.moments.count)

    @property
    def means(self) -> tuple[Array, Array]:
        """Mean of every feature and of every target."""
        return self.moments.gram[:, 0, 1:] / self.count, self.moments.cross[:, 0] / self.count

    def only(self, seen: Tensor) -> Context:
        """The context without the inputs that are not `seen` (step, source)."""
        inputs = np.repeat(seen.cpu().numpy().ravel(), TERMS)
        kept = np.concatenate([[1.0], inputs])  # and the intercept
        moments = self.moments
        gram, cross = moments.gram * kept * kept[:, None], moments.cross * kept[:, None]
        return Context(self.shape, Moments(self.count, gram, cross, moments.square))

    def read(self) -> Reading:
        """Least squares in context, and how sure it is of each of its coefficients.

        A token is described by the logs of its squared z-values, of each solution and of its
        plain covariances, by its lag and whether it is the target's own, and by the sizes of the
        system, its sample and its noise.
        """
        n, (steps, variables) = self.count, self.shape
        mean, target_mean = self.means
        gram = self.moments.gram[:, 1:, 1:] / n - mean[:, :, None] * mean[:, None]
        cross = self.moments.cross[:, 1:] / n - mean[:, :, None] * target_mean[:, None]
        variance = np.maximum(self.moments.square / n - target_mean**2, LEAST_VARIANCE)
        solved = [
            ridge_of_systems(gram, cross, variance, penalty, n, kept)
            for kept in (slice(None), slice(None, None, TERMS))
            for penalty in PENALTIES
        ]
        squares = [one.z_squares for one in solved]
        squares.append(cross**2 * n / variance[:, None])
        z_values = np.log1p(np.stack([self._by_token(one) for one in squares], axis=3))
        z_values = z_values.reshape(*z_values.shape[:3], -1)
        places = np.broadcast_to(_places(steps, variables), (*z_values.shape[:3], 4))
        sizes = _sizes(solved[-1].noise / variance, n, steps, variables)[:, :, None]
        sizes = np.broadcast_to(sizes, (*z_values.shape[:3], 4))
        about = np.concatenate([z_values, places, sizes], axis=-1)
        solutions = np.stack([self._by_token(one.coefficients) for one in solved], axis=3)
        return Reading(torch.from_numpy(solutions).float(), torch.from_numpy(about).float())

    def _by_token(self, values: Array) -> Array:
        """(system, feature, target) -> (system, target, token, term)."""
        by_target = values.swapaxes(1, 2)
        return by_target.reshape(*by_target.shape[:2], -1, TERMS)


class RidgeSystems(NamedTuple):
    """Coefficients of several systems and how sure they are."""

    coefficients: Array  # (system, feature, target), 0 for features that were left out
    z_squares: Array  # (system, feature, target)
    noise: Array  # (system, target), the variance left


def ridge_of_systems(
    gram: Array, cross: Array, variance: Array, penalty: float, count: float, kept: slice
) -> RidgeSystems:
    """Ridge regression on the features that are kept, of many systems at once.

    Moments are centred and divided by `count`: gram (system, feature, feature), cross (system,
    feature, target), variance (system, target).
    """
    gram, part = gram[:, kept, kept], cross[:, kept]
    inverse = precision(gram + penalty / count * np.eye(gram.shape[-1]))
    diagonal = np.diagonal(inverse, axis1=1, axis2=2)
    solution = inverse @ part
    explained = (solution * (2 * part - gram @ solution)).sum(1)
    freedom = gram.shape[-1] - penalty / count * diagonal.sum(1)  # effective parameters
    left = np.maximum(1 - freedom / count, LEAST_FREEDOM)[:, None]
    noise = np.clip((variance - explained) / left, LEAST_NOISE * variance, variance)
    coefficients, squares = np.zeros_like(cross), np.zeros_like(cross)
    coefficients[:, kept] = solution
    squares[:, kept] = solution**2 * count / (diagonal[..., None] * noise[:, None])
    return RidgeSystems(coefficients, squares, noise)


def _places(steps: int, variables: int) -> Array:
    """Lag and ownership of every token, (target, token, 4)."""
    lag = np.repeat(np.arange(steps, 0, -1), variables).astype(np.float64)
    source = np.tile(np.arange(variables), steps)
    own = (source == np.arange(variables)[:, None]).astype(np.float64)
    lags = np.stack([1 / lag, np.log(lag), (lag == 1).astype(np.float64)], axis=-1)
    every = np.broadcast_to(lags, (variables, *lags.shape))
    return np.concatenate([own[..., None], every], axis=-1)


def _sizes(noise_share: Array, count: float, steps: int, variables: int) -> Array:
    """Sizes of the sample and of the system, and the targets' noise, (system, target, 4)."""
    windows, tokens = math.log(min(count, MOST_WINDOWS_TOLD)), math.log(steps * variables)
    about = np.array([windows - 6, windows - tokens - 3, tokens - 2])  # all near 0
    same = np.broadcast_to(about, (*noise_share.shape, 3))
    return np.concatenate([same, np.log(noise_share)[..., None]], axis=-1)
