"""A closed-form forecaster for each domain: every effect may differ between domains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from forecause.forecast.forecaster import (
    FitData,
    Floats,
    Forecaster,
    ForecasterSettings,
    Index,
)
from forecause.forecast.members import OfMembers
from forecause.forecast.rules import PLAIN, Rules
from forecause.progress import QUIET

if TYPE_CHECKING:
    from forecause.forecast.input_tests.protocol import InputTests, TestRequest

Plain = TypeVar("Plain", bound=ForecasterSettings)


class ByDomain(OfMembers):
    """Members of one kind; each forecasts the windows of its own domain."""

    def __init__(
        self, shape: tuple[int, int], settings: ForecasterSettings, each: Sequence[Forecaster]
    ) -> None:
        super().__init__(shape, settings, {str(d): member for d, member in enumerate(each)})
        self.each = list(each)

    @property
    def label(self) -> str:
        return f"{self.kind}-by-domain"

    @property
    def is_straight(self) -> bool:
        return False  # slopes differ between the windows of two domains

    def has_model_for(self, column: int) -> bool:
        return any(member.has_model_for(column) for member in self.each)

    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        return self._gather(past, domain, lambda member, part: member(part, rules))

    def jacobian(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        return self._gather(past, domain, lambda member, part: member.jacobian(part, rules))

    def input_tests(self, request: TestRequest) -> InputTests:
        return self.each[0].input_tests(request)

    def fit(self, fit_data: FitData) -> None:
        for domain, member in enumerate(self.each):
            fit_data.progress.step(
                f"fitting the {self.kind} model by domain", domain / self.domains
            )
            member.fit(replace(fit_data.of_domain(domain), progress=QUIET))
        self.estimate_noise(fit_data.held_out)

    def _gather(
        self, past: Floats, domain: Index | None, answer: Callable[[Forecaster, Floats], Floats]
    ) -> Floats:
        """Answers (batch, ...) of each window's own member."""
        assert domain is not None
        present = np.unique(domain).tolist()
        places = [np.flatnonzero(domain == d) for d in present]
        answers = [
            answer(self.each[d], past[rows]) for d, rows in zip(present, places, strict=True)
        ]
        return np.concatenate(answers)[np.argsort(np.concatenate(places))]


def by_domain(
    settings: Plain, build: Callable[[Plain], Forecaster], shape: tuple[int, int]
) -> Forecaster:
    """The forecaster itself, or where the settings tell domains apart one for each of them."""
    if not settings.domains:
        return build(settings)
    plain = settings.model_copy(update={"domains": 0})
    return ByDomain(shape, settings, [build(plain) for _ in range(settings.domains)])
