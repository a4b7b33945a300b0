"""A forecaster built again as a saved run describes it, no larger than its saved weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from forecause.config import ForecasterSpec
from forecause.forecast.choice import Member
from forecause.forecast.forecaster import Forecaster, ForecasterSettings
from forecause.networks.settings import TrainedSettings


def rebuilt(
    kind: str,
    shape: tuple[int, int],
    settings: Mapping[str, Any],
    weights: Mapping[str, npt.NDArray[Any]],
) -> Forecaster:
    """The forecaster with its weights. Settings can describe a network of any size: one is built
    only if the weights of the file fill it."""
    spec = ForecasterSpec.named(kind)(**settings)
    assert isinstance(spec, ForecasterSettings), f"{kind} cannot be built"
    if has_network(spec):
        from forecause.networks.outline import check_size

        check_size(spec, shape, weights)
    forecaster = spec.build(shape)
    forecaster.load_state(weights)
    return forecaster


def has_network(spec: ForecasterSpec) -> bool:
    """Whether a forecaster is a network, or one of its members is."""
    if isinstance(spec, TrainedSettings):
        return True
    parts = getattr(spec, "members", None) or getattr(spec, "parts", None) or {}
    members = parts.values() if isinstance(parts, dict) else ()
    return any(
        has_network(ForecasterSpec.named(part.kind)(**part.settings))
        for part in members
        if isinstance(part, Member)
    )
