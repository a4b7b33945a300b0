"""Which forecasters are tried, how they are fitted, and which one each target keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from forecause.config import ForecasterSpec, ForecastOptions
from forecause.data.windows import Windows
from forecause.forecast.comparison import Comparison
from forecause.forecast.forecaster import FitData, Forecaster, ForecasterSettings
from forecause.forecast.models import CLOSED_FORMS, NETWORKS
from forecause.forecast.models.separate import MANY, MOST_INPUTS
from forecause.forecast.training.loop import TrainedSettings
from forecause.progress import QUIET, Progress

NEURAL_FROM = 500  # windows; with fewer, `auto` does not ask networks about the mean
MOST_CURVED = 1000  # inputs; with more the additive model's curves are too many
WINDOWS_PER_CURVE = 8  # and with fewer windows per input, too
MOST_HELD_OUT = 20_000  # windows to stop by, and as many to compare by
HEADS_OF_AUTO = ("mse", "gaussian")


class Fitted(NamedTuple):
    """A forecaster, and the held-out losses of all candidates per variable."""

    forecaster: Forecaster
    losses: pd.DataFrame  # squared errors
    early: Windows  # what was learned from
    late: Windows  # what was held out
    nll: pd.DataFrame | None = None  # negative log-likelihoods, if the choice went by them


@dataclass(frozen=True)
class Share:
    """What one network is given of a budget."""

    seconds: float
    steps: int
    halved: bool = False


@dataclass(frozen=True)
class Plan:
    """What the time is spent on; by default there is no limit."""

    networks: Mapping[str, Share | None] = field(default_factory=dict)  # None: not trained
    effort: float = 1.0  # share of the windows that are read and tested
    notes: tuple[str, ...] = ()

    def leaves_out(self, kind: str) -> bool:
        """Whether a network is not trained at all."""
        return kind in self.networks and self.networks[kind] is None

    def seconds(self, kind: str) -> float | None:
        """How long a network may train."""
        share = self.networks.get(kind)
        return share.seconds if share else None

    def applied(self, settings: ForecasterSettings) -> ForecasterSettings:
        """The settings of a forecaster as the plan has it."""
        share = self.networks.get(settings.kind)
        if share is None or not isinstance(settings, TrainedSettings):
            return settings
        shorter = settings.trained_with(max_steps=min(settings.training.max_steps, share.steps))
        return shorter.halved() if share.halved else shorter


UNLIMITED = Plan()


@dataclass(frozen=True)
class FitContext:
    """What a fit needs besides the windows and the options."""

    seed: int = 0
    device: str = "cpu"
    allowed: torch.Tensor | None = None  # (target, step, source) of columns; None: everything
    plan: Plan = UNLIMITED
    progress: Progress = QUIET


def fit_best(
    windows: Windows,
    options: ForecastOptions | None = None,
    context: FitContext | None = None,
) -> Fitted:
    """Fit what was asked for; of several candidates each target keeps the best.

    The table of losses has the columns `naive` (the last value repeated), the candidates and
    `chosen`; its numbers are mean squared errors, of a label the Brier score, as shares of what
    the mean gets. The choice goes by them, or by the likelihood if another head than mse takes
    part. Where the panel has domains, their index is an input if the options say so.
    """
    options, context = options or ForecastOptions(), context or FitContext()
    domains = len(windows.panel.domain_names) if options.domain_input else 0
    fits = _Fits(windows, options, context)
    for settings in candidates(options, windows, domains if domains > 1 else 0):
        if not context.plan.leaves_out(settings.kind):
            fits.comparison.add(fits.fitted(settings))
    comparison, by_likelihood = fits.comparison, options.head != "mse"
    chosen = comparison.choose(by_likelihood)
    nll = comparison.nlls(chosen) if by_likelihood else None
    return Fitted(chosen, comparison.losses(chosen), fits.early, fits.late, nll)


class _Fits:
    """Fits candidates one after the other, each knowing how well the earlier ones do."""

    def __init__(self, windows: Windows, options: ForecastOptions, context: FitContext) -> None:
        self.windows, self.options, self.context = windows, options, context
        self.early, self.late = windows.split(options.held_out)
        # Stopping and comparing on the same windows would favour whoever looked most often.
        places, rng = np.arange(len(self.late)), np.random.default_rng(0)
        self.tuning, judging = (
            self.late.at(places[part::2]).sample(MOST_HELD_OUT, rng) for part in (0, 1)
        )
        self.comparison = Comparison(judging)

    def fitted(self, settings: ForecasterSettings) -> Forecaster:
        """A candidate, built, constrained and fitted."""
        context, comparison = self.context, self.comparison
        settings = self._completed(settings)
        member = seeded_build(settings, self.windows.shape, context.seed).to(context.device)
        if context.allowed is not None:
            member.constrain(context.allowed)
        if member.reads_few:
            member.read_only(self.strongest)
        to_beat = partial(comparison.to_beat, member) if comparison.members else None
        seconds = context.plan.seconds(settings.kind)
        fit_data = FitData(
            self.early, self.tuning, context.seed, context.progress, to_beat, seconds
        )
        member.fit(fit_data)
        return member.eval().requires_grad_(False)

    def _completed(self, settings: ForecasterSettings) -> ForecasterSettings:
        settings = settings.sized(self.windows.inputs)
        labels = self.windows.panel.coding.label_columns(self.windows.scale.mean)
        settings = settings.model_copy(update={"labels": labels})
        if self.options.weights is not None:
            settings = settings.with_weights(self.options.weights)
        return self.context.plan.applied(settings)

    @cached_property
    def strongest(self) -> torch.Tensor:
        """The inputs that closed forms find strongest, for networks that read few."""
        simple = [m for m in self.comparison.members if m.settings.closed_form]
        simple = simple or [self.fitted(kind()) for kind in closed_forms(self.windows)]
        return strongest_inputs(simple, self.early)


def candidates(
    options: ForecastOptions, windows: Windows, domains: int = 0
) -> list[ForecasterSettings]:
    """The settings of every forecaster to fit, simple to rich.

    Among several, a closed form is tried for all domains together as well as for each.
    """
    heads = HEADS_OF_AUTO if options.head == "auto" else (options.head,)
    found: list[ForecasterSettings] = []
    for settings in specs_tried(options, windows):
        own_heads = heads if len(settings.head_names) > 1 else ("mse",)
        together = options.forecaster == "auto" and settings.closed_form and domains
        for head in own_heads:
            for known in (0, domains) if together else (domains,):
                changes = {"domains": known}
                head_change = {"head": head} if len(settings.head_names) > 1 else {}
                found.append(settings.model_copy(update=changes | head_change))
    return found


def specs_tried(options: ForecastOptions, windows: Windows) -> list[ForecasterSettings]:
    """What is fitted, simple to rich: the forecaster asked for, or those of `auto`.

    With few windows of a noisy system networks take far longer and do not rank the inputs better;
    with many inputs the transformer takes many times as long as MLPs that read the same ones.
    """
    asked = options.forecaster
    if isinstance(asked, ForecasterSpec):
        return [_as_settings(asked)]
    kinds: list[type[ForecasterSpec]] = []
    if asked != "auto":
        kinds = [ForecasterSpec.named(asked)]
    else:
        kinds += closed_forms(windows)
        if len(windows) >= NEURAL_FROM or options.head != "mse":
            kinds += NETWORKS if windows.inputs <= MANY else NETWORKS[:1]
    return [_as_settings(kind.of_preset(options.preset)) for kind in kinds]


def _as_settings(spec: ForecasterSpec) -> ForecasterSettings:
    assert isinstance(spec, ForecasterSettings), f"{spec.kind} cannot be built"
    return spec


def closed_forms(windows: Windows) -> list[type[ForecasterSettings]]:
    """Those that are affordable: the curves of many inputs need many windows and much memory."""
    curves = windows.inputs <= MANY or (
        windows.inputs <= MOST_CURVED and len(windows) >= WINDOWS_PER_CURVE * windows.inputs
    )
    return [kind for kind in CLOSED_FORMS if curves or kind().features(1) == 1]


def build_saved(kind: str, shape: tuple[int, int], settings: dict[str, object]) -> Forecaster:
    """An unfitted forecaster as a saved run describes it; its weights are loaded afterwards."""
    spec = ForecasterSpec.named(kind)(**settings)
    assert isinstance(spec, ForecasterSettings)
    return spec.build(shape)


def seeded_build(settings: ForecasterSettings, shape: tuple[int, int], seed: int) -> Forecaster:
    """Initial weights depend on the seed alone, and the caller's random state is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return settings.build(shape)


READ_WINDOWS = 500
BATCH = 50


def strongest_inputs(models: Sequence[Forecaster], windows: Windows) -> Tensor:
    """The places step * variable of every target's MOST_INPUTS strongest inputs, (target, input).

    Strong is what has the largest share of a target's gradient energy in any of the models. The
    target's own latest value is always among them.
    """
    sample = windows.sample(READ_WINDOWS, np.random.default_rng(0))
    shares = torch.stack([_energy_shares(model, sample) for model in models]).amax(0)
    variables = len(shares)
    own = torch.arange(variables)
    shares[own, shares.shape[1] - variables + own] = torch.inf
    return shares.topk(MOST_INPUTS, dim=1).indices.sort(dim=1).values


def _energy_shares(model: Forecaster, windows: Windows) -> Tensor:
    """Share of each target's gradient energy, (target, step * variable)."""
    device = model.get_buffer("allowed").device
    energy = torch.zeros(windows.shape[1], windows.shape[0] * windows.shape[1])
    for batch in windows.batches(BATCH):
        window = batch.to(device)
        slopes = model.jacobian(window.past, domain=window.domain).detach()
        energy += slopes.square().sum(0).flatten(1).cpu()
    return energy / energy.sum(1, keepdim=True).clamp(min=1e-12)
