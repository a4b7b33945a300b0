"""A stack: the mean of several forecasters, for a target that none of them clearly wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from forecause.config import ForecasterSpec
from forecause.errors import InputError
from forecause.forecast.forecaster import (
    FitData,
    Floats,
    Forecaster,
    ForecasterSettings,
    Index,
)
from forecause.forecast.members import Member, OfMembers
from forecause.forecast.rules import PLAIN, Rules

JOINED = " + "  # between the labels of the parts


class StackSettings(ForecasterSettings):
    """What every part of a stack is, by its label."""

    kind: ClassVar[str] = "stack"

    parts: dict[str, Member]

    @classmethod
    def of_preset(cls, preset: str) -> ForecasterSpec:
        """Refused: what is stacked follows from other fits."""
        raise InputError(
            "A stack of forecasters is kept by single targets; ask for forecaster='auto'."
        )

    def build(self, shape: tuple[int, int]) -> Stack:
        return Stack(shape, self, {name: part.build(shape) for name, part in self.parts.items()})


class Stack(OfMembers):
    """Forecasts and slopes are the means of those of the parts."""

    settings: StackSettings

    def __init__(
        self, shape: tuple[int, int], settings: StackSettings, parts: Mapping[str, Forecaster]
    ) -> None:
        super().__init__(shape, settings, parts)
        self.noise_variance = np.min([part.noise_variance for part in parts.values()], axis=0)

    @classmethod
    def of(cls, parts: Mapping[str, Forecaster]) -> Stack:
        """Of fitted forecasters."""
        first = next(iter(parts.values()))
        settings = StackSettings(parts={label: Member.of(part) for label, part in parts.items()})
        return cls((first.max_lag, first.n_variables), settings, parts)

    @property
    def label(self) -> str:
        return JOINED.join(self._members)

    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        return np.mean([part(past, rules, domain) for part in self._members.values()], axis=0)

    def jacobian(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        each = [part.jacobian(past, rules, domain) for part in self._members.values()]
        return np.mean(each, axis=0)

    def fit(self, fit_data: FitData) -> None:
        for part in self._members.values():
            part.fit(fit_data)
        self.estimate_noise(fit_data.held_out)
