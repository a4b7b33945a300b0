"""Results made by hand, to see what tables and figures make of them."""

from forecause_bench.aggregate import Results
from forecause_bench.suite import Cell, Suite

PAPER_CELL = Cell("n=25", {"nodes": 25, "max_lag": 5}, ("highdim_linear", "n=25"))
PLAIN_CELL = Cell("plain", {"nodes": 5, "max_lag": 2})
METHODS = ("forecause", "dot-paper", "pcmci+", "var-fdr", "random-oracle")


def made_suite(**changes):
    """Two columns, five methods, two seeds."""
    settings = {"cells": (PAPER_CELL, PLAIN_CELL), "methods": METHODS, "rows": (1000,), "seeds": 2}
    return Suite("made", "Made by hand", **{**settings, **changes})


def answer(f1, *, label="", shd=3, oracle=0.99, **extra):
    """One scored graph; all views are alike but for what is told apart here."""
    view = {
        "precision": f1, "recall": f1, "f1": f1, "shd": shd, "auroc": 0.9,
        "average_precision": 0.8, "lag_accuracy": 1.0,
    }  # fmt: skip
    views = ("lagged", "summary", "lagged_no_self", "summary_no_self")
    return {
        "label": label,
        "metrics": {name: dict(view) for name in views},
        "oracle": {"best_threshold_f1": oracle, "true_k_f1": oracle},
        "extra": extra,
    }


def result(method, seed, *answers, cell="n=25", rows=1000, status="done", **more):
    """A stored result."""
    job = {"suite": "made", "cell": cell, "rows": rows, "seed": seed, "method": method}
    found = {"job": job, "status": status, "answers": list(answers), "memory_mb": 50.0}
    if status == "done":
        found |= {"seconds": 2.0, "cpu_seconds": 1.0}
    return {**found, "finished": "2026-01-01T00:00:00+00:00", **more}


def pair(method, first, second, cell="n=25", **more):
    """Two seeds with these F1."""
    return [
        result(method, seed, answer(f1, **more), cell=cell)
        for seed, f1 in enumerate((first, second))
    ]


def made_results():
    """Forecause is best on n=25; on plain it is level with PCMCI+ and behind VAR."""
    return Results(
        made_suite(),
        [
            *pair("forecause", 0.90, 0.96, shd=1),
            *pair("dot-paper", 0.80, 0.84, shd=9),
            *pair("pcmci+", 0.70, 0.70, shd=4),
            result("var-fdr", 0, status="timeout"),
            result("var-fdr", 1, answer(0.99)),
            *pair("random-oracle", 0.10, 0.20),
            *pair("forecause", 0.60, 0.60, cell="plain"),
            result("dot-paper", 0, cell="plain", status="failed", error="InputError: too few"),
            result("dot-paper", 1, cell="plain", status="failed", error="InputError: too few"),
            *pair("pcmci+", 0.60, 0.602, cell="plain"),
            *pair("var-fdr", 0.75, 0.55, cell="plain"),
            *pair("random-oracle", 0.99, 0.99, cell="plain"),
        ],
    )
