"""The suite about speed: small enough for every change, with rivals and a product in the same run.

Beside the methods stand whole programs, as a user starts them: our command on an idle machine and
on one whose other cores are busy, and a script that imports tigramite and runs PCMCI+.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from forecause.data.panel import Panel
from forecause.graph.lagged import LaggedGraph
from forecause_bench.methods import Answer
from forecause_bench.suite import BASE, Aim, Cell, Suite

SPIN = "while True: pass"
THREADS = "OMP_NUM_THREADS"
TIGRAMITE = """
import json
import sys
import numpy
import pandas
from tigramite import data_processing
from tigramite.independence_tests.parcorr import ParCorr
from tigramite.pcmci import PCMCI
values = pandas.read_csv(sys.argv[1]).to_numpy()
frame = data_processing.DataFrame(values)
search = PCMCI(frame, ParCorr(), verbosity=0)
found = search.run_pcmciplus(tau_max=int(sys.argv[2]), pc_alpha=0.01)["graph"]
edges = numpy.argwhere(found == "-->")  # (source, target, lag)
print(json.dumps(edges[edges[:, 2] > 0].tolist()))
"""

SPEED = Suite(
    "speed",
    "Speed beside PCMCI+, VAR with FDR and a product of matrices",
    cells=(
        Cell("linear", {**BASE, "mechanism": "linear"}, rows=10_000),
        Cell("monotonic", {**BASE, "mechanism": "monotonic"}, rows=10_000),
        Cell("mlp-concat", {**BASE, "mechanism": "mlp-concat"}, rows=10_000),
        Cell("100 variables", {**BASE, "nodes": 100, "max_lag": 2}, rows=2_000),
    ),
    methods=(
        "forecause", "linear", "additive", "var-fdr", "pcmci+",
        "command", "command-busy", "tigramite-script",
    ),
    seeds=1,
    limit=600.0,
    metrics=("seconds", "method_cpu_seconds", "products", "f1"),
    foreseen=True,
    axis="system",
    only={
        "pcmci+": ("linear", "monotonic", "mlp-concat"),
        "command": ("linear",),
        "command-busy": ("linear",),
        "tigramite-script": ("linear",),
    },
    alone=True,
    aims=(
        Aim("linear", "forecause", 1.25, "pcmci+"),
        Aim("monotonic", "forecause", 3.3, "pcmci+"),
        Aim("mlp-concat", "forecause", 8.3, "pcmci+"),
        Aim("linear", "command", 1.0, "tigramite-script"),
        Aim("linear", "command-busy", 1.5, "command"),
    ),
    note="10 variables with lag 5 and 10,000 rows, or 100 variables with lag 2 and 2,000 "
    "rows; one job at a time. Methods run in a process that has imported everything, on one "
    "thread; programs start anew, with as many threads as they like, and include reading the table "
    "and writing results.",
)  # fmt: skip


def command(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """`forecause discover --forecaster linear`, a process of its own."""
    with _table(panel) as table:
        out = table.with_name("run")
        asked = [sys.executable, "-m", "forecause", "discover", str(table)]
        asked += ["--max-lag", str(max_lag), "--forecaster", "linear", "--out", str(out), "--quiet"]
        _run([*asked, "--seed", str(seed)])
        return [Answer(LaggedGraph.from_json(out / "graph.json"))]


def command_beside_busy_cores(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """The same while every other core, or the only one, has a process that never waits."""
    others = max((os.cpu_count() or 1) - 1, 1)
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(others)]
    try:
        return command(panel, max_lag, seed)
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def tigramite_script(panel: Panel, max_lag: int, seed: int) -> list[Answer]:
    """A script that runs PCMCI+ on the same file."""
    with _table(panel) as table:
        printed = _run([sys.executable, "-c", TIGRAMITE, str(table), str(max_lag)])
    name = panel.variables
    edges = [(name[i], name[j], lag) for i, j, lag in json.loads(printed.splitlines()[-1])]
    return [Answer(LaggedGraph.from_edges(name, max_lag, edges))]


@contextmanager
def _table(panel: Panel) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="forecause-speed-") as folder:
        table = Path(folder) / "data.csv"
        pd.DataFrame(panel.values, columns=list(panel.variables)).to_csv(table, index=False)
        yield table


def _run(asked: list[str]) -> str:
    """What a program prints that has as many threads as it likes; a job of a benchmark has one."""
    free = {name: value for name, value in os.environ.items() if name != THREADS}
    return subprocess.run(asked, env=free, check=True, stdout=subprocess.PIPE, text=True).stdout
