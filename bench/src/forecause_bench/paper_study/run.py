"""Go on with the fits: python -m forecause_bench.paper_study.run --store FOLDER.

Fits that the store has are skipped. The queue can be stopped at any time and costs at most the
fits that were under way.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch
from rich.console import Console

from forecause_bench.paper_study.fit import run_fit
from forecause_bench.paper_study.queue import Fit, in_order
from forecause_bench.paper_study.store import STORE, write


def main() -> None:
    """Run what is missing, so many fits at a time, one thread each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--weights", type=Path, help="folder to keep trained weights in")
    parser.add_argument("--most", type=int, help="stop after so many fits")
    parser.add_argument("--only", help="only these fits, in this order: names with commas")
    parser.add_argument("--jobs", type=int, default=1, help="fits at a time")
    asked = parser.parse_args()
    fits = {fit.name: fit for fit in in_order()}
    wanted = [fits[name] for name in (asked.only.split(",") if asked.only else fits)]
    missing = [fit for fit in wanted if not (asked.store / f"{fit.name}.json").exists()]
    Console().print(f"{len(wanted)} fits, {len(missing)} missing")
    one = partial(_fit_into, store=asked.store, weights=asked.weights)
    if asked.jobs == 1:
        for fit in missing[: asked.most]:
            one(fit)
        return
    with ProcessPoolExecutor(asked.jobs, mp_context=get_context("spawn")) as workers:
        for _ in workers.map(one, missing[: asked.most]):
            pass


def _fit_into(fit: Fit, store: Path, weights: Path | None) -> None:
    torch.set_num_threads(1)
    Console().print(f"{datetime.now(UTC):%H:%M:%S} {fit.name}")
    kept = weights / f"{fit.name}.safetensors" if weights else None
    write(store / f"{fit.name}.json", run_fit(fit, kept))


if __name__ == "__main__":
    main()
