"""What is tested: one input per variable and step, be it a number or all levels of a label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forecause.data.variables import RARE, Variables
from forecause.data.windows import Windows
from forecause.graph.axes import by_lag, by_step

Places = npt.NDArray[np.int64]
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Inputs:
    """Inputs are numbered step * variable, oldest step first; a column's place is step * column.

    A label's levels add up to 1, so its most common one is left out and its effects are those of
    the others against it; so are levels in too few windows, which a test would believe at once.
    """

    steps: int
    coding: Variables
    columns: tuple[Places, ...]  # (variable,) the columns of each that are tested

    @classmethod
    def of(cls, windows: Windows) -> Inputs:
        """The inputs that these windows can tell about."""
        coding = windows.panel.coding
        columns = [coding.columns(v) for v in range(len(coding.variables))]
        for label in coding.labels:
            holds = windows.panel.values[windows.rows][:, label.columns]
            counts = holds.sum(0)
            tested = counts >= RARE
            tested[np.argmax(counts)] = False
            columns[coding.variables.index(label.name)] = label.columns[tested]
        return cls(windows.max_lag, coding, tuple(columns))

    @property
    def variables(self) -> int:
        return len(self.columns)

    def places(self, inputs: Places) -> tuple[Places, Places]:
        """The places of the inputs' columns, and for each the input's index in `inputs`."""
        width = len(self.coding.of_column)
        parts = [self.columns[i % self.variables] + i // self.variables * width for i in inputs]
        owner = np.repeat(np.arange(len(inputs)), [len(part) for part in parts])
        return np.concatenate([*parts, np.zeros(0, dtype=np.int64)]), owner

    def is_label(self, places: Places) -> npt.NDArray[np.bool_]:
        """Whether each place is a level of a label."""
        owned = np.concatenate([np.zeros(0, int), *(label.columns for label in self.coding.labels)])
        return np.isin(places % len(self.coding.of_column), owned)

    def by_lag(self, values: Array) -> Array:
        """(target, step * variable) -> (target, source, lag)."""
        return by_lag(values.reshape(len(values), self.steps, self.variables))

    def by_input(self, values: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """(target, source, lag) of variables -> (target column, step * variable)."""
        flat = by_step(values).reshape(len(values), -1)
        return np.asarray(flat[self.coding.of_column])

    def tests(self, variable: int) -> int:
        """How many tests of its columns decide about a variable as a target."""
        return max(len(self.columns[variable]), 1)

    def p_values_of_targets(self, p_values: Array) -> Array:
        """(target column, ...) -> (target variable, ...): the smallest times their number."""
        found = []
        for variable, columns in enumerate(self.columns):
            if len(columns) == 1:
                found.append(p_values[columns[0]])
            elif not len(columns):  # a label that never changes in these windows
                found.append(np.where(np.isnan(p_values[self.coding.first[variable]]), np.nan, 1.0))
            else:
                found.append(np.minimum(p_values[columns].min(0) * len(columns), 1.0))
        return np.stack(found)

    def largest_of_targets(self, values: Array) -> Array:
        """(target column, ...) -> (target variable, ...): the largest of the tested columns."""
        every = [c if len(c) else self.coding.columns(v) for v, c in enumerate(self.columns)]
        return np.stack([values[columns].max(0) for columns in every])


def groups_of(owner: Places, count: int) -> list[Places]:
    """The features (feature,) that belong to each of `count` owners."""
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=count))
    return [part.astype(np.int64) for part in np.split(order, ends[:-1])]
