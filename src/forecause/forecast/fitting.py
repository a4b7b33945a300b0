"""Fitting: one forecaster, or several of which each target keeps the best."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
import torch

from forecause.data.windows import Windows
from forecause.errors import InputError
from forecause.forecast.comparison import Comparison
from forecause.forecast.forecaster import Forecaster, Lesson
from forecause.forecast.heads import LIKELIHOODS
from forecause.forecast.models.separate import Separate
from forecause.forecast.registry import (
    CLOSED_FORM,
    FORECASTERS,
    NEURAL,
    preset_settings,
    seeded_build,
)
from forecause.forecast.screen import MANY, sized, strongest_inputs
from forecause.progress import QUIET, Progress

if TYPE_CHECKING:
    from forecause.resources.budget import Plan

NETWORKS = ["mlp", "transformer"]  # of `auto`, besides the closed forms
NEURAL_FROM = 500  # windows; with fewer, `auto` does not ask networks about the mean
INSTANT = (*CLOSED_FORM, "pretrained")  # fitted in a moment
MOST_CURVED = 1000  # inputs; with more the additive model's curves are too many
WINDOWS_PER_CURVE = 8  # and with fewer windows per input, too
MOST_HELD_OUT = 20_000  # windows to stop by, and as many to compare by
AUTO_HEADS = ("mse", "gaussian")
WITH_WEIGHTS = ("chronos", "pretrained")  # start from weights; those of pretrained are at hand


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
    plan: Plan | None = None,
    progress: Progress = QUIET,
) -> Fitted:
    """Fit one kind, or `auto`; also the held-out loss of every candidate per variable.

    The table's columns are `naive` (the last value repeated), the candidates and `chosen`; its
    numbers are mean squared errors, of a label the Brier score, as shares of what the mean gets.
    Among several candidates the choice goes by them, or by the likelihood if another head than mse
    takes part. Where the panel has domains, their index is an input unless `domain_input` is False.
    `allowed` (target, step, source), over columns, says which inputs may reach which target;
    `weights` are those a pretrained forecaster starts from; a `plan` keeps networks to a time.
    """
    _check_weights(kind, weights)
    domains = len(windows.panel.domain_names) if domain_input else 0
    domains = domains if domains > 1 else 0
    early, late = windows.split(held_out)
    # Stopping and comparing on the same windows would favour whoever looked at them most often.
    places, rng = np.arange(len(late)), np.random.default_rng(0)
    tuning, judging = (late.at(places[part::2]).sample(MOST_HELD_OUT, rng) for part in (0, 1))
    comparison = Comparison(judging)
    labels = windows.panel.coding.label_columns(windows.scale.mean)
    shared = {"labels": labels} | ({"weights": weights} if weights else {})

    def fitted(name: str, member_head: str, known: int) -> Forecaster:
        settings = sized(preset_settings(name, preset, member_head), windows.inputs)
        settings = settings.model_copy(update=shared | {"domains": known})
        settings = plan.applied(name, settings) if plan else settings
        member = seeded_build(name, windows.shape, settings, seed).to(device)
        if allowed is not None:
            member.constrain(allowed)
        if isinstance(member, Separate) and member.settings.inputs:
            member.read_only(screen())
        seconds = plan.seconds(name) if plan else None
        to_beat = partial(comparison.to_beat, member) if comparison.members else None
        member.fit(Lesson(early, tuning, seed, progress, to_beat, seconds))
        return member.eval().requires_grad_(False)

    @cache
    def screen() -> torch.Tensor:
        simple = [m for m in comparison.members if m.kind in CLOSED_FORM]
        simple = simple or [fitted(name, "mse", 0) for name in closed_forms(windows)]
        return strongest_inputs(simple, early)

    for candidate in _candidates(kind, head, domains, windows, preset):
        if not (plan and plan.leaves_out(candidate[0])):
            comparison.add(fitted(*candidate))
    by_likelihood = head != "mse"
    chosen = comparison.choose(by_likelihood)
    surprise = comparison.surprises(chosen) if by_likelihood else None
    return Fitted(chosen, comparison.losses(chosen), surprise)


def _check_weights(kind: str, weights: str | None) -> None:
    if weights is None and kind == "chronos":
        raise InputError(
            "The forecaster chronos needs --weights: a folder with Chronos-2 weights, or their id "
            "on the hub."
        )
    if weights is not None and kind not in WITH_WEIGHTS:
        names = " and ".join(WITH_WEIGHTS)
        raise InputError(
            f"Only {names} start from --weights, no other forecaster takes them; found {kind!r}."
        )


def kinds_tried(
    kind: str, windows: Windows, head: str = "mse", preset: str = "default"
) -> list[str]:
    """The kinds that are fitted, simple to rich: the one asked for, or those of `auto`.

    With few windows of a noisy system networks take far longer and do not rank the inputs better;
    with many inputs the transformer takes many times as long as MLPs that read the same ones.
    """
    kinds = [kind]
    if kind == "auto":
        kinds = closed_forms(windows)
        if len(windows) >= NEURAL_FROM or head != "mse":
            kinds += NETWORKS if windows.inputs <= MANY else NETWORKS[:1]
    if preset == "paper":
        kinds = ["deep-transformer" if name == "transformer" else name for name in kinds]
    return kinds


def closed_forms(windows: Windows) -> list[str]:
    """Those that are affordable: the curves of many inputs need many windows and much memory."""
    curves = windows.inputs <= MANY or (
        windows.inputs <= MOST_CURVED and len(windows) >= WINDOWS_PER_CURVE * windows.inputs
    )
    return [name for name in CLOSED_FORM if name != "additive" or curves]


def _candidates(
    kind: str, head: str, domains: int, windows: Windows, preset: str
) -> list[tuple[str, str, int]]:
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
    return [
        (name, h, known)
        for name in kinds_tried(kind, windows, head, preset)
        for h in (heads if name in NEURAL else ("mse",))
        for known in (
            (0, domains) if domains and kind == "auto" and name in CLOSED_FORM else (domains,)
        )
    ]
