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
from forecause.forecast.base import (
    Forecaster,
    ForecasterSettings,
    Report,
    over_windows,
    silent,
    squared_errors,
)
from forecause.forecast.by_domain import ByDomain
from forecause.forecast.choice import Choice, ChoiceSettings, choose
from forecause.forecast.cnn import CNN, CNNSettings
from forecause.forecast.likelihood import LIKELIHOODS
from forecause.forecast.linear import Linear, LinearSettings
from forecause.forecast.mlp import MLP, MLPSettings
from forecause.forecast.transformer import Transformer, TransformerSettings

__all__ = ["FORECASTERS", "Forecaster", "build", "fit_forecaster", "preset_settings"]

FORECASTERS: dict[str, tuple[type[Forecaster], type[ForecasterSettings]]] = {
    "linear": (Linear, LinearSettings),
    "additive": (Additive, AdditiveSettings),
    "mlp": (MLP, MLPSettings),
    "transformer": (Transformer, TransformerSettings),
    "cnn": (CNN, CNNSettings),
}
CANDIDATES = ("linear", "additive", "mlp", "transformer")  # of `auto`, simple to rich
CLOSED_FORM = ("linear", "additive")
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
    report: Report = silent,
) -> tuple[Forecaster, pd.DataFrame]:
    """Fit one kind, or `auto`; also the held-out loss of every candidate per variable.

    The table's columns are `naive` (the last value repeated), the candidates and `chosen`; its
    numbers are mean squared errors. Among several candidates the choice goes by them, or by the
    likelihood if another head than mse takes part. Where the panel has domains, their index is an
    input unless `domain_input` is False. `allowed` (target, step, source) says which inputs may
    reach which target.
    """
    domains = len(windows.panel.domain_names) if domain_input else 0
    domains = domains if domains > 1 else 0
    early, late = windows.split(held_out)
    # Stopping and comparing on the same windows would favour whoever looked at them most often.
    places = np.arange(len(late))
    tuning, judging = late.at(places[::2]), late.at(places[1::2])
    members: list[Forecaster] = []
    squared: list[torch.Tensor] = []
    surprise: list[torch.Tensor] = []  # negative log-likelihood
    for name, member_head, known in _candidates(kind, head, domains):
        member = _seeded_build(name, windows.shape, preset, member_head, known, seed).to(device)
        if allowed is not None:
            member.constrain(allowed)
        rivals = squared if member.likelihood.fixed else surprise
        to_beat = torch.stack([e.mean(0) for e in rivals]).amin(0) if rivals else None
        member.fit(early, tuning, seed, report, to_beat)
        members.append(member.eval().requires_grad_(False))
        squared.append(squared_errors(member, judging))
        surprise.append(-over_windows(member, judging, member.log_likelihood))
    losses = {m.label: e.double().mean(0).numpy() for m, e in zip(members, squared, strict=True)}
    errors = squared if head == "mse" else surprise
    fitted = choose(members, errors) if len(members) > 1 else members[0]
    chosen = (
        fitted.settings.kinds if isinstance(fitted, Choice) else [fitted.label] * windows.shape[1]
    )
    table = pd.DataFrame(
        {"naive": naive_loss(judging), **losses, "chosen": list(chosen)},
        index=pd.Index(windows.panel.variables, name="variable"),
    )
    return fitted, table


def naive_loss(windows: Windows) -> npt.NDArray[np.float64]:
    """Mean squared error of repeating the last value, (variable,)."""
    total = sum((b[:, -1] - b[:, -2]).double().square().sum(0) for b in windows.batches(4096))
    return np.asarray(total) / len(windows)


def _candidates(kind: str, head: str, domains: int) -> list[tuple[str, str, int]]:
    """Kind, head and domains of every forecaster to fit, simple to rich.

    Among several, a closed form is tried for all domains together as well as for each.
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
    kinds = CANDIDATES if kind == "auto" else (kind,)
    return [
        (name, h, known)
        for name in kinds
        for h in (heads if name in NEURAL else ("mse",))
        for known in (
            (0, domains) if domains and kind == "auto" and name in CLOSED_FORM else (domains,)
        )
    ]


def _seeded_build(
    kind: str, shape: tuple[int, int], preset: str, head: str, domains: int, seed: int
) -> Forecaster:
    """Initial weights depend on the seed alone, and the caller's random state is left as it was."""
    settings = preset_settings(kind, preset, head).model_copy(update={"domains": domains})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(kind, shape, settings.model_dump(mode="json"))
