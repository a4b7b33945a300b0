"""The suites about size: what time, memory and accuracy become, and whether the screen for many
inputs loses causes."""

from __future__ import annotations

from typing import Any

from forecause_bench.suite import BASE, Cell, Suite

METHODS = (
    "forecause", "forecause-transformer", "linear", "var-fdr", "pcmci+", "var-lingam", "dynotears"
)  # fmt: skip
ROWS = {"1K": 1_000, "10K": 10_000, "100K": 100_000, "1M": 1_000_000}
VARIABLES = (10, 25, 50, 100)
LAGS = (5, 10, 25, 50)
LAG_ROWS, VARIABLE_ROWS = 50_000, 20_000
WIDE, LONG = {"nodes": 100}, {"max_lag": 50}  # 500 inputs each


def _size(name: str, axis: str, size: int, rows: int, **system: Any) -> Cell:
    return Cell(name, {**BASE, **system}, rows=rows, along=(axis, size))


BY_LAG = tuple(_size(f"lag {k}", "lag", k, LAG_ROWS, max_lag=k) for k in LAGS)

SCALING = Suite(
    "scaling",
    "Scaling: time, memory and F1 against rows, variables and lag",
    cells=(
        *[_size(f"{name} rows", "rows", rows, rows) for name, rows in ROWS.items()],
        *[_size(f"{n} variables", "variables", n, VARIABLE_ROWS, nodes=n) for n in VARIABLES],
        *BY_LAG,
        Cell(
            "100 variables monotonic",
            {**BASE, **WIDE, "mechanism": "monotonic"},
            rows=VARIABLE_ROWS,
        ),
    ),
    methods=METHODS,
    seeds=1,
    limit=600.0,
    metrics=("f1", "seconds", "memory_mb"),
    axis="system",
    only={"forecause-transformer": tuple(cell.name for cell in BY_LAG)},
    note="Linear systems unless a column says otherwise, one of each size. Rows grow with 10 "
    f"variables and lag 5, variables with lag 5 and {VARIABLE_ROWS:,} rows, the lag with 10 "
    f"variables and {LAG_ROWS:,} rows. Every method has one thread. The transformer alone runs "
    "along the lag only; the default tries it where there are up to 100 inputs. Memory includes "
    "the data and what any job takes, whatever its method.",
)

VERY_WIDE = Suite(
    "wide",
    "From a hundred to three thousand variables",
    cells=(
        Cell("100 linear", {**BASE, **WIDE}, rows=20_000),
        Cell("100 monotonic", {**BASE, **WIDE, "mechanism": "monotonic"}, rows=20_000),
        Cell("1000 with lag 2", {**BASE, "nodes": 1000, "max_lag": 2}, rows=5_000),
        Cell("1000 with lag 3", {**BASE, "nodes": 1000, "max_lag": 3}, rows=10_000),
        Cell("3000 with lag 1", {**BASE, "nodes": 3000, "max_lag": 1}, rows=5_000),
    ),
    methods=("forecause", "var-fdr"),
    seeds=1,
    limit=3 * 3600.0,
    metrics=("f1", "method_cpu_seconds", "seconds", "memory_mb"),
    foreseen=True,
    axis="system",
    alone=True,
    note="Columns are numbers of variables; 100 have lag 5 and 20,000 rows, the others 5,000 rows, "
    "with lag 3 10,000; linear unless named otherwise. "
    "One job at a time, on one thread. Where the machine does other work besides, the processor "
    "time tells more than the clock. Aims on two cores: 30, 60, 150, 300 and 600 s, 8 GB, F1 of "
    "at least 0.97 on linear systems.",
)

SCREENING = Suite(
    "screening",
    "Of 500 inputs, do the 40 that a network is given hold the causes?",
    cells=tuple(
        Cell(f"{mechanism} {size}", {**BASE, **shape, "mechanism": mechanism})
        for size, shape in (("n=100", WIDE), ("k=50", LONG))
        for mechanism in ("linear", "monotonic", "mlp-concat")
    ),
    methods=("screen", "screen-in-rounds", "linear"),
    rows=(2_000, 20_000),
    seeds=2,
    limit=600.0,
    metrics=("recall",),
    axis="system",
    note="100 variables with lag 5, and 10 variables with lag 50. Recall of the screen is the "
    "share of true causes that a network gets to read, that of the screen in rounds the share that "
    "is tested where inputs are too many to be fitted together; beside them that of the graph of "
    "the linear forecaster, which is decided by tests of all inputs.",
)
