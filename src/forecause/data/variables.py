"""The one map of columns to variables: which columns are a number, which a label's levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from forecause.common.bounded import Count
from forecause.config.thresholds import thresholds
from forecause.graph.axes import by_lag, by_step

Index = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Numerics:
LEAST_PROBABILITY = 1e-3  # of a level, where a linear model says less


class LabelColumns(BaseModel):
    """Where a label's columns are, and the share of the rows in which each level holds.

    Standardised, a column is (1 - share) / sd where its level holds and -share / sd elsewhere.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    first: NonNegativeInt
    shares: tuple[Annotated[float, Field(ge=0, le=1)], ...] = Field(min_length=1)  # (level,)

    @property
    def columns(self) -> slice:
        """Its columns among all."""
        return slice(self.first, self.first + len(self.shares))

    def moments(self, like: Floats) -> tuple[Floats, Floats]:
        """Mean and sd of its columns, (level,), of the type of `like`."""
        share = np.array(self.shares, dtype=like.dtype)
        return share, np.sqrt(share * (1 - share))

    def probabilities(self, standardised: Floats) -> Floats:
        """What forecasts (..., level) of its columns mean: from 0 to 1, adding up to 1."""
        share, sd = self.moments(standardised)
        chances = np.maximum(standardised * sd + share, LEAST_PROBABILITY)
        return np.asarray(chances / chances.sum(-1, keepdims=True))

    def standardised(self, probabilities: Floats) -> Floats:
        """The way back."""
        share, sd = self.moments(probabilities)
        return np.asarray((probabilities - share) / sd)


@dataclass(frozen=True)
class Label:
    """A variable of labels: its levels are neighbouring columns of a panel, 1 where they hold."""

    name: str
    levels: Annotated[tuple[str, ...], Field(min_length=1)]
    first: Count  # its first column

    @property
    def columns(self) -> Index:
        """Its columns in a panel's values."""
        return np.arange(self.first, self.first + len(self.levels))

    @property
    def column_names(self) -> tuple[str, ...]:
        """What its columns are called: name=level."""
        return tuple(f"{self.name}={level}" for level in self.levels)


@dataclass(frozen=True, eq=False)
class Variables:
    """How the columns of a table belong to the variables that a graph speaks of.

    A number is a column of its own; a label has one column per level, next to each other.
    """

    variables: tuple[str, ...]
    of_column: Index  # (column,) index into variables
    labels: tuple[Label, ...] = ()

    @classmethod
    def of(cls, columns: Sequence[str], labels: Sequence[Label] = ()) -> Variables:
        """From the names of all columns and the labels among them."""
        owner = {int(c): label.name for label in labels for c in label.columns}
        names = [owner.get(place, name) for place, name in enumerate(columns)]
        variables = tuple(dict.fromkeys(names))
        place = {name: i for i, name in enumerate(variables)}
        of_column = np.array([place[name] for name in names], dtype=np.int64)
        return cls(variables, of_column, tuple(labels))

    @classmethod
    def of_label_columns(cls, columns: int, labels: Sequence[LabelColumns]) -> Variables:
        """Of a forecaster, which knows no names: variables are called by their first column."""
        named = [Label(str(one.first), tuple(map(str, one.shares)), one.first) for one in labels]
        return cls.of([str(column) for column in range(columns)], named)

    @property
    def first(self) -> Index:
        """The first column of every variable, (variable,)."""
        return np.unique(self.of_column, return_index=True)[1]

    @property
    def numeric_columns(self) -> Index:
        """The columns that are variables of their own."""
        owned = {int(c) for label in self.labels for c in label.columns}
        return np.array([c for c in range(len(self.of_column)) if c not in owned], dtype=np.int64)

    def columns(self, variable: int) -> Index:
        """The columns of a variable."""
        return np.flatnonzero(self.of_column == variable)

    @cached_property
    def slices(self) -> list[slice]:
        """The columns of every variable, (variable,)."""
        ends = [*self.first[1:].tolist(), len(self.of_column)]
        return [slice(first, end) for first, end in zip(self.first.tolist(), ends, strict=True)]

    def label(self, variable: int) -> Label | None:
        """The label that a variable is, if it is one."""
        name = self.variables[variable]
        return next((label for label in self.labels if label.name == name), None)

    def label_columns(self, mean: Floats) -> tuple[LabelColumns, ...]:
        """What a forecaster has to know of the labels; `mean` (column,) has the levels' shares."""
        return tuple(
            LabelColumns(first=label.first, shares=tuple(mean[label.columns].tolist()))
            for label in self.labels
        )

    def shown(self, mean: Floats) -> Index:
        """The one column of every variable that stands for it in a picture, (variable,).

        Of a label, its most common level by `mean` (column,), or the second of two.
        """
        columns = self.first
        for label in self.labels:
            place = self.variables.index(label.name)
            level = 1 if len(label.levels) == 2 else int(np.argmax(mean[label.columns]))
            columns[place] = label.first + level
        return columns

    def weights(self, mean: Floats) -> Floats:
        """(column, variable): how columns' standardised squared errors add up to a variable's.

        Of a label, in proportion to the variance of its indicators, whose means `mean` (column,)
        are: that is the Brier score as a share of the one that the levels' frequencies get.
        """
        weights = np.zeros((len(self.of_column), len(self.variables)))
        weights[np.arange(len(self.of_column)), self.of_column] = 1.0
        for label in self.labels:
            variance = mean[label.columns] * (1 - mean[label.columns])
            place = self.variables.index(label.name)
            weights[label.columns, place] = variance / variance.sum()
        return weights


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs are numbered step * variable, oldest step first; a column's place is step * column.

    A label's levels add up to 1, so its most common one is left out and its effects are those of
    the others against it; so are levels in too few windows, which a test would believe at once.
    """

    steps: int
    coding: Variables
    columns: tuple[Index, ...]  # (variable,) the columns of each that are tested

    @classmethod
    def of(cls, coding: Variables, steps: int, targets: npt.NDArray[Any]) -> Inputs:
        """The inputs that windows with these target rows (window, column) can tell about."""
        columns = [coding.columns(v) for v in range(len(coding.variables))]
        for label in coding.labels:
            counts = targets[:, label.columns].sum(0)
            tested = counts >= thresholds().reading.least_of_label
            tested[np.argmax(counts)] = False
            columns[coding.variables.index(label.name)] = label.columns[tested]
        return cls(steps, coding, tuple(columns))

    @property
    def variables(self) -> int:
        return len(self.columns)

    def places(self, inputs: Index) -> tuple[Index, Index]:
        """The places of the inputs' columns, and for each the input's index in `inputs`."""
        width = len(self.coding.of_column)
        parts = [self.columns[i % self.variables] + i // self.variables * width for i in inputs]
        owner = np.repeat(np.arange(len(inputs)), [len(part) for part in parts])
        return np.concatenate([*parts, np.zeros(0, dtype=np.int64)]), owner

    def is_label(self, places: Index) -> npt.NDArray[np.bool_]:
        """Whether each place is a level of a label."""
        owned = np.concatenate([np.zeros(0, int), *(label.columns for label in self.coding.labels)])
        return np.isin(places % len(self.coding.of_column), owned)

    def by_lag(self, values: Floats) -> Floats:
        """(target, step * variable) -> (target, source, lag)."""
        return by_lag(values.reshape(len(values), self.steps, self.variables))

    def by_input(self, values: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """(target, source, lag) of variables -> (target column, step * variable)."""
        flat = by_step(values).reshape(len(values), -1)
        return np.asarray(flat[self.coding.of_column])

    def tests(self, variable: int) -> int:
        """How many tests of its columns decide about a variable as a target."""
        return max(len(self.columns[variable]), 1)

    def p_values_of_targets(self, p_values: Floats) -> Floats:
        """(target column, ...) -> (target variable, ...): the smallest times their number."""
        combined = []
        for variable, columns in enumerate(self.columns):
            if len(columns) == 1:
                combined.append(p_values[columns[0]])
            elif not len(columns):  # a label that never changes in these windows
                combined.append(
                    np.where(np.isnan(p_values[self.coding.first[variable]]), np.nan, 1.0)
                )
            else:
                combined.append(np.minimum(p_values[columns].min(0) * len(columns), 1.0))
        return np.stack(combined)

    def largest_of_targets(self, values: Floats) -> Floats:
        """(target column, ...) -> (target variable, ...): the largest of the tested columns."""
        every = [c if len(c) else self.coding.columns(v) for v, c in enumerate(self.columns)]
        return np.stack([values[columns].max(0) for columns in every])


def groups_of(owner: Index, count: int) -> list[Index]:
    """The features (feature,) that belong to each of `count` owners."""
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=count))
    return [part.astype(np.int64) for part in np.split(order, ends[:-1])]
