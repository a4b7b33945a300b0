"""The forecasting station: models that predict X_t from its past, and how they are fitted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from forecause.data.windows import Windows
from forecause.errors import InputError
from forecause.forecast.additive import Additive, AdditiveSettings
from forecause.forecast.base import Forecaster, Report, Settings, silent, squared_errors
from forecause.forecast.choice import Choice, ChoiceSettings, choose
from forecause.forecast.cnn import CNN, CNNSettings
from forecause.forecast.linear import Linear, LinearSettings
from forecause.forecast.mlp import MLP, MLPSettings
from forecause.forecast.transformer import Transformer, TransformerSettings

__all__ = ["FORECASTERS", "Forecaster", "build", "fit_forecaster", "preset_settings"]

FORECASTERS: dict[str, tuple[type[Forecaster], type[Settings]]] = {
    "linear": (Linear, LinearSettings),
    "additive": (Additive, AdditiveSettings),
    "mlp": (MLP, MLPSettings),
    "transformer": (Transformer, TransformerSettings),
    "cnn": (CNN, CNNSettings),
}
CANDIDATES = ("linear", "additive", "mlp", "transformer")  # of `auto`, simple to rich
PRESETS = ("default", "paper", "quick")


def preset_settings(kind: str, preset: str) -> Settings:
    """The settings of a forecaster under a preset; only some kinds differ from the default."""
    if kind not in FORECASTERS:
        names = ", ".join(["auto", *FORECASTERS])
        raise InputError(f"Unknown forecaster {kind!r}; choose one of {names}.")
    if preset not in PRESETS:
        raise InputError(f"Unknown preset {preset!r}; choose one of {', '.join(PRESETS)}.")
    settings = FORECASTERS[kind][1]()
    if preset == "paper" and kind == "transformer":
        return TransformerSettings.paper()
    if preset == "quick" and hasattr(settings, "training"):
        short = settings.training.model_copy(update={"max_steps": 1000, "rate_drops": 1})
        return settings.model_copy(update={"training": short})
    return settings


def build(kind: str, shape: tuple[int, int], settings: dict[str, Any]) -> Forecaster:
    """An unfitted forecaster from saved settings; its weights are loaded afterwards."""
    if kind == "auto":
        choice = ChoiceSettings(**settings)
        members = {name: build(name, shape, inner) for name, inner in choice.members.items()}
        return Choice(shape, choice, members)
    if kind not in FORECASTERS:
        raise InputError(f"Unknown forecaster {kind!r} in the saved run.")
    forecaster, settings_type = FORECASTERS[kind]
    return forecaster(shape, settings_type(**settings))


def fit_forecaster(
    kind: str,
    windows: Windows,
    *,
    preset: str = "default",
    held_out: float = 0.2,
    seed: int = 0,
    device: str = "cpu",
    report: Report = silent,
) -> tuple[Forecaster, pd.DataFrame]:
    """Fit one kind, or `auto`; also the held-out loss of every candidate per variable.

    The table's columns are `naive` (the last value repeated), the candidates and `chosen`.
    """
    early, late = windows.split(held_out)
    # Stopping and comparing on the same windows would favour whoever looked at them most often.
    places = np.arange(len(late))
    tuning, judging = late.at(places[::2]), late.at(places[1::2])
    kinds = CANDIDATES if kind == "auto" else (kind,)
    members: list[Forecaster] = []
    errors: list[torch.Tensor] = []
    for name in kinds:
        member = _seeded_build(name, windows.shape, preset, seed).to(device)
        to_beat = torch.stack([e.mean(0) for e in errors]).amin(0) if errors else None
        member.fit(early, tuning, seed, report, to_beat)
        members.append(member.eval().requires_grad_(False))
        errors.append(squared_errors(member, judging))
    losses = {m.kind: e.double().mean(0).numpy() for m, e in zip(members, errors, strict=True)}
    fitted = choose(members, errors) if kind == "auto" else members[0]
    chosen = fitted.settings.kinds if isinstance(fitted, Choice) else [kind] * windows.shape[1]
    table = pd.DataFrame(
        {"naive": naive_loss(judging), **losses, "chosen": list(chosen)},
        index=pd.Index(windows.panel.variables, name="variable"),
    )
    return fitted, table


def naive_loss(windows: Windows) -> npt.NDArray[np.float64]:
    """Mean squared error of repeating the last value, (variable,)."""
    total = sum((b[:, -1] - b[:, -2]).double().square().sum(0) for b in windows.batches(4096))
    return np.asarray(total) / len(windows)


def _seeded_build(kind: str, shape: tuple[int, int], preset: str, seed: int) -> Forecaster:
    """Initial weights depend on the seed alone, and the caller's random state is left as it was."""
    settings = preset_settings(kind, preset)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(kind, shape, settings.model_dump(mode="json"))
