"""`auto`: for each target the forecaster that predicts it best on held-out data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import torch
from pydantic import field_validator
from torch import Tensor, nn

from forecause.config import EVERY_HEAD, ForecasterSpec, Settings
from forecause.data.windows import Window
from forecause.forecast.backward import PLAIN, Rules
from forecause.forecast.forecaster import FitData, Forecaster, ForecasterSettings
from forecause.regression.p_values import clearly_better, gain_over_blocks

BLOCKS_OF_TIME = 10  # over which a learner or a network must be better
LEAST_WINDOWS_PER_BLOCK = 5
FEW_JUDGED = 100  # windows, below which a single target tells too little


class Member(Settings):
    """Which forecaster a member is, and its settings."""

    kind: str
    settings: dict[str, Any]

    @classmethod
    def of(cls, forecaster: Forecaster) -> Member:
        """How a fitted forecaster is written down."""
        return cls(
            kind=forecaster.settings.kind,
            settings=forecaster.settings.model_dump(mode="json"),
        )

    def build(self, shape: tuple[int, int]) -> Forecaster:
        """The forecaster, unfitted."""
        spec = ForecasterSpec.named(self.kind)(**self.settings)
        assert isinstance(spec, ForecasterSettings)
        return spec.build(shape)


class PerTargetChoiceSettings(ForecasterSettings):
    """Which member forecasts each target, by its label, and what every member in use is."""

    kind: ClassVar[str] = "auto"

    kinds: tuple[str, ...]  # (target,) the label of its member
    members: dict[str, Member]

    @field_validator("members", mode="before")
    @classmethod
    def _of_version_0_1(cls, members: Any) -> Any:
        """Version 0.1 wrote the settings alone and told the kind by the label."""
        if not isinstance(members, dict):
            return members
        return {
            label: saved
            if isinstance(saved, Member) or set(saved) == {"kind", "settings"}
            else {"kind": _kind_of_label(label), "settings": saved}
            for label, saved in members.items()
        }

    def build(self, shape: tuple[int, int]) -> PerTargetChoice:
        return PerTargetChoice(
            shape, self, {name: m.build(shape) for name, m in self.members.items()}
        )


def _kind_of_label(label: str) -> str:
    """`mlp-gaussian` is an mlp with another head, `linear-by-domain` a linear one per domain."""
    for ending in ("-by-domain", *(f"-{head}" for head in EVERY_HEAD)):
        label = label.removesuffix(ending)
    return label


class PerTargetChoice(Forecaster):
    """Several fitted forecasters; each target is read from one of them."""

    settings: PerTargetChoiceSettings

    def __init__(
        self,
        shape: tuple[int, int],
        settings: PerTargetChoiceSettings,
        members: dict[str, Forecaster],
    ) -> None:
        super().__init__(shape, settings)
        self.domains = max(member.domains for member in members.values())
        self.labels = next(iter(members.values())).labels
        self.read_windows = min(member.read_windows for member in members.values())
        self.members = nn.ModuleDict({kind: members[kind] for kind in settings.members})
        self.constrain(next(iter(members.values())).get_buffer("allowed"))
        chosen = [members[kind].get_buffer("noise_variance") for kind in settings.kinds]
        self.noise_variance = torch.stack([noise[i] for i, noise in enumerate(chosen)])

    @property
    def is_straight(self) -> bool:
        return all(cast(Forecaster, member).is_straight for member in self.members.values())

    def forward(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return self._gather(lambda member: cast(Tensor, member(past, rules, domain)))

    def jacobian(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return self._gather(lambda member: member.jacobian(past, rules, domain).detach())

    def distribution(self, past: Tensor, domain: Tensor | None = None) -> Tensor:
        raise NotImplementedError("the members' distributions differ in kind; ask them")

    def log_likelihood(self, window: Window) -> Tensor:
        return self._gather(lambda member: member.log_likelihood(window))

    @property
    def learns_variance(self) -> bool:
        return any(cast(Forecaster, member).learns_variance for member in self.members.values())

    def variance(self, window: Window) -> Tensor:
        return self._gather(lambda member: member.variance(window))

    def score(self, window: Window) -> Tensor:
        return self._gather(lambda member: member.score(window).detach())

    def _gather(self, answer: Callable[[Forecaster], Tensor]) -> Tensor:
        """The members' answers (batch, target, ...), each target's from its own member."""
        answers = {k: answer(cast(Forecaster, member)) for k, member in self.members.items()}
        return torch.stack([answers[k][:, i] for i, k in enumerate(self.settings.kinds)], dim=1)

    def member_of(self, column: int) -> Forecaster:
        return cast(Forecaster, self.members[self.settings.kinds[column]])

    def fit(self, fit_data: FitData) -> None:
        raise NotImplementedError("the members are fitted before they are chosen from")


def choose(members: Sequence[Forecaster], errors: Sequence[Tensor]) -> PerTargetChoice:
    """Pick per target from errors (window, target), members ordered simple to rich.

    A richer member must be better by more than the standard error of the difference: a tie goes
    to the simpler one, which has fewer ways to be wrong. One that is no closed form must be so
    over several blocks of time, and where windows are few over all its targets together, too.
    """
    winners = [0] * members[0].n_variables
    for rival, member in enumerate(members[1:], 1):
        offered = [t for t in range(len(winners)) if member.offers(t)]
        before = torch.stack([errors[winners[t]][:, t] for t in range(len(winners))], dim=1)
        for target in _won(before, errors[rival], offered, member.settings.closed_form):
            winners[target] = rival
    kinds = [members[winner].label for winner in winners]
    used = {m.label: m for m in members if m.label in kinds}
    for label, member in used.items():
        member.keep_only([column for column, kind in enumerate(kinds) if kind == label])
    settings = PerTargetChoiceSettings(
        kinds=tuple(kinds),
        members={label: Member.of(m) for label, m in used.items()},
    )
    shape = (members[0].max_lag, members[0].n_variables)
    return PerTargetChoice(shape, settings, used)


def _won(before: Tensor, after: Tensor, offered: Sequence[int], closed_form: bool) -> list[int]:
    """The offered targets whose errors (window, target) are clearly lower after than before."""
    if closed_form or len(before) < BLOCKS_OF_TIME * LEAST_WINDOWS_PER_BLOCK:
        won = [t for t in offered if clearly_better(before[:, t], after[:, t])]
    else:
        gain = gain_over_blocks(before.double().numpy(), after.double().numpy(), BLOCKS_OF_TIME)
        won = [t for t in offered if gain[t] > 1]
    if closed_form or len(before) >= FEW_JUDGED or not won:
        return won
    scale = before[:, offered].mean(0).clamp(min=1e-12)
    simpler, richer = ((errors[:, offered] / scale).mean(1) for errors in (before, after))
    return won if clearly_better(simpler, richer) else []
