"""Is there anything to find beyond lines and splines? Asked before a network is trained.

With few inputs the dictionary answers that; with many, products of every target's strongest inputs
do, which are cheap to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from forecause.arrays import Array, Floats, Index, Single
from forecause.config.thresholds import thresholds
from forecause.data.windows import Windows
from forecause.regression import scan
from forecause.regression.least_squares import KnownFeatures
from forecause.regression.splines import Splines
from forecause.work_sharing import in_blocks, parallel_map

MOST_MULTIPLIED = 14  # inputs of a target
MOST_WINDOWS = 4000  # that are looked at
COLUMNS_AT_ONCE = 8  # targets


def columns_with_products(
    windows: Windows, residuals: Callable[[Windows], Floats], strongest: Index
) -> frozenset[int]:
    """The target columns whose residuals (window, column) follow a product of two inputs.

    strongest (column, input) are the places step * variable of every column's strongest inputs,
    the strongest first.
    """
    looked = windows.thin(MOST_WINDOWS)
    batch = looked.whole()
    inputs, left = batch.past.reshape(len(batch), -1), residuals(looked).astype(np.float64)
    numeric = np.isin(np.arange(looked.shape[1]), looked.panel.coding.numeric_columns)
    is_curved = np.tile(numeric, looked.shape[0])
    level = thresholds().choice.joint_level / left.shape[1]
    places = strongest[:, :MOST_MULTIPLIED]
    own = [[int(i) for i in some[is_curved[some]]] for some in places]
    blocks = in_blocks(range(len(own)), COLUMNS_AT_ONCE)
    following = parallel_map(_following, (inputs, left, own, level), blocks)
    return frozenset(column for part in following for column in part)


def _following(
    data: tuple[Single, Array, list[list[int]], float], columns: Sequence[int]
) -> list[int]:
    """Those of some columns whose residuals follow a product of two of their own inputs."""
    inputs, left, own, level = data
    return [
        column
        for column in columns
        if _follows_product(inputs[:, own[column]].astype(np.float64), left[:, column], level)
    ]


def _follows_product(inputs: Array, residual: Array, level: float) -> bool:
    """Whether a residual (row,) follows a product of two of the inputs (row, input)."""
    columns = np.arange(inputs.shape[1])
    if len(columns) < 2:
        return False
    [proposals] = scan.PairScan(inputs, columns, scan.PLAIN)(residual[:, None])
    bends = Splines.of(inputs, np.ones(len(columns), dtype=bool)).bends(inputs)
    known = np.concatenate([np.ones((len(inputs), 1)), inputs, bends], axis=1)
    return bool(scan.confirmed(proposals, inputs, residual, KnownFeatures.of(known), 1, level))
