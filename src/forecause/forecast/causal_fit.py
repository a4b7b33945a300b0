"""How the causal forecaster is fitted: every target again on its causes alone, on all rows.

The recipe (bench causal): inputs are the edges of the graph. Per target ridge lines, whose penalty
is chosen on 5 contiguous blocks of time; splines only if they are a standard error better there;
products, dictionary, trees, the mean of these two or a network only where something joint was kept,
and if two standard errors better on the last fifth; of several the one of the least error. Then
everything is fitted again on all rows. What is no cause of a target cannot move it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from forecause.common.arrays import Array, Index, Mask
from forecause.config import ForecasterSpec, ForecastOptions
from forecause.config.thresholds import thresholds
from forecause.data.windows import Windows
from forecause.forecast.additive import Additive
from forecause.forecast.causal import MOST_RESIDUALS, CausalForecaster
from forecause.forecast.dictionary import Dictionary
from forecause.forecast.forecaster import (
    LEAST_NOISE,
    FitData,
    Forecaster,
    ForecasterSettings,
    residuals_of,
)
from forecause.forecast.linear import Linear
from forecause.forecast.means import JOINED, Stack
from forecause.forecast.products import Products
from forecause.forecast.refit import (
    Candidate,
    Causes,
    Rows,
    closed_form_on,
    is_better,
    of_variables,
    simplest,
    with_labels,
)
from forecause.forecast.trees import Trees
from forecause.networks.settings import TrainedSettings
from forecause.progress import QUIET, Progress

# Time and memory:
ENOUGH_TO_CHOOSE = 3_000  # windows, from which on forms that no target took are not fitted again
MOST_MULTIPLIED = 12  # causes of a target whose products are tried

# Shape of the model:
STOPPED_BY = 10  # every so manieth block of time stops the training of a network

CLOSED_FORMS = ("linear", "additive")


@dataclass(frozen=True, eq=False)
class Refit:
    """What the fits on the causes have in common."""

    windows: Windows
    early: Windows
    late: Windows  # held out while candidates are compared
    causes: Causes
    joint: frozenset[int] = frozenset()  # columns for which joint functions are tried
    network: ForecasterSettings | None = None  # tried too, if one was asked for by name
    closed_forms: tuple[str, ...] = CLOSED_FORMS
    seed: int = 0
    device: str = "cpu"
    progress: Progress = QUIET

    @cached_property
    def rows(self) -> Rows:
        """The windows as regressions read them."""
        return Rows.of(self.windows)

    @classmethod
    def asked(
        cls,
        windows: Windows,
        early: Windows,
        late: Windows,
        causes: Causes,
        dense: Forecaster,
        options: ForecastOptions,
        joint: Collection[int] = (),
        **context: Any,
    ) -> Refit:
        """As the options of a run have it: with the kinds that were asked for and kept."""
        columns = range(windows.shape[1])
        kept = [dense.member_of(column).settings for column in columns]
        own = windows.panel.coding.of_column
        learned = {own[c] for c in columns if kept[c].kind not in CLOSED_FORMS or c in joint}
        asked, network = options.forecaster, None
        kind = asked.kind if isinstance(asked, ForecasterSpec) else asked
        spec = ForecasterSpec.every().get(kind, ForecasterSpec)
        if kind in CLOSED_FORMS:
            learned = set()
        elif issubclass(spec, TrainedSettings) and spec.weights_use == "none":
            network = _mlp(options)
        forms = CLOSED_FORMS[:1] if kind == "linear" else CLOSED_FORMS
        has_causes = np.asarray(causes.anywhere.reshape(len(causes.anywhere), -1).any(axis=1))
        joint = frozenset(c for c in columns if own[c] in learned and has_causes[c])
        return cls(windows, early, late, causes, joint, network, forms, **context)

    def trial(self) -> tuple[CausalForecaster, dict[int, str]]:
        """Fitted to the early windows, and which learner won which column on the late ones."""
        members, simple = self._closed(self.rows.among(self.early), self.closed_forms)
        fitted = {name: one.model for name, one in members.items()}
        names, learned, won = simple, dict[str, Forecaster](), dict[int, str]()
        squared = {name: squares(one, self.late) for name, one in fitted.items()}
        for settings in self._learners():
            rivals = [fitted[n] for n in names] if settings is self.network else ()
            learner = self._learned(settings, self.early, self.late, self.joint, rivals)
            learned = with_stack({**learned, learner.label: learner})
            fitted |= learned
            squared |= {n: squares(learned[n], self.late) for n in learned.keys() - squared.keys()}
            won = self._best_on_late(learned, squared, simple)
            names = [won.get(column, name) for column, name in enumerate(simple)]
        return CausalForecaster.joined(fitted, names, np.zeros((0, len(names))), None), won

    def final(
        self, trial: CausalForecaster, won: Mapping[int, str], losses: Array
    ) -> CausalForecaster:
        """Fitted to all windows; `losses` (column,) are those of the trial on late windows.

        Lines or splines are chosen again, unless there were windows enough to choose by before.
        """
        forms: Collection[str] = self.closed_forms
        if len(self.rows) >= ENOUGH_TO_CHOOSE:
            forms = {CLOSED_FORMS[0], *(one.kind for one in trial.members.values())}
        members, names = self._closed(self.rows, forms)
        left_out = _picked({name: one.left_out for name, one in members.items()}, names)
        kept = sample_of_residuals(left_out)
        residuals = left_out[kept]
        fitted = {name: one.model for name, one in members.items()} | self._learned_again(won)
        windows = self.windows.at(np.searchsorted(self.windows.rows, self.rows.row[kept]))
        errors = {name: residuals_of(fitted[name], windows).values for name in {*won.values()}}
        for column, name in won.items():
            names[column] = name
            fitted[name].noise_variance[column] = max(losses[column], LEAST_NOISE)
            own = errors[name][:, column]
            inner = max(float(np.sqrt(np.mean(own**2))), 1e-12)
            residuals[:, column] = own * max(np.sqrt(losses[column]) / inner, 1.0)  # seen before
        domain = self.rows.domain
        return CausalForecaster.joined(
            fitted, names, residuals, None if domain is None else domain[kept]
        )

    def _closed(self, rows: Rows, forms: Collection[str]) -> tuple[dict[str, Candidate], list[str]]:
        """Lines and splines on the causes, by their labels, and which one each column has."""
        domains = len(self.causes.in_domain)
        candidates = []
        for kind in (Linear, Additive):
            for known in sorted({0, domains}) if kind.kind in forms else ():
                settings = with_labels(kind(domains=known), self.windows)
                candidates.append(closed_form_on(settings, rows, self.causes, self.windows.shape))
        places = simplest(candidates, self.windows)
        labels = [one.model.label for one in candidates]
        return dict(zip(labels, candidates, strict=True)), [labels[i] for i in places]

    def _learners(self) -> list[ForecasterSettings]:
        """What is tried beside lines and splines."""
        if len(self.windows) < thresholds().choice.least_to_learn or not self.joint:
            return []
        learners: list[ForecasterSettings] = [Dictionary(), Trees()]
        if any(places := self._multiplied()):
            learners.insert(0, Products(places=places))
        return [*learners, self.network] if self.network else learners

    def _multiplied(self) -> tuple[tuple[int, ...], ...]:
        """The causes (target,) whose products are tried: those of joint columns, if few."""
        flat = self.causes.everywhere.reshape(len(self.causes.everywhere), -1)
        return tuple(
            tuple(np.flatnonzero(own).tolist())
            if column in self.joint and 2 <= own.sum() <= MOST_MULTIPLIED
            else ()
            for column, own in enumerate(flat)
        )

    def _completed(self, settings: ForecasterSettings) -> ForecasterSettings:
        known = 0 if isinstance(settings, Products) else len(self.causes.in_domain)
        changes: dict[str, Any] = {"domains": known}
        if "inputs" in type(settings).model_fields:  # a network whose targets read their own
            changes["inputs"] = int(max(self.causes.anywhere.sum((1, 2)).max(), 1))
        return with_labels(settings, self.windows).model_copy(update=changes)

    def _learned(
        self,
        settings: ForecasterSettings,
        windows: Windows,
        held_out: Windows,
        columns: Collection[int],
        rivals: Sequence[Forecaster] = (),
    ) -> Forecaster:
        """A learner fitted to the causes of some columns.

        One that learns step by step may give up once it clearly cannot beat its `rivals` (column,).
        """
        columns = sorted(columns)
        settings = self._completed(settings)
        model = settings.seeded_build(self.windows.shape, self.seed).to(self.device)
        self.causes.of_columns(columns).constrain(model)
        if model.reads_few:
            model.read_only(_places(model.allowed, int(getattr(settings, "inputs", 0))))
        by_squares = rivals and not (model.learns_variance or model.labels)
        to_beat = partial(_best_squares, rivals) if by_squares else None
        model.fit(
            FitData(windows, held_out, self.seed, self.progress, to_beat, columns=tuple(columns))
        )
        return model.to("cpu")

    def _learned_again(self, won: Mapping[int, str]) -> dict[str, Forecaster]:
        """The learners that won, on all windows."""
        learned: dict[str, Forecaster] = {}
        for settings in self._learners():
            own = self._completed(settings).build(self.windows.shape).label
            columns = [column for column, name in won.items() if own in name.split(JOINED)]
            if columns:
                learned[own] = self._refitted(settings, columns)
        return with_stack(learned)

    def _refitted(self, settings: ForecasterSettings, columns: Collection[int]) -> Forecaster:
        """The same on all windows; the training of a network is stopped by some blocks of time."""
        if settings is not self.network:
            return self._learned(settings, self.windows, self.late, columns)
        *most, rest = self.windows.interleaved(STOPPED_BY, 10 * STOPPED_BY)
        rows = np.sort(np.concatenate([part.rows for part in most]))
        learned = self.windows.at(np.searchsorted(self.windows.rows, rows))
        return self._learned(settings, learned, rest, columns)

    def _best_on_late(
        self,
        learned: Mapping[str, Forecaster],
        squared: Mapping[str, Array],
        simple: Sequence[str],
    ) -> dict[int, str]:
        """The joint columns that learners forecast clearly better than their lines or splines do,
        each with the one of the least error."""
        before = of_variables(_picked(squared, simple), self.windows)
        won: dict[int, str] = {}
        least: dict[int, float] = {}
        for name, learner in learned.items():
            after = of_variables(squared[name], self.windows)
            for column in sorted(self.joint):
                v = int(self.windows.panel.coding.of_column[column])
                by = thresholds().choice.learned_by
                if learner.has_model_for(column) and is_better(before[:, v], after[:, v], by):
                    loss = float(after[~np.isnan(before[:, v]), v].mean())
                    if loss < least.get(column, np.inf):
                        won[column], least[column] = name, loss
        return won


def with_stack(learned: Mapping[str, Forecaster]) -> dict[str, Forecaster]:
    """And the mean of dictionary and trees, whose errors differ, where both are there."""
    pair = [one for one in learned.values() if isinstance(one.settings, Dictionary | Trees)]
    if len(pair) < 2:
        return dict(learned)
    stack = Stack.of({one.label: one for one in pair})
    return {**learned, stack.label: stack}


def residuals_where_observed(forecaster: Forecaster, windows: Windows) -> Array:
    """(window, column), NaN where the value to be forecast was filled."""
    left = residuals_of(forecaster, windows).values
    if windows.panel.filled is not None:
        left[windows.panel.filled[windows.rows]] = np.nan
    return left


def squares(forecaster: Forecaster, windows: Windows) -> Array:
    """Squared errors (window, column), NaN where the value to be forecast was filled."""
    return residuals_where_observed(forecaster, windows) ** 2


def _best_squares(rivals: Sequence[Forecaster], windows: Windows) -> Array:
    """Squared errors (window, column) of each column's rival."""
    errors = {rival: residuals_of(rival, windows).values ** 2 for rival in set(rivals)}
    return np.stack([errors[rival][:, i] for i, rival in enumerate(rivals)], axis=1)


def _picked(errors: Mapping[str, Array], names: Sequence[str]) -> Array:
    """(window, column), each column from the one with its name."""
    return np.stack([errors[name][:, i] for i, name in enumerate(names)], axis=1)


def sample_of_residuals(left_out: Array) -> Index:
    """At most MOST_RESIDUALS windows, evenly over time, in which every target was observed.

    Where these are few, others too, whose missing residuals are those of other windows (in place).
    """
    is_whole = ~np.isnan(left_out).any(1)
    whole = np.flatnonzero(is_whole if is_whole.mean() > 0.2 else np.ones(len(left_out), bool))
    places = np.unique(np.linspace(0, len(whole) - 1, min(MOST_RESIDUALS, len(whole))).astype(int))
    kept = whole[places]
    rng = np.random.default_rng(0)
    for column in np.flatnonzero(np.isnan(left_out[kept]).any(0)):
        values = left_out[:, column]
        gaps, known = np.isnan(values), values[~np.isnan(values)]
        values[gaps] = rng.choice(known, gaps.sum()) if len(known) else 0.0
    return kept


def _places(allowed: Mask, inputs: int) -> Index:
    """The places (target, input) of every target's causes, filled up by what it may not read."""
    flat = allowed.reshape(len(allowed), -1)
    order = np.argsort(~flat, axis=1, kind="stable")[:, :inputs]
    return np.sort(order, axis=1)


def _mlp(options: ForecastOptions) -> ForecasterSettings:
    """The network on the causes: the MLP that was asked for, or that of the preset."""
    asked = options.forecaster
    kind = ForecasterSpec.named("mlp")
    spec = asked if isinstance(asked, kind) else kind.of_preset(options.preset)
    assert isinstance(spec, ForecasterSettings)
    return spec
