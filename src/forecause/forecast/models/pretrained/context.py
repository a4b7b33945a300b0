"""Context: what the rows of a system say about it, as moments that a network can read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from forecause.regression.moments import Moments, ridge_of_systems, with_intercept

TERMS = 3  # an input enters as a line and two bends
PENALTIES = (0.5, 5.0, 50.0)  # ridge, over the number of windows
MOST_WINDOWS_TOLD = 1500  # a network never saw more, and is not told of more
LEAST_VARIANCE = 1e-9
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
    """Sums over the windows of one or several systems of the same shape (first axis)."""

    shape: tuple[int, int]  # (max_lag, variables)
    moments: Moments  # (system, ...); a feature is a (step, source, term)

    @classmethod
    def of(cls, window: Tensor) -> Context:
        """The sums of standardised windows (system, window, max_lag + 1, variable)."""
        past, target = window[:, :, :-1], window[:, :, -1]
        moments = Moments.summed([(terms(past).flatten(2), target)])
        return cls((past.shape[2], past.shape[3]), moments)

    def __add__(self, other: Context) -> Context:
        return Context(self.shape, Moments.added([self.moments, other.moments]))

    @property
    def count(self) -> int:
        """Windows of each system."""
        return int(self.moments.count)

    @property
    def means(self) -> tuple[Tensor, Tensor]:
        """Mean of every feature and of every target."""
        return self.moments.gram[:, 0, 1:] / self.count, self.moments.cross[:, 0] / self.count

    def only(self, seen: Tensor) -> Context:
        """The context without the inputs that are not `seen` (step, source)."""
        kept = with_intercept(seen.flatten().repeat_interleave(TERMS).to(self.moments.gram))
        return Context(
            self.shape,
            Moments(
                self.count,
                self.moments.gram * kept * kept[:, None],
                self.moments.cross * kept[:, None],
                self.moments.square,
            ),
        )

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
        variance = (self.moments.square / n - target_mean.square()).clamp(min=LEAST_VARIANCE)
        solved = [
            ridge_of_systems(gram, cross, variance, penalty, n, kept)
            for kept in (slice(None), slice(None, None, TERMS))
            for penalty in PENALTIES
        ]
        squares = [one.z_squares for one in solved]
        squares.append(cross.square() * n / variance[:, None])
        z_values = torch.stack([self._by_token(one) for one in squares], dim=3).flatten(3).log1p()
        places = _places(steps, variables).to(z_values).expand(len(z_values), -1, -1, -1)
        sizes = _sizes(solved[-1].noise / variance, n, steps, variables)[:, :, None]
        about = torch.cat([z_values, places, sizes.expand(-1, -1, steps * variables, -1)], dim=-1)
        solutions = torch.stack([self._by_token(one.found) for one in solved], dim=3)
        return Reading(solutions.float(), about.float())

    def _by_token(self, values: Tensor) -> Tensor:
        """(system, feature, target) -> (system, target, token, term)."""
        return values.transpose(1, 2).unflatten(2, (-1, TERMS))


def _places(steps: int, variables: int) -> Tensor:
    """Lag and ownership of every token, (target, token, 4)."""
    lag = torch.arange(steps, 0, -1).repeat_interleave(variables).double()
    source = torch.arange(variables).repeat(steps)
    own = (source == torch.arange(variables)[:, None]).double()
    lags = torch.stack([1 / lag, lag.log(), (lag == 1).double()], dim=-1)
    return torch.cat([own[..., None], lags.expand(variables, -1, -1)], dim=-1)


def _sizes(noise_share: Tensor, count: float, steps: int, variables: int) -> Tensor:
    """Sizes of the sample and of the system, and the targets' noise, (system, target, 4)."""
    windows, tokens = math.log(min(count, MOST_WINDOWS_TOLD)), math.log(steps * variables)
    about = torch.tensor([windows - 6, windows - tokens - 3, tokens - 2])  # all near 0
    same = about.to(noise_share).expand(*noise_share.shape, -1)
    return torch.cat([same, noise_share.log()[..., None]], dim=-1)
