"""The real suites, as data: what is read, how far back methods look, and what is reported."""

from __future__ import annotations

from forecause_bench.suite import Cell, Suite

ALL_ROWS = 0  # of recorded data, however many there are
METHODS = (
    "forecause", "additive", "linear", "low-complexity", "low-complexity-mlp",
    "var-coefficients", "var-fdr", "pcmci+", "cmlp", "random",
)  # fmt: skip
WITH_SELF = ("summary/auroc", "summary/average_precision", "summary/auprc_trapezoid")
WITHOUT_SELF = tuple(name.replace("summary", "summary_no_self") for name in WITH_SELF)
TEN_MINUTES = 600.0


CAUSALTIME = Suite(
    "causaltime",
    "CausalTime: air quality, traffic and medical records",
    tuple(
        Cell(name, {"dataset": "causaltime", "item": item, "max_lag": 5}, ("causaltime", name))
        for name, item in (("AQI", "pm25"), ("Traffic", "traffic"), ("Medical", "medical"))
    ),
    methods=METHODS,
    rows=(ALL_ROWS,),
    seeds=5,
    metrics=(*WITH_SELF, *WITHOUT_SELF),
    axis="dataset",
    note="Read from pm25, traffic and medical, each with gen_data.npy and graph.npy as they "
    "are published. Every sample is a series of its own; the seeds are the methods' alone. "
    "The paper counts self-links.",
)
DREAM3 = Suite(
    "dream3",
    "DREAM3: networks of 10 genes, 4 series of 21 points each",
    tuple(
        Cell(f"network {i}", {"dataset": "dream3", "item": f"dream3_10_{i}", "max_lag": 2})
        for i in range(5)
    ),
    methods=METHODS,
    rows=(ALL_ROWS,),
    seeds=1,
    limit=TEN_MINUTES,
    metrics=(*WITHOUT_SELF, *WITH_SELF),
    axis="network",
    note="The 4 series of a network are one panel. The truth does not list self-links: they "
    "are left out first, and count as absent where they are included.",
)
NETSIM = Suite(
    "netsim",
    "NetSim: simulated brain scans of 15 regions, 200 rows per subject",
    (Cell("15 regions", {"dataset": "netsim", "item": "fMRI_15", "max_lag": 2}),),
    methods=METHODS,
    rows=(ALL_ROWS,),
    seeds=50,
    limit=TEN_MINUTES,
    metrics=(*WITHOUT_SELF, *WITH_SELF),
    axis="network",
    note="Every subject is a system of its own with its own network, and seed i is subject "
    "i + 1: the figures are means and spreads over subjects, as the field reports them. Every "
    "region drives itself, which any method finds: self-links are left out first.",
)
LORENZ96 = Suite(
    "lorenz96",
    "Lorenz-96: a chaotic ring of 10 variables",
    tuple(
        Cell(
            f"forcing {forcing:g}",
            {"dataset": "lorenz96", "nodes": 10, "forcing": forcing, "max_lag": 5},
        )
        for forcing in (10.0, 40.0)
    ),
    methods=METHODS,
    rows=(250, 500, 1000),
    seeds=3,
    limit=TEN_MINUTES,
    metrics=(*WITH_SELF, *WITHOUT_SELF),
    axis="forcing",
    note="Generated, one system per seed. Every variable drives itself: scoring the diagonal "
    "alone already gives an AUROC of 0.625.",
)
CDML = Suite(
    "cdml",
    "CDML: systems by the public generator of the paper's family, 500 or 1,000 rows",
    tuple(
        Cell(f"complexity {c}", {"dataset": "cdml", "item": str(c), "max_lag": 3})
        for c in (0, 10, 20, 30)
    ),
    methods=("forecause", "trees", "var-coefficients", "var-fdr", "pcmci+"),
    rows=(ALL_ROWS,),
    seeds=12,
    limit=TEN_MINUTES,
    metrics=WITHOUT_SELF,
    axis="complexity",
    note="Complexity is the share of nonlinear forms in per cent; seed i is the i-th system of its "
    "complexity.",
)
RIVERS = Suite(
    "rivers",
    "CausalRivers: discharge of 42 gauges during a flood, every 15 minutes, with gaps",
    (Cell("flood", {"dataset": "rivers", "item": "rivers_ts_flood", "max_lag": 5}),),
    methods=("forecause", "var-coefficients", "var-fdr"),
    rows=(ALL_ROWS,),
    seeds=1,
    limit=TEN_MINUTES,
    metrics=WITHOUT_SELF,
    axis="dataset",
    note="Near unit roots and shared rain.",
)
REAL_SUITES = (CAUSALTIME, DREAM3, NETSIM, LORENZ96, CDML, RIVERS)  # their truth is a summary graph
