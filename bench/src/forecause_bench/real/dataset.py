"""Dataset: a panel together with what is known of its truth, the summary graph."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from forecause.data.panel import Panel
from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph


@dataclass(frozen=True, eq=False)
class Dataset:
    """One system. The truth has every edge at lag 1, but its lags mean nothing."""

    name: str
    panel: Panel
    truth: LaggedGraph

    def fingerprint(self) -> str:
        """A hash of the data and the truth."""
        text = f"{self.panel.fingerprint()} {self.truth.adjacency.values.tobytes().hex()}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def summary_truth(variables: Sequence[str], drives: npt.NDArray[np.bool_]) -> LaggedGraph:
    """The summary graph from a mask (target, source), self-links where its diagonal is set."""
    edges = [(variables[j], variables[i], 1) for i, j in zip(*np.nonzero(drives), strict=True)]
    return LaggedGraph.from_edges(variables, 1, edges)


def find_file(folder: Path, name: str) -> Path:
    """The file of this name in the folder."""
    path = folder / name
    if not path.is_file():
        raise InputError(
            f"Expected the file {name!r} in {str(folder)!r}, found none; give the folder that "
            "holds it with --data, or leave its column out with --columns."
        )
    return path
