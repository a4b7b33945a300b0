"""Benjamini-Hochberg: p-values turned into bounds on the share of false edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def adjusted_p_values(p: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Benjamini-Hochberg q-values of all p-values in `p` together, in the shape of `p`.

    Keeping the candidates with q <= level expects at most that share of false ones among them.
    """
    values: npt.NDArray[Any] = np.asarray(p, dtype=np.float64)
    flat = values.ravel()
    order = np.argsort(flat)
    ranked = flat[order] * (flat.size / np.arange(1, flat.size + 1))
    q = np.empty_like(flat)
    # q of rank r is the smallest p * n / rank at r or beyond, so q never falls as p grows.
    q[order] = np.minimum.accumulate(ranked[::-1])[::-1]
    return np.minimum(q, 1.0).reshape(values.shape)
