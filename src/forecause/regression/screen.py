"""Which of very many inputs may matter for each target, told by scores in rounds.

All inputs at once are too many to be fitted. The first round takes those that go with a target, the
later ones those that go with what the chosen ones leave unexplained, so that a cause that others
hide gets another chance. Everything is a product of large matrices in float32: what is screened is
fitted and tested anew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from forecause.regression.moments import Moments
from forecause.work_sharing import spread

WIDE, WIDE_IF_SHORT, WINDOWS_PER_INPUT = 1500, 1000, 2  # inputs; see is_wide
ROUNDS = (15, 8, 8, 8)  # inputs added in each, besides the one that is always taken
SCREENED = 1 + sum(ROUNDS)  # at most
TARGETS_AT_ONCE, NUMBERS = 64, 8_000_000
RIDGE = 1e-3
GENEROUS = 0.7  # standard errors below the best of inputs without effect: about three get in


def is_wide(inputs: int, windows: int) -> bool:
    """Whether inputs are too many to be fitted together, for the machine or for the windows."""
    return inputs > WIDE or (inputs > WIDE_IF_SHORT and windows < WINDOWS_PER_INPUT * inputs)


def inputs_at_once(inputs: int, windows: int) -> int:
    """How many inputs of a target are fitted together, at most."""
    return min(inputs, SCREENED) if is_wide(inputs, windows) else inputs


@dataclass(frozen=True, eq=False)
class Screened:
    """The inputs (target, input) of every target that are worth fitting, where `taken`.

    The others fill the places of targets with fewer.
    """

    inputs: Tensor
    taken: Tensor

    def values(self, past: Tensor, some: Tensor) -> Tensor:
        """The inputs of some targets (target, window, input) out of past (window, input)."""
        own = self.inputs[some]
        chosen = past.index_select(1, own.flatten()).unflatten(1, own.shape)
        return chosen.transpose(0, 1) * self.taken[some, None]

    def mask(self, inputs: int) -> Tensor:
        """Whether each of so many inputs was taken, (target, input)."""
        found = torch.zeros(len(self.inputs), inputs, dtype=torch.bool)
        return found.scatter_(1, self.inputs, self.taken)


def screened_inputs(
    past: Tensor, targets: Tensor, always: Tensor, allowed: Tensor | None = None
) -> Screened:
    """The inputs that are worth fitting, of past (window, input) for targets (window, target).

    `always` (target,) is taken whatever it scores, unless it is not `allowed` (target, input). An
    input is taken if its score comes near what the best of as many inputs without effect would
    reach: forty that did so by chance would together explain much of a short record, and every
    test beside them would promise too much.
    """
    past = past.float()
    common = _Screen(
        past,
        targets.float() - targets.float().mean(0),
        past.norm(dim=0).clamp(min=1e-12),
        always,
        allowed,
    )
    blocks = torch.arange(len(always)).split(TARGETS_AT_ONCE)
    work = 2.0 * len(ROUNDS) * past.numel() * TARGETS_AT_ONCE
    parts = list(spread(_screened, common, blocks, work))
    return Screened(
        torch.cat([part.inputs for part in parts]), torch.cat([part.taken for part in parts])
    )


@dataclass(frozen=True, eq=False)
class _Screen:
    """What the screens of all targets share."""

    past: Tensor  # (window, input)
    targets: Tensor  # (window, target), centred
    sizes: Tensor  # (input,) norms of the inputs
    always: Tensor  # (target,)
    allowed: Tensor | None  # (target, input)


def _screened(screen: _Screen, some: Tensor) -> Screened:
    """The inputs of some targets (target,)."""
    past, targets = screen.past, screen.targets[:, some]
    allowed = None if screen.allowed is None else screen.allowed[some]
    beaten = math.sqrt(2 * math.log(past.shape[1])) - GENEROUS
    least = beaten / math.sqrt(len(past))  # as a correlation
    always = screen.always[some, None]
    taken = torch.ones_like(always, dtype=torch.bool)
    chosen = Screened(always, taken if allowed is None else allowed.gather(1, always))
    for count in ROUNDS:
        left = residual_of_chosen(past, targets, chosen)
        left = left / left.norm(dim=0).clamp(min=1e-12)
        scores = (left.T @ past).abs() / screen.sizes  # (target, input)
        if allowed is not None:
            scores.masked_fill_(~allowed, -1.0)
        best = scores.scatter_(1, chosen.inputs, -2.0).topk(count, dim=1)
        chosen = Screened(
            torch.cat([chosen.inputs, best.indices], dim=1),
            torch.cat([chosen.taken, best.values > least], dim=1),
        )
    return chosen


def chosen_moments(past: Tensor, targets: Tensor, chosen: Screened) -> Moments:
    """Moments of every target on its chosen inputs, a regression each; 0 where none was taken."""
    windows, count = len(past), chosen.inputs.shape[1]
    pieces = torch.arange(len(chosen.inputs)).split(max(1, NUMBERS // (windows * count)))
    work = 2.0 * len(pieces[0]) * windows * count**2
    parts = list(spread(_summed, (past, targets, chosen), pieces, work))
    gram, cross, square = (
        torch.cat([getattr(part, name) for part in parts]) for name in ("gram", "cross", "square")
    )
    return Moments(windows, gram, cross, square)


def _summed(data: tuple[Tensor, Tensor, Screened], some: Tensor) -> Moments:
    """The moments of some targets (target,)."""
    past, targets, chosen = data
    outcome = targets[:, some].T[..., None]
    return Moments.summed([(chosen.values(past, some).double(), outcome.double())])


def residual_of_chosen(past: Tensor, targets: Tensor, chosen: Screened) -> Tensor:
    """Targets (window, target) less what the chosen inputs explain of each."""
    left = torch.empty_like(targets)
    windows, count = len(past), chosen.inputs.shape[1]

    for some in torch.arange(targets.shape[1]).split(max(1, NUMBERS // (windows * count))):
        own = chosen.values(past, some)
        own = own - own.mean(1, keepdim=True)
        gram = own.mT @ own + RIDGE * windows * torch.eye(count)
        outcome = targets[:, some].T[..., None]
        left[:, some] = (outcome - own @ torch.linalg.solve(gram, own.mT @ outcome))[..., 0].T
    return left
