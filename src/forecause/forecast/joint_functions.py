"""Is there anything to find beyond lines and splines? Asked before a network is trained.

With few inputs the dictionary answers that; with many, products of every target's strongest inputs
do, which are cheap to look at.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from torch import Tensor

from forecause.data.windows import Windows
from forecause.regression import scan
from forecause.regression.splines import Splines

STRICT_LEVEL = 0.0005  # chance to take one target of a system without joint functions for another
MOST_MULTIPLIED = 14  # inputs of a target
MOST_WINDOWS = 4000  # that are looked at

Array = npt.NDArray[np.float64]


def columns_with_products(
    windows: Windows, residuals: Callable[[Windows], Tensor], strongest: Tensor
) -> frozenset[int]:
    """The target columns whose residuals (window, column) follow a product of two inputs.

    strongest (column, input) are the places step * variable of every column's strongest inputs,
    the strongest first.
    """
    looked = windows.spread(MOST_WINDOWS)
    batch = looked.draw(np.arange(len(looked)))
    inputs, left = batch.past.flatten(1).numpy(), residuals(looked).double().numpy()
    numeric = np.isin(np.arange(looked.shape[1]), looked.panel.coding.numeric_columns)
    is_curved = np.tile(numeric, looked.shape[0])
    level = STRICT_LEVEL / left.shape[1]
    found = []
    for column, places in enumerate(strongest[:, :MOST_MULTIPLIED].numpy()):
        own = inputs[:, places[is_curved[places]]].astype(np.float64)
        if _follows_product(own, left[:, column], level):
            found.append(column)
    return frozenset(found)


def _follows_product(inputs: Array, residual: Array, level: float) -> bool:
    """Whether a residual (row,) follows a product of two of the inputs (row, input)."""
    columns = np.arange(inputs.shape[1])
    if len(columns) < 2:
        return False
    [proposals] = scan.scan_pairs(inputs, residual[:, None], columns, scan.PLAIN)
    bends = Splines.of(inputs, np.ones(len(columns), dtype=bool)).bends(inputs)
    known = np.concatenate([np.ones((len(inputs), 1)), inputs, bends], axis=1)
    return bool(scan.confirmed(proposals, inputs, residual, known, 1, level))
