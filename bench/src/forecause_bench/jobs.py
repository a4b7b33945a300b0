"""Jobs, each one method on one system, and the store of those that are finished.

A job is the unit that is run, stored and resumed. The store is a folder with one small file per
job, written whole or not at all.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from forecause import __version__
from forecause.errors import InputError
from forecause_bench.suite import Suite

FORMAT = "forecause.bench/1"
Result = dict[str, Any]
"""status (done, timeout, failed or missing), seconds, memory_mb, answers, error, finished."""


@dataclass(frozen=True)
class Job:
    """Everything that decides a result, so that it can be told whether it is already there."""

    suite: str
    cell: str
    system: Mapping[str, Any]  # how it is made, besides rows and seed, or where it is read from
    rows: int  # 0: all that were recorded
    seed: int  # of the system and of the method
    method: str

    def to_dict(self) -> dict[str, Any]:
        """The job as plain values, ready for JSON."""
        return asdict(self)

    @property
    def key(self) -> str:
        """A hash that is the same on every machine and changes with whatever decides the result.

        The names of suite and column do not: suites with a system in common share its results.
        """
        decides = {k: v for k, v in self.to_dict().items() if k not in ("suite", "cell")}
        text = json.dumps({**decides, "version": __version__}, sort_keys=True)
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


class Store:
    """A folder of results, named by the hash of their job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise InputError(f"Cannot write into {str(folder)!r}: {problem.strerror}.") from None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep a second run out of the folder; the system lifts the lock even after a kill -9."""
        with (self.folder / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(
                    f"Another run is writing into {str(self.folder)!r}; wait for it or choose "
                    "another folder with --out."
                ) from None
            yield

    def path(self, job: Job) -> Path:
        """Where the job's result is kept."""
        return self.folder / f"{job.method}-{job.key}.json"

    def load(self, job: Job) -> Result | None:
        """The stored result; None if there is none that can be read."""
        try:
            result = json.loads(self.path(job).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        if not isinstance(result, dict) or result.get("format") != FORMAT:
            return None
        return {**result, "job": job.to_dict()}

    def save(self, job: Job, result: Result) -> None:
        """Write the result so that a power cut leaves the whole file or none."""
        path = self.path(job)
        text = json.dumps({"format": FORMAT, "job": job.to_dict(), **result}, indent=1)
        partial = path.with_suffix(".partial")
        with partial.open("w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        directory = os.open(self.folder, os.O_RDONLY)
        os.fsync(directory)  # the new name, too, must reach the disk
        os.close(directory)

    def is_settled(self, job: Job, limit: float) -> bool:
        """Whether the job need not be run: done, or over a limit at least as long as this one."""
        result = self.load(job)
        if result is None:
            return False
        return result["status"] == "done" or (
            result["status"] == "timeout" and result["limit"] >= limit
        )
