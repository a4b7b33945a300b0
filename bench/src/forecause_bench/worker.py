"""A worker process: takes jobs as JSON lines, runs each in a process of its own, answers in JSON.

The worker imports everything once and forks for every job, because importing anew takes longer
than most jobs. A fork that takes too long is killed with its children; when the benchmark dies,
however suddenly, the worker's input ends and it takes the running job down with it.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from forecause.data.panel import Panel
from forecause.errors import MissingExtra
from forecause.graph.lagged import LaggedGraph
from forecause.simulate import simulate
from forecause_bench.methods import find_method
from forecause_bench.scoring import score_answer, score_summary

INPUT = 0  # file descriptor of stdin
MOST_ERROR = 500  # characters of an error that are kept


def main() -> None:
    """Serve until the input ends; the arguments are modules to import beforehand."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what foreign code prints must not be taken for an answer
    _preload(sys.argv[1:])
    requests = os.fdopen(INPUT, "rb", buffering=0, closefd=False)
    while line := requests.readline():
        request = json.loads(line)
        result = run_forked(request["job"], request["limit"])
        answers.write(json.dumps(result) + "\n")
        answers.flush()


def run_forked(job: dict[str, Any], limit: float) -> dict[str, Any]:
    """Run the job in a child process and wait for its answer, for at most `limit` seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _be_the_child(job, writing)
    os.close(writing)
    before = _memory_mb(child)  # it shares what the worker has imported
    try:
        text = _read_answer(reading, child, limit)
    finally:
        os.close(reading)
        _kill(child)
    _, status, usage = os.wait4(child, 0)
    result = _result(text, status, limit)
    result["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime, 3)
    result["memory_mb"] = round(max(0.0, _peak_mb(usage) - before), 1)
    return result


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Get the system, run the method and score its answers, all in this process."""
    method = find_method(job["method"])
    panel, truth = _system(job)
    max_lag = job["system"]["max_lag"]
    expected = method.expected(panel, max_lag)  # asked before the clock starts
    score = score_summary if "dataset" in job["system"] else score_answer
    start = time.perf_counter()
    try:
        answers = method.answers(panel, max_lag, job["seed"], truth)
    except MissingExtra as error:
        return {"status": "missing", "error": str(error)}
    seconds = time.perf_counter() - start
    scored = [
        {"label": answer.label, **score(answer.graph, truth), "extra": dict(answer.extra)}
        for answer in answers
    ]
    return {"status": "done", "seconds": round(seconds, 3), **expected, "answers": scored}


def _system(job: dict[str, Any]) -> tuple[Panel, LaggedGraph]:
    """The data of a job and its truth: simulated, or a dataset of a real suite."""
    system = job["system"]
    if "dataset" in system:
        from forecause_bench.real.source import load

        dataset = load(system, job["rows"], job["seed"], job.get("data"))
        return dataset.panel, dataset.truth
    simulated = simulate(rows=job["rows"], seed=job["seed"], **system)
    return simulated.panel, simulated.graph


def _be_the_child(job: dict[str, Any], writing: int) -> NoReturn:
    """Run the job, write the answer and end, without ever returning into the worker's code."""
    code = 1
    try:
        os.setsid()  # a group of its own, so that its children can be killed with it
        result = _guarded(job)
        with os.fdopen(writing, "w") as answer:
            answer.write(json.dumps(result) + "\n")
        code = 0
    finally:
        os._exit(code)


def _guarded(job: dict[str, Any]) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return run_job(job)
    except Exception as error:
        return {"status": "failed", "error": f"{type(error).__name__}: {error}"[:MOST_ERROR]}


def _read_answer(reading: int, child: int, limit: float) -> bytes | None:
    """The child's answer; None if the time is over."""
    deadline = time.monotonic() + limit
    text = b""
    while not text.endswith(b"\n"):
        left = max(0.0, deadline - time.monotonic())
        ready, _, _ = select.select([reading, INPUT], [], [], left)
        if INPUT in ready:  # nothing is sent while a job runs: the benchmark itself is gone
            _kill(child)
            os._exit(1)
        if not ready:
            return None
        part = os.read(reading, 1 << 16)
        if not part:
            break
        text += part
    return text


def _result(text: bytes | None, status: int, limit: float) -> dict[str, Any]:
    if text is None:
        return {"status": "timeout", "seconds": limit}
    if text.endswith(b"\n"):
        result: dict[str, Any] = json.loads(text)
        return result
    how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "an exit"
    return {
        "status": "failed",
        "error": f"The process ended by {how} before it answered; it may have run out of memory.",
    }


def _kill(child: int) -> None:
    """End the child and everything it started; it may be too young to have its own group."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)


def _memory_mb(process: int) -> float:
    """What a process holds now; where that is not told, the most this one held."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return _peak_mb(resource.getrusage(resource.RUSAGE_SELF))
    return pages * resource.getpagesize() / 1e6


def _peak_mb(usage: resource.struct_rusage) -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return usage.ru_maxrss * unit / 1e6


def _preload(modules: list[str]) -> None:
    """Import what the jobs will need; a package that is missing is reported by its own job."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ["sklearn.metrics", *modules]:
            with suppress(ImportError):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()  # the children share these objects instead of copying them


if __name__ == "__main__":
    main()
