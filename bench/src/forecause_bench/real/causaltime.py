"""CausalTime (Cheng et al. 2024): air quality, traffic and medical records, generated anew.

`gen_data.npy` is (sample, step, 2 N): N variables, then as many residual terms that are not used.
`graph.npy` is (effect, cause), its diagonal telling which variables drive themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.data.panel import Panel
from forecause.errors import InputError
from forecause_bench.real.dataset import Dataset, find_file, summary_truth


def datasets(folder: Path, item: str) -> list[Dataset]:
    """The one system of a subfolder; each sample is a series of its own."""
    data = _array(find_file(folder, f"{item}/gen_data.npy"), 3)
    graph = _array(find_file(folder, f"{item}/graph.npy"), 2)
    count = len(graph)
    if graph.shape != (count, count) or data.shape[2] != 2 * count:
        raise InputError(
            f"Expected {item}/graph.npy of shape (N, N) and {item}/gen_data.npy of shape "
            f"(samples, steps, 2 N), found {graph.shape} and {data.shape}."
        )
    names = [f"X{i + 1}" for i in range(count)]
    samples = list(data[:, :, :count].astype(np.float64))
    series = [f"sample {i + 1}" for i in range(len(samples))]
    panel = Panel.from_arrays(samples, names, series)
    return [Dataset(item, panel, summary_truth(names, graph != 0))]


def _array(path: Path, axes: int) -> npt.NDArray[Any]:
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, OSError) as problem:
        raise InputError(f"Cannot read {str(path)!r} as an array: {problem}.") from None
    if not isinstance(values, np.ndarray) or values.ndim != axes:
        raise InputError(f"Expected an array with {axes} axes in {str(path)!r}, found another.")
    return values
