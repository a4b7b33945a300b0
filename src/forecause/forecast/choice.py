"""`auto`: for each target the forecaster that predicts it best on held-out data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from pydantic import field_validator

from forecause.arrays import Floats, Index
from forecause.config import EVERY_HEAD
from forecause.config.thresholds import thresholds
from forecause.data.windows import Window
from forecause.forecast.forecaster import PLAIN, FitData, Forecaster, ForecasterSettings, Rules
from forecause.forecast.members import Member, OfMembers
from forecause.regression.p_values import clearly_better, gain_over_blocks


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


class PerTargetChoice(OfMembers):
    """Several fitted forecasters; each target is read from one of them."""

    settings: PerTargetChoiceSettings

    def __init__(
        self,
        shape: tuple[int, int],
        settings: PerTargetChoiceSettings,
        members: Mapping[str, Forecaster],
    ) -> None:
        super().__init__(shape, settings, {label: members[label] for label in settings.members})
        self._gather_noise()

    @classmethod
    def of(cls, kinds: Sequence[str], members: Mapping[str, Forecaster]) -> PerTargetChoice:
        """Of fitted members by their labels; kinds (target,) are the labels that targets keep."""
        written = {label: Member.of(member) for label, member in members.items()}
        settings = PerTargetChoiceSettings(kinds=tuple(kinds), members=written)
        first = next(iter(members.values()))
        return cls((first.max_lag, first.n_variables), settings, members)

    def _gather_noise(self) -> None:
        own = [self.member_of(target).noise_variance for target in range(self.n_variables)]
        self.noise_variance = np.array([noise[target] for target, noise in enumerate(own)])

    @property
    def learns_variance(self) -> bool:
        return any(member.learns_variance for member in self._members.values())

    def member_of(self, column: int) -> Forecaster:
        return self._members[self.settings.kinds[column]]

    def targets_of(self, label: str) -> list[int]:
        """The columns that a member forecasts."""
        return [target for target, kind in enumerate(self.settings.kinds) if kind == label]

    def keep_only(self, columns: Collection[int]) -> None:
        for label, member in self._members.items():
            member.keep_only([column for column in self.targets_of(label) if column in columns])

    def unfitted(self, seed: int = 0) -> PerTargetChoice:
        """Who forecasts which target stays as it is."""
        shape = (self.max_lag, self.n_variables)
        fresh = {label: member.unfitted(seed) for label, member in self._members.items()}
        return PerTargetChoice(shape, self.settings, fresh)

    def fit(self, fit_data: FitData) -> None:
        """Fit every member for the targets that it forecasts."""
        for label, member in self._members.items():
            own = self.targets_of(label)
            member.fit(replace(fit_data, columns=tuple(own), to_beat=None))
            member.keep_only(own)
        self._gather_noise()

    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        return self._gather(lambda member: member(past, rules, domain))

    def jacobian(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        return self._gather(lambda member: member.jacobian(past, rules, domain))

    def contribution(self, target: int, step: int, source: int, values: Floats) -> Floats | None:
        return self.member_of(target).contribution(target, step, source, values)

    def log_likelihood(self, window: Window) -> Floats:
        return self._gather(lambda member: member.log_likelihood(window))

    def variance(self, window: Window) -> Floats:
        return self._gather(lambda member: member.variance(window))

    def score(self, window: Window) -> Floats:
        return self._gather(lambda member: member.score(window))

    def _gather(self, answer: Callable[[Forecaster], Floats]) -> Floats:
        """The members' answers (batch, target, ...), each target's from its own member."""
        answers = {label: answer(member) for label, member in self._members.items()}
        if len(answers) == 1:
            return next(iter(answers.values()))
        return np.stack([answers[k][:, i] for i, k in enumerate(self.settings.kinds)], axis=1)


def choose(members: Sequence[Forecaster], errors: Sequence[Floats]) -> PerTargetChoice:
    """Pick per target from errors (window, target), members ordered simple to rich.

    A richer member must be better by more than the standard error of the difference: a tie goes
    to the simpler one, which has fewer ways to be wrong. One that is no closed form must be so
    over several blocks of time, and where windows are few over all its targets together, too.
    """
    winners = [0] * members[0].n_variables
    for rival, member in enumerate(members[1:], 1):
        offered = [t for t in range(len(winners)) if member.has_model_for(t)]
        before = np.stack([errors[winners[t]][:, t] for t in range(len(winners))], axis=1)
        for target in clear_wins(before, errors[rival], offered, member.settings.closed_form):
            winners[target] = rival
    kinds = [members[winner].label for winner in winners]
    return PerTargetChoice.of(kinds, {m.label: m for m in members if m.label in kinds})


def clear_wins(
    before: Floats, after: Floats, offered: Sequence[int], closed_form: bool
) -> list[int]:
    """The offered targets whose errors (window, target) are clearly lower after than before."""
    before, after = before.astype(np.float64), after.astype(np.float64)
    bounds = thresholds().choice
    if closed_form or len(before) < bounds.blocks_of_time * bounds.windows_per_block:
        won = [t for t in offered if clearly_better(before[:, t], after[:, t])]
    else:
        gain = gain_over_blocks(before, after, bounds.blocks_of_time)
        won = [t for t in offered if gain[t] > 1]
    if closed_form or len(before) >= bounds.few_judged or not won:
        return won
    scale = np.maximum(before[:, offered].mean(0), 1e-12)
    simpler, richer = ((errors[:, offered] / scale).mean(1) for errors in (before, after))
    return won if clearly_better(simpler, richer) else []
