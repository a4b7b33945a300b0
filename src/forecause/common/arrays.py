"""Names for the arrays that are passed around; what their axes are, a docstring says."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Floats = npt.NDArray[Any]  # float32 as drawn from windows, or float64
Single = npt.NDArray[np.float32]
Index = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
