"""`auto`: for each target the forecaster that predicts it best on held-out data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from forecause.data.windows import Windows
from forecause.forecast.base import Forecaster, Report, Settings, silent
from forecause.forecast.rules import PLAIN, Rules


class ChoiceSettings(Settings):
    """Which kind forecasts each target, and the settings of every kind in use."""

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
        self.members = nn.ModuleDict({kind: members[kind] for kind in settings.members})

    def forward(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        forecasts = {kind: member(past, rules) for kind, member in self.members.items()}
        return torch.stack([forecasts[k][:, i] for i, k in enumerate(self.settings.kinds)], dim=1)

    def jacobian(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        out = past.new_empty(len(past), self.n_variables, *past.shape[1:])
        for kind, member in self.members.items():
            mine = [i for i, chosen in enumerate(self.settings.kinds) if chosen == kind]
            assert isinstance(member, Forecaster)
            out[:, mine] = member.jacobian(past, rules)[:, mine].detach()
        return out

    def fit(
        self,
        windows: Windows,
        held_out: Windows,
        seed: int,
        report: Report = silent,
        to_beat: Tensor | None = None,
    ) -> None:
        raise NotImplementedError("the members are fitted before they are chosen from")


def choose(members: Sequence[Forecaster], errors: Sequence[Tensor]) -> Choice:
    """Pick per target from squared errors (window, target), members ordered simple to rich.

    A richer member must be better by more than the standard error of the difference: a tie goes
    to the simpler one, which has fewer ways to be wrong.
    """
    kinds = []
    for target in range(members[0].n_variables):
        winner = 0
        for rival in range(1, len(members)):
            gain = (errors[winner][:, target] - errors[rival][:, target]).double().numpy()
            if gain.mean() > gain.std() / np.sqrt(len(gain)):
                winner = rival
        kinds.append(members[winner].kind)
    used = {m.kind: m for m in members if m.kind in kinds}
    settings = ChoiceSettings(
        kinds=tuple(kinds),
        members={kind: m.settings.model_dump(mode="json") for kind, m in used.items()},
    )
    shape = (members[0].max_lag, members[0].n_variables)
    return Choice(shape, settings, used)
