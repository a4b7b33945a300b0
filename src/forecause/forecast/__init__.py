"""The forecasting station: models that predict X_t from its past, and how they are fitted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from forecause.data.windows import Windows
from forecause.errors import InputError
from forecause.forecast.additive import Additive, AdditiveSettings
from forecause.forecast.base import Forecaster, ForecasterSettings, Lesson, Report, silent
from forecause.forecast.by_domain import ByDomain
from forecause.forecast.categorical import LabelColumns
from forecause.forecast.choice import Choice, ChoiceSettings
from forecause.forecast.chronos import Chronos, ChronosSettings
from forecause.forecast.cnn import CNN, CNNSettings
from forecause.forecast.comparison import Comparison, naive_loss
from forecause.forecast.likelihood import LIKELIHOODS
from forecause.forecast.linear import Linear, LinearSettings
from forecause.forecast.mlp import MLP, MLPSettings
from forecause.forecast.transformer import Transformer, TransformerSettings

__all__ = [
    "FORECASTERS",
    "Fitted",
    "Forecaster",
    "build",
    "fit_forecaster",
    "naive_loss",
    "preset_settings",
]

FORECASTERS: dict[str, tuple[type[Forecaster], type[ForecasterSettings]]] = {
    "linear": (Linear, LinearSettings),
    "additive": (Additive, AdditiveSettings),
    "mlp": (MLP, MLPSettings),
    "transformer": (Transformer, TransformerSettings),
    "cnn": (CNN, CNNSettings),
    "chronos": (Chronos, ChronosSettings),
}
CANDIDATES = ("linear", "additive", "mlp", "transformer")  # of `auto`, simple to rich
CLOSED_FORM = ("linear", "additive")
NEURAL_FROM = 500  # windows; with fewer, `auto` does not ask networks about the mean
NEURAL = ("mlp", "transformer", "cnn")  # can have another head than mse
AUTO_HEADS = ("mse", "gaussian")
PRESETS = ("default", "paper", "quick")


def preset_settings(kind: str, preset: str, head: str = "mse") -> ForecasterSettings:
    """The settings of a forecaster under a preset; only some kinds differ from the default."""
    settings = _of_preset(kind, preset)
    return settings.model_copy(update={"head": head}) if kind in NEURAL else settings


def _of_preset(kind: str, preset: str) -> ForecasterSettings:
    if kind not in FORECASTERS:
        names = ", ".join(["auto", *FORECASTERS])
        raise InputError(f"Unknown forecaster {kind!r}; choose one of {names}.")
    if preset not in PRESETS:
        raise InputError(f"Unknown preset {preset!r}; choose one of {', '.join(PRESETS)}.")
    settings = FORECASTERS[kind][1]()
    if preset == "paper" and kind == "transformer":
        return TransformerSettings.paper()
    if preset == "quick" and isinstance(settings, ChronosSettings):
        return ChronosSettings.zero_shot(settings.weights)
    if preset == "quick" and hasattr(settings, "training"):
        short = settings.training.model_copy(update={"max_steps": 1000, "rate_drops": 1})
        return settings.model_copy(update={"training": short})
    return settings


def build(kind: str, shape: tuple[int, int], settings: dict[str, Any]) -> Forecaster:
    """An unfitted forecaster from saved settings; its weights are loaded afterwards."""
    if kind == "auto":
        choice = ChoiceSettings(**settings)
        members = {
            label: build(label.partition("-")[0], shape, inner)
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


class Fitted(NamedTuple):
    """A forecaster, and the held-out losses of all candidates per variable."""

    forecaster: Forecaster
    losses: pd.DataFrame  # squared errors
    surprise: pd.DataFrame | None = None  # negative log-likelihoods, if the choice went by them


def fit_forecaster(
    kind: str,
    windows: Windows,
    *,
    preset: str = "default",
    head: str = "mse",
    held_out: float = 0.2,
    seed: int = 0,
    device: str = "cpu",
    domain_input: bool = True,
    allowed: torch.Tensor | None = None,
    weights: str | None = None,
    report: Report = silent,
) -> Fitted:
    """Fit one kind, or `auto`; also the held-out loss of every candidate per variable.

    The table's columns are `naive` (the last value repeated), the candidates and `chosen`; its
    numbers are mean squared errors, of a label the Brier score, as shares of what the mean gets.
    Among several candidates the choice goes by them, or by the likelihood if another head than mse
    takes part. Where the panel has domains, their index is an input unless `domain_input` is False.
    `allowed` (target, step, source), over columns, says which inputs may reach which target;
    `weights` are those a pretrained forecaster starts from.
    """
    if (weights is None) == (kind == "chronos"):
        raise InputError(
            "The forecaster chronos needs --weights: a folder with Chronos-2 weights, or their id "
            "on the hub; no other forecaster takes them."
        )
    domains = len(windows.panel.domain_names) if domain_input else 0
    domains = domains if domains > 1 else 0
    early, late = windows.split(held_out)
    # Stopping and comparing on the same windows would favour whoever looked at them most often.
    places = np.arange(len(late))
    tuning, judging = late.at(places[::2]), late.at(places[1::2])
    comparison = Comparison(judging)
    labels = LabelColumns.of(windows)
    for name, member_head, known in _candidates(kind, head, domains, len(windows)):
        settings = preset_settings(name, preset, member_head)
        changes = {"domains": known, "labels": labels} | ({"weights": weights} if weights else {})
        settings = settings.model_copy(update=changes)
        member = _seeded_build(name, windows.shape, settings, seed).to(device)
        if allowed is not None:
            member.constrain(allowed)
        member.fit(Lesson(early, tuning, seed, report, comparison.to_beat(member)))
        comparison.add(member.eval().requires_grad_(False))
    by_likelihood = head != "mse"
    chosen = comparison.choose(by_likelihood)
    surprise = comparison.surprises(chosen) if by_likelihood else None
    return Fitted(chosen, comparison.losses(chosen), surprise)


def _candidates(kind: str, head: str, domains: int, windows: int) -> list[tuple[str, str, int]]:
    """Kind, head and domains of every forecaster to fit, simple to rich.

    Among several, a closed form is tried for all domains together as well as for each. With few
    windows networks take far longer and do not rank the inputs better.
    """
    if head not in ("auto", *LIKELIHOODS):
        names = ", ".join([*LIKELIHOODS, "auto"])
        raise InputError(f"Unknown head {head!r}; choose one of {names}.")
    if head != "mse" and kind in FORECASTERS and kind not in NEURAL:
        raise InputError(
            f"The forecaster {kind!r} has no head {head!r}; use --forecaster "
            f"{', '.join(NEURAL)} or auto, or --head mse."
        )
    heads = AUTO_HEADS if head == "auto" else (head,)
    several = CANDIDATES if windows >= NEURAL_FROM or head != "mse" else CLOSED_FORM
    kinds = several if kind == "auto" else (kind,)
    return [
        (name, h, known)
        for name in kinds
        for h in (heads if name in NEURAL else ("mse",))
        for known in (
            (0, domains) if domains and kind == "auto" and name in CLOSED_FORM else (domains,)
        )
    ]


def _seeded_build(
    kind: str, shape: tuple[int, int], settings: ForecasterSettings, seed: int
) -> Forecaster:
    """Initial weights depend on the seed alone, and the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(kind, shape, settings.model_dump(mode="json"))
