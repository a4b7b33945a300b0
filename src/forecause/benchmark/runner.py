"""The runner: hands jobs to worker processes and stores every result as soon as it is there."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from forecause.benchmark.jobs import Job
from forecause.benchmark.methods import find_method
from forecause.benchmark.store import Result, Store

GRACE = 10.0  # seconds a worker is given to end by itself


class Worker:
    """One worker process and the job it is at."""

    def __init__(self, modules: Sequence[str], log: IO[str]) -> None:
        self.job: Job | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "forecause.benchmark.worker", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C reaches the runner alone, which then ends the workers
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests, self.answers = self.process.stdin, self.process.stdout

    def start(self, job: Job, limit: float, data: Path | None) -> None:
        """Hand over a job; `data` is the folder of recorded systems."""
        self.job = job
        asked = {**job.to_dict(), "data": None if data is None else str(data)}
        with suppress(BrokenPipeError):  # a dead worker is noticed when its answer is read
            self.requests.write(json.dumps({"job": asked, "limit": limit}) + "\n")
            self.requests.flush()

    def finish(self) -> Result:
        """The answer to the job; a failure if the worker itself died."""
        line = self.answers.readline()
        self.job = None
        if line:
            result: Result = json.loads(line)
            return result
        code = self.process.wait()
        return {"status": "failed", "error": f"The worker ended with code {code}; see log.txt."}

    def stop(self) -> None:
        """End the process and the job it is at."""
        with suppress(BrokenPipeError):
            self.requests.close()
        try:
            self.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.answers.close()


def run_jobs(
    jobs: Sequence[Job],
    store: Store,
    *,
    limit: float,
    processes: int,
    log: Path,
    done: Callable[[Job], None],
    data: Path | None = None,
) -> None:
    """Run all jobs, slow methods first, so that no long one is left alone at the end.

    `data` is the folder of the suite's recorded systems, if it has any.
    """
    waiting = sorted(jobs, key=lambda job: find_method(job.method).cost)  # taken from the end
    modules = list(dict.fromkeys(m for job in jobs for m in find_method(job.method).preload))
    workers: list[Worker] = []
    with log.open("a", encoding="utf-8") as file, selectors.DefaultSelector() as listening:

        def hire() -> None:
            worker = Worker(modules, file)
            workers.append(worker)
            listening.register(worker.answers, selectors.EVENT_READ, worker)
            worker.start(waiting.pop(), limit, data)

        try:
            for _ in range(min(processes, len(waiting))):
                hire()
            while any(worker.job for worker in workers):
                for key, _ in listening.select():
                    worker: Worker = key.data
                    job = worker.job
                    assert job is not None
                    _save(store, job, worker.finish(), limit)
                    done(job)
                    if worker.process.poll() is not None:
                        listening.unregister(worker.answers)
                        if waiting:
                            hire()
                    elif waiting:
                        worker.start(waiting.pop(), limit, data)
        finally:
            for worker in workers:
                worker.stop()


def _save(store: Store, job: Job, result: Result, limit: float) -> None:
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    store.save(job, {**result, "limit": limit, "finished": finished})
