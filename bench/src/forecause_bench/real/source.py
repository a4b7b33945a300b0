"""Where the system of a real suite's job comes from: a loader and a folder, or an equation."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from forecause.errors import InputError
from forecause_bench.real.loaders import RECORDED, Dataset, lorenz96
from forecause_bench.suite import Cell, Suite


def is_real(suite: Suite) -> bool:
    """Whether the truth of its systems is a summary graph."""
    return any("dataset" in cell.system for cell in suite.cells)


def is_recorded(suite: Suite) -> bool:
    """Whether its systems are read from a folder."""
    return any(cell.system.get("dataset") in RECORDED for cell in suite.cells)


def with_data(suite: Suite, folder: Path | None) -> Suite:
    """The suite with its data checked, and a fingerprint of it in every cell.

    Results belong to the data they were found on: the same folder continues a run, other data
    starts anew, and where the folder lies does not matter.
    """
    if not is_recorded(suite):
        if folder is not None:
            raise InputError(f"The suite {suite.name!r} makes its own data; leave --data out.")
        return suite
    if folder is None:
        raise InputError(
            f"The suite {suite.name!r} needs recorded data; give its folder with --data."
        )
    return replace(suite, cells=tuple(_marked(cell, suite.seeds, folder) for cell in suite.cells))


def load(system: Mapping[str, Any], rows: int, seed: int, folder: str | None) -> Dataset:
    """The system of a job.

    A column with one dataset has it for every seed, which then is the method's alone; of a column
    with several, seed i takes the i-th.
    """
    if system["dataset"] not in RECORDED:
        equation = {k: v for k, v in system.items() if k not in ("dataset", "max_lag")}
        return lorenz96(rows, seed, **equation)
    assert folder is not None
    found = _datasets(system, Path(folder))
    return found[seed if len(found) > 1 else 0]


def _marked(cell: Cell, seeds: int, folder: Path) -> Cell:
    found = _datasets(cell.system, folder)
    if 1 < len(found) < seeds:
        raise InputError(f"{cell.name} has {len(found)} systems, found --seeds {seeds}.")
    text = " ".join(dataset.fingerprint() for dataset in found)
    mark = hashlib.sha256(text.encode()).hexdigest()[:16]
    return replace(cell, system={**cell.system, "fingerprint": mark})


def _datasets(system: Mapping[str, Any], folder: Path) -> list[Dataset]:
    return RECORDED[system["dataset"]](folder, system["item"])
