"""How much an edge does, with a confidence interval: average slopes by least squares on curves.

The effect of an edge is the average slope of the target's expected value along the source, over
the rows of the data. Each target is regressed on all its candidates as lines, and on its causes
as splines besides, and as products where something hints at any. The average slope is a weighted
sum of the coefficients, so its standard error is known in closed form (HC3, which takes the noise
to be no more than unpredictable). It is biased only by what neither the regression nor the density
of the inputs has in common with these terms: the product of two approximation errors, as with
double machine learning, whose correction term least squares makes zero by construction.

Weak edges are seen only where chance makes them look strong. The end of an interval that is nearer
to zero therefore moves to where it would be given that the edge was chosen, if that is farther.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations, islice, product
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri, stdtrit

from forecause.common.arrays import Array
from forecause.common.work_sharing import in_blocks, parallel_map
from forecause.config.thresholds import thresholds
from forecause.data.windows import Window, Windows
from forecause.graph.edge_table import edge_keys
from forecause.graph.lagged import LaggedGraph
from forecause.regression.least_squares import damped, precision
from forecause.regression.residuals import product_t_values
from forecause.regression.robust import hc3_terms
from forecause.regression.splines import spline_slopes, spline_terms

COLUMNS = ("change", "change_low", "change_high")

# Looks:
LEVEL = 0.9  # of the intervals

# Shape of the model:
HIGHEST_POWER, HIGHEST_DEGREE = 4, 6  # of a factor, of a product
KNOTS, ROWS_PER_KNOT, MOST_KNOTS = 7, 600, 12  # more of them with more rows

# Time and memory:
MOST_CONTROLS = 60  # inputs beside the causes, the strongest first
MOST_PRODUCTS = 600  # of two to four causes, and of their powers
TARGETS_AT_ONCE, FEW_TARGETS = 8, 100  # looked at together, where there are more than a few
WORK = 1e10  # multiplications for all targets together: a few seconds
FEWEST_ROWS, MOST_ROWS = 5_000, 100_000  # looked at, if there are more

# Numerics:
SMALL_RIDGE = 1e-9  # of the largest eigenvalue, against columns that repeat each other

Edge = tuple[str, str, int]  # source, target, lag
Input = tuple[int, int]  # column, lag


class Interval(NamedTuple):
    """An estimate and the two ends of its confidence interval."""

    change: float
    low: float
    high: float


UNKNOWN = Interval(np.nan, np.nan, np.nan)


def with_effects(graph: LaggedGraph, windows: Windows, fdr: float | None = None) -> LaggedGraph:
    """The graph whose edges tell how far the target moves per sd of the source, in its units.

    `fdr` is the share of false edges at which tests chose them, if tests did.
    """
    names, panel = graph.domains, windows.panel
    parts = {
        name: _filled_in(part, windows.in_domain(panel.domain_names.index(name)), fdr)
        for name, part in names.items()
        if panel.domain is not None and name in panel.domain_names
    }
    return replace(_filled_in(graph, windows, fdr), domains={**names, **parts})


def average_effect(
    graph: LaggedGraph,
    windows: Windows,
    source: str,
    target: str,
    lag: int,
    level: float = LEVEL,
    column: int | None = None,
) -> Interval:
    """The effect of one candidate, be it an edge or not, beside the causes of the target.

    With `column`, on that level of a label.
    """
    asked = (source, target, lag)
    return _Targets.of(graph, windows, [asked]).intervals(target, [asked], level, column)[0]


def _filled_in(graph: LaggedGraph, windows: Windows, fdr: float | None) -> LaggedGraph:
    """The graph with the columns of COLUMNS; labels and links within a row have no such effect."""
    found: dict[Edge, Interval] = {}
    if len(graph.edges) and len(windows):
        targets = replace(_Targets.of(graph, windows), bar=_bar(graph, fdr))
        names = list(dict.fromkeys(graph.edges["target"]))
        size = TARGETS_AT_ONCE if len(names) > FEW_TARGETS else 1
        blocks = in_blocks(names, size)
        work = 2 * size * len(targets.windows) * (2 * MOST_CONTROLS) ** 2
        for part in parallel_map(_of_targets, targets, blocks, work):
            found |= part
    values = [found.get(key, UNKNOWN) for key in edge_keys(graph.edges)]
    table = pd.DataFrame(values, columns=list(COLUMNS), index=graph.edges.index, dtype=float)
    edges = graph.edges.assign(**{name: table[name] for name in COLUMNS})
    if "sign" in edges:  # that of the effect; 0 where its interval holds zero
        push = np.sign(table["change_low"]).add(np.sign(table["change_high"])) / 2
        known = push.round().where(table["change"].notna(), edges["sign"])
        edges["sign"] = known.astype(edges["sign"].dtype)
    return replace(graph, edges=edges)


def _of_targets(targets: _Targets, names: Sequence[str]) -> dict[Edge, Interval]:
    """The intervals of all edges into some targets."""
    return {
        edge: interval
        for name in names
        for edge, interval in zip(targets.edges[name], targets.of_target(name), strict=True)
    }


@dataclass(frozen=True, eq=False)
class _Targets:
    """The windows looked at, and the edges into every target."""

    graph: LaggedGraph
    windows: Windows
    edges: dict[str, list[Edge]]
    bar: float | None = None  # standard errors that an edge had to reach to be chosen

    @classmethod
    def of(cls, graph: LaggedGraph, windows: Windows, more: Sequence[Edge] = ()) -> _Targets:
        edges: dict[str, list[Edge]] = {name: [] for name in graph.variables}
        for edge in dict.fromkeys([*edge_keys(graph.edges), *more]):
            if edge[2] > 0:
                edges[edge[1]].append(edge)
        used = sum(bool(into) for into in edges.values())
        terms = min(windows.inputs, MOST_CONTROLS) + 40
        rows = int(np.clip(WORK / (terms**2 * max(used, 1)), FEWEST_ROWS, MOST_ROWS))
        return cls(graph, windows.thin(rows), edges)

    @cached_property
    def drawn(self) -> Window:
        """The windows looked at, held in memory for all targets without gaps of their own."""
        return self.windows.whole()

    def of_target(self, target: str) -> list[Interval]:
        """The intervals of all edges into a target."""
        return self.intervals(target, self.edges[target], LEVEL)

    def intervals(
        self,
        target: str,
        asked: Sequence[Edge],
        level: float,
        column: int | None = None,
    ) -> list[Interval]:
        """In the target's units, per standard deviation of the source; of a label, at `column`."""
        coding, scale = self.windows.panel.coding, self.windows.scale
        place = {name: i for i, name in enumerate(coding.variables)}
        numbers = [e for e in self.edges[target] if coding.label(place[e[0]]) is None]
        is_unclear = column is None and coding.label(place[target]) is not None
        if is_unclear or not set(asked) & set(numbers):
            return [UNKNOWN] * len(asked)
        column = int(coding.first[place[target]]) if column is None else column
        causes = [(int(coding.first[place[source]]), lag) for source, _, lag in numbers]
        slopes = self._slopes(target, column, causes, level)
        known = dict(zip(numbers, slopes, strict=True))
        size = float(scale.sd[column])
        return [Interval(*(size * end for end in known.get(edge, UNKNOWN))) for edge in asked]

    def _slopes(
        self, target: str, column: int, causes: list[Input], level: float
    ) -> list[Interval]:
        """Average slopes of a target's column along its causes, all standardised."""
        windows = self.windows.observed(column)
        controls = self._controls(target, causes, _terms_for(len(windows)))
        batch = self.drawn if len(windows) == len(self.windows) else windows.whole()
        past = batch.past  # (row, step, column), oldest first
        inputs, beside = (
            past[:, [-lag for _, lag in some], [at for at, _ in some]].astype(np.float64)
            for some in (causes, controls)
        )
        if batch.domain is not None:  # each domain has a mean of its own
            own = np.eye(int(batch.domain.max()) + 1)[batch.domain][:, 1:]
            beside = np.concatenate([beside, own], axis=1)
        outcome = batch.target[:, column].astype(np.float64)
        return _average_slopes(inputs, beside, outcome, level, self.bar)

    def _controls(self, target: str, causes: list[Input], most: int) -> list[Input]:
        """All other inputs, or those of the highest score; at least one, if there is any."""
        coding = self.windows.panel.coding
        taken, scores, variables = set(causes), self.graph.scores, len(coding.variables)
        order = np.arange(variables * self.windows.max_lag)  # lag * variable
        if scores is not None:
            row = np.nan_to_num(scores.sel(target=target).transpose("lag", "source").values)
            order = np.argsort(-row.ravel(), kind="stable")
        ranked = ((int(i) % variables, int(i) // variables + 1) for i in order)
        columns = (
            (column, lag)
            for v, lag in ranked
            for column in range(coding.slices[v].start, coding.slices[v].stop)
        )
        kept = (one for one in columns if one not in taken)
        return list(islice(kept, max(min(MOST_CONTROLS, most - len(causes)), 1)))


def _bar(graph: LaggedGraph, fdr: float | None) -> float | None:
    """The size, in standard errors, at which Benjamini and Hochberg's rule chose the edges."""
    if fdr is None:
        return None
    candidates = len(graph.variables) ** 2 * graph.max_lag
    return float(-ndtri(fdr * min(len(graph) / candidates, 1.0) / 2))


def _terms_for(rows: int) -> int:
    """How many terms a regression on so many rows may have."""
    return int(rows // thresholds().effects.rows_per_term)


def _average_slopes(
    inputs: Array, beside: Array, outcome: Array, level: float, bar: float | None = None
) -> list[Interval]:
    """Of the outcome (row,) along every input (row, input), beside others (row, control)."""
    lines = np.concatenate([np.ones((1, len(outcome))), inputs.T, beside.T]).T
    room = _terms_for(len(outcome)) - lines.shape[1]
    fit = _SlopeFit(lines, np.eye(inputs.shape[1], lines.shape[1], 1), outcome)
    fit = fit.with_terms(*_bends(inputs, min(len(outcome), room)))
    if _hints_at_products(inputs, fit.errors):
        room = _terms_for(len(outcome)) - fit.design.shape[1]
        fit = fit.with_terms(
            *_products(
                inputs, min(int(len(outcome) // thresholds().effects.rows_per_product), room)
            )
        )
    estimates, spreads = fit.estimates, fit.standard_errors
    freedom = max(len(outcome) - fit.design.shape[1], 1)
    far = stdtrit(freedom, (1 + level) / 2) * spreads
    near = far
    if bar is not None:
        sizes = np.abs(estimates) / np.maximum(spreads, 1e-300)
        near = np.maximum(far, spreads * (sizes - _lower_if_chosen(sizes, bar, (1 + level) / 2)))
    up = estimates > 0
    ends = estimates - np.where(up, near, far), estimates + np.where(up, far, near)
    return [Interval(*map(float, each)) for each in zip(estimates, *ends, strict=True)]


@dataclass(frozen=True, eq=False)
class _SlopeFit:
    """Least squares of an outcome, and what its coefficients say of the average slopes."""

    design: Array  # (row, term)
    slopes: Array  # (input, term): the mean slope of every term
    outcome: Array  # (row,)

    def with_terms(self, terms: Array, slopes: Array) -> _SlopeFit:
        """The regression with more terms (row, term) of these mean slopes (input, term)."""
        if not terms.shape[1]:
            return self
        design = np.concatenate([self.design.T, terms.T]).T  # term by term in memory
        return _SlopeFit(design, np.concatenate([self.slopes, slopes], axis=1), self.outcome)

    @cached_property
    def inverse(self) -> Array:
        """Of the Gram matrix, (term, term)."""
        gram = self.design.T @ self.design
        return precision(damped(gram, SMALL_RIDGE * np.trace(gram)))

    @cached_property
    def coefficients(self) -> Array:
        """(term,)"""
        return np.asarray(self.inverse @ (self.design.T @ self.outcome))

    @cached_property
    def errors(self) -> Array:
        """(row,)"""
        return np.asarray(self.outcome - self.design @ self.coefficients)

    @property
    def estimates(self) -> Array:
        """The average slopes, (input,)."""
        return np.asarray(self.slopes @ self.coefficients)

    @property
    def standard_errors(self) -> Array:
        """Those of the estimates by HC3, (input,)."""
        coefficients = self.coefficients[:, None]
        h, errors = hc3_terms(self.design, self.outcome[:, None], self.inverse, coefficients)
        return np.asarray(np.sqrt(np.square(h @ self.slopes.T).T @ np.square(errors[:, 0])))


def _hints_at_products(inputs: Array, errors: Array) -> bool:
    """Whether products of bounded inputs have to do with the errors that lines and bends leave.

    To ask is far cheaper than to fit them.
    """
    u = np.tanh(inputs)
    factors = np.concatenate([u - u.mean(0), u**2 - (u**2).mean(0)], axis=1)
    t = np.abs(product_t_values(factors, errors))
    place = np.arange(factors.shape[1]) % inputs.shape[1]
    return bool((t[place[:, None] != place] > thresholds().effects.product_t).any())


def _lower_if_chosen(sizes: Array, bar: float, chance: float) -> Array:
    """The mean (edge,) under which a size is exceeded with the chance 1 - `chance`, if chosen.

    A size has a normal error of one. It is seen only if a second look at it, with a further error
    of one, lies beyond the bar: the test that chose the edge is not the regression here.
    """
    steps = np.linspace(0.0, 10.0, 401)
    low, high = sizes - 10.0, sizes.copy()
    for _ in range(40):
        mean = (low + high) / 2
        x = sizes[:, None] - steps  # below what was seen
        below = np.exp(-np.square(x - mean[:, None]) / 2) * (ndtr(x - bar) + ndtr(-x - bar))
        share = below.sum(1) * (steps[1] - steps[0]) / np.sqrt(2 * np.pi)
        seen = ndtr((mean - bar) / np.sqrt(2)) + ndtr((-mean - bar) / np.sqrt(2))
        above = share > chance * seen
        low, high = np.where(above, mean, low), np.where(above, high, mean)
    return low


def _bends(inputs: Array, most: int) -> tuple[Array, Array]:
    """What splines add to lines: (row, term), and the terms' mean slopes (input, term).

    Nothing if there is no room for `most` terms.
    """
    count = int(np.clip(len(inputs) // ROWS_PER_KNOT, KNOTS, MOST_KNOTS))
    if inputs.shape[1] * (count - 2) > most:
        return np.empty((len(inputs), 0)), np.empty((inputs.shape[1], 0))
    knots = np.quantile(inputs, np.linspace(0.05, 0.95, count), axis=0).T
    knots[(np.diff(knots, axis=1) <= 1e-6).any(axis=1)] = 0.0  # few distinct values: a line
    terms = spline_terms(inputs, knots)[..., 1:]
    slopes = spline_slopes(inputs, knots)[..., 1:].mean(0)  # (input, bend)
    by_term = np.eye(len(slopes))[:, :, None] * slopes
    return terms.reshape(len(terms), -1), by_term.reshape(len(slopes), -1)


def _products(inputs: Array, most: int) -> tuple[Array, Array]:
    """Products of bounded inputs and their powers: (row, term), mean slopes (input, term).

    Those of the lowest degree first, at most so many.
    """
    u = np.ascontiguousarray(np.tanh(inputs).T)  # (input, row)
    power = [u**k for k in range(HIGHEST_POWER + 1)]
    slope = [k * power[max(k - 1, 0)] * (1 - power[2]) for k in range(HIGHEST_POWER + 1)]
    wanted = list(islice(_factors(len(u)), max(min(most, MOST_PRODUCTS), 0)))
    terms, by_term = np.empty((len(wanted), len(inputs))), np.zeros((len(u), len(wanted)))
    for at, factors in enumerate(wanted):
        values = [power[k][a] for a, k in factors]
        np.multiply(reduce(np.multiply, values[1:]), values[0], out=terms[at])
        for place, (a, k) in enumerate(factors):
            rest = reduce(np.multiply, values[:place] + values[place + 1 :])
            by_term[a, at] = slope[k][a] @ rest / len(inputs)
    return terms.T, by_term


def _factors(count: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """The factors (input, power) of every product, by degree, then fewer inputs first."""
    for degree in range(2, HIGHEST_DEGREE + 1):
        for size in range(2, min(degree, 4) + 1):
            for inputs in combinations(range(count), size):
                for powers in product(range(1, HIGHEST_POWER + 1), repeat=size):
                    if sum(powers) == degree:
                        yield tuple(zip(inputs, powers, strict=True))
