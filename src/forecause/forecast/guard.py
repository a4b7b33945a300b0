"""Who forecasts each target: the causal forecaster and its rivals, each with its share.

Rivals are a lasso on all inputs, the dense forecaster that the target kept, and its own past. They
and the causal forecaster are fitted to the early windows and compared on the late ones, then fitted
again on all. Before the late windows count, causal forecaster and lasso have a half each: where
evidence is weak their mean is better than either. What-if and effects stay with the causal
forecaster, whoever forecasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from forecause.common.arrays import Array
from forecause.config import ForecastOptions
from forecause.config.thresholds import thresholds
from forecause.data.windows import Windows
from forecause.forecast.causal import Causal, CausalForecaster
from forecause.forecast.causal_fit import Refit, residuals_where_observed
from forecause.forecast.forecaster import FitData, Forecaster, residuals_of
from forecause.forecast.lasso import Lasso
from forecause.forecast.linear import Linear, LinearModel
from forecause.forecast.means import Blend, best_shares
from forecause.forecast.members import Member
from forecause.forecast.refit import (
    Causes,
    Rows,
    closed_form_on,
    known_mean,
    of_variables,
    own_past,
    with_labels,
)
from forecause.forecast.selection import FitContext, Fitted
from forecause.graph.lagged import LaggedGraph
from forecause.regression.p_values import clearly_better, gain_over_blocks

# Time and memory:
TRIAL_RESIDUALS = 500  # late windows whose errors are the noise of a trial's futures

CAUSAL, DENSE, OWN_PAST, LASSO, MEAN = "causal", "dense", "own past", "lasso", "mean"
BLEND = "blend"  # of them, in a saved run


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
    causal = refit.final(trial, won, known_mean(comparison.squared[CAUSAL]))
    losses = comparison.losses()
    dense_rivals = [DENSE] if dense.settings.is_saved else []
    shares = comparison.shares([CAUSAL, *dense_rivals, *rivals.early])
    by = rivals.forecast_by(shares)
    return Causal(
        causal,
        rivals.guarded(causal, shares, comparison.blended(shares)),
        pd.DataFrame(losses | {"forecast_by": by}, index=comparison.index),
        comparison.missing_causes(losses),
        trial=rivals.trial(trial, shares),
    )


@dataclass(frozen=True, eq=False)
class Held:
    """What several forecasters leave of held-out windows."""

    refit: Refit
    forecasters: Mapping[str, Forecaster]

    @cached_property
    def residuals(self) -> dict[str, Array]:
        """(window, column), NaN where the value to be forecast was filled."""
        late = self.refit.late
        return {n: residuals_where_observed(one, late) for n, one in self.forecasters.items()}

    @cached_property
    def squared(self) -> dict[str, Array]:
        """(window, column)"""
        return {name: left**2 for name, left in self.residuals.items()}

    @cached_property
    def errors(self) -> dict[str, Array]:
        """(window, variable)"""
        return {name: of_variables(e, self.refit.windows) for name, e in self.squared.items()}

    @property
    def index(self) -> pd.Index:
        """The variables."""
        return pd.Index(self.refit.windows.panel.coding.variables, name="variable")

    def losses(self) -> dict[str, Array]:
        """Mean squared errors (variable,) of all, and of the mean of the early windows."""
        early = self.refit.rows.among(self.refit.early)
        mean = early.targets.mean(0, dtype=np.float64)
        left = (self.refit.late.targets() - mean) ** 2
        left[np.isnan(self.squared[CAUSAL])] = np.nan
        found = {name: known_mean(errors) for name, errors in self.errors.items()}
        return found | {MEAN: known_mean(of_variables(left, self.refit.windows))}

    def is_better(self, rival: str, variable: int) -> bool:
        """Whether a rival is clearly better than the causal one, over blocks of time."""
        before, after = (self.errors[name][:, variable] for name in (CAUSAL, rival))
        known = ~(np.isnan(before) | np.isnan(after))
        before, after = before[known], after[known]
        bounds = thresholds().choice
        if not known.any() or after.mean() > (1 - bounds.tie) * before.mean():
            return False
        if len(before) < bounds.blocks_of_time * bounds.windows_per_block:
            return len(before) > 1 and clearly_better(before, after, bounds.clearly)
        gain = gain_over_blocks(before[:, None], after[:, None], bounds.blocks_of_time)
        return bool(gain[0] > bounds.clearly)

    def shares(self, names: list[str]) -> dict[str, Array]:
        """How much of each variable's forecast is whose, (variable,)."""
        halves = [CAUSAL]
        if LASSO in names and not self.refit.causes.in_domain:  # a lasso is one for all domains
            halves.append(LASSO)
        prior = np.array([name in halves for name in names]) / len(halves)
        bounds = thresholds().choice
        products, counts = self._products(names)
        found = []
        for own, count in zip(products, counts, strict=True):
            shares = best_shares(own, count, prior, bounds.sd_of_shares)
            kept = np.where(shares >= bounds.least_share, shares, 0.0)  # a smaller one is none
            found.append(kept / kept.sum())
        return dict(zip(names, np.array(found).T, strict=True))

    def blended(self, shares: Mapping[str, Array]) -> Array:
        """Mean squared error (column,) of the forecasters together."""
        of_column = self.refit.windows.panel.coding.of_column
        parts = [self.residuals[name] * own[of_column] for name, own in shares.items()]
        return known_mean(np.sum(parts, axis=0) ** 2)

    def _products(self, names: list[str]) -> tuple[Array, Array]:
        """Sums of products of residuals (variable, name, name), and of how many windows."""
        windows, residuals = self.refit.windows, [self.residuals[name] for name in names]
        known = ~np.isnan(residuals).any(0)
        kept = [np.where(known, left, 0.0) for left in residuals]
        products = np.array([[of_variables(a * b, windows).sum(0) for b in kept] for a in kept])
        counts = known.sum(0)[windows.panel.coding.first].astype(np.float64)
        return products.transpose(2, 0, 1), counts

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
            lasso = Lasso.of(early, dense.allowed)
            self.penalties = lasso.best_penalties()
            self.early[LASSO] = self._linear(lasso.solve(self.penalties))

    def _linear(self, coefficients: Array) -> Forecaster:
        """Coefficients (1 + step * column, target) as a linear forecaster."""
        model = with_labels(Linear(), self.refit.windows).build(self.refit.windows.shape)
        assert isinstance(model, LinearModel)
        model.intercept[:] = coefficients[0]
        model.weight[:] = coefficients[1:].T.reshape(model.weight.shape)
        return model

    def forecast_by(self, shares: Mapping[str, Array]) -> list[str]:
        """In words, (variable,): who has shares of its forecast, the largest first."""
        words = []
        for place, column in enumerate(self.refit.windows.panel.coding.first):
            own = sorted(shares, key=lambda name: -shares[name][place])
            *most, last = [self._label(n, int(column)) for n in own if shares[n][place] > 0]
            words.append(f"{', '.join(most)} and {last}" if most else last)
        return words

    def _label(self, name: str, column: int) -> str:
        """Of the dense one, with the member that forecasts a column."""
        return f"{DENSE} {self.dense.member_of(column).label}" if name == DENSE else name

    def guarded(
        self, causal: CausalForecaster, shares: Mapping[str, Array], losses: Array
    ) -> CausalForecaster:
        """The causal forecaster and its rivals, all fitted to all windows.

        `losses` (column,) are those of the same on held-out windows: the size of its residuals.
        """
        of_column = self.refit.windows.panel.coding.of_column
        by_column = {name: own[of_column] for name, own in shares.items()}
        if (by_column[CAUSAL] == 1).all():
            return causal
        parts: dict[str, Forecaster] = {CAUSAL: causal}
        own_shares = {CAUSAL: by_column[CAUSAL]}
        for name, own in by_column.items():
            for column in np.flatnonzero(own) if name != CAUSAL else ():
                label = self._label(name, int(column))
                if label not in parts:
                    parts[label] = self._fitted(name, int(column))
                    own_shares[label] = np.zeros(len(own))
                own_shares[label][column] = own[column]
        residuals = causal.residuals.astype(np.float64)
        size = np.sqrt(np.mean(residuals**2, axis=0))
        is_known = ~np.isnan(losses) & (by_column[CAUSAL] < 1)
        residuals *= np.where(is_known, np.sqrt(losses) / np.maximum(size, 1e-12), 1.0)
        blend = Blend.weighted(parts, np.stack(list(own_shares.values())))
        names = [BLEND if share < 1 else CAUSAL for share in by_column[CAUSAL]]
        members = {CAUSAL: causal, BLEND: blend}
        return CausalForecaster.joined(members, names, residuals, causal.residual_domain)

    def trial(self, causal: CausalForecaster, shares: Mapping[str, Array]) -> CausalForecaster:
        """The same as fitted to the early windows alone, with its errors on the late ones."""
        members = {CAUSAL: causal, DENSE: self.dense, **self.early}
        of_column = self.refit.windows.panel.coding.of_column
        parts = {name: members[name] for name in shares}
        blend = Blend.weighted(parts, np.stack([shares[name][of_column] for name in parts]))
        names = [BLEND] * len(of_column)
        late = self.refit.late.sample(TRIAL_RESIDUALS, np.random.default_rng(0))
        residuals = residuals_of(blend, late).values
        return CausalForecaster.joined({BLEND: blend}, names, residuals, None)

    def _fitted(self, name: str, column: int) -> Forecaster:
        """A rival fitted to all windows; of the dense ones those that are solved."""
        rows, windows = self.refit.rows, self.refit.windows
        if name == OWN_PAST:
            return _own_past_model(windows, rows)
        if name == LASSO:
            assert self.penalties is not None
            return self._linear(Lasso.of(rows, self.dense.allowed).solve(self.penalties))
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
