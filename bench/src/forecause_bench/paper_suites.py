"""The suites of the paper's tables and figures, and a small one with all its axes, as data.

The paper does not name the form of its nonlinear high-dimensional and long-range systems;
docs/why/the-paper.md tells how one knows that it is piecewise-linear + monotonic.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from forecause_bench.calibration import MECHANISMS
from forecause_bench.suite import BASE, BY_ROWS, PAPER_ROWS, Cell, Suite, System

UNNAMED: System = {"mechanism": "piecewise-linear+monotonic"}
MONOTONIC: System = {"mechanism": "monotonic"}
EXTREME: System = {"mechanism": "monotonic", "vary_lag": True}
LOW_DRIFT = 0.2  # share of the edges that move from one segment to the next


def _base(table: str, column: str = "Base", **system: Any) -> Cell:
    return Cell(column, {**BASE, **system}, (table, column))


def _sizes(table: str, key: str, letter: str, sizes: tuple[int, ...], **system: Any) -> list[Cell]:
    return [_base(table, f"{letter}={size}", **{key: size}, **system) for size in sizes]


def _segments(table: str, **system: Any) -> list[Cell]:
    return [
        Cell(f"{s} segments", {**BASE, "segments": s, **system}, (f"{table}_seg{s}", BY_ROWS))
        for s in (2, 5, 10)
    ]


def _own(name: str, **system: Any) -> Cell:
    """A column that the paper has only as a figure, or not at all."""
    return Cell(name, {**BASE, **system})


def _highdim(table: str, *more: Cell, **system: Any) -> tuple[Cell, ...]:
    return (_base(table), *more, *_sizes(table, "nodes", "n", (25, 50, 100), **system))


def _longrange(table: str, *more: Cell, **system: Any) -> tuple[Cell, ...]:
    return (_base(table), *more, *_sizes(table, "max_lag", "k", (10, 25, 50), **system))


NONLINEARITY = (
    _base("nonlinearity", "Linear"),
    _base("nonlinearity", "CAM-M", mechanism="monotonic"),
    _base("nonlinearity", "CAM-PL+M", mechanism="piecewise-linear+monotonic"),
    _base("nonlinearity", "MLP-Add", mechanism="mlp-add"),
    _base("nonlinearity", "MLP-Cat", mechanism="mlp-concat"),
)
LINEAR_AND_NOT = (_own("linear"), _own("monotonic", **MONOTONIC))
SMALL: System = {"nodes": 5, "max_lag": 2}  # of the paper's uncertainty analysis
TINY: System = {"nodes": 5, "max_lag": 3, "in_degree": 2.0, "max_in_degree": 3}


def _quick(name: str, paper: tuple[str, str] | None = None, **system: Any) -> Cell:
    return Cell(name, {**TINY, **system}, paper)


QUICK = Suite(
    "quick",
    "Every axis of the study, small",
    cells=(
        _quick("linear", ("nonlinearity", "Linear"), max_lag=2),
        _quick("n=7", nodes=7),
        _quick("k=5", max_lag=5),
        _quick("monotonic", ("nonlinearity", "CAM-M"), mechanism="monotonic"),
        _quick("MLP-add", ("nonlinearity", "MLP-Add"), mechanism="mlp-add"),
        _quick(
            "MLP-concat",
            ("nonlinearity", "MLP-Cat"),
            mechanism="mlp-concat",
            max_in_degree=None,
        ),
        _quick("mixed unequal noise", noise="mixed", noise_variance=(0.5, 5.0)),
        _quick("2 latents", latents=2, latent_autoregression=0.8),
        _quick("2 segments", segments=2),
        _quick("extreme low-drift", segments=2, drift=LOW_DRIFT, **EXTREME),
    ),
    rows=(1000,),
    seeds=2,
    limit=240.0,
    only={"dot-paper": ("linear",), "forecause-transformer": ("linear", "MLP-concat")},
    note="Small on purpose, so that all of it ends within ten minutes on two cores: it shows "
    "what works at all, not how methods scale. The paper's figures are for 10 variables, lag 5 and "
    "50,000 rows or more. The slowest methods run on some columns only.",
)

LATENTS = ("3 latents", "5 latents", "10 latents")
INSTANTANEOUS = ("instantaneous 0.5", "instantaneous 1.0")
NOW = ("instantaneous-refinement", "dot-instantaneous-refinement", "pcmci+-now")
POOLED = ("var-fdr", "granger", "granger-pairwise", "pcmci+", "dynotears", "var-lingam")
SEGMENT_WISE = ("var-fdr", "granger", "pcmci+", "dynotears", "var-lingam")


VARIANTS = ("", "LRP, threshold", "attention, top-3 per target", "attention, threshold")
TOP_KS = (
    *[f"top-{k} per target" for k in (1, 2, 4, 5)],
    *[f"top-{k} overall" for k in range(3, 37, 3)],
)
BY_RANK = tuple(
    f"{score}, {rule}"
    for score in ("mean rank", "1 / sd of rank", "mean / sd of rank")
    for rule in ("top-3 per target", "top-15 overall")
)


def _changing(name: str, **system: Any) -> list[Cell]:
    table = f"ns_{name}"
    return [
        Cell(f"{name} {s}", {**BASE, "segments": s, **system}, (f"{table}_seg{s}", BY_ROWS))
        for s in (2, 5, 10)
    ]


PAPER_SUITES: tuple[Suite, ...] = (
    Suite(
        "highdim-linear",
        "High-dimensional, linear",
        _highdim("highdim_linear"),
        axis="variables",
    ),
    Suite(
        "highdim-nonlinear",
        "High-dimensional, nonlinear (the paper's Base is linear)",
        (
            *_highdim("highdim_nonlinear", _own("n=10", **UNNAMED), **UNNAMED),
            _own("n=25 monotonic", nodes=25, **MONOTONIC),
        ),
        axis="variables",
        note="Piecewise-linear and monotonic functions: the paper does not name the form, but its "
        "figures tell.",
    ),
    Suite(
        "longrange-linear",
        "Long-range, linear",
        _longrange("longrange_linear"),
        axis="largest lag",
    ),
    Suite(
        "longrange-nonlinear",
        "Long-range, nonlinear (the paper's Base is linear)",
        _longrange("longrange_nonlinear", _own("k=5", **UNNAMED), **UNNAMED),
        axis="largest lag",
        note="Five of the paper's eight rivals have the very figures of its linear table here, to "
        "the last digit of every metric, so its systems were linear. Ours are piecewise-linear "
        "and monotonic.",
    ),
    Suite(
        "nonlinearity",
        "Nonlinear mechanisms",
        NONLINEARITY,
        rows=(50_000, 100_000),
        axis="mechanism",
    ),
    Suite(
        "latent",
        "Hidden common causes",
        (
            _base("latent"),
            *[_base("latent", f"{count} Latent", latents=count) for count in (3, 5, 10)],
        ),
        axis="hidden common causes",
    ),
    Suite(
        "noise",
        "Kinds of noise and unequal variances",
        (
            _base("noise", "Gaussian"),
            _base("noise", "Uniform", noise="uniform"),
            _base("noise", "Mixed", noise="mixed"),
            _base("noise", "Hetero-S", noise_variance=(0.5, 5.0)),
            _base("noise", "Hetero-L", noise_variance=(0.0, 10.0)),
        ),
        axis="noise",
    ),
    Suite(
        "ns-regular",
        "Non-stationary, regular: a fresh linear graph per segment",
        (_base("ns_regular_seg2"), *_segments("ns_regular")),
        rows=tuple(PAPER_ROWS),
        rows_as_columns=True,
        axis="rows",
    ),
    Suite(
        "ns-extreme",
        "Non-stationary, extreme: a fresh monotonic graph with its own lags per segment",
        (_base("ns_extreme_seg2"), *_segments("ns_extreme", **EXTREME)),
        rows=tuple(PAPER_ROWS),
        rows_as_columns=True,
        axis="rows",
    ),
    Suite(
        "low-drift",
        "Segments that differ in a few edges, beside fresh ones",
        (
            _own("regular fresh", segments=5),
            _own("regular low-drift", segments=5, drift=LOW_DRIFT),
            _own("extreme fresh", segments=5, **EXTREME),
            _own("extreme low-drift", segments=5, drift=LOW_DRIFT, **EXTREME),
        ),
    ),
    Suite(
        "variants",
        "Deep and shallow transformers, LRP and attention, top-k and threshold",
        (
            *[_own(f"k={lag}", max_lag=lag) for lag in (5, 10, 25)],
            _own("monotonic", **MONOTONIC),
            _own("MLP-concat", mechanism="mlp-concat"),
            _own("2 segments", segments=2),
            _own("5 segments", segments=5),
        ),
        methods=("dot", "dot-shallow"),
        answers=dict.fromkeys(("dot", "dot-shallow"), VARIANTS),
        note="`DOT` alone is LRP with the top 3 per target. Where there are segments, a graph "
        "is read for each of them, from its own windows.",
    ),
    Suite(
        "top-k",
        "How much depends on k, per target and over the whole graph",
        LINEAR_AND_NOT,
        methods=("dot",),
        answers={"dot": ("", *TOP_KS)},
        note="`DOT` alone is the top 3 per target. Each k is fixed beforehand; to pick the "
        "best row of this table would be to use the truth.",
    ),
    Suite(
        "cnn",
        "A convolutional network in place of the transformer",
        (*NONLINEARITY, _own("k=10", max_lag=10), _own("n=25", nodes=25)),
        methods=("forecause", "dot", "cnn-paper"),
    ),
    Suite(
        "uncertainty",
        "Scores from the spread of ranks over samples",
        (_own("linear", **SMALL), _own("monotonic", **SMALL, **MONOTONIC), _own("linear base")),
        methods=("dot",),
        answers={"dot": ("", "top-15 overall", *BY_RANK)},
        note="`DOT` alone is mean relevance with the top 3 per target, `top-15 overall` mean "
        "relevance with the top 15 of the graph.",
        metrics=("f1", "auroc", "average_precision"),
    ),
    Suite(
        "interventions",
        "Agreement of relevance with the effect of interventions on the forecaster",
        LINEAR_AND_NOT,
        methods=("dot",),
        answers={"dot": ("by intervention", "by gradient", "by lrp")},
        metrics=("spearman", "pearson", "f1"),
    ),
    Suite(
        "domains",
        "Known segments: a graph for each, beside methods that see the pooled rows or one "
        "segment at a time",
        (*_changing("regular"), *_changing("extreme", **EXTREME)),
        methods=("known-domains", *POOLED, *[f"{name}-by-domain" for name in SEGMENT_WISE]),
        seeds=2,
        limit=900.0,
        axis="segments",
        note="F1 is averaged over the segments' own graphs. Forecause and the methods marked "
        "`each segment` are told where a segment begins; the others see the pooled rows.",
    ),
    Suite(
        "domain-index",
        "The domain as an input of the forecaster, or told from the past alone",
        (
            _own("regular", segments=5),
            _own("extreme", segments=5, **EXTREME),
            _own("regular low-drift", segments=5, drift=LOW_DRIFT),
        ),
        methods=("domain-input", "dot-index", "dot"),
        rows=(2_000, 10_000, 50_000),
        seeds=2,
        rows_as_columns=True,
        metrics=("f1", "loss"),
        axis="rows",
    ),
    Suite(
        "regimes",
        "Regimes found without labels: change points missed and invented",
        (
            _own("2 segments", segments=2),
            _own("5 segments", segments=5),
            _own("10 segments", segments=10),
            _own("5 segments low-drift", segments=5, drift=LOW_DRIFT),
            _own("5 segments monotonic", segments=5, **EXTREME),
            *[replace(cell, name=f"stationary {cell.name}") for cell in MECHANISMS],
        ),
        methods=("unknown-regimes",),
        rows=(10_000,),
        seeds=20,
        metrics=("missed", "invented", "error", "f1"),
        axis="system",
    ),
    Suite(
        "post-processing",
        "Graphs refined past latents and instantaneous effects",
        (
            *[_own(n, latents=int(n.split()[0]), latent_autoregression=0.8) for n in LATENTS],
            *[_own(n, instantaneous=float(n.split()[1])) for n in INSTANTANEOUS],
        ),
        methods=(
            "latent-refinement",
            "dot-latent-refinement",
            "instantaneous-refinement",
            "dot-instantaneous-refinement",
            "pcmci+-now",
        ),
        rows=(2_000, 10_000),
        seeds=3,
        limit=600.0,
        only={
            **dict.fromkeys(("latent-refinement", "dot-latent-refinement"), LATENTS),
            **dict.fromkeys(NOW, INSTANTANEOUS),
        },
        axis="system",
        note="Hidden common causes remember themselves (0.8), so that they confound. "
        "`instantaneous` is the mean number of causes within a row; F1 counts lagged and "
        "lag-0 edges.",
    ),
    Suite(
        "pretraining",
        "Pretrained on other systems: zero-shot, fine-tuned and from scratch, by rows",
        (
            _own("linear", in_degree=3.0),
            _own("monotonic", in_degree=3.0, **MONOTONIC),
            _own("MLP-add", in_degree=3.0, mechanism="mlp-add"),
        ),
        methods=("transfer", "var-fdr"),
        rows=(200, 500, 2_000),
        seeds=5,
        first_seed=20,  # the design was chosen on earlier ones
        limit=600.0,
        metrics=("f1", "auroc", "average_precision", "loss"),
        rows_as_columns=True,
        axis="rows",
        note="The weights are those that come with Forecause, from 17 minutes on one core, or "
        "those in the folder that FORECAUSE_WEIGHTS names. Every arm keeps the inputs with "
        "more than an even share of their target's relevance, the paper's uniform threshold; "
        "VAR with FDR decides by tests. `same` is the pretrained architecture untaught, "
        "which is then the mean of some ridge regressions. The transformer is "
        "the default one, trained for at most 1,000 steps.",
    ),
    Suite(
        "rows",
        "Accuracy by rows",
        (_own("linear"), _own("MLP-concat", mechanism="mlp-concat")),
        methods=("forecause", "dot", "var-fdr", "pcmci+"),
        rows=(2_000, 10_000, 50_000),
        seeds=2,
        rows_as_columns=True,
        axis="rows",
    ),
)
