"""The dictionary: lines and splines of the inputs, and joint functions found by scanning residuals.

Products of two and three inputs, waves, steps and gates: what additive models cannot hold, found in
seconds. Everything that is fitted is a table of numbers of fixed size, so it is saved as such.
"""

from __future__ import annotations

from typing import ClassVar, get_args

import numpy as np
import torch
from torch import Tensor

from forecause.config import PLAIN_READOUTS
from forecause.forecast.backward import PLAIN, Rules
from forecause.forecast.dictionary_search import (
    MOST_ATOMS,
    AdditiveModels,
    DictionaryFit,
    DictionarySearch,
    basic_scans,
    cure_scans,
    triple_cure_scans,
)
from forecause.forecast.forecaster import FitData, Forecaster, ForecasterSettings
from forecause.forecast.models.by_domain import by_domain
from forecause.regression import scan
from forecause.regression.atoms import FARTHEST, Kind
from forecause.regression.least_squares import Index
from forecause.regression.scan import InputGroups
from forecause.regression.splines import BENDS, KNOT_QUANTILES

KINDS: tuple[str, ...] = get_args(Kind)  # of factors; in the table, their places from 1
MOST_FACTORS = 4  # of an atom
MOST_LEARNED_WINDOWS = 20_000  # that are learned from


class Dictionary(ForecasterSettings):
    """Lines, splines and the joint functions that a scan of their residuals finds.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.Dictionary().kind
    'dictionary'
    """

    kind: ClassVar[str] = "dictionary"
    instant: ClassVar[bool] = True
    own_tests: ClassVar[bool] = True
    readouts: ClassVar[tuple[str, ...]] = PLAIN_READOUTS

    level: float = scan.LEVEL  # chance of a scan to propose a function where there is none

    def build(self, shape: tuple[int, int]) -> Forecaster:
        return by_domain(self, lambda plain: DictionaryModel(shape, plain), shape)

    def features(self, inputs: int) -> int:
        return (1 + BENDS) * inputs


class DictionaryModel(Forecaster):
    """X_i,t = intercept + lines + bends + sum of weighted products of functions of inputs.

    Inputs are numbered step * variable. An atom's factors are rows (input, kind, rate, centre) of
    `factors`; kind 0 is the constant 1.
    """

    settings: Dictionary

    def __init__(self, shape: tuple[int, int], settings: Dictionary) -> None:
        super().__init__(shape, settings)
        p, inputs = self.n_variables, self.max_lag * self.n_variables
        self.register_buffer("intercept", torch.zeros(p))
        self.register_buffer("lines", torch.zeros(p, inputs))
        self.register_buffer("bends", torch.zeros(p, inputs, BENDS))
        self.register_buffer("knots", torch.zeros(inputs, len(KNOT_QUANTILES)))
        self.register_buffer("shifts", torch.zeros(inputs, 2, BENDS))  # slopes, levels of bends
        self.register_buffer("factors", torch.zeros(p, MOST_ATOMS, MOST_FACTORS, 4))
        self.register_buffer("weights", torch.zeros(p, MOST_ATOMS))

    def forward(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        x = past.flatten(1)  # (batch, input)
        lines = self.get_buffer("intercept") + x @ self.get_buffer("lines").T
        return lines + self._curves(x) + self._atoms(x)

    def _curves(self, x: Tensor) -> Tensor:
        """What the bends of the inputs add, (batch, target)."""
        read = self.get_buffer("bends").abs().sum((0, 2)) > 0
        values, knots = x[:, read, None], self.get_buffer("knots")[read]
        slopes, levels = self.get_buffer("shifts")[read].unbind(1)
        beyond = (values - knots).clamp(min=0).pow(3)  # (batch, input, knot)
        width = (knots[:, -1:] - knots[:, :-1]).clamp(min=1e-9)
        parts = (beyond[..., :-1] - beyond[..., -1:]) / width
        bends = parts[..., :-1] - parts[..., -1:] - slopes * values - levels
        return torch.einsum("bik,tik->bt", bends, self.get_buffer("bends")[:, read])

    def _atoms(self, x: Tensor) -> Tensor:
        """What the joint functions add, (batch, target)."""
        used = (self.get_buffer("weights") != 0).any(0)
        factors, weights = self.get_buffer("factors")[:, used], self.get_buffer("weights")[:, used]
        column, kind, rate, centre = factors.unbind(-1)  # (target, atom, factor)
        values = x[:, column.long()]  # (batch, target, atom, factor)
        near = values.clamp(-FARTHEST, FARTHEST)
        moved = rate * values
        forms = [near, near.square(), moved.tanh(), moved.sin(), moved.cos()]
        found = torch.ones_like(values)
        for code, form in enumerate(forms, 1):
            found = torch.where(kind == code, form - centre, found)
        return (found.prod(-1) * weights).sum(-1)

    def offers(self, column: int) -> bool:
        """Only joint functions are its own; lines and splines the additive model has too."""
        return bool((self.get_buffer("weights")[column] != 0).any())

    def fit(self, fit_data: FitData) -> None:
        fit_data.progress.step("fitting the dictionary", 0.0)
        windows = fit_data.windows.spread(MOST_LEARNED_WINDOWS)
        batch = windows.draw(np.arange(len(windows)))
        inputs, targets = batch.past.flatten(1).double().numpy(), batch.target.double().numpy()
        curved = np.isin(np.arange(self.n_variables), windows.panel.coding.numeric_columns)
        allowed = self.get_buffer("allowed").flatten(1).cpu().numpy()
        kinds, kind_of = np.unique(allowed, axis=0, return_inverse=True)
        for kind, open_inputs in enumerate(kinds):
            columns = np.flatnonzero(open_inputs).astype(np.int64)
            columns = columns[np.argsort(-(columns // self.n_variables), kind="stable")]
            own = np.flatnonzero(kind_of == kind)
            if not len(columns):
                self.get_buffer("intercept")[own] = torch.from_numpy(
                    targets[:, own].mean(0)
                ).float()
                continue
            groups = InputGroups(
                tuple(np.array([i]) for i in range(len(columns))),
                np.tile(curved, self.max_lag)[columns],
            )
            lags = [np.flatnonzero(columns % self.n_variables == t) for t in own.tolist()]
            models = fit_dictionaries(
                inputs[:, columns], targets[:, own], groups, lags, self.settings.level
            )
            for target, model in zip(own.tolist(), models, strict=True):
                self._set(target, model, columns)
        self.estimate_noise(fit_data.held_out)

    def _set(self, target: int, model: DictionaryFit, columns: Index) -> None:
        """Take over the model of one target, whose inputs are `columns` of all."""
        reads, splines = torch.from_numpy(columns[model.reads]), model.splines
        at = model.reads
        bends = model.bends * splines.curved[at, None] / splines.scales[at]
        shifts = np.stack([splines.slopes[at], splines.levels[at]], axis=1)
        self.get_buffer("intercept")[target] = model.intercept
        self.get_buffer("lines")[target, reads] = torch.from_numpy(model.lines).float()
        self.get_buffer("bends")[target, reads] = torch.from_numpy(bends).float()
        self.get_buffer("knots")[reads] = torch.from_numpy(splines.knots[at]).float()
        self.get_buffer("shifts")[reads] = torch.from_numpy(shifts).float()
        for place, (atom, weight) in enumerate(zip(model.atoms, model.weights, strict=True)):
            self.get_buffer("weights")[target, place] = float(weight)
            for number, factor in enumerate(atom.factors):
                row = [int(columns[factor.column]), 1 + KINDS.index(factor.kind)]
                entry = torch.tensor([*row, factor.rate, factor.centre])
                self.get_buffer("factors")[target, place, number] = entry


def fit_dictionaries(
    inputs: np.ndarray,
    targets: np.ndarray,
    groups: InputGroups,
    own_lags: list[Index],
    level: float = scan.LEVEL,
) -> list[DictionaryFit]:
    """A dictionary for every target, of inputs (row, input) and targets (row, target)."""
    search = DictionarySearch(AdditiveModels(inputs, targets, groups), own_lags, level)
    search.look(basic_scans())
    search.look_behind_copies(cure_scans())
    search.look_behind_copies(triple_cure_scans(), only_rich=True)
    return search.models()
