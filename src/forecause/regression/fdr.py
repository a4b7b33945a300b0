"""Benjamini-Hochberg: p-values turned into bounds on the share of false edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def adjusted_p_values(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Benjamini-Hochberg q-values of all p-values in `p` together, in the shape of `p`.

    Keeping the candidates with q <= level expects at most that share of false ones among them.
    What was not tested (NaN) does not count and stays so.
    """
    values: npt.NDArray[Any] = np.asarray(p, dtype=np.float64)
    flat = values.ravel()
    order = np.argsort(flat)[: int(np.isfinite(flat).sum())]  # NaN is sorted last
    ranked = flat[order] * (len(order) / np.arange(1, len(order) + 1))
    q = np.full_like(flat, np.nan)
    # q of rank r is the smallest p * n / rank at r or beyond, so q never falls as p grows.
    q[order] = np.minimum(np.minimum.accumulate(ranked[::-1])[::-1], 1.0)
    return q.reshape(values.shape)
