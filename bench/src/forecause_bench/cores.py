"""How long one discovery takes with so many threads, or with so many Ray workers on this machine.

    python -m forecause_bench.cores --nodes 1000 --max-lag 2 --rows 5000 --ray 1
    python -m forecause_bench.cores --nodes 1000 --max-lag 2 --rows 5000 --ray 2

Run it for each number; the mark tells whether the results are the same to the last bit.
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import sys
import time
import warnings
from collections.abc import Sequence

import torch

from forecause import Workers
from forecause.method import discover
from forecause.simulation import simulate
from forecause_bench.suite import BASE


def measured(nodes: int, max_lag: int, rows: int, threads: int, ray: int, seed: int) -> str:
    """Seconds, edges and a mark of the result of the default, in one line."""
    system = {**BASE, "nodes": nodes, "max_lag": max_lag, "rows": rows, "seed": seed}
    panel = simulate(**system).panel
    torch.set_num_threads(threads)
    workers = _started(ray) if ray else Workers()
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = discover(panel, max_lag, device="cpu", workers=workers)
    seconds = time.perf_counter() - start
    mark = hashlib.sha256(found.relevance.to_array().values.tobytes()).hexdigest()[:12]
    return f"threads {threads}, workers {ray}: {seconds:.1f} s, {len(found.graph)} edges, {mark}"


def _started(ray_workers: int) -> Workers:
    """Ray on this machine, its workers at work before the clock starts."""
    import ray

    ray.init(
        address="local", num_cpus=ray_workers, include_dashboard=False, log_to_driver=False,
        logging_level=logging.ERROR,
    )  # fmt: skip
    ready = ray.remote(num_cpus=1)(_import_all)
    ray.get([ready.remote() for _ in range(ray_workers)])
    return Workers(max(ray_workers, 2), "local")


def _import_all() -> None:
    import forecause.method  # noqa: F401

    time.sleep(2)  # so that every worker gets one


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m forecause_bench.cores")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--max-lag", type=int, default=5)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ray", type=int, default=0, help="workers; 0 is this process alone")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    sys.stdout.write(measured(**vars(asked)) + "\n")


if __name__ == "__main__":
    main()
