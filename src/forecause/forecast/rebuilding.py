"""A forecaster built again as a saved run describes it, no larger than its saved weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy.typing as npt

from forecause.config import ForecasterSpec
from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster, ForecasterSettings
from forecause.forecast.members import Member
from forecause.networks.settings import TrainedSettings


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
