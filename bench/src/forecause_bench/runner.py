"""The runner: hands jobs to processes and stores every result as soon as it is there.

Every job has a process of its own, on this machine or beside a Ray worker, on whatever machine
that is. A job whose process died is tried once more.
"""

from __future__ import annotations

import importlib
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from forecause.data.panel import Panel
from forecause.errors import MissingExtra
from forecause.graph.lagged import LaggedGraph
from forecause.resources.workers import Isolation, TimeLimit, Workers, fan_out
from forecause.simulation import simulate
from forecause_bench.jobs import Job, Result, Store
from forecause_bench.methods import find_method
from forecause_bench.scoring import ceiling, score_answer, score_summary

RETRIES = 1  # of a job whose process died
PRODUCT = 1024  # rows and columns of the matrices that tell how fast the machine is
PRODUCTS = 9  # of which the median counts
MOST_ERROR = 500  # characters of an error that are kept
ALWAYS_USED = ("forecause_bench.runner", "sklearn.metrics")  # imported before any job


def run_jobs(
    jobs: Sequence[Job],
    store: Store,
    *,
    limit: float,
    workers: Workers,
    log: Path,
    done: Callable[[Job], None],
    data: Path | None = None,
) -> None:
    """Run all jobs, slow methods first, so that no long one is left alone at the end.

    `limit` is in seconds per job; `data` is the folder of the suite's recorded systems, if it has
    any. On Ray every machine needs this package, and `data` at the same path.
    """
    ordered = sorted(jobs, key=lambda job: find_method(job.method).cost)[::-1]
    used = dict.fromkeys(m for job in jobs for m in find_method(job.method).preload)
    log.touch()
    isolation = Isolation(limit, (*ALWAYS_USED, *used), log if workers.ray is None else None)
    measured = partial(measured_job, data=None if data is None else str(data))
    asked = [job.to_dict() for job in ordered]
    for answer in fan_out(measured, asked, workers, RETRIES, isolation):
        if isinstance(answer.error, TimeLimit):
            result: Result = {"status": "timeout", "seconds": limit}
        else:
            result = answer.found or {"status": "failed", "error": str(answer.error)}
        finished = datetime.now(UTC).isoformat(timespec="seconds")
        job = ordered[answer.number]
        store.save(job, {**result, "limit": limit, "finished": finished})
        done(job)


def measured_job(job: dict[str, Any], data: str | None = None) -> Result:
    """`run_job` with its processor time and memory; an error is a result, too.

    Memory is the most that this process held, beyond what it held at the start.
    """
    before = _memory_mb()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = run_job({**job, "data": data})
    except Exception as error:
        result = {"status": "failed", "error": f"{type(error).__name__}: {error}"[:MOST_ERROR]}
    usage = resource.getrusage(resource.RUSAGE_SELF)
    result["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime, 3)
    result["memory_mb"] = round(max(0.0, _peak_mb() - before), 1)
    return result


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Get the system, run the method and score its answers, all in this process."""
    method = find_method(job["method"])
    panel, truth = system_of(job)
    max_lag = job["system"]["max_lag"]
    expected = method.expected(panel, max_lag)  # asked before the clock starts
    score = score_summary if "dataset" in job["system"] else score_answer
    start, worked = time.perf_counter(), time.process_time()
    try:
        answers = method.answers(panel, max_lag, job["seed"], truth)
    except MissingExtra as error:
        return {"status": "missing", "error": str(error)}
    seconds, worked = time.perf_counter() - start, time.process_time() - worked
    scored = [
        {"label": answer.label, **score(answer.graph, truth), "extra": dict(answer.extra)}
        for answer in answers
    ]
    for one in scored:
        if "doubted" in one["extra"] and "broken" in one["metrics"].get("lagged", {}):
            one["extra"]["silent"] = one["metrics"]["lagged"]["broken"] * (
                1 - one["extra"]["doubted"]
            )
    times = {"seconds": round(seconds, 3), "products": round(seconds / product_seconds(), 1)}
    if not resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime:  # programs work elsewhere
        times["method_cpu_seconds"] = round(worked, 3)
    found = {"status": "done", **times, **expected, "answers": scored}
    return found if "dataset" in job["system"] else {**found, "ceiling": ceiling(truth)}


def product_seconds() -> float:
    """Of a product of two matrices now, which takes longer on a slow or busy machine."""
    a = np.ones((PRODUCT, PRODUCT), dtype=np.float32)
    times = []
    for _ in range(PRODUCTS):
        start = time.perf_counter()
        _ = a @ a
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def system_of(job: dict[str, Any]) -> tuple[Panel, LaggedGraph]:
    """The data of a job and its truth: simulated, made by a suite's own function, or recorded."""
    system = job["system"]
    if "maker" in system:
        module, _, name = system["maker"].partition(":")
        made = getattr(importlib.import_module(module), name)
        settings = {key: value for key, value in system.items() if key != "maker"}
        panel, truth = made(rows=job["rows"], seed=job["seed"], **settings)
        return panel, truth
    if "dataset" in system:
        from forecause_bench.real.source import load

        dataset = load(system, job["rows"], job["seed"], job.get("data"))
        return dataset.panel, dataset.truth
    simulated = simulate(rows=job["rows"], seed=job["seed"], **system)
    return simulated.panel, simulated.graph


def _memory_mb() -> float:
    """What this process holds now; where that is not told, the most it held."""
    try:
        pages = int(Path(f"/proc/{os.getpid()}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return _peak_mb()
    return pages * resource.getpagesize() / 1e6


def _peak_mb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
