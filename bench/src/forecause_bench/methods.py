"""The methods of a benchmark: Forecause in several settings, its rivals, and the oracles."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from forecause.config import Config, TopK
from forecause.data.panel import Panel
from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph
from forecause_bench.rivals import BASELINES, run_baseline


@dataclass(frozen=True)
class Answer:
    """A graph that a method gives, told apart by `label` if it gives several."""

    graph: LaggedGraph
    label: str = ""
    extra: Mapping[str, float] = field(default_factory=dict)  # metrics besides the graph's


Run = Callable[[Panel, int, int], list[Answer]]
"""(panel, max_lag, seed) -> answers."""
OracleRun = Callable[[Panel, int, int, LaggedGraph], list[Answer]]
"""The same, with the truth at the end."""


@dataclass(frozen=True)
class Method:
    """One row of a table, or several if it gives several answers."""

    label: str
    run: Run | None = None
    oracle_run: OracleRun | None = None  # only a method that has this one ever sees the truth
    ours: bool = False
    preload: tuple[str, ...] = ()  # modules to import before the clock starts
    cost: float = 1.0  # roughly, against the others: the slow ones are started first
    main: tuple[str, ...] | None = None  # labels of the answers that a table shows unless it
    # asks for others; None: all of them
    expect: Callable[[Panel, int], tuple[float, float]] | None = None  # the range of seconds that
    # it announces

    @property
    def oracle(self) -> bool:
        """Whether it uses the truth."""
        return self.oracle_run is not None

    def expected(self, panel: Panel, max_lag: int) -> dict[str, float]:
        """What it announces before it runs, if it does."""
        if self.expect is None:
            return {}
        least, most = self.expect(panel, max_lag)
        return {"expected_least": round(least, 3), "expected_seconds": round(most, 3)}

    def answers(self, panel: Panel, max_lag: int, seed: int, truth: LaggedGraph) -> list[Answer]:
        """Run it; the truth is handed on to oracles alone."""
        if self.oracle_run is not None:
            return self.oracle_run(panel, max_lag, seed, truth)
        assert self.run is not None
        return self.run(panel, max_lag, seed)


def _discover(panel: Panel, max_lag: int, seed: int, **settings: Any) -> list[Answer]:
    from forecause.method import discover

    asked = Config(device="cpu", **settings)
    run = discover(panel, max_lag, seed=seed, config=asked)
    return [Answer(run.graph, extra={"doubted": float(bool(run.doubts))})]


def _expected_seconds(panel: Panel, max_lag: int, **settings: Any) -> tuple[float, float]:
    """What `discover` says at the start: at least and at most."""
    from forecause.common.work_sharing import one_thread
    from forecause.data.windows import Windows
    from forecause.forecast.selection import specs_tried
    from forecause.resources.cost import expected_cost

    chosen, windows = Config.of(max_lag=max_lag, **settings), Windows.of(panel, max_lag)
    with one_thread():
        cost = expected_cost(windows, specs_tried(chosen.forecasting, windows))
    return cost.least, cost.most


def _baseline(panel: Panel, max_lag: int, seed: int, *, name: str) -> list[Answer]:
    return [Answer(run_baseline(name, panel, max_lag, seed))]


def _baseline_by_domain(panel: Panel, max_lag: int, seed: int, *, name: str) -> list[Answer]:
    from forecause_bench.domains import baseline_by_domain

    return baseline_by_domain(name, panel, max_lag, seed)


def _study(panel: Panel, max_lag: int, seed: int, *, module: str, name: str) -> list[Answer]:
    study = getattr(importlib.import_module(f"forecause_bench.{module}"), name)
    answers: list[Answer] = study(panel, max_lag, seed)
    return answers


def _random_at_true_density(
    panel: Panel, max_lag: int, seed: int, truth: LaggedGraph
) -> list[Answer]:
    from forecause_bench.rivals.random_guess import random_at_density

    graphs = list(truth.domains.values()) or [truth]
    mean_edges = sum(len(graph) for graph in graphs) / len(graphs)
    density = mean_edges / (len(truth.variables) ** 2 * max_lag)
    return [Answer(random_at_density(density)(panel, max_lag, seed))]


def _transformer_at_true_degree(
    panel: Panel, max_lag: int, seed: int, truth: LaggedGraph
) -> list[Answer]:
    """As many causes per variable as the one with most of them has."""
    k = int(truth.adjacency.sum(("source", "lag")).max())
    return _discover(panel, max_lag, seed, forecaster="transformer", select=TopK(k))


def _ours(label: str, cost: float = 10.0, **settings: Any) -> Method:
    run, expect = partial(_discover, **settings), partial(_expected_seconds, **settings)
    preload = ("forecause.method",)
    return Method(label, run, ours=True, preload=preload, cost=cost, expect=expect)


def _studied(label: str, name: str, module: str = "studies", cost: float = 100.0) -> Method:
    run = partial(_study, module=module, name=name)
    preload = ("forecause.method", f"forecause_bench.{module}")
    return Method(label, run, ours=True, preload=preload, cost=cost)


def _rival_by_domain(name: str) -> Method:
    pooled = _rival(name)
    run = partial(_baseline_by_domain, name=name)
    preload = (*pooled.preload, "forecause_bench.domains")
    return Method(f"{pooled.label}, each segment", run, preload=preload, cost=pooled.cost)


def _rival(name: str) -> Method:
    baseline = BASELINES[name]
    preload = (f"forecause_bench.rivals.{baseline.module}", *_FOREIGN.get(name, ()))
    cost = 3.0 if baseline.nonlinear else 1.0
    return Method(baseline.label, partial(_baseline, name=name), preload=preload, cost=cost)


_FOREIGN = {
    "pcmci": ("tigramite.pcmci", "tigramite.independence_tests.parcorr"),
    "pcmci-fdr": ("tigramite.pcmci", "tigramite.independence_tests.parcorr"),
    "pcmci+": ("tigramite.pcmci", "tigramite.independence_tests.parcorr"),
    "pcmci+-now": ("tigramite.pcmci", "tigramite.independence_tests.parcorr"),
    "lpcmci": ("tigramite.lpcmci", "tigramite.independence_tests.parcorr"),
    "var-lingam": ("lingam",),
}
BY_DOMAIN = ("var-fdr", "granger", "pcmci+", "dynotears", "var-lingam")
_TOP_3: dict[str, Any] = {"select": "top-k", "k": 3}  # scores are relevance, nothing is tested
_PAPER_RULES: dict[str, Any] = {"readout": "lrp", **_TOP_3}

METHODS: dict[str, Method] = {
    "forecause": _ours("Forecause"),
    "forecause-transformer": _ours("Forecause, transformer", forecaster="transformer"),
    "transformer-oracle-k": Method(
        "Forecause, transformer (oracle in-degree)",
        oracle_run=_transformer_at_true_degree,
        ours=True,
        preload=("forecause.method",),
        cost=10.0,
    ),
    "additive": _ours("Forecause, additive", cost=2.0, forecaster="additive"),
    "trees": _ours("Forecause, trees", cost=5.0, forecaster="trees"),
    "linear": _ours("Forecause, linear", cost=2.0, forecaster="linear"),
    "var-coefficients": _ours(
        "Standardised VAR coefficients, squared", cost=2.0, forecaster="linear", select="top-k", k=3
    ),
    "pretrained": _ours("Forecause, pretrained", cost=2.0, forecaster="pretrained"),
    "low-complexity": _ours(
        "Forecause, low complexity", cost=50.0, forecaster="vector", preset="sparse", **_TOP_3
    ),
    "low-complexity-mlp": _ours(
        "Forecause, low complexity, MLP", cost=50.0, forecaster="mlp", preset="sparse", **_TOP_3
    ),
    "dot-paper": _ours("DOT (the paper's rules)", cost=100.0, preset="paper"),
    "cnn-paper": _ours("CNN (the paper's rules)", forecaster="cnn", **_PAPER_RULES),
    **{name: _rival(name) for name in BASELINES},
    "pcmci+-gpdc": Method(
        "PCMCI+ (GPDC)",
        partial(_study, module="gpdc", name="pcmci_plus_gpdc"),
        preload=("forecause_bench.gpdc", "tigramite.pcmci"),
        cost=500.0,
    ),
    "random-oracle": Method(
        "Random guess (oracle density)",
        oracle_run=_random_at_true_density,
        preload=("forecause_bench.rivals.random_guess",),
    ),
    "selection-rules": _studied("Forecause", "selection_rules"),
    "levels": _studied("Forecause", "error_levels"),
    "ranked": _studied("Forecause", "ways", "ranking"),
    **{
        f"{name}-tests": _ours(f"{label}, its own tests", cost, forecaster=name)
        for name, label, cost in (
            ("transformer", "Transformer", 200.0),
            ("mlp", "MLP", 200.0),
            ("pretrained", "Pretrained", 5.0),
        )
    },
    "dot": replace(_studied("DOT", "deep", "published"), main=("",)),
    "dot-shallow": replace(_studied("DOT, 1 layer", "shallow", "published"), main=("",)),
    "dot-index": replace(
        _studied("DOT, told the segment", "told_the_segment", "published"), main=("",)
    ),
    "dot-latent-refinement": _studied("DOT", "refined_latent", "published"),
    "dot-instantaneous-refinement": _studied("DOT", "refined_instantaneous", "published"),
    "known-domains": _studied("Forecause, segments known", "known_domains", "domains"),
    "domain-input": _studied("Transformer", "domain_input", "domains"),
    "doubts": _studied("Forecause, doubts", "doubted", "nulls", cost=1.0),
    "intervals": _studied("Forecause", "interval_study", "effects", cost=20.0),
    "intervals-additive": _studied("Forecause, additive", "closed_forms", "effects", cost=2.0),
    "latent-refinement": _studied("Forecause", "latent_refinement", cost=20.0),
    "instantaneous-refinement": _studied("Forecause", "instantaneous_refinement", cost=20.0),
    "transfer": _studied("Pretraining", "transfer_arms", "transfer"),
    "screen-in-rounds": _studied(
        "Screen in rounds: what is tested of very many", "inputs_screened_in_rounds", cost=2.0
    ),
    "screen": _studied("Screen: what a network reads", "screened_inputs", cost=2.0),
    "command": _studied("Forecause, linear, the whole command", "command", "speed", cost=5.0),
    "command-busy": _studied(
        "Forecause, linear, the whole command beside busy cores",
        "command_beside_busy_cores",
        "speed",
        cost=5.0,
    ),
    "tigramite-script": replace(
        _studied("PCMCI+, a script from start to end", "tigramite_script", "speed", cost=5.0),
        ours=False,
    ),
    "unknown-regimes": _studied("Forecause, regimes", "unknown_regimes", "domains", cost=2.0),
    **{f"{name}-by-domain": _rival_by_domain(name) for name in BY_DOMAIN},
}


def find_method(name: str) -> Method:
    """The method of this name."""
    if name not in METHODS:
        raise InputError(f"Unknown method {name!r}; choose from {', '.join(METHODS)}.")
    return METHODS[name]
