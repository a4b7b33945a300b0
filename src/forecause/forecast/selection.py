"""Which forecasters are tried, how they are fitted, and which one each target keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import pandas as pd

from forecause.common.arrays import Array, Floats, Index, Mask, Single
from forecause.common.work_sharing import parallel_map
from forecause.config import ForecasterSpec, ForecastOptions
from forecause.config.thresholds import thresholds
from forecause.data.windows import Windows
from forecause.forecast.additive import Additive
from forecause.forecast.comparison import Comparison
from forecause.forecast.dictionary import Dictionary, DictionaryModel
from forecause.forecast.forecaster import (
    ENOUGH_WINDOWS,
    MANY_INPUTS,
    FitData,
    Forecaster,
    ForecasterSettings,
)
from forecause.forecast.linear import Linear
from forecause.forecast.products import Products
from forecause.forecast.trees import Trees
from forecause.networks.settings import MLP, MOST_INPUTS, TrainedSettings, Transformer
from forecause.progress import QUIET, Progress
from forecause.regression import scan
from forecause.regression.least_squares import KnownFeatures
from forecause.regression.splines import Splines

# Time and memory:
MOST_CURVED = 1000  # inputs; with more the additive model's curves are too many
MOST_MULTIPLIED = 14  # inputs of a target whose products are scanned
MOST_SCANNED_WINDOWS = 4000
MOST_LEARNED = 60  # inputs of learners; with more, scans of products take too long

HEADS_OF_AUTO = ("mse", "gaussian")

# The forecasters that `auto` tries, simple to rich. Importing this module makes every kind known.
CLOSED_FORMS: list[type[ForecasterSettings]] = [Linear, Additive]
LEARNERS: list[type[ForecasterSettings]] = [Dictionary, Trees]
NETWORKS: list[type[ForecasterSettings]] = [MLP, Transformer]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A forecaster, and the held-out losses of all candidates per variable."""

    forecaster: Forecaster
    losses: pd.DataFrame  # squared errors
    early: Windows  # what was learned from
    late: Windows  # what was held out
    nll: pd.DataFrame | None = None  # negative log-likelihoods, if the choice went by them
    joint: frozenset[int] | None = None  # columns with more to find than lines and splines hold
    fits: Fits | None = None  # all candidates, where there are several

    @property
    def is_auto(self) -> bool:
        """Whether each target keeps one of several candidates."""
        return self.fits is not None

    def networks_ahead(self) -> dict[Forecaster, list[int]]:
        """The networks among the candidates, and the columns that each forecasts clearly better
        than everything simpler."""
        assert self.fits is not None
        return self.fits.comparison.networks_ahead()

    def keeping(self, labels: Sequence[str], products: Mapping[int, tuple[int, ...]]) -> Fitted:
        """The same, each target column forecast by what its label names; see Comparison.keep.

        `products` are the places that each column with a product model reads.
        """
        assert self.fits is not None
        if products:
            self.fits.add_products(products)
        comparison = self.fits.comparison
        kept = comparison.keep(labels)
        return replace(self, forecaster=kept, losses=comparison.losses(kept))


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
        # without `rounds` the share is the cap, however many windows there are
        shorter = settings.trained_with(max_steps=share.steps, rounds=0)
        return shorter.halved() if share.halved else shorter


UNLIMITED = Plan()


@dataclass(frozen=True)
class FitContext:
    """What a fit needs besides the windows and the options."""

    seed: int = 0
    device: str = "cpu"
    allowed: Mask | None = None  # (target, step, source) of columns; None: everything
    plan: Plan = UNLIMITED
    progress: Progress = QUIET


def fit_best(
    windows: Windows,
    options: ForecastOptions | None = None,
    context: FitContext | None = None,
) -> Fitted:
    """Fit what was asked for; of several candidates each target keeps the best.

    The table of losses has the columns `naive` (the last value repeated), `mean` (of the windows
    learned from), the candidates and `chosen`; its numbers are mean squared errors in variances of
    all rows, of a label the Brier score. The choice goes by them, or by the likelihood if another
    head than mse takes part. Where the panel has domains, their index is an input if the options
    say so.
    """
    options, context = options or ForecastOptions(), context or FitContext()
    domains = len(windows.panel.domain_names) if options.domain_input else 0
    fits = Fits(windows, options, context)
    for settings in candidates(options, windows, domains if domains > 1 else 0):
        if not context.plan.leaves_out(settings.kind) and fits.can_win(settings):
            fits.comparison.add(fits.fitted(settings))
    comparison, by_likelihood = fits.comparison, options.head != "mse"
    chosen = comparison.choose(by_likelihood)
    nll = comparison.nlls(chosen) if by_likelihood else None
    of_auto = (fits.joint, fits) if options.forecaster == "auto" else ()
    return Fitted(chosen, comparison.losses(chosen), fits.early, fits.late, nll, *of_auto)


class Fits:
    """Fits candidates one after the other, each knowing how well the earlier ones do."""

    def __init__(self, windows: Windows, options: ForecastOptions, context: FitContext) -> None:
        self.windows, self.options, self.context = windows, options, context
        self.early, self.late = windows.split(options.held_out)
        # Stopping and comparing on the same windows would favour whoever looked most often.
        places, rng = np.arange(len(self.late)), np.random.default_rng(0)
        self.tuning, judging = (
            self.late.at(places[part::2]).sample(ENOUGH_WINDOWS, rng) for part in (0, 1)
        )
        self.comparison = Comparison(judging, self.early.thin(ENOUGH_WINDOWS).targets().mean(0))

    def can_win(self, settings: ForecasterSettings) -> bool:
        """Whether a candidate of `auto` may hold something that the simpler ones do not.

        Networks and trees are tried where some target follows a joint function of its inputs; a
        network also where it is asked for more than the mean.
        """
        if self.options.forecaster != "auto" or settings.closed_form:
            return True
        if self.options.head != "mse" and isinstance(settings, TrainedSettings):
            return True
        return isinstance(settings, Dictionary) or bool(self.joint)

    @cached_property
    def joint(self) -> frozenset[int]:
        """The target columns that follow a joint function of their inputs, as far as scans see."""
        columns = range(self.windows.shape[1])
        members = self.comparison.members
        each = [part for m in members for part in (m.members.values() or [m])]
        dictionaries = [part for part in each if isinstance(part, DictionaryModel)]
        if dictionaries:
            return frozenset(c for c in columns if any(c in m.sure_columns for m in dictionaries))
        rivals = [m for m in members if m.settings.closed_form]
        if not rivals or learners(self.windows):  # the plan left the dictionary out
            return frozenset(columns)
        left = partial(self.comparison.residuals, rivals)
        return columns_with_products(self.early, left, self.strongest)

    def fitted(self, settings: ForecasterSettings) -> Forecaster:
        """A candidate, built, constrained and fitted."""
        context, comparison = self.context, self.comparison
        settings = self._completed(settings)
        member = settings.seeded_build(self.windows.shape, context.seed).to(context.device)
        if context.allowed is not None:
            member.constrain(context.allowed)
        if member.reads_few:
            member.read_only(np.sort(self.strongest, axis=1))
        to_beat = partial(comparison.to_beat, member) if comparison.members else None
        seconds = context.plan.seconds(settings.kind)
        columns = None
        if self.options.forecaster == "auto" and type(settings) in LEARNERS[1:]:
            columns = tuple(sorted(self.joint))
        about = context.seed, context.progress, to_beat, seconds, columns
        member.fit(FitData(self.early, self.tuning, *about))
        return member

    def add_products(self, products: Mapping[int, tuple[int, ...]]) -> None:
        """Fit the products of some columns, whose places are known once inputs were tested."""
        places = tuple(products.get(c, ()) for c in range(self.windows.shape[1]))
        self.comparison.add(self.fitted(Products(places=places)))

    def _completed(self, settings: ForecasterSettings) -> ForecasterSettings:
        settings = settings.sized(self.windows.inputs)
        labels = self.windows.panel.coding.label_columns(self.windows.scale.mean)
        settings = settings.model_copy(update={"labels": labels})
        if self.options.weights is not None:
            settings = settings.with_weights(self.options.weights)
        return self.context.plan.applied(settings)

    @cached_property
    def strongest(self) -> Index:
        """The inputs that closed forms find strongest, for networks that read few."""
        simple = [m for m in self.comparison.members if m.settings.closed_form]
        simple = simple or [self.fitted(kind()) for kind in closed_forms(self.windows)]
        return strongest_inputs(simple, self.early)

    @property
    def simple_members(self) -> list[Forecaster]:
        """The candidates whose slopes are cheap: closed forms and the dictionary."""
        kinds = self.comparison.members
        return [m for m in kinds if m.settings.closed_form or isinstance(m.settings, Dictionary)]


def candidates(
    options: ForecastOptions, windows: Windows, domains: int = 0
) -> list[ForecasterSettings]:
    """The settings of every forecaster to fit, simple to rich.

    Among several, a closed form is tried for all domains together as well as for each.
    """
    heads = HEADS_OF_AUTO if options.head == "auto" else (options.head,)
    tried: list[ForecasterSettings] = []
    for settings in specs_tried(options, windows):
        has_heads = len(settings.head_names) > 1
        together = options.forecaster == "auto" and settings.closed_form and domains
        for head in heads if has_heads else ("mse",):
            for known in (0, domains) if together else (domains,):
                changes: dict[str, object] = {"domains": known}
                if has_heads:
                    changes["head"] = head
                tried.append(settings.model_copy(update=changes))
    return tried


def specs_tried(options: ForecastOptions, windows: Windows) -> list[ForecasterSettings]:
    """What is fitted, simple to rich: the forecaster asked for, or those of `auto`.

    With few windows of a noisy system networks take far longer and do not rank the inputs better;
    with many inputs the transformer takes many times as long as MLPs that read the same ones. Where
    dictionaries and trees take part, networks need many windows to add to them (bench calibration).
    """
    asked = options.forecaster
    if isinstance(asked, ForecasterSpec):
        return [_as_settings(asked)]
    kinds: list[type[ForecasterSpec]] = []
    if asked != "auto":
        kinds = [ForecasterSpec.named(asked)]
    else:
        kinds += [*closed_forms(windows), *learners(windows)]
        bounds = thresholds().choice
        least = bounds.neural_beside_learners_from if learners(windows) else bounds.neural_from
        if len(windows) >= least or options.head != "mse":
            kinds += NETWORKS if windows.inputs <= MANY_INPUTS else NETWORKS[:1]
    return [_as_settings(kind.of_preset(options.preset)) for kind in kinds]


def _as_settings(spec: ForecasterSpec) -> ForecasterSettings:
    assert isinstance(spec, ForecasterSettings), f"{spec.kind} cannot be built"
    return spec


def closed_forms(windows: Windows) -> list[type[ForecasterSettings]]:
    """Those that are affordable: the curves of many inputs need many windows and much memory."""
    least = thresholds().choice.windows_per_curve * windows.inputs
    curves = windows.inputs <= MANY_INPUTS or (
        windows.inputs <= MOST_CURVED and len(windows) >= least
    )
    return [kind for kind in CLOSED_FORMS if curves or kind().features(1) == 1]


def learners(windows: Windows) -> list[type[ForecasterSettings]]:
    """Those of `auto` that look for joint functions, where inputs are few and rows enough."""
    return LEARNERS if affords_learners(windows.inputs, len(windows)) else []


def affords_learners(inputs: int, windows: int) -> bool:
    """Whether joint functions of so many inputs can be looked for in so many windows."""
    bounds = thresholds().choice
    least = max(bounds.least_to_learn, bounds.windows_per_learned * inputs)
    return inputs <= MOST_LEARNED and windows >= least


# Time and memory:
READ_WINDOWS = 500
BATCH = 50


def strongest_inputs(models: Sequence[Forecaster], windows: Windows) -> Index:
    """The places step * variable of every target's MOST_INPUTS strongest inputs, (target, input).

    Strong is what has the largest share of a target's gradient energy in any of the models. The
    target's own latest value is the first of them.
    """
    shares = energy_shares(models, windows).reshape(windows.shape[1], -1)
    own = np.arange(len(shares))
    shares[own, shares.shape[1] - len(shares) + own] = np.inf
    return np.argsort(-shares, axis=1, kind="stable")[:, :MOST_INPUTS]


def energy_shares(models: Sequence[Forecaster], windows: Windows) -> Array:
    """The largest share of a target's gradient energy in any of the models, (target, step,
    column)."""
    sample = windows.sample(READ_WINDOWS, np.random.default_rng(0))
    largest = np.max([_energy_shares(model, sample) for model in models], axis=0)
    return np.asarray(largest.reshape(-1, *windows.shape))


def _energy_shares(model: Forecaster, windows: Windows) -> Array:
    """Share of each target's gradient energy, (target, step * variable)."""
    windows = windows.at(np.arange(1)) if model.is_straight else windows
    energy = np.zeros((windows.shape[1], windows.inputs))
    for window in windows.batches(BATCH):
        slopes = model.jacobian(window.past, domain=window.domain)
        energy += np.square(slopes).sum(0).reshape(energy.shape)
    return np.asarray(energy / np.maximum(energy.sum(1, keepdims=True), 1e-12))


def columns_with_products(
    windows: Windows, residuals: Callable[[Windows], Floats], strongest: Index
) -> frozenset[int]:
    """The target columns whose residuals (window, column) follow a product of two inputs.

    strongest (column, input) are the places step * variable of every column's strongest inputs,
    the strongest first.
    """
    looked = windows.thin(MOST_SCANNED_WINDOWS)
    batch = looked.whole()
    inputs, left = batch.past.reshape(len(batch), -1), residuals(looked).astype(np.float64)
    numeric = np.isin(np.arange(looked.shape[1]), looked.panel.coding.numeric_columns)
    is_curved = np.tile(numeric, looked.shape[0])
    level = thresholds().choice.joint_level / left.shape[1]
    own = [some[is_curved[some]] for some in strongest[:, :MOST_MULTIPLIED]]
    columns = range(len(own))
    following = parallel_map(_follows_product, (inputs, left, own, level), columns)
    return frozenset(column for column, is_one in zip(columns, following, strict=True) if is_one)


def _follows_product(data: tuple[Single, Array, list[Index], float], column: int) -> bool:
    """Whether the residuals (row, column) of a column follow a product of two of its own inputs."""
    every, left, own, level = data
    inputs, residual = every[:, own[column]].astype(np.float64), left[:, column]
    columns = np.arange(inputs.shape[1])
    if len(columns) < 2:
        return False
    [proposals] = scan.PairScan(inputs, columns, scan.PLAIN)(residual[:, None])
    bends = Splines.of(inputs, np.ones(len(columns), dtype=bool)).bends(inputs)
    known = np.concatenate([np.ones((len(inputs), 1)), inputs, bends], axis=1)
    return bool(scan.confirmed(proposals, inputs, residual, KnownFeatures.of(known), 1, level))
