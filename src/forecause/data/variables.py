"""The one map of columns to variables: which columns are a number, which a label's levels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

RARE = 10  # a level in fewer rows says too little to be told apart
LEAST_PROBABILITY = 1e-3  # of a level, where a linear model says less


class LabelColumns(BaseModel):
    """Where a label's columns are, and the share of the rows in which each level holds.

    Standardised, a column is (1 - share) / sd where its level holds and -share / sd elsewhere.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    first: int
    shares: tuple[float, ...]  # (level,)

    @property
    def columns(self) -> slice:
        """Its columns among all."""
        return slice(self.first, self.first + len(self.shares))

    def moments(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sd of its columns, (level,)."""
        share = torch.tensor(self.shares, dtype=like.dtype, device=like.device)
        return share, (share * (1 - share)).sqrt()

    def probabilities(self, standardised: Tensor) -> Tensor:
        """What forecasts (..., level) of its columns mean: from 0 to 1, adding up to 1."""
        share, sd = self.moments(standardised)
        chances = (standardised * sd + share).clamp(min=LEAST_PROBABILITY)
        return chances / chances.sum(-1, keepdim=True)

    def standardised(self, probabilities: Tensor) -> Tensor:
        """The way back."""
        share, sd = self.moments(probabilities)
        return (probabilities - share) / sd


@dataclass(frozen=True)
class Label:
    """A variable of labels: its levels are neighbouring columns of a panel, 1 where they hold."""

    name: str
    levels: tuple[str, ...]
    first: int  # its first column

    @property
    def columns(self) -> npt.NDArray[np.int64]:
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
    of_column: npt.NDArray[np.int64]  # (column,) index into variables
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
    def first(self) -> npt.NDArray[np.int64]:
        """The first column of every variable, (variable,)."""
        return np.unique(self.of_column, return_index=True)[1]

    @property
    def numeric_columns(self) -> npt.NDArray[np.int64]:
        """The columns that are variables of their own."""
        owned = {int(c) for label in self.labels for c in label.columns}
        return np.array([c for c in range(len(self.of_column)) if c not in owned], dtype=np.int64)

    def columns(self, variable: int) -> npt.NDArray[np.int64]:
        """The columns of a variable."""
        return np.flatnonzero(self.of_column == variable)

    @property
    def slices(self) -> list[slice]:
        """The columns of every variable, (variable,)."""
        ends = [*self.first[1:].tolist(), len(self.of_column)]
        return [slice(first, end) for first, end in zip(self.first.tolist(), ends, strict=True)]

    def label(self, variable: int) -> Label | None:
        """The label that a variable is, if it is one."""
        name = self.variables[variable]
        return next((label for label in self.labels if label.name == name), None)

    def label_columns(self, mean: npt.NDArray[np.float64]) -> tuple[LabelColumns, ...]:
        """What a forecaster has to know of the labels; `mean` (column,) has the levels' shares."""
        return tuple(
            LabelColumns(first=label.first, shares=tuple(mean[label.columns].tolist()))
            for label in self.labels
        )

    def shown(self, mean: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """The one column of every variable that stands for it in a picture, (variable,).

        Of a label, its most common level by `mean` (column,), or the second of two.
        """
        found = self.first
        for label in self.labels:
            place = self.variables.index(label.name)
            level = 1 if len(label.levels) == 2 else int(np.argmax(mean[label.columns]))
            found[place] = label.first + level
        return found

    def weights(self, mean: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
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
