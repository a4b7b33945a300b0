"""`auto`: for each target the forecaster that predicts it best on held-out data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from forecause.forecast.backward import PLAIN, Rules
from forecause.forecast.forecaster import Forecaster, Lesson, Settings


class ChoiceSettings(Settings):
    """Which member forecasts each target, by its label, and the settings of every one in use."""

    kinds: tuple[str, ...]  # (target,)
    members: dict[str, dict[str, Any]]


class Choice(Forecaster):
    """Several fitted forecasters; each target is read from one of them."""

    kind = "auto"
    settings: ChoiceSettings

    def __init__(
        self,
        shape: tuple[int, int],
        settings: ChoiceSettings,
        members: dict[str, Forecaster],
    ) -> None:
        super().__init__(shape, settings)
        self.domains = max(member.domains for member in members.values())
        self.labels = next(iter(members.values())).labels
        self.members = nn.ModuleDict({kind: members[kind] for kind in settings.members})
        self.constrain(next(iter(members.values())).get_buffer("allowed"))
        chosen = [members[kind].get_buffer("noise_variance") for kind in settings.kinds]
        self.noise_variance = torch.stack([noise[i] for i, noise in enumerate(chosen)])

    def forward(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        return self._gather(past, lambda member, seen: cast(Tensor, member(seen, rules)))

    def jacobian(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        return self._gather(past, lambda member, seen: member.jacobian(seen, rules).detach())

    def distribution(self, past: Tensor) -> Tensor:
        raise NotImplementedError("the members' distributions differ in kind; ask them")

    def log_likelihood(self, window: Tensor) -> Tensor:
        return self._gather(window, lambda member, seen: member.log_likelihood(seen))

    def score(self, window: Tensor) -> Tensor:
        return self._gather(window, lambda member, seen: member.score(seen).detach())

    def _gather(self, window: Tensor, answer: Callable[[Forecaster, Tensor], Tensor]) -> Tensor:
        """The members' answers (batch, target, ...), each target's from its own member."""
        answers = {}
        for kind, module in self.members.items():
            member = cast(Forecaster, module)
            answers[kind] = answer(member, window if member.domains else self.inputs(window))
        return torch.stack([answers[k][:, i] for i, k in enumerate(self.settings.kinds)], dim=1)

    def fit(self, lesson: Lesson) -> None:
        raise NotImplementedError("the members are fitted before they are chosen from")


def clearly_better(errors: Tensor, rival: Tensor, by: float = 1.0) -> bool:
    """Whether the rival's errors (window,) are lower by more than so many standard errors."""
    gain = (errors - rival).double().numpy()
    return bool(gain.mean() > by * gain.std() / np.sqrt(len(gain)))


def choose(members: Sequence[Forecaster], errors: Sequence[Tensor]) -> Choice:
    """Pick per target from errors (window, target), members ordered simple to rich.

    A richer member must be better by more than the standard error of the difference: a tie goes
    to the simpler one, which has fewer ways to be wrong.
    """
    kinds = []
    for target in range(members[0].n_variables):
        winner = 0
        for rival in range(1, len(members)):
            if clearly_better(errors[winner][:, target], errors[rival][:, target]):
                winner = rival
        kinds.append(members[winner].label)
    used = {m.label: m for m in members if m.label in kinds}
    settings = ChoiceSettings(
        kinds=tuple(kinds),
        members={kind: m.settings.model_dump(mode="json") for kind, m in used.items()},
    )
    shape = (members[0].max_lag, members[0].n_variables)
    return Choice(shape, settings, used)
