"""NetSim (Smith et al. 2011): simulated brain scans, a network of its own for every subject.

`ts` is (subject * step, region), `net` (subject, from, to). The diagonal of `net` is -1, the decay
of a region's own activity, so every region drives itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from forecause.data.panel import Panel
from forecause.errors import InputError
from forecause_bench.real.dataset import Dataset, find_file, summary_truth


def datasets(folder: Path, item: str) -> list[Dataset]:
    """One system per subject of `item`.mat."""
    path = find_file(folder, f"{item}.mat")
    content = _content(path)
    ts, net = (np.asarray(content.get(name, ())) for name in ("ts", "net"))
    subjects = len(net)
    fits = net.ndim == 3 and ts.ndim == 2 and net.shape[1:] == (ts.shape[1],) * 2
    if not fits or not subjects or len(ts) % subjects:
        raise InputError(
            f"Expected `ts` (subjects * steps, N) and `net` (subjects, N, N) in {str(path)!r}, "
            f"found {ts.shape} and {net.shape}."
        )
    regions = [f"R{i + 1}" for i in range(ts.shape[1])]
    return [
        Dataset(
            f"{item}, subject {number + 1}",
            Panel.from_arrays([np.asarray(values, dtype=np.float64)], regions),
            summary_truth(regions, net[number].T != 0),  # from row to column
        )
        for number, values in enumerate(np.split(ts, subjects))
    ]


def _content(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    try:
        content: dict[str, Any] = loadmat(path, variable_names=["ts", "net"])
    except Exception as problem:  # loadmat raises many kinds on a broken file
        raise InputError(f"Cannot read {str(path)!r} as a MATLAB file: {problem}.") from None
    return content
