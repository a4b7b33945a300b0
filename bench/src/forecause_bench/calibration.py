"""The suites about deciding without the truth: which edges, and how many of them are false."""

from __future__ import annotations

from dataclasses import replace

from forecause_bench.suite import BASE, Cell, Suite

MECHANISMS = (
    Cell("linear", {**BASE}),
    Cell("monotonic", {**BASE, "mechanism": "monotonic"}),
    Cell("PL + monotonic", {**BASE, "mechanism": "piecewise-linear+monotonic"}),
    Cell("MLP-add", {**BASE, "mechanism": "mlp-add"}),
    Cell("MLP-concat", {**BASE, "mechanism": "mlp-concat"}),
)

LINEAR = Suite(
    "linear",
    "The first promise: linear systems of 10 variables, lag 5, 10,000 rows",
    cells=(
        Cell("any in-degree", {"nodes": 10, "max_lag": 5}),
        Cell("in-degree 3", {"nodes": 10, "max_lag": 5, "in_degree": 3, "max_in_degree": 3}),
    ),
    methods=("forecause", "transformer-oracle-k", "var-fdr"),
    rows=(10_000,),
    seeds=5,
    only={"transformer-oracle-k": ("in-degree 3",)},
)

CALIBRATION = Suite(
    "calibration",
    "Edges without the truth: realised against nominal false discovery rate, and F1, by rule",
    cells=MECHANISMS,
    methods=("selection-rules", "var-fdr", "pcmci+"),
    rows=(500, 2_000, 10_000, 50_000),
    seeds=3,
    limit=900.0,
    metrics=("fdr", "f1", "recall"),
    axis="mechanism",
    note="Forecause trains once per system and every rule is applied to the same fit; the default "
    "is `tests and floor` at 5 % with 500 rows and at 2 % with more. The best-threshold F1 of the "
    "relevance is under oracle.",
)

CALIBRATION_SIZE = replace(
    CALIBRATION,
    name="calibration-size",
    title="The same with 5 and with 25 variables",
    cells=tuple(
        Cell(f"{cell.name} n={nodes}", {**cell.system, "nodes": nodes})
        for nodes in (5, 25)
        for cell in MECHANISMS
    ),
    rows=(2_000, 10_000),
    seeds=2,
)

FEW_ROWS = Suite(
    "few-rows",
    "Few rows: 200, 300 and 500 of 10 variables with lag 5",
    cells=MECHANISMS,
    methods=(
        "forecause",
        "pretrained",
        "var-fdr",
        "pcmci+",
        "pcmci-fdr",
        "var-lingam",
        "dynotears",
    ),
    rows=(200, 300, 500),
    seeds=10,
    first_seed=9000,  # no rule was chosen on these
    limit=120.0,
    metrics=("f1", "fdr", "recall"),
    axis="mechanism",
)
