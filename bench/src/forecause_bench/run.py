"""run_suite: the whole benchmark, from the name of a suite to a page of results."""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from forecause.common.files import write_whole
from forecause.errors import InputError
from forecause.progress import QUIET, Progress
from forecause.resources.workers import Workers
from forecause_bench.aggregate import Results
from forecause_bench.document import to_html, to_markdown
from forecause_bench.jobs import Job, Result, Store, jobs_of
from forecause_bench.methods import find_method
from forecause_bench.real.source import is_recorded, with_data
from forecause_bench.runner import run_jobs
from forecause_bench.suite import Suite
from forecause_bench.suites import SUITES, find_suite
from forecause_bench.verdict import verdict


@dataclass(frozen=True)
class Finished:
    """Where the results are, how many jobs were run just now, and what they say."""

    table: Path
    ran: int
    verdict: list[str]


def run_suite(
    suite: str | Suite,
    *,
    rows: Sequence[int] | None = None,
    seeds: int | None = None,
    methods: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    limit: float | None = None,
    half: bool = False,
    jobs: int | None = None,
    out: str | Path | None = None,
    results: str | Path | None = None,
    data: str | Path | None = None,
    ray: str | None = None,
    finished: bool = False,
    progress: Progress = QUIET,
) -> Finished:
    """Run a suite, or what is left of it, and write its tables and figures into `out`.

    What is not given is as the suite says, or `half` of it; `limit` is in seconds per job, `jobs`
    the number of processes (one per core unless given). `data` is the folder of a suite of recorded
    systems. `results` is where finished jobs are kept, in `out` unless given; suites may share it.
    With `finished` nothing is run: the page shows what is there. With `ray` (local, auto or an
    address) the jobs are run by its workers.
    """
    asked = find_suite(suite) if isinstance(suite, str) else suite
    chosen = narrowed(
        asked.halved() if half else asked,
        rows=rows,
        seeds=seeds,
        methods=methods,
        columns=columns,
        limit=limit,
    )
    source = None if data is None else Path(data).absolute()
    chosen = with_data(chosen, source)
    usual = 1 if chosen.alone else os.cpu_count() or 1
    workers = Workers(jobs if jobs is not None else usual, ray)
    folder = Path(out or f"bench-{chosen.name}")
    store = Store(Path(results or folder / "results"))
    folder.mkdir(parents=True, exist_ok=True)
    with store.lock():
        log = store.folder.parent / "log.txt"
        ran = 0
        if not finished:
            ran = _run_open_jobs(chosen, store, workers, log, source, progress)
        found = Results(chosen, _stored(chosen, store))
        table = write_page(found, folder)
    return Finished(table, ran, verdict(found))


def narrowed(
    suite: Suite,
    *,
    rows: Sequence[int] | None = None,
    seeds: int | None = None,
    methods: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    limit: float | None = None,
) -> Suite:
    """The suite with other sizes, methods or columns; methods asked for run on every column."""
    for method in methods or ():
        find_method(method)
    known = [cell.name for cell in suite.cells]
    for column in columns or ():
        if column not in known:
            raise InputError(f"Unknown column {column!r}; {suite.name} has {', '.join(known)}.")
    if rows and is_recorded(suite):
        raise InputError(
            f"The rows of {suite.name} are those that were recorded; leave --rows out."
        )
    if rows and any(cell.rows is not None for cell in suite.cells):
        raise InputError(
            f"The columns of {suite.name} have their own numbers of rows; leave --rows out and "
            "choose with --columns."
        )
    numbers = {"rows": rows or (), "seeds": (seeds,), "limit": (limit,)}
    for name, values in numbers.items():
        for value in values:
            if value is not None and value <= 0:
                raise InputError(f"{name} must be above 0, found {value}.")
    return replace(
        suite,
        rows=tuple(rows or suite.rows),
        seeds=seeds or suite.seeds,
        methods=tuple(methods or suite.methods),
        cells=tuple(c for c in suite.cells if not columns or c.name in columns),
        limit=limit or suite.limit,
        only={} if methods else suite.only,
    )


def write_page(results: Results, folder: Path) -> Path:
    """Write table.md, table.html and the figures."""
    from forecause_bench.figures import draw_figures
    from forecause_bench.tables import document

    pictures = draw_figures(results, folder / "figures")
    blocks = document(results, origin(results), pictures)
    table = folder / "table.md"
    write_whole(table, to_markdown(blocks).encode())
    write_whole(folder / "table.html", to_html(results.suite.title, blocks).encode())
    return table


def origin(results: Results) -> list[str]:
    """The command, the dates and the machine behind the results."""
    stamps = sorted(
        result["finished"]
        for by_seed in results.by_key.values()
        for result in by_seed.values()
        if "finished" in result
    )
    when = f"{stamps[0]} to {stamps[-1]}" if stamps else "never"
    return [
        f"Command: {command(results.suite)}",
        f"Run: {when}",
        f"Machine: {describe_machine()}",
    ]


def command(suite: Suite) -> str:
    """The command that gives this suite again, without what the suite says anyway."""
    declared = SUITES.get(suite.name, suite)
    words = ["forecause", "bench", suite.name]
    if is_recorded(suite):
        words += ["--data", "FOLDER"]
    if suite.rows != declared.rows:
        words += ["--rows", ",".join(map(str, suite.rows))]
    if suite.seeds != declared.seeds:
        words += ["--seeds", str(suite.seeds)]
    if suite.methods != declared.methods:
        words += ["--methods", ",".join(suite.methods)]
    columns = [cell.name for cell in suite.cells]
    if columns != [cell.name for cell in declared.cells]:
        words += ["--columns", ",".join(columns)]
    words += ["--half"] if suite.half else []
    if suite.limit != declared.limit:
        words += ["--limit", f"{suite.limit:g}"]
    return shlex.join(words)


def describe_machine() -> str:
    """Processor, cores, memory and the versions that decide the figures, in one line."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    packages = [f"{name} {_version(name)}" for name in ("torch", "numpy", "tigramite", "lingam")]
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, "
        f"{platform.system()}, Python {platform.python_version()}, {', '.join(packages)}"
    )


def _run_open_jobs(
    suite: Suite,
    store: Store,
    workers: Workers,
    log: Path,
    data: Path | None,
    progress: Progress,
) -> int:
    """Run the jobs that have no settled result; how many that were."""
    every = jobs_of(suite)
    left = [job for job in every if not store.is_settled(job, suite.limit)]
    weights = {job.key: find_method(job.method).cost for job in every}
    total = sum(weights.values())
    finished = total - sum(weights[job.key] for job in left)

    def done(job: Job) -> None:
        nonlocal finished
        finished += weights[job.key]
        progress.step(f"bench {suite.name}", finished / total)

    progress.step(f"bench {suite.name}", finished / total if total else 1.0)
    run_jobs(left, store, limit=suite.limit, workers=workers, log=log, done=done, data=data)
    return len(left)


def _stored(suite: Suite, store: Store) -> list[Result]:
    found = (store.load(job) for job in jobs_of(suite))
    return [result for result in found if result is not None]


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "missing"
