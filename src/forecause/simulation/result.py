"""Simulated: data from a known system, together with its truth."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.errors import InputError
from forecause.files import whole_file
from forecause.graph.lagged import LaggedGraph
from forecause.simulation.system import System

if TYPE_CHECKING:
    from forecause.data.panel import Panel

CHUNK = 20_000  # rows turned into text together


@dataclass(frozen=True, eq=False)
class Simulated:
    """One continuous series of a system whose graph is known."""

    values: npt.NDArray[np.float64]  # (row, observed variable)
    graph: LaggedGraph  # over observed variables; one graph per segment in `domains`
    noise_sd: npt.NDArray[np.float64]  # (observed variable,), before any network or scaling
    noise_kinds: tuple[str, ...]  # one per observed variable
    domain: npt.NDArray[np.int64] | None = None  # (row,) index of the segment, if several
    systems: tuple[System, ...] = ()  # one per segment, with latents and mechanisms

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the observed variables, the columns of `values`."""
        return self.graph.variables

    @property
    def confounded(self) -> tuple[tuple[str, str], ...]:
        """Pairs of observed variables that share a latent parent in some segment."""
        pairs: set[tuple[str, str]] = set()
        for system in self.systems:
            hidden = system.edges[system.edges["source"].isin(system.latents)]
            for _, children in hidden[hidden["target"].isin(system.observed)].groupby("source"):
                in_order = sorted(children["target"], key=system.observed.index)
                pairs.update(combinations(in_order, 2))
        return tuple(sorted(pairs))

    @property
    def panel(self) -> Panel:
        """The data as a panel of one series, with the segments as its domains."""
        from forecause.data.panel import Panel

        rows = len(self.values)
        return Panel(
            values=self.values,
            variables=self.variables,
            starts=np.zeros(1, dtype=np.int64),
            series=np.zeros(rows, dtype=np.int64),
            domain=self.domain,
            domain_names=tuple(self.graph.domains),
        )

    def frame(self) -> pd.DataFrame:
        """The data as a table, with the segment's name in the column `domain` if several."""
        table = pd.DataFrame(self.values, columns=list(self.variables))
        if self.domain is not None:
            table["domain"] = np.array(list(self.graph.domains), dtype=object)[self.domain]
        return table

    def save(self, folder: str | Path) -> None:
        """Write `data.csv` and the truth `graph.json` into a folder, made if needed."""
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._write_csv(folder / "data.csv")
        except OSError as problem:
            raise InputError(f"Cannot write into {str(folder)!r}: {problem.strerror}.") from None
        self.graph.to_json(folder / "graph.json")

    def _write_csv(self, path: Path) -> None:
        """What `frame().to_csv` would write, in less than half of its time."""
        names = list(self.graph.domains)
        columns = [*self.variables, *(["domain"] if self.domain is not None else [])]
        with whole_file(path) as plain:
            file = io.TextIOWrapper(plain, encoding="utf-8", newline="")
            table = csv.writer(file, lineterminator="\n")
            table.writerow(columns)
            for start in range(0, len(self.values), CHUNK):
                rows = self.values[start : start + CHUNK].tolist()
                if self.domain is not None:
                    segments = self.domain[start : start + CHUNK]
                    rows = [[*row, names[i]] for row, i in zip(rows, segments, strict=True)]
                table.writerows(rows)
            file.detach()  # flushes, and leaves the file open
