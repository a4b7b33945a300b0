"""Forecasters for tests: built from plain settings, or fitted to windows."""

from __future__ import annotations

from typing import Any

import numpy as np

from forecause.config import ForecasterSpec, ForecastOptions
from forecause.data.windows import Windows
from forecause.forecast.forecaster import Forecaster
from forecause.forecast.members import Member
from forecause.forecast.selection import (
    UNLIMITED,
    FitContext,
    Fitted,
    Plan,
    fit_best,
    specs_tried,
)
from forecause.progress import QUIET, Progress


def build(kind: str, shape: tuple[int, int], settings: dict[str, Any]) -> Forecaster:
    """An unfitted forecaster."""
    return Member(kind=kind, settings=settings).build(shape)


def fit_forecaster(
    kind: str,
    windows: Windows,
    *,
    seed: int = 0,
    device: str = "cpu",
    allowed: np.ndarray | None = None,
    plan: Plan = UNLIMITED,
    progress: Progress = QUIET,
    **options: Any,
) -> Fitted:
    """`fit_best` with all that a test wants to say as keywords."""
    asked = ForecastOptions(forecaster=kind, **options)
    return fit_best(windows, asked, FitContext(seed, device, allowed, plan, progress))


def preset_settings(kind: str, preset: str, head: str = "mse") -> Any:
    """The settings of a kind under a preset, with another head where it has one."""
    settings = ForecasterSpec.named(kind).of_preset(preset)
    return settings.model_copy(update={"head": head}) if len(settings.head_names) > 1 else settings


def kinds_tried(kind: str, windows: Windows, **options: Any) -> list[str]:
    """The kinds that are fitted, simple to rich."""
    asked = ForecastOptions(forecaster=kind, **options)
    return [settings.kind for settings in specs_tried(asked, windows)]
