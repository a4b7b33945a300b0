"""Benjamini-Hochberg: p-values turned into bounds on the share of false edges."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control


def adjusted_p_values(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Benjamini-Hochberg q-values of all p-values in `p` together, in the shape of `p`.

    Keeping the candidates with q <= level expects at most that share of false ones among them.
    What was not tested (NaN) does not count and stays so.
    """
    q = np.array(p, dtype=np.float64)
    tested = np.isfinite(q)
    if tested.any():
        q[tested] = false_discovery_control(q[tested])
    return q
