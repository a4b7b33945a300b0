"""The dictionary: lines and splines of the inputs, and joint functions found by scanning residuals.

Products of two and three inputs, waves, steps and gates: what additive models cannot hold, found in
seconds. Everything that is fitted is a table of numbers of fixed size, so it is saved as such.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, get_args

import numpy as np

from forecause.common.arrays import Floats, Index, Single
from forecause.config import PLAIN_READOUTS
from forecause.config.thresholds import THRESHOLDS
from forecause.forecast.dictionary_search import (
    MOST_ATOMS,
    AdditiveModels,
    DictionaryFit,
    DictionarySearch,
)
from forecause.forecast.forecaster import (
    ENOUGH_WINDOWS,
    PLAIN,
    FitData,
    Forecaster,
    ForecasterSettings,
    Rules,
)
from forecause.forecast.members import by_domain
from forecause.regression.atoms import Atom, Factor, Kind
from forecause.regression.scan import InputGroups
from forecause.regression.splines import BENDS, KNOT_QUANTILES, bend_slopes_of, bends_of

KINDS: tuple[Kind, ...] = get_args(Kind)  # of factors; in the table, their places from 1
# Shape of the model:
MOST_FACTORS = 4  # of an atom


class Dictionary(ForecasterSettings):
    """Lines, splines and the joint functions that a scan of their residuals finds.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.forecasters.Dictionary().kind
    'dictionary'
    """

    kind: ClassVar[str] = "dictionary"
    instant: ClassVar[bool] = True
    readouts: ClassVar[tuple[str, ...]] = PLAIN_READOUTS

    level: float = (
        THRESHOLDS.search.level
    )  # chance of a scan to propose a function where there is none

    def build(self, shape: tuple[int, int]) -> Forecaster:
        return by_domain(self, lambda plain: DictionaryModel(shape, plain), shape)

    def features(self, inputs: int) -> int:
        return (1 + BENDS) * inputs


class DictionaryModel(Forecaster):
    """X_i,t = intercept + lines + bends + sum of weighted products of functions of inputs.

    Inputs are numbered step * variable. An atom's factors are rows (input, kind, rate, centre) of
    `factors`; kind 0 is the constant 1.
    """

    state_names = ("intercept", "lines", "bends", "knots", "shifts", "factors", "weights")
    settings: Dictionary

    def __init__(self, shape: tuple[int, int], settings: Dictionary) -> None:
        super().__init__(shape, settings)
        p, inputs = self.n_variables, self.max_lag * self.n_variables

        def zeros(*size: int) -> Single:
            return np.zeros(size, dtype=np.float32)

        self.intercept = zeros(p)
        self.lines, self.bends = zeros(p, inputs), zeros(p, inputs, BENDS)
        self.knots = zeros(inputs, len(KNOT_QUANTILES))
        self.shifts = zeros(inputs, 2, BENDS)  # slopes, levels of bends
        self.factors = zeros(p, MOST_ATOMS, MOST_FACTORS, 4)
        self.weights = zeros(p, MOST_ATOMS)
        # those of which chance hardly ever proposes such functions; known after fitting, not saved
        self.sure_columns: set[int] = set()

    def forward(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        x = past.reshape(len(past), -1)  # (batch, input)
        result = self.intercept + x @ self.lines.T + self._curves(x)
        for target, weight, atom in self._atoms():
            result[:, target] += weight * atom.values(x)
        return np.asarray(result)

    def jacobian(self, past: Floats, rules: Rules = PLAIN, domain: Index | None = None) -> Floats:
        x = past.reshape(len(past), -1)
        slopes = np.broadcast_to(self.lines, (len(x), *self.lines.shape)).astype(x.dtype)
        self._add_curve_slopes(x, slopes)
        for target, weight, atom in self._atoms():
            for column in atom.columns:
                slopes[:, target, column] += weight * atom.slopes(x, column)
        return slopes.reshape(len(x), self.n_variables, self.max_lag, self.n_variables)

    def _atoms(self) -> Iterator[tuple[int, float, Atom]]:
        """Target, weight and function of every atom in the table."""
        for target, place in np.argwhere(self.weights).tolist():
            factors = tuple(
                Factor(int(column), KINDS[int(kind) - 1], float(rate), float(centre))
                for column, kind, rate, centre in self.factors[target, place]
                if kind
            )
            yield target, float(self.weights[target, place]), Atom(factors)

    def _curves(self, x: Floats) -> Floats:
        """What the bends of the inputs add, (batch, target)."""
        read = np.abs(self.bends).sum((0, 2)) > 0
        values = x[:, read]
        slopes, levels = self.shifts[read, 0], self.shifts[read, 1]
        bends = bends_of(values, self.knots[read]) - slopes * values[..., None] - levels
        weight = self.bends[:, read].reshape(self.n_variables, -1)
        return np.asarray(bends.reshape(len(x), -1) @ weight.T)

    def _add_curve_slopes(self, x: Floats, slopes: Floats) -> None:
        """Add the bends' part to slopes (batch, target, input)."""
        read = np.abs(self.bends).sum((0, 2)) > 0
        bends = bend_slopes_of(x[:, read], self.knots[read]) - self.shifts[read, 0]
        slopes[:, :, read] += np.einsum("bik,tik->bti", bends, self.bends[:, read])

    def has_model_for(self, column: int) -> bool:
        """Only joint functions are its own; lines and splines the additive model has too."""
        return bool((self.weights[column] != 0).any())

    def fit(self, fit_data: FitData) -> None:
        fit_data.progress.step("fitting the dictionary", 0.0)
        windows = fit_data.windows.thin(ENOUGH_WINDOWS)
        batch = windows.whole()
        inputs = batch.past.reshape(len(batch), -1).astype(np.float64)
        targets = batch.target.astype(np.float64)
        curved = np.isin(np.arange(self.n_variables), windows.panel.coding.numeric_columns)
        allowed = self.allowed.reshape(self.n_variables, -1)
        kinds, kind_of = np.unique(allowed, axis=0, return_inverse=True)
        for kind, open_inputs in enumerate(kinds):
            columns = np.flatnonzero(open_inputs).astype(np.int64)
            columns = columns[np.argsort(-(columns // self.n_variables), kind="stable")]
            own = np.flatnonzero(kind_of.ravel() == kind)
            if not len(columns):
                self.intercept[own] = targets[:, own].mean(0)
                continue
            groups = InputGroups(
                tuple(np.array([i]) for i in range(len(columns))),
                np.tile(curved, self.max_lag)[columns],
            )
            lags = [np.flatnonzero(columns % self.n_variables == t) for t in own.tolist()]
            additive = AdditiveModels(inputs[:, columns], targets[:, own], groups)
            search = DictionarySearch(additive, lags, self.settings.level)
            search.look()
            search.scan_target_minus_own_past()
            # beside rivals that hold lines and splines, functions of several inputs alone count
            models = search.models() if fit_data.to_beat is None else search.quick_models()
            for target, model in zip(own.tolist(), models, strict=True):
                self._set(target, model, columns)
        self.estimate_noise(fit_data.held_out)

    def _set(self, target: int, model: DictionaryFit, columns: Index) -> None:
        """Take over the model of one target, whose inputs are `columns` of all."""
        at, splines = model.reads, model.splines
        reads = columns[at]
        if model.is_sure:
            self.sure_columns.add(target)
        self.intercept[target] = model.intercept
        self.lines[target, reads] = model.lines
        self.bends[target, reads] = model.bends * splines.curved[at, None] / splines.scales[at]
        self.knots[reads] = splines.knots[at]
        self.shifts[reads] = np.stack([splines.slopes[at], splines.levels[at]], axis=1)
        for place, (atom, weight) in enumerate(zip(model.atoms, model.weights, strict=True)):
            self.weights[target, place] = weight
            for number, factor in enumerate(atom.factors):
                row = [int(columns[factor.column]), 1 + KINDS.index(factor.kind)]
                self.factors[target, place, number] = [*row, factor.rate, factor.centre]
