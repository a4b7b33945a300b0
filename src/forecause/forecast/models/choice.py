"""`auto`: for each target the forecaster that predicts it best on held-out data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from forecause.data.windows import Window
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

    def forward(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return self._gather(lambda member: cast(Tensor, member(past, rules, domain)))

    def jacobian(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return self._gather(lambda member: member.jacobian(past, rules, domain).detach())

    def distribution(self, past: Tensor, domain: Tensor | None = None) -> Tensor:
        raise NotImplementedError("the members' distributions differ in kind; ask them")

    def log_likelihood(self, window: Window) -> Tensor:
        return self._gather(lambda member: member.log_likelihood(window))

    def score(self, window: Window) -> Tensor:
        return self._gather(lambda member: member.score(window).detach())

    def _gather(self, answer: Callable[[Forecaster], Tensor]) -> Tensor:
        """The members' answers (batch, target, ...), each target's from its own member."""
        answers = {k: answer(cast(Forecaster, member)) for k, member in self.members.items()}
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
