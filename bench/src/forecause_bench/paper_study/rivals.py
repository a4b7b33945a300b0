"""Rivals on the systems of the fits: python -m forecause_bench.paper_study.rivals --store FOLDER.

One file per system and seed in the store's folder `rivals`; a method that a file has is skipped, so
that the quick ones can be run first: --methods var-fdr,granger. A method that takes more than
--limit seconds of processor time on a system is stopped, and its file says so.
"""

from __future__ import annotations

import argparse
import json
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from forecause.data.panel import Panel
from forecause.graph.lagged import LaggedGraph
from forecause_bench.methods import find_method
from forecause_bench.paper_study.queue import ROWS, SEEDS, Fit, in_order
from forecause_bench.paper_study.quick_pcmci import pcmci, pcmci_plus
from forecause_bench.paper_study.store import RIVALS, STORE, edges_by_segment, write
from forecause_bench.paper_study.systems import commit, recorded

LIMIT = 900.0  # seconds of processor time for a method on a system
QUICK = ("var-fdr", "granger", "granger-pairwise", "random-oracle", "pcmci+", "pcmci", "forecause")


QUICK_SEARCHES = {"pcmci": pcmci, "pcmci+": pcmci_plus}


def rival_file(fit: Fit) -> str:
    """The name of the file of a system and seed."""
    return f"{fit.system}_{fit.rows // 1000}k_seed{fit.seed}.json"


def add_rivals(path: Path, fit: Fit, methods: Sequence[str], limit: float = LIMIT) -> None:
    """Run what the file does not have yet, and write it after every method.

    The file is read again before it is written: other methods may run beside this one.
    """
    missing = [name for name in methods if name not in _read(path).get("methods", {})]
    if not missing:
        return
    settings = fit.settings
    panel, truth = recorded(fit.rows, fit.seed, **settings)
    about = {
        "system": fit.system,
        "seed": fit.seed,
        "rows": fit.rows,
        "truth": edges_by_segment(truth),
        "shape": [len(panel.variables), len(panel.variables), settings["max_lag"]],
    }
    for name in missing:
        began, new = time.process_time(), {name: {"stopped_after": limit, "commit": commit()}}
        try:
            with at_most(limit):
                graph = _graph(name, panel, settings["max_lag"], fit.seed, truth)
        except TimeoutError:
            seconds = limit
        else:
            seconds = round(time.process_time() - began, 1)
            graphs = {name: graph}
            if name == "pcmci":
                graphs["pcmci-fdr"] = at_false_discovery_rate(graph)
            for label, graph in graphs.items():
                edges = edges_by_segment(graph)
                new[label] = {"seconds": seconds, "commit": commit(), "edges": edges}
        before = _read(path)
        write(path, {**before, **about, "methods": {**before.get("methods", {}), **new}})
        Console().print(f"{datetime.now(UTC):%H:%M:%S} {path.stem} {name} {seconds} s")


def _graph(name: str, panel: Panel, max_lag: int, seed: int, truth: LaggedGraph) -> LaggedGraph:
    if name in QUICK_SEARCHES:
        return QUICK_SEARCHES[name](panel, max_lag)
    return find_method(name).answers(panel, max_lag, seed, truth)[0].graph


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """A TimeoutError once this process has used so many seconds of processor time."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"More than {seconds:g} s of processor time.")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def at_false_discovery_rate(graph: LaggedGraph, rate: float = 0.05) -> LaggedGraph:
    """The edges that Benjamini-Hochberg keeps of those found at the same level without it.

    No edge above the level could be kept, so their p-values need not be known, only their number.
    """
    edges = graph.edges.sort_values("p_value", kind="stable")
    candidates = len(graph.variables) ** 2 * graph.max_lag
    passed = edges["p_value"].to_numpy() <= rate * np.arange(1, len(edges) + 1) / candidates
    kept = int(np.flatnonzero(passed)[-1]) + 1 if passed.any() else 0
    return replace(graph, edges=edges.head(kept))


def main() -> None:
    """Run the rivals that are missing, in the order of the fits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--methods", default=",".join(QUICK))
    parser.add_argument("--only", default="", help="only systems whose name holds this")
    parser.add_argument("--rows", type=int, default=ROWS, help="the most rows of a system")
    parser.add_argument("--inputs", type=int, default=125, help="the most variables times lags")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="the first so many")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of processor time")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    fits = [fit for fit in in_order() if asked.only in fit.system and fit.rows <= asked.rows]
    fits = [fit for fit in fits if fit.inputs <= asked.inputs and fit.seed < asked.seeds]
    for name, fit in {rival_file(fit): fit for fit in fits}.items():
        add_rivals(asked.store / RIVALS / name, fit, asked.methods.split(","), asked.limit)


if __name__ == "__main__":
    main()
