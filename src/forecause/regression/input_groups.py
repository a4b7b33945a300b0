"""What may be a cause: single columns of the inputs, or several that belong together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Index = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class InputGroups:
    """Groups of input columns that are tested together (one column, or all levels of a label).

    Columns of no group (season and trend terms, domain indicators) are part of every model and
    are never tested.
    """

    groups: tuple[Index, ...]
    curved: npt.NDArray[np.bool_]  # (input,) whether more than a line can be made of a column

    @classmethod
    def single(cls, inputs: int) -> InputGroups:
        """Every one of `inputs` columns is a candidate of its own and a number."""
        groups = tuple(np.array([i]) for i in range(inputs))
        return cls(groups, np.ones(inputs, dtype=bool))

    @cached_property
    def tested(self) -> Index:
        """The columns that belong to a group, in order."""
        return np.unique(np.concatenate(self.groups)).astype(np.int64)

    @cached_property
    def always(self) -> Index:
        """The columns that are part of every model."""
        return np.setdiff1d(np.arange(len(self.curved)), self.tested).astype(np.int64)

    @cached_property
    def scanned(self) -> Index:
        """The columns whose waves and products are looked for."""
        return np.intersect1d(self.tested, np.flatnonzero(self.curved)).astype(np.int64)
