"""Who forecasts each target: the causal forecaster, or a rival that is clearly better at it.

Rivals are the dense forecaster that the target kept, its own past, and a lasso on all inputs. They
and the causal forecaster are fitted to the early windows and compared on the late ones, then
fitted again on all. What-if and effects stay with the causal forecaster, whoever forecasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.config import ForecastOptions
from forecause.config.thresholds import thresholds
from forecause.data.windows import Windows
from forecause.forecast.causal import Causal, CausalForecaster
from forecause.forecast.causal_fit import Refit, squares
from forecause.forecast.forecaster import FitData, Forecaster, residuals_of
from forecause.forecast.lasso import Lasso
from forecause.forecast.linear import Linear, LinearModel
from forecause.forecast.members import Member
from forecause.forecast.refit import (
    Causes,
    Rows,
    closed_form_on,
    of_variables,
    own_past,
    with_labels,
)
from forecause.forecast.selection import FitContext, Fitted
from forecause.graph.lagged import LaggedGraph
from forecause.regression.p_values import clearly_better, gain_over_blocks

LEAST_GAIN = 0.005  # of the causal one's loss: a rival's smaller gain is a tie (bench causal)
TRIAL_RESIDUALS = 500  # late windows whose errors are the noise of a trial's futures
CAUSAL, DENSE, OWN_PAST, LASSO, MEAN = "causal", "dense", "own past", "lasso", "mean"

Array: TypeAlias = npt.NDArray[np.float64]


def fit_causal(
    windows: Windows,
    graph: LaggedGraph,
    fitted: Fitted,
    options: ForecastOptions | None = None,
    context: FitContext | None = None,
) -> Causal:
    """The causal forecaster of a graph, guarded by its rivals.

    `fitted` is what the edges were read from: its early and late windows are those that all are
    compared on. `context.allowed` keeps out what the user forbade.
    """
    options, context = options or ForecastOptions(), context or FitContext()
    context.progress.step("fitting again on the causes", 0.0)
    refit = Refit.asked(
        windows,
        fitted.early,
        judging(fitted),
        Causes.of(graph, windows, context.allowed, by_domain=options.domain_input),
        fitted.forecaster,
        options,
        fitted.joint or (),
        seed=context.seed,
        device=context.device,
        progress=context.progress,
    )
    return guard(refit, fitted.forecaster)


def judging(fitted: Fitted) -> Windows:
    """The late windows; every second one where the others stopped the training of a network."""
    late, columns = fitted.late, range(fitted.late.shape[1])
    kinds = [fitted.forecaster.member_of(column).settings for column in columns]
    if all(kind.closed_form or kind.instant for kind in kinds):
        return late
    return late.at(np.arange(1, len(late), 2))


def guard(refit: Refit, dense: Forecaster) -> Causal:
    """Fit, compare, and let each target be forecast by who is clearly best at it."""
    trial, won = refit.trial()
    rivals = Rivals(refit, dense)
    comparison = Held(refit, {CAUSAL: trial, DENSE: dense, **rivals.early})
    of_columns = comparison.columns(CAUSAL)
    causal = refit.final(trial, won, of_columns)
    losses = comparison.losses()
    dense_rivals = [DENSE] if dense.settings.is_saved else []
    by = comparison.forecast_by(losses, [*dense_rivals, *rivals.early])
    table = pd.DataFrame(losses | {"forecast_by": rivals.named(by)}, index=comparison.index)
    return Causal(
        causal,
        rivals.guarded(causal, by, {name: comparison.columns(name) for name in set(by)}),
        table,
        comparison.missing_causes(losses),
        trial=rivals.trial(trial, by),
    )


@dataclass(frozen=True, eq=False)
class Held:
    """Squared errors of several forecasters on held-out windows."""

    refit: Refit
    forecasters: Mapping[str, Forecaster]

    @cached_property
    def squared(self) -> dict[str, Array]:
        """(window, column)"""
        return {name: squares(one, self.refit.late) for name, one in self.forecasters.items()}

    @cached_property
    def errors(self) -> dict[str, Array]:
        """(window, variable)"""
        panel, mean = self.refit.windows.panel, self.refit.windows.scale.mean
        return {name: of_variables(e, panel.coding, mean) for name, e in self.squared.items()}

    @property
    def index(self) -> pd.Index:
        """The variables."""
        return pd.Index(self.refit.windows.panel.coding.variables, name="variable")

    def columns(self, name: str) -> Array:
        """Mean squared error (column,)."""
        return _means(self.squared[name])

    def losses(self) -> dict[str, Array]:
        """Mean squared errors (variable,) of all, and of the mean of the early windows."""
        early = self.refit.rows.among(self.refit.early)
        mean = early.targets.mean(0, dtype=np.float64)
        left = (self.refit.late.targets() - mean) ** 2
        left[np.isnan(self.squared[CAUSAL])] = np.nan
        coding, scale = self.refit.windows.panel.coding, self.refit.windows.scale
        found = {name: _means(errors) for name, errors in self.errors.items()}
        return found | {MEAN: _means(of_variables(left, coding, scale.mean))}

    def is_better(self, rival: str, variable: int) -> bool:
        """Whether a rival is clearly better than the causal one, over blocks of time."""
        before, after = (self.errors[name][:, variable] for name in (CAUSAL, rival))
        known = ~(np.isnan(before) | np.isnan(after))
        before, after = before[known], after[known]
        if not known.any() or after.mean() > (1 - LEAST_GAIN) * before.mean():
            return False
        bounds = thresholds().choice
        if len(before) < bounds.blocks_of_time * bounds.windows_per_block:
            return len(before) > 1 and clearly_better(before, after, bounds.clearly)
        gain = gain_over_blocks(before[:, None], after[:, None], bounds.blocks_of_time)
        return bool(gain[0] > bounds.clearly)

    def forecast_by(self, losses: Mapping[str, Array], rivals: list[str]) -> list[str]:
        """Who forecasts each variable: of those that are clearly better the one of least loss."""
        by = []
        for variable in range(len(self.index)):
            better = [name for name in rivals if self.is_better(name, variable)]
            by.append(min(better, key=lambda name: losses[name][variable], default=CAUSAL))
        return by

    def missing_causes(self, losses: Mapping[str, Array]) -> tuple[str, ...]:
        """The variables that the dense forecaster knows clearly more about."""
        least = thresholds().choice.least_share_missing * losses[MEAN]
        gap = losses[CAUSAL] - losses[DENSE] >= least
        return tuple(
            name for v, name in enumerate(self.index) if gap[v] and self.is_better(DENSE, v)
        )


class Rivals:
    """What may forecast a target in place of the causal forecaster."""

    def __init__(self, refit: Refit, dense: Forecaster) -> None:
        self.refit, self.dense = refit, dense
        early = refit.rows.among(refit.early)
        self.early: dict[str, Forecaster] = {OWN_PAST: _own_past_model(refit.windows, early)}
        self.penalties: Array | None = None
        if Lasso.is_affordable(refit.windows):
            lasso = Lasso.of(early, self._allowed)
            self.penalties = lasso.best_penalties()
            self.early[LASSO] = self._linear(lasso.solve(self.penalties))

    @property
    def _allowed(self) -> npt.NDArray[np.bool_]:
        return self.dense.allowed

    def _linear(self, coefficients: Array) -> Forecaster:
        """Coefficients (1 + step * column, target) as a linear forecaster."""
        model = with_labels(Linear(), self.refit.windows).build(self.refit.windows.shape)
        assert isinstance(model, LinearModel)
        model.intercept[:] = coefficients[0]
        model.weight[:] = coefficients[1:].T.reshape(model.weight.shape)
        return model

    def named(self, by: list[str]) -> list[str]:
        """The dense one by the label of what a variable kept."""
        first = self.refit.windows.panel.coding.first
        labels = [self.dense.member_of(int(column)).label for column in first]
        return [f"{DENSE} {labels[v]}" if name == DENSE else name for v, name in enumerate(by)]

    def guarded(
        self, causal: CausalForecaster, by: list[str], losses: Mapping[str, Array]
    ) -> CausalForecaster:
        """The causal forecaster with rivals, fitted to all windows, in place of it for some."""
        if set(by) == {CAUSAL}:
            return causal
        of_column = [by[v] for v in self.refit.windows.panel.coding.of_column]
        members: dict[str, Forecaster] = {CAUSAL: causal}
        names = list(of_column)
        residuals = causal.residuals.astype(np.float64)
        for column, name in enumerate(of_column):
            if name == CAUSAL:
                continue
            if name == DENSE:
                name = names[column] = f"{DENSE} {self.dense.member_of(column).label}"
            if name not in members:
                members[name] = self._fitted(name, column)
            noise = losses[of_column[column]][column]
            size = np.sqrt(np.mean(residuals[:, column] ** 2))
            residuals[:, column] *= np.sqrt(noise) / max(size, 1e-12)
        return CausalForecaster.joined(members, names, residuals, causal.residual_domain)

    def trial(self, causal: CausalForecaster, by: list[str]) -> CausalForecaster:
        """The same as fitted to the early windows alone, with its errors on the late ones."""
        members = {CAUSAL: causal, DENSE: self.dense, **self.early}
        names = [by[v] for v in self.refit.windows.panel.coding.of_column]
        made = CausalForecaster.joined(members, names, np.zeros((0, len(names))), None)
        late = self.refit.late.sample(TRIAL_RESIDUALS, np.random.default_rng(0))
        residuals = residuals_of(made, late).values
        return CausalForecaster.joined(members, names, residuals, None)

    def _fitted(self, name: str, column: int) -> Forecaster:
        """A rival fitted to all windows; of the dense ones those that are solved."""
        rows, windows = self.refit.rows, self.refit.windows
        if name == OWN_PAST:
            return _own_past_model(windows, rows)
        if name == LASSO:
            assert self.penalties is not None
            return self._linear(Lasso.of(rows, self._allowed).solve(self.penalties))
        member = self.dense.member_of(column)
        if not member.settings.closed_form:
            return member
        again = Member.of(member).build(windows.shape)
        again.constrain(member.allowed)
        again.fit(FitData(windows, self.refit.late, self.refit.seed))
        again.noise_variance = member.noise_variance
        return again


def _own_past_model(windows: Windows, rows: Rows) -> Forecaster:
    """Ridge lines of every target's own past."""
    causes = Causes(own_past(windows))
    return closed_form_on(with_labels(Linear(), windows), rows, causes, windows.shape).model


def _means(errors: Array) -> Array:
    """Means (column,) of errors (window, column), some of them NaN; NaN where none is known."""
    known = ~np.isnan(errors)
    total = np.where(known, errors, 0.0).sum(0)
    return np.asarray(np.where(known.any(0), total / np.maximum(known.sum(0), 1), np.nan))
