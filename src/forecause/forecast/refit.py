"""Each target regressed again on its causes alone, in closed form, judged on left-out time.

A target has few causes, so its regression is small: lines or splines of the causes, a ridge
penalty of its own chosen on 5 contiguous blocks of time, and the residuals of every block under the
fit that did not see it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from forecause.common.arrays import Array, Index, Mask, Single
from forecause.common.work_sharing import shared
from forecause.config.thresholds import thresholds
from forecause.data.variables import Variables
from forecause.data.windows import MOST_NUMBERS, Windows, past_and_targets
from forecause.forecast.additive import Additive, AdditiveModel
from forecause.forecast.forecaster import LEAST_NOISE, MANY_INPUTS, Forecaster
from forecause.forecast.linear import Linear, LinearModel
from forecause.forecast.members import ByDomain, Plain
from forecause.graph.axes import by_step
from forecause.graph.lagged import LaggedGraph
from forecause.regression.moments import Moments, lowest, with_intercept
from forecause.regression.p_values import clearly_better
from forecause.regression.sample import BLOCKS, stretches
from forecause.regression.splines import spline_terms

LEAST_ROWS = 2 * BLOCKS  # with fewer observed values a target is its mean


@dataclass(frozen=True, eq=False)
class Causes:
    """Which inputs each target may read, (target column, step, source column)."""

    everywhere: Mask
    in_domain: tuple[Mask, ...] = ()  # of every domain, where their index is an input

    @classmethod
    def of(
        cls,
        graph: LaggedGraph,
        windows: Windows,
        allowed: Mask | None = None,
        by_domain: bool = True,
    ) -> Causes:
        """The edges of a graph, required ones among them, without what is not `allowed`."""
        panel = windows.panel
        parts = [graph]
        if by_domain and len(panel.domain_names) > 1:
            parts += [graph.domains.get(name, graph) for name in panel.domain_names]
        masks = [_mask(part, panel.coding, windows.max_lag) for part in parts]
        if allowed is not None:
            masks = [mask & allowed for mask in masks]
        return cls(masks[0], tuple(masks[1:]))

    @property
    def anywhere(self) -> Mask:
        """What is a cause in all data together or in some domain."""
        return np.logical_or.reduce([self.everywhere, *self.in_domain])

    def of_columns(self, columns: Sequence[int]) -> Causes:
        """The same with the causes of these targets alone."""
        kept = np.zeros((len(self.everywhere), 1, 1), dtype=bool)
        kept[list(columns)] = True
        return Causes(self.everywhere & kept, tuple(mask & kept for mask in self.in_domain))

    def constrain(self, model: Forecaster) -> None:
        """Keep a model, before it is fitted, to the causes."""
        model.constrain(self.everywhere)
        if isinstance(model, ByDomain) and self.in_domain:
            for member, own in zip(model.members.values(), self.in_domain, strict=True):
                member.constrain(own)
            model.allowed = self.anywhere


def _mask(graph: LaggedGraph, coding: Variables, max_lag: int) -> Mask:
    """Edges as (target column, step, source column)."""
    place = {name: i for i, name in enumerate(coding.variables)}
    is_edge = np.zeros((len(place), len(place), max_lag), dtype=bool)
    edges = graph.causal.edges
    for source, target, lag in zip(edges["source"], edges["target"], edges["lag"], strict=True):
        if 1 <= lag <= max_lag:
            is_edge[place[target], place[source], int(lag) - 1] = True
    steps = by_step(is_edge)  # (target, step, source)
    return np.asarray(steps[coding.of_column][..., coding.of_column])


@dataclass(frozen=True, eq=False)
class Rows:
    """Windows as regressions read them, in time order; standardised."""

    inputs: Single  # (window, step * column)
    targets: Single  # (window, column)
    row: Index  # (window,) of the panel
    observed: Mask | None = None  # (window, column) False where the target was filled
    domain: Index | None = None  # (window,)

    @classmethod
    def of(cls, windows: Windows) -> Rows:
        """All windows, or as many as can be held."""
        steps, columns = windows.shape
        windows = windows.sample(MOST_NUMBERS // ((steps + 1) * columns), np.random.default_rng(0))
        inputs, targets = past_and_targets(windows)
        panel, rows = windows.panel, windows.rows
        observed = None if panel.filled is None else ~panel.filled[rows]
        domain = None if panel.domain is None else panel.domain[rows].astype(np.int64)
        return cls(inputs, targets, rows, observed, domain)

    def __len__(self) -> int:
        return len(self.row)

    def among(self, windows: Windows) -> Rows:
        """Those that are windows of `windows`."""
        chosen = np.isin(self.row, windows.rows)
        observed = None if self.observed is None else self.observed[chosen]
        domain = None if self.domain is None else self.domain[chosen]
        held = self.inputs[chosen], self.targets[chosen], self.row[chosen]
        return Rows(*held, observed, domain)

    def known(self, column: int, domain: int | None = None) -> Index:
        """The windows in which a target was observed, in a domain or in all."""
        kept = np.ones(len(self), dtype=bool)
        if self.observed is not None:
            kept &= self.observed[:, column]
        if domain is not None and self.domain is not None:
            kept &= self.domain == domain
        return np.flatnonzero(kept)


class Regression(NamedTuple):
    """A target's coefficients, and what the fits without a block of time leave of it there."""

    coefficients: Array  # (1 + term,), the intercept first
    left_out: Array  # (row,)


def ridge_by_blocks(terms: Array, outcome: Array, ridges: Sequence[float]) -> Regression:
    """Least squares of the outcome (row,) on terms (row, term), its penalty chosen by blocks."""
    if len(outcome) < LEAST_ROWS:
        mean = float(outcome.mean()) if len(outcome) else 0.0
        return Regression(np.append(mean, np.zeros(terms.shape[1])), outcome - mean)
    blocks = stretches(len(outcome))
    parts = Moments.of_blocks(with_intercept(terms), outcome[:, None], blocks)

    def left_out_loss(place: int) -> float:
        losses = parts.left_out_losses(ridges[place])[:, 0]
        return float(losses @ np.asarray(parts.count))

    best = ridges[lowest(left_out_loss, len(ridges)) if terms.shape[1] else 0]
    beta = parts.left_out.solve(best)  # (block, 1 + term, 1)
    residuals = [
        outcome[b] - (terms[b] @ beta[i, 1:, 0] + beta[i, 0, 0]) for i, b in enumerate(blocks)
    ]
    return Regression(parts.total().solve(best)[:, 0], np.concatenate(residuals))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A fitted model, and what it leaves of windows that it has not seen."""

    model: Forecaster
    left_out: Array  # (window, column), NaN where it has no forecast or the target was filled


def closed_form_on(
    settings: Linear | Additive, rows: Rows, causes: Causes, shape: tuple[int, int]
) -> Candidate:
    """Lines or splines of every target's causes; for each domain, if the settings tell them."""
    model = settings.build(shape)
    causes.constrain(model)
    left_out = np.full(rows.targets.shape, np.nan)
    if isinstance(model, ByDomain):
        for domain, member in enumerate(model.members.values()):
            _fill_in(member, rows, left_out, domain)
    else:
        _fill_in(model, rows, left_out)
    noise = known_mean(left_out**2)
    model.noise_variance = np.where(np.isnan(noise), 1.0, np.maximum(noise, LEAST_NOISE))
    return Candidate(model, left_out)


def known_mean(values: Array, axis: int | tuple[int, ...] = 0) -> Array:
    """Mean of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0.0).sum(axis), known.sum(axis)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _fill_in(model: Forecaster, rows: Rows, left_out: Array, domain: int | None = None) -> None:
    """Fit every target of a plain model, and write what it leaves into `left_out`."""
    assert isinstance(model, LinearModel | AdditiveModel)
    if isinstance(model, AdditiveModel):
        model.knots = _knots(rows, model.settings.knots).astype(np.float32)
    columns = range(model.n_variables)
    work = 2.0 * len(rows) * float(model.allowed.sum()) ** 2 / len(columns) ** 2
    regressions = shared(partial(_regressed, model, rows, domain), columns, work)
    for column, (regression, kept, own) in zip(columns, regressions, strict=True):
        if regression is None:
            continue
        places = np.flatnonzero(model.allowed[column])
        model.intercept[column] = regression.coefficients[0]
        weight = model.weight[column].reshape(rows.inputs.shape[1], -1)  # a view
        weight[places] = regression.coefficients[1:].reshape(len(places), weight.shape[1])
        left_out[kept[own], column] = regression.left_out[own]


def _regressed(
    model: LinearModel | AdditiveModel, rows: Rows, domain: int | None, column: int
) -> tuple[Regression | None, Index, Mask]:
    """A target's regression, the windows it was fitted to, and which of them are the domain's."""
    places = np.flatnonzero(model.allowed[column])
    kept = rows.known(column, domain)
    bounds = thresholds().choice
    enough = bounds.windows_per_domain_input * len(places) + bounds.more_windows_of_domain
    if len(kept) < enough:
        kept = rows.known(column)
    own = np.ones(len(kept), dtype=bool)
    if domain is not None and rows.domain is not None:
        own = rows.domain[kept] == domain
    outcome = rows.targets[kept, column].astype(np.float64)
    terms = rows.inputs[:, places].astype(np.float64)
    terms = terms if len(kept) == len(rows) else terms[kept]
    if isinstance(model, AdditiveModel):
        if len(places) > min(MANY_INPUTS, len(kept) // bounds.windows_per_curve):
            return None, kept, own
        knots = model.knots[places % model.n_variables].astype(np.float64)
        terms = spline_terms(terms, knots).reshape(len(kept), -1)
    return ridge_by_blocks(terms, outcome, model.settings.ridges), kept, own


def _knots(rows: Rows, count: int) -> Array:
    """Quantiles of each column, (column, knot); one knot repeated where values are few."""
    knots = np.quantile(rows.targets, np.linspace(0.05, 0.95, count), axis=0).T
    tied = (np.diff(knots, axis=1) <= 1e-6).any(1)
    knots[tied] = knots[tied][:, :1]
    return np.asarray(knots)


def simplest(candidates: Sequence[Candidate], windows: Windows) -> Index:
    """The place (column,) of each target's candidate: a richer one must be a standard error better.

    The columns of a label are judged together and have the same one.
    """
    errors = [of_variables(candidate.left_out**2, windows) for candidate in candidates]
    winners = np.zeros(errors[0].shape[1], dtype=np.int64)
    for rival, after in enumerate(errors[1:], 1):
        for variable, winner in enumerate(winners):
            if is_better(errors[winner][:, variable], after[:, variable]):
                winners[variable] = rival
    return winners[windows.panel.coding.of_column]


def is_better(before: Array, after: Array, by: float = 1.0) -> bool:
    """Whether errors (window,), some of them NaN, are clearly lower after than before."""
    both = ~(np.isnan(before) | np.isnan(after))
    return bool(both.any()) and clearly_better(before[both], after[both], by)


def of_variables(errors: Array, windows: Windows) -> Array:
    """Squared errors (window, column) -> (window, variable); of a label, its Brier score."""
    coding = windows.panel.coding
    return np.asarray(errors @ coding.weights(windows.scale.mean)) if coding.labels else errors


def with_labels(settings: Plain, windows: Windows) -> Plain:
    """Settings that know which columns are one variable."""
    labels = windows.panel.coding.label_columns(windows.scale.mean)
    return settings.model_copy(update={"labels": labels})


def own_past(windows: Windows) -> Mask:
    """Every column reads its own variable alone, (target column, step, source column)."""
    own = windows.panel.coding.of_column
    return np.repeat((own[:, None] == own)[:, None], windows.max_lag, axis=1)
