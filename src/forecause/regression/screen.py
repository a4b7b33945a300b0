"""Which of very many inputs may matter for each target, told by scores in rounds.

All inputs at once are too many to be fitted. The first round takes those that go with a target, the
later ones those that go with what the chosen ones leave unexplained, so that a cause that others
hide gets another chance. Everything is a product of large matrices in float32: what is screened is
fitted and tested anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forecause.common.work_sharing import parallel_map
from forecause.config.thresholds import thresholds
from forecause.regression.least_squares import solved
from forecause.regression.moments import Moments
from forecause.regression.sample import pieces

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Single = npt.NDArray[np.float32]

# Shape of the model:
ROUNDS = (15, 8, 8, 8)  # inputs added in each, besides the one that is always taken
SCREENED = 1 + sum(ROUNDS)  # at most

# Time and memory:
WIDE = 1500  # inputs, beyond which they are never fitted together
TARGETS_AT_ONCE, NUMBERS = 64, 8_000_000

# Numerics:
RIDGE = 1e-3


def is_wide(inputs: int, windows: int) -> bool:
    """Whether inputs are too many to be fitted together, for the machine or for the windows."""
    bounds = thresholds().search
    is_short = windows < bounds.windows_per_input * inputs
    return inputs > WIDE or (inputs > bounds.short_and_wide and is_short)


def inputs_at_once(inputs: int, windows: int) -> int:
    """How many inputs of a target are fitted together, at most."""
    return min(inputs, SCREENED) if is_wide(inputs, windows) else inputs


@dataclass(frozen=True, eq=False)
class Screened:
    """The inputs (target, input) of every target that are worth fitting, where `taken`.

    The others fill the places of targets with fewer.
    """

    inputs: Index
    taken: Mask

    def values(self, past: Single, some: Index) -> Single:
        """The inputs of some targets (target, window, input) out of past (window, input)."""
        chosen = past.take(self.inputs[some], axis=1)  # (window, target, input)
        return chosen.swapaxes(0, 1) * self.taken[some, None]

    def mask(self, inputs: int) -> Mask:
        """Whether each of so many inputs was taken, (target, input)."""
        mask = np.zeros((len(self.inputs), inputs), dtype=bool)
        np.put_along_axis(mask, self.inputs, self.taken, axis=1)
        return mask


def screened_inputs(
    past: Single, targets: Single, always: Index, allowed: Mask | None = None
) -> Screened:
    """The inputs that are worth fitting, of past (window, input) for targets (window, target).

    `always` (target,) is taken whatever it scores, unless it is not `allowed` (target, input). An
    input is taken if its score comes near what the best of as many inputs without effect would
    reach: forty that did so by chance would together explain much of a short record, and every
    test beside them would promise too much.
    """
    past, targets = past.astype(np.float32, copy=False), targets.astype(np.float32, copy=False)
    sizes = np.maximum(np.sqrt(np.einsum("wi,wi->i", past, past)), 1e-12)
    common = _Screen(past, targets - targets.mean(0), sizes, always, allowed)
    work = 2.0 * len(ROUNDS) * past.size * TARGETS_AT_ONCE
    blocks = pieces(np.arange(len(always)), TARGETS_AT_ONCE)
    parts = list(parallel_map(_screened, common, blocks, work))
    return Screened(
        np.concatenate([part.inputs for part in parts]),
        np.concatenate([part.taken for part in parts]),
    )


@dataclass(frozen=True, eq=False)
class _Screen:
    """What the screens of all targets share."""

    past: Single  # (window, input)
    targets: Single  # (window, target), centred
    sizes: Single  # (input,) norms of the inputs
    always: Index  # (target,)
    allowed: Mask | None  # (target, input)


def _screened(screen: _Screen, some: Index) -> Screened:
    """The inputs of some targets (target,)."""
    past, targets = screen.past, screen.targets[:, some]
    allowed = None if screen.allowed is None else screen.allowed[some]
    beaten = math.sqrt(2 * math.log(past.shape[1])) - thresholds().search.screen_margin
    least = beaten / math.sqrt(len(past))  # as a correlation
    always = screen.always[some, None]
    taken = np.ones_like(always, dtype=bool)
    if allowed is not None:
        taken = np.take_along_axis(allowed, always, axis=1)
    chosen = Screened(always, taken)
    for count in ROUNDS:
        left = residual_of_chosen(past, targets, chosen)
        left /= np.maximum(np.linalg.norm(left, axis=0), 1e-12)
        scores = np.abs(left.T @ past)  # (target, input)
        scores /= screen.sizes
        if allowed is not None:
            scores[~allowed] = -1.0
        np.put_along_axis(scores, chosen.inputs, -2.0, axis=1)
        best = _largest(scores, count)
        more = np.take_along_axis(scores, best, axis=1) > least
        chosen = Screened(
            np.concatenate([chosen.inputs, best], axis=1),
            np.concatenate([chosen.taken, more], axis=1),
        )
    return chosen


def _largest(scores: Single, count: int) -> Index:
    """Places of the largest scores of every target, the largest first, (target, count)."""
    some = np.argpartition(scores, -count, axis=1)[:, -count:]
    order = np.argsort(-np.take_along_axis(scores, some, axis=1), axis=1)
    return np.take_along_axis(some, order, axis=1)


def chosen_moments(past: Single, targets: Single, chosen: Screened) -> Moments:
    """Moments of every target on its chosen inputs, a regression each; 0 where none was taken."""
    windows, count = len(past), chosen.inputs.shape[1]
    blocks = pieces(np.arange(len(chosen.inputs)), max(1, NUMBERS // (windows * count)))
    work = 2.0 * len(blocks[0]) * windows * count**2
    parts = list(parallel_map(_summed, (past, targets, chosen), blocks, work))
    return Moments(
        windows,
        np.concatenate([part.gram for part in parts]),
        np.concatenate([part.cross for part in parts]),
        np.concatenate([part.square for part in parts]),
    )


def _summed(data: tuple[Single, Single, Screened], some: Index) -> Moments:
    """The moments of some targets (target,)."""
    past, targets, chosen = data
    outcome = targets[:, some].T[..., None].astype(np.float64)
    return Moments.summed([(chosen.values(past, some).astype(np.float64), outcome)])


def residual_of_chosen(past: Single, targets: Single, chosen: Screened) -> Single:
    """Targets (window, target) less what the chosen inputs explain of each."""
    left = np.empty_like(targets)
    windows, count = len(past), chosen.inputs.shape[1]
    ridge = np.float32(RIDGE * windows) * np.eye(count, dtype=np.float32)

    for some in pieces(np.arange(targets.shape[1]), max(1, NUMBERS // (windows * count))):
        own = chosen.values(past, some)
        own -= own.mean(1, keepdims=True)
        across = own.swapaxes(1, 2)
        outcome = targets[:, some].T[..., None]
        weights = solved(across @ own + ridge, across @ outcome)
        left[:, some] = (outcome - own @ weights)[..., 0].T
    return left
