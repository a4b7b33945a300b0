"""How much memory a discovery on a large file takes: python -m forecause_bench.memory.

Writes a simulated system to a file piece by piece and discovers it in a process of its own, which
watches itself. Resident memory (VmHWM) counts the pages of mapped files, which the system takes
back when it needs them; anonymous memory (RssAnon) is what the process holds itself.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from forecause.graph.lagged import LaggedGraph
from forecause.progress import Progress

PIECE = 50_000  # rows simulated and written together
EVERY = 0.01  # seconds between two looks at the memory
LEAST_TIME = 0.05  # seconds of a stage that is shown
MIB = 2**20


def write_system(path: Path, rows: int, variables: int, max_lag: int, seed: int = 0) -> LaggedGraph:
    """Simulate a linear system into a float32 .npy or .parquet file; its graph."""
    from forecause.simulation import simulate

    start = simulate(nodes=variables, max_lag=max_lag, rows=1000, seed=seed)
    system, rng = start.systems[0], np.random.default_rng(seed)

    def pieces() -> Iterator[npt.NDArray[np.float32]]:
        past = start.values[-max_lag:]
        for first in range(0, rows, PIECE):
            shape = (min(PIECE, rows - first), variables)
            part = system.run(past, rng.standard_normal(shape) * start.noise_sd)
            assert part is not None
            past = np.concatenate([past, part])[-max_lag:]
            yield part.astype(np.float32)

    write = _write_parquet if path.suffix == ".parquet" else _write_npy
    write(path, pieces(), rows, start.variables)
    return start.graph


def _write_npy(path: Path, pieces: Iterator[Any], rows: int, names: tuple[str, ...]) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": (rows, len(names))}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for piece in pieces:
            file.write(piece.tobytes())


def _write_parquet(path: Path, pieces: Iterator[Any], rows: int, names: tuple[str, ...]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    schema = pa.schema([(name, pa.float32()) for name in names])
    with parquet.ParquetWriter(path, schema) as file:
        for piece in pieces:
            file.write_table(pa.table(list(piece.T.copy()), schema=schema))


class Watch(Progress):
    """Seconds and the most anonymous memory of every stage that a run tells of.

    A stage lasts from its first step to the first step of another.
    """

    def __init__(self) -> None:
        self.stage, self.since = "starting", time.perf_counter()
        self.seconds: dict[str, float] = {}
        self.anonymous: dict[str, int] = {}

    def step(self, what: str, share: float) -> None:
        """The stage `what` has begun, or goes on."""
        if what != self.stage:
            self.end_stage()
            self.stage = what

    def end_stage(self) -> None:
        """Count the time since the stage began."""
        now = time.perf_counter()
        self.look()
        self.seconds[self.stage] = self.seconds.get(self.stage, 0.0) + now - self.since
        self.since = now

    def look(self) -> None:
        """Note the memory of the present stage, if it is more than before."""
        held = status("RssAnon")
        self.anonymous[self.stage] = max(self.anonymous.get(self.stage, 0), held)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Look every now and then until the end."""
        done = threading.Event()

        def keep_looking() -> None:
            while not done.wait(EVERY):
                self.look()

        thread = threading.Thread(target=keep_looking, daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self.end_stage()


def watched_discovery(path: Path, forecaster: str, max_lag: int) -> dict[str, Any]:
    """Discover in this process; figures of memory in bytes, times, and the edges found."""
    import forecause as fc

    watch = Watch()
    asked: dict[str, Any] = {"forecaster": forecaster}
    with watch.running(), tempfile.TemporaryDirectory(dir=path.parent) as folder:
        found = fc.discover(path, max_lag, progress=watch, **asked)
        watch.step("saving", 0.0)
        found.save(Path(folder) / "run")
    return {
        "resident": status("VmHWM"),
        "anonymous": watch.anonymous,
        "seconds": watch.seconds,
        "cpu_seconds": time.process_time(),
        "edges": edges_of(found.graph),
    }


def edges_of(graph: LaggedGraph) -> list[list[int]]:
    """Source and target by their places (an NPY file has no names) and lag of every edge."""
    place = {name: i for i, name in enumerate(graph.variables)}
    table = graph.edges
    rows = zip(table["source"], table["target"], table["lag"], strict=True)
    return [[place[source], place[target], int(lag)] for source, target, lag in rows]


def status(name: str) -> int:
    """A figure of this process's memory in bytes, from the system's own account (Linux)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def measure(path: Path, forecaster: str, max_lag: int) -> dict[str, Any]:
    """`watched_discovery` in a fresh process, so that only its own memory counts."""
    command = [sys.executable, "-m", "forecause_bench.memory", "--inside", str(path)]
    command += ["--forecaster", forecaster, "--max-lag", str(max_lag)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def show(figures: dict[str, Any], title: str, truth: LaggedGraph) -> None:
    """The stages as a table, then the peak and how much of the graph was found."""
    table = Table("stage", "seconds", "anonymous MiB", title=title, title_justify="left")
    for stage, seconds in figures["seconds"].items():
        if seconds >= LEAST_TIME:
            held = figures["anonymous"].get(stage, 0) / MIB
            table.add_row(stage, f"{seconds:.1f}", f"{held:.0f}")
    total = sum(figures["seconds"].values())
    table.add_row("all", f"{total:.1f}", f"{max(figures['anonymous'].values()) / MIB:.0f}")
    true = {tuple(edge) for edge in edges_of(truth)}
    found = {tuple(edge) for edge in figures["edges"]}
    console = Console()
    console.print(table)
    console.print(
        f"{figures['cpu_seconds']:.0f} s of processor time; "
        f"peak resident memory {figures['resident'] / MIB:,.0f} MiB, mapped file pages included; "
        f"{len(found & true)} of {len(true)} edges found, {len(found - true)} false"
    )


def main() -> None:
    """Write the file, discover it with every forecaster asked for, remove the file."""
    parser = argparse.ArgumentParser(description="Memory and time of a discovery on a large file.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--variables", type=int, default=100)
    parser.add_argument("--max-lag", type=int, default=5)
    parser.add_argument("--format", choices=["npy", "parquet"], default="npy")
    parser.add_argument("--forecaster", nargs="+", default=["linear", "additive"])
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        figures = watched_discovery(asked.inside, asked.forecaster[0], asked.max_lag)
        sys.stdout.write(json.dumps(figures) + "\n")
        return
    asked.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=asked.scratch, prefix="forecause-memory-") as scratch:
        path = Path(scratch) / f"system.{asked.format}"
        truth = write_system(path, asked.rows, asked.variables, asked.max_lag)
        for forecaster in asked.forecaster:
            shape = f"{asked.rows:,} rows x {asked.variables} variables, {asked.format}"
            show(measure(path, forecaster, asked.max_lag), f"{shape}, {forecaster}", truth)


if __name__ == "__main__":
    main()
