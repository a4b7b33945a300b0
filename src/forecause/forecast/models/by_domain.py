"""A closed-form forecaster for each domain: every effect may differ between domains."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeVar, cast

import torch
from torch import Tensor, nn

from forecause.forecast.backward import PLAIN, Rules
from forecause.forecast.forecaster import FitData, Forecaster, ForecasterSettings
from forecause.progress import QUIET

Plain = TypeVar("Plain", bound=ForecasterSettings)


class ByDomain(Forecaster):
    """Members of one kind; each forecasts the windows of its own domain."""

    def __init__(
        self, shape: tuple[int, int], settings: ForecasterSettings, members: Sequence[Forecaster]
    ) -> None:
        super().__init__(shape, settings)
        self.members = nn.ModuleList(members)

    @property
    def label(self) -> str:
        return f"{self.kind}-by-domain"

    def constrain(self, allowed: Tensor) -> None:
        super().constrain(allowed)
        for member in self._each():
            member.constrain(allowed)

    def offers(self, column: int) -> bool:
        return any(member.offers(column) for member in self._each())

    def keep_only(self, columns: Collection[int]) -> None:
        for member in self._each():
            member.keep_only(columns)

    def forward(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return self._gather(past, domain, lambda member, part: cast(Tensor, member(part, rules)))

    def jacobian(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        return self._gather(past, domain, lambda member, part: member.jacobian(part, rules))

    def fit(self, fit_data: FitData) -> None:
        for domain, member in enumerate(self._each()):
            fit_data.progress.step(
                f"fitting the {self.kind} model by domain", domain / self.domains
            )
            member.fit(replace(fit_data.of_domain(domain), progress=QUIET))
        self.estimate_noise(fit_data.held_out)

    def _each(self) -> list[Forecaster]:
        return [cast(Forecaster, member) for member in self.members]

    def _gather(
        self, past: Tensor, domain: Tensor | None, answer: Callable[[Forecaster, Tensor], Tensor]
    ) -> Tensor:
        """Answers (batch, ...) of each window's own member."""
        assert domain is not None
        present = domain.unique().tolist()
        places = [torch.nonzero(domain == d).flatten() for d in present]
        answers = [
            answer(self._each()[d], past[rows]) for d, rows in zip(present, places, strict=True)
        ]
        return torch.cat(answers)[torch.cat(places).argsort()]


def by_domain(
    settings: Plain, build: Callable[[Plain], Forecaster], shape: tuple[int, int]
) -> Forecaster:
    """The forecaster itself, or where the settings tell domains apart one for each of them."""
    if not settings.domains:
        return build(settings)
    plain = settings.model_copy(update={"domains": 0})
    return ByDomain(shape, settings, [build(plain) for _ in range(settings.domains)])
