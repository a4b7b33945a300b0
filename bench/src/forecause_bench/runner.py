"""The runner: hands jobs to worker processes and stores every result as soon as it is there.

The processes are on this machine, or each is the child of a Ray worker, on whatever machine that
is. A job whose worker died is tried once more.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO

from forecause.resources.workers import Workers, fan_out
from forecause_bench.jobs import Job
from forecause_bench.methods import find_method
from forecause_bench.store import Result, Store

RETRIES = 1  # of a job whose worker died
GRACE = 10.0  # seconds a worker is given to end by itself


class Worker:
    """One worker process and the job it is at."""

    def __init__(self, modules: Sequence[str], log: IO[str] | None) -> None:
        """Import `modules` beforehand; without a log, complaints go where this process's do."""
        self.job: Job | None = None
        self.process = subprocess.Popen(
            [sys.executable, "-m", "forecause_bench.worker", *modules],
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

    def finish(self) -> Result | None:
        """The answer to the job; None if the worker itself died."""
        line = self.answers.readline()
        self.job = None
        if line:
            result: Result = json.loads(line)
            return result
        self.process.wait()
        return None

    @property
    def death(self) -> Result:
        """The failure of a job whose worker died."""
        code = self.process.returncode
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
    waiting = _slow_first(jobs)[::-1]  # taken from the end
    deaths: Counter[str] = Counter()
    modules = _modules(jobs)
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
                    result = worker.finish()
                    deaths[job.key] += result is None
                    if result is None and deaths[job.key] <= RETRIES:
                        waiting.append(job)
                    else:
                        _save(store, job, result or worker.death, limit)
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


def run_jobs_on_ray(
    jobs: Sequence[Job],
    store: Store,
    *,
    limit: float,
    workers: Workers,
    done: Callable[[Job], None],
    data: Path | None = None,
) -> None:
    """The same on Ray; every machine needs Forecause, and `data` at the same path."""
    ordered = _slow_first(jobs)
    run = partial(_run_beside_ray, modules=_modules(jobs), limit=limit, data=data)
    for answer in fan_out(run, ordered, workers, RETRIES):
        job = ordered[answer.number]
        failed = {"status": "failed", "error": str(answer.error)}
        _save(store, job, answer.found or failed, limit)
        done(job)


_beside: dict[tuple[str, ...], Worker] = {}  # by what it imported


def _run_beside_ray(job: Job, modules: tuple[str, ...], limit: float, data: Path | None) -> Result:
    """Run a job in a process that this Ray worker keeps beside itself.

    Jobs are forked, and a Ray worker is full of threads that must not be. When Ray ends the
    worker, the process's input ends and it follows.
    """
    for _ in range(RETRIES + 1):
        worker = _beside.pop(modules, None) or Worker(modules, log=None)
        worker.start(job, limit, data)
        result = worker.finish()
        if result is not None:
            _beside[modules] = worker
            return result
        worker.stop()
    return worker.death


def _slow_first(jobs: Sequence[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: find_method(job.method).cost)[::-1]


def _modules(jobs: Sequence[Job]) -> tuple[str, ...]:
    """What the methods of the jobs import."""
    return tuple(dict.fromkeys(m for job in jobs for m in find_method(job.method).preload))


def _save(store: Store, job: Job, result: Result, limit: float) -> None:
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    store.save(job, {**result, "limit": limit, "finished": finished})
