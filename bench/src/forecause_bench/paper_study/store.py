"""The store: one small JSON file per fit, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.graph.lagged import LaggedGraph
from forecause_bench.paper_study.queue import TRANSFORMER

Array = npt.NDArray[np.float64]

STORE = Path(__file__).parents[3] / "paper-fits"  # bench/paper-fits in the repository
DIGITS = 4  # significant ones that are kept of a relevance
RIVALS = "rivals"  # the folder of the store that holds the graphs of other methods
WHOLE = "all rows"  # the name of what was read from windows of every segment


def packed(values: npt.ArrayLike) -> list[float]:
    """Flattened and rounded."""
    return [float(f"{value:.{DIGITS}g}") for value in np.asarray(values, dtype=float).ravel()]


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file that a reader never sees half done."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in content.items()]
    draft.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    draft.replace(path)


def edges_by_segment(graph: LaggedGraph) -> dict[str, list[list[int]]]:
    """(target, source, lag) of every edge by segment, or under WHOLE where there are none."""
    place = {name: i for i, name in enumerate(graph.variables)}
    columns = ["target", "source", "lag"]
    return {
        name: [
            [place[target], place[source], int(lag)]
            for target, source, lag in part.causal.edges[columns].itertuples(index=False)
        ]
        for name, part in (graph.domains or {WHOLE: graph}).items()
    }


@dataclass(frozen=True, eq=False)
class StoredFit:
    """A fit as its file tells it; arrays are (target, source, lag), lag 1 first."""

    content: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> StoredFit:
        return cls(json.loads(path.read_text(encoding="utf-8")))

    @property
    def system(self) -> str:
        return str(self.content["system"])

    @property
    def seed(self) -> int:
        return int(self.content["seed"])

    @property
    def rows(self) -> int:
        return int(self.content["rows"])

    @property
    def layers(self) -> int:
        return int(self.content["layers"])

    @property
    def told_segment(self) -> bool:
        return bool(self.content["told_segment"])

    @property
    def network(self) -> str:
        return str(self.content.get("network", TRANSFORMER))

    @property
    def steps(self) -> int:
        return int(self.content["steps"])

    @property
    def shape(self) -> tuple[int, int, int]:
        """(target, source, lag)."""
        targets, sources, lags = self.content["shape"]
        return targets, sources, lags

    @cached_property
    def truths(self) -> dict[str, npt.NDArray[np.bool_]]:
        """The true graph of every segment, or the only one under WHOLE."""
        return {name: self._mask(edges) for name, edges in self.content["truth"].items()}

    def readouts(self) -> list[str]:
        """The names of what was read from the fit."""
        return list(self.content["relevance"])

    def relevance(self, readout: str, segment: str = WHOLE, what: str = "relevance") -> Array:
        """`what` is relevance, mean_rank or sd_rank."""
        return np.array(self.content[what][readout][segment]).reshape(self.shape)

    def has(self, readout: str, what: str = "relevance") -> bool:
        """Whether this was stored for every graph that is to be scored."""
        kept = self.content.get(what, {}).get(readout, {})
        return all(segment in kept for segment in self.truths)

    def _mask(self, edges: list[list[int]]) -> npt.NDArray[np.bool_]:
        mask = np.zeros(self.shape, dtype=bool)
        for target, source, lag in edges:
            if lag:  # an edge at lag 0 is not what a forecaster can tell
                mask[target, source, lag - 1] = True
        return mask


def stored_fits(folder: Path = STORE) -> list[StoredFit]:
    """Every fit of the store, in the order of their names."""
    return [StoredFit.read(path) for path in sorted(folder.glob("*_seed*.json"))]
