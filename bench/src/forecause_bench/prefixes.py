"""A few more rows of the same table must not turn the graph around.

    python -m forecause_bench.prefixes bench-prefixes --tables 20

Tables of the families of `drivers` are cut after more and more rows. Links between variables are
counted after each cut. A jump is a change, from one cut to the next, by at least five links and by
at least half of the larger number. The folder keeps `results.csv` and `table.md`.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from forecause.errors import ForecauseWarning
from forecause.method import discover
from forecause_bench.driven import BROKEN, MAX_LAG, SOUND, VARIABLES, make
from forecause_bench.questions import markdown
from forecause_bench.run import describe_machine

FIRST_SEED = 400  # the rules were chosen on others
CUTS = (500, 1_000, 1_190, 1_230, 1_500, 1_790, 1_815, 2_000)  # some lie where versions jumped
LEAST_JUMP, LEAST_SHARE = 5, 0.5


def measure(tables: int) -> Iterator[dict[str, str | int]]:
    """A line for every table and cut."""
    for family in (*BROKEN, *SOUND):
        for seed in range(FIRST_SEED, FIRST_SEED + tables):
            values, _ = make(family, CUTS[-1], seed, links=seed % 2 == 1)
            table = pd.DataFrame(values, columns=[f"x{k}" for k in range(VARIABLES)])
            for rows in CUTS:
                edges = discover(table[:rows], max_lag=MAX_LAG, forecaster="linear").graph.edges
                links = int((edges["source"] != edges["target"]).sum())
                yield {"family": family, "seed": seed, "rows": rows, "links": links}


def summarise(lines: pd.DataFrame) -> pd.DataFrame:
    """Mean links after each cut, the largest change between neighbours, and jumps, per family."""
    tables = lines.pivot_table("links", ["family", "seed"], "rows", sort=False)
    change = tables.diff(axis=1).abs()
    larger = tables.T.rolling(2).max().T
    jumps = ((change >= LEAST_JUMP) & (change >= LEAST_SHARE * larger)).sum(axis=1)
    means = tables.groupby("family", sort=False).mean()
    means["largest change"] = change.max(axis=1).groupby("family", sort=False).max()
    means["jumps"] = jumps.groupby("family", sort=False).sum()
    return means


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m forecause_bench.prefixes")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tables", type=int, default=20)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ForecauseWarning)  # doubts, which these families deserve
    lines = []
    for line in measure(asked.tables):
        lines.append(line)
        sys.stderr.write(f"\r{line['family']}, table {line['seed']}          ")
    frame = pd.DataFrame(lines)
    frame.to_csv(asked.folder / "results.csv", index=False)
    command = f"python -m forecause_bench.prefixes FOLDER --tables {asked.tables}"
    text = [
        "# Links between variables as a table grows",
        "",
        f"- Command: {command}",
        f"- Machine: {describe_machine()}",
        "",
        f"Mean number of links after so many rows of the same table, {asked.tables} tables a "
        "family, every second one with four true links; lines as forecaster. A jump is a change "
        f"between neighbouring cuts by at least {LEAST_JUMP} links and half of the larger number.",
        "",
        *markdown(summarise(frame).map("{:.1f}".format).reset_index()),
    ]
    (asked.folder / "table.md").write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
