"""Forecasters made of others: one per target, one per domain; how they are rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import field_validator

from forecause.common.arrays import Floats, Index, Mask
from forecause.config import EVERY_HEAD, ForecasterSpec, Settings
from forecause.data.windows import Window
from forecause.errors import InputError
from forecause.forecast.forecaster import PLAIN, FitData, Forecaster, ForecasterSettings, Rules
from forecause.networks.settings import TrainedSettings
from forecause.progress import QUIET

if TYPE_CHECKING:
    from forecause.forecast.input_tests.protocol import InputTests, TestRequest


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
        return _named(self.kind, self.settings).build(shape)


def built(members: Mapping[str, Member], shape: tuple[int, int]) -> dict[str, Forecaster]:
    """The members, unfitted."""
    return {name: member.build(shape) for name, member in members.items()}


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
        return PerTargetChoice(shape, self, built(self.members, shape))


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


def rebuilt(
    kind: str,
    shape: tuple[int, int],
    settings: Mapping[str, Any],
    weights: Mapping[str, npt.NDArray[Any]],
) -> Forecaster:
    """The forecaster with its weights. Settings can describe one of any size: it is built only if
    the weights of the file fill it."""
    spec = _named(kind, settings)
    leaves = list(_leaves(spec))
    _check_parts(leaves, weights)
    networks = [leaf for leaf in leaves if isinstance(leaf, TrainedSettings)]
    if networks:
        from forecause.networks.outline import check_size

        check_size(networks, shape, weights)
    forecaster = spec.build(shape)
    forecaster.load_state(weights)
    return forecaster


def _named(kind: str, settings: Mapping[str, Any]) -> ForecasterSettings:
    spec = ForecasterSpec.named(kind)(**settings)
    assert isinstance(spec, ForecasterSettings), f"{kind} cannot be built"
    return spec


def _leaves(spec: ForecasterSettings) -> Iterator[ForecasterSettings]:
    """The settings of a forecaster, or of the members that it is made of."""
    parts = getattr(spec, "members", None) or getattr(spec, "parts", None)
    if not isinstance(parts, Mapping):
        yield spec
        return
    for part in parts.values():
        assert isinstance(part, Member)
        yield from _leaves(_named(part.kind, part.settings))


def _check_parts(
    leaves: Iterable[ForecasterSettings], weights: Mapping[str, npt.NDArray[Any]]
) -> None:
    """A closed form has arrays of its own for every domain, and a number for every term."""
    numbers = sum(values.size for values in weights.values())
    for leaf in leaves:
        if isinstance(leaf, TrainedSettings):
            continue
        if leaf.domains > len(weights) or leaf.features(1) > numbers:
            raise InputError("the settings describe a network of endless parts")
