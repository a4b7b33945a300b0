"""The forecasters by name: their presets, and how they are built."""

from __future__ import annotations

from typing import Any, get_args

import torch

from forecause.config import ForecasterName
from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster, ForecasterSettings
from forecause.forecast.models.additive import Additive, AdditiveSettings
from forecause.forecast.models.by_domain import ByDomain
from forecause.forecast.models.choice import Choice, ChoiceSettings
from forecause.forecast.models.chronos import Chronos, ChronosSettings
from forecause.forecast.models.cnn import CNN, CNNSettings
from forecause.forecast.models.deep_transformer import DeepTransformer, DeepTransformerSettings
from forecause.forecast.models.linear import Linear, LinearSettings
from forecause.forecast.models.mlp import MLP, MLPSettings
from forecause.forecast.models.pretrained import Pretrained, PretrainedSettings
from forecause.forecast.models.transformer import Transformer, TransformerSettings
from forecause.forecast.models.vector_transformer import (
    VectorTransformer,
    VectorTransformerSettings,
)
from forecause.forecast.training.loop import TrainedSettings
from forecause.forecast.training.sparsity import TRIED

FORECASTERS: dict[str, tuple[type[Forecaster], type[ForecasterSettings]]] = {
    "linear": (Linear, LinearSettings),
    "additive": (Additive, AdditiveSettings),
    "mlp": (MLP, MLPSettings),
    "transformer": (Transformer, TransformerSettings),
    "deep-transformer": (DeepTransformer, DeepTransformerSettings),  # of the preset paper
    "vector": (VectorTransformer, VectorTransformerSettings),
    "cnn": (CNN, CNNSettings),
    "chronos": (Chronos, ChronosSettings),
    "pretrained": (Pretrained, PretrainedSettings),
}
CLOSED_FORM = ("linear", "additive")
# can have another head than mse, and sparse gradients
NEURAL = ("mlp", "transformer", "deep-transformer", "vector", "cnn")
PRESETS = ("default", "paper", "quick", "sparse")
QUICK_STEPS = 1000


def preset_settings(kind: str, preset: str, head: str = "mse") -> ForecasterSettings:
    """The settings of a forecaster under a preset; only some kinds differ from the default."""
    settings = _of_preset(kind, preset)
    return settings.model_copy(update={"head": head}) if kind in NEURAL else settings


def _of_preset(kind: str, preset: str) -> ForecasterSettings:
    if kind not in FORECASTERS:
        names = ", ".join(get_args(ForecasterName))
        raise InputError(f"Unknown forecaster {kind!r}; choose one of {names}.")
    if preset not in PRESETS:
        raise InputError(f"Unknown preset {preset!r}; choose one of {', '.join(PRESETS)}.")
    settings = FORECASTERS[kind][1]()
    if preset == "quick" and isinstance(settings, ChronosSettings):
        return ChronosSettings.zero_shot(settings.weights)
    if preset != "paper" and isinstance(settings, PretrainedSettings):
        return PretrainedSettings.zero_shot()
    if preset == "quick" and hasattr(settings, "training"):
        short = settings.training.model_copy(update={"max_steps": QUICK_STEPS, "rate_drops": 1})
        return settings.model_copy(update={"training": short})
    if preset == "sparse" and kind in NEURAL and isinstance(settings, TrainedSettings):
        # one fit for each weight, meant for few rows
        brief = {"max_steps": 1000, "look_every": 50, "patience": 3, "rate_drops": 1}
        training = settings.training.model_copy(update=brief)
        return settings.model_copy(update={"training": training, "sparsity": TRIED})
    return settings


def build(kind: str, shape: tuple[int, int], settings: dict[str, Any]) -> Forecaster:
    """An unfitted forecaster from saved settings; its weights are loaded afterwards."""
    if kind == "auto":
        choice = ChoiceSettings(**settings)
        members = {
            label: build(label if label in FORECASTERS else label.rpartition("-")[0], shape, inner)
            for label, inner in choice.members.items()
        }
        return Choice(shape, choice, members)
    if kind not in FORECASTERS:
        raise InputError(f"Unknown forecaster {kind!r} in the saved run.")
    forecaster, settings_type = FORECASTERS[kind]
    chosen = settings_type(**settings)
    if kind in CLOSED_FORM and chosen.domains:
        plain = chosen.model_copy(update={"domains": 0})
        return ByDomain(shape, chosen, [forecaster(shape, plain) for _ in range(chosen.domains)])
    return forecaster(shape, chosen)


def seeded_build(
    kind: str, shape: tuple[int, int], settings: ForecasterSettings, seed: int
) -> Forecaster:
    """Initial weights depend on the seed alone, and the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(kind, shape, settings.model_dump(mode="json"))
