"""Job: one method on one system, the unit that is run, stored and resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from forecause import __version__
from forecause_bench.suite import Suite


@dataclass(frozen=True)
class Job:
    """Everything that decides a result, so that it can be told whether it is already there."""

    suite: str
    cell: str
    system: Mapping[
        str, Any
    ]  # how it is simulated, besides rows and seed, or where it is read from
    rows: int  # 0: all that were recorded
    seed: int  # of the system and of the method
    method: str

    def to_dict(self) -> dict[str, Any]:
        """The job as plain values, ready for JSON."""
        return asdict(self)

    @property
    def key(self) -> str:
        """A hash that is the same on every machine and changes with any part of the job."""
        text = json.dumps({**self.to_dict(), "version": __version__}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


def jobs_of(suite: Suite) -> list[Job]:
    """All jobs of a suite, column by column."""
    return [
        Job(suite.name, cell.name, dict(cell.system), rows, seed, method)
        for cell in suite.cells
        for rows in suite.rows_of(cell)
        for seed in suite.seed_numbers
        for method in suite.methods
        if cell.name in suite.only.get(method, (cell.name,))
    ]
