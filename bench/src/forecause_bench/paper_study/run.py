"""Go on with the fits: python -m forecause_bench.paper_study.run --store FOLDER.

Fits that the store has are skipped. The queue can be stopped at any time and costs at most the fit
that was under way.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

import torch
from rich.console import Console

from forecause_bench.paper_study.fit import run_fit
from forecause_bench.paper_study.queue import in_order
from forecause_bench.paper_study.store import STORE, write


def main() -> None:
    """Run what is missing, one fit after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=STORE)
    parser.add_argument("--weights", type=Path, help="folder to keep trained weights in")
    parser.add_argument("--most", type=int, help="stop after so many fits")
    parser.add_argument("--only", help="only fits whose name holds this")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    wanted = [fit for fit in in_order() if not asked.only or asked.only in fit.name]
    missing = [fit for fit in wanted if not (asked.store / f"{fit.name}.json").exists()]
    say = Console().print
    say(f"{len(wanted)} fits, {len(missing)} missing")
    for fit in missing[: asked.most]:
        say(f"{datetime.now(UTC):%H:%M:%S} {fit.name}")
        weights = asked.weights / f"{fit.name}.safetensors" if asked.weights else None
        write(asked.store / f"{fit.name}.json", run_fit(fit, weights))


if __name__ == "__main__":
    main()
