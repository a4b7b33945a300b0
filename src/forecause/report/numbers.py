"""Numbers for the page: short enough for a file, plain enough for JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt


def short(values: npt.ArrayLike) -> Any:
    """Nested lists of numbers with 5 significant digits; what is not finite is None."""
    return _short(np.asarray(values, dtype=np.float64).tolist())


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(part) for part in value]
    return float(f"{value:.5g}") if math.isfinite(value) else None
