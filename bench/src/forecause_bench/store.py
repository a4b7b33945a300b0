"""Store: finished jobs on disk, one small file each, written whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forecause.errors import InputError
from forecause_bench.jobs import Job

FORMAT = "forecause.bench/1"
Result = dict[str, Any]
"""status (done, timeout, failed or missing), seconds, memory_mb, answers, error, finished."""


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
        return result if isinstance(result, dict) and result.get("format") == FORMAT else None

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
