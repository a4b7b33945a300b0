"""Forecasters that are made of others: what they have in common, and how a member is saved."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from forecause.config import ForecasterSpec, Settings
from forecause.forecast.forecaster import Forecaster, ForecasterSettings, Mask


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


class OfMembers(Forecaster):
    """A forecaster that is made of others, by their names in a saved run."""

    def __init__(
        self,
        shape: tuple[int, int],
        settings: ForecasterSettings,
        members: Mapping[str, Forecaster],
    ) -> None:
        super().__init__(shape, settings)
        self._members = dict(members)
        each = list(self._members.values())
        self.domains = max(settings.domains, *(member.domains for member in each))
        self.labels, self.allowed = each[0].labels, each[0].allowed
        self.read_windows = min(member.read_windows for member in each)
        self.asked_inputs = min(member.asked_inputs for member in each)

    @property
    def members(self) -> Mapping[str, Forecaster]:
        return self._members

    @property
    def is_straight(self) -> bool:
        return all(member.is_straight for member in self._members.values())

    def constrain(self, allowed: Mask) -> None:
        super().constrain(allowed)
        for member in self._members.values():
            member.constrain(allowed)

    def keep_only(self, columns: Collection[int]) -> None:
        for member in self._members.values():
            member.keep_only(columns)
