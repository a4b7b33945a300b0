"""Windows laid out for tests: inputs and targets as plain arrays, and what each column is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from forecause.arrays import Array, Index
from forecause.data.windows import Windows
from forecause.regression.scan import InputGroups


@dataclass(frozen=True, eq=False)
class TestedWindows:
    """The past of every window as one row of inputs, lag 1 first, and what followed.

    A group of inputs is a variable at a lag, be it a number or all levels of a label; groups are
    numbered lag * variable.
    """

    inputs: Array  # (row, input), standardised
    targets: Array  # (row, column), standardised
    rows: Index  # (row,) of the panel
    domain: Index | None  # (row,)
    groups: InputGroups
    variable: Index  # (input,) whose past it is
    lag: Index  # (input,)
    past_shape: tuple[int, int]  # (max_lag, columns)

    @classmethod
    def of(cls, windows: Windows) -> TestedWindows:
        """All of these windows."""
        batches = list(windows.batches(4096))
        past = np.concatenate([b.past[:, ::-1].reshape(len(b), -1) for b in batches])
        domains = [b.domain for b in batches if b.domain is not None]
        coding, (steps, columns) = windows.panel.coding, windows.shape
        groups = [
            lag * columns + coding.columns(v)
            for lag in range(steps)
            for v in range(len(coding.variables))
        ]
        is_number = np.isin(np.arange(columns), coding.numeric_columns)
        curved = np.tile(is_number, steps)
        return cls(
            past.astype(np.float64),
            np.concatenate([b.target for b in batches]).astype(np.float64),
            windows.rows,
            np.concatenate(domains) if domains else None,
            InputGroups(tuple(np.asarray(g, dtype=np.int64) for g in groups), curved),
            np.tile(coding.of_column, steps),
            np.arange(steps).repeat(columns) + 1,
            (steps, columns),
        )

    def of_groups(self, kept: Index) -> TestedWindows:
        """With some groups of the inputs alone, renumbered in their order."""
        if len(kept) == len(self.groups.groups):
            return self
        own = [self.groups.groups[g] for g in kept]
        columns = np.sort(np.concatenate(own))
        place = np.zeros(self.inputs.shape[1], dtype=np.int64)
        place[columns] = np.arange(len(columns))
        return replace(
            self,
            inputs=self.inputs[:, columns],
            groups=InputGroups(tuple(place[g] for g in own), self.groups.curved[columns]),
            variable=self.variable[columns],
            lag=self.lag[columns],
        )

    def by_lag(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """(target, group) of all groups -> (target, source, lag)."""
        steps = self.past_shape[0]
        return values.reshape(len(values), steps, -1).transpose(0, 2, 1).copy()


def by_group(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """(target, source, lag) -> (target, group)."""
    return values.transpose(0, 2, 1).reshape(len(values), -1).copy()
