"""The paper's own figures, to be shown beside ours."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

# Our method -> the row of the paper's tables. The paper guesses at the true density.
ROWS = {
    "dot": "DOT",
    "dot-paper": "DOT",
    "dynotears": "DYNOTEARS",
    "granger": "MV Granger",
    "granger-pairwise": "PW Granger",
    "nts-notears": "NTS-NOTEARS",
    "pcmci": "PCMCI parcorr",
    "random-oracle": "Random Guess",
    "tcdf": "TCDF",
    "var-lingam": "VAR-LiNGAM",
}
# CausalTime's table has rows of its own, and other names for what it measures.
CAUSALTIME = "causaltime"
CAUSALTIME_ROWS = {
    "cmlp": "NGC",
    "granger": "GC",
    "low-complexity": "DOT (Ours)",
    "low-complexity-mlp": "MLP (Ours)",
    "nts-notears": "N.NTS",
    "pcmci": "PCMCI",
    "tcdf": "TCDF",
}
PUBLISHED_AS = {"summary/auroc": "auroc", "summary/auprc_trapezoid": "auprc"}


@dataclass(frozen=True)
class Figure:
    """A mean over the paper's seeds, with its standard deviation where given."""

    mean: float
    sd: float | None


def paper_figure(table: str, column: str, method: str, metric: str) -> Figure | None:
    """What the paper reports for one of our methods; None where it reports nothing."""
    rows = CAUSALTIME_ROWS if table == CAUSALTIME else ROWS
    name = PUBLISHED_AS.get(metric, metric)
    return _figures().get((table, column, rows.get(method, ""), name))


def paper_rows(table: str, metric: str) -> dict[str, dict[str, Figure]]:
    """A whole table of the paper: figures by its own names of methods, then by column."""
    found: dict[str, dict[str, Figure]] = {}
    for (place, column, row, name), figure in _figures().items():
        if place == table and name == PUBLISHED_AS.get(metric):
            found.setdefault(row, {})[column] = figure
    return found


@cache
def _figures() -> dict[tuple[str, str, str, str], Figure]:
    text = files("forecause_bench").joinpath("paper_results.csv").read_text(encoding="utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        if row["mean"]:
            key = (row["table"], row["column"], row["method"], row["metric"])
            found[key] = Figure(float(row["mean"]), float(row["sd"]) if row["sd"] else None)
    return found
