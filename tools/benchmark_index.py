"""docs/benchmarks/index.md, made anew from the tables: python tools/benchmark_index.py.

One line for every table: what was asked, the result, the command. The question is the table's
title, the command and what is won and lost stand in it; other results are told here.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "docs" / "benchmarks"
INTRODUCTION = """# Results

Every table of the study on one page: what was asked, the result, and the command that makes it
again. *Wins* and *loses* are columns of the table, against the best rival of each. F1 is that of
the lagged graph; tables count links of a variable to itself unless they say otherwise, and name
what chance would give where it was measured. `FOLDER` is where you keep the data, or where results
go. [The same in prose](../why/results.md), with what it means and where it loses.
"""
GROUPS = {
    "Whole systems beside rivals": (
        *("linear", "quick", "calibration", "calibration-50k", "calibration-size", "few-rows"),
        *("hard", "hard-10k", "hard-neural", "hard-gpdc", "lorenz96-500", "lorenz96"),
    ),
    "May it be believed": (
        *("nulls", "nulls-linked", "hourly", "gaps", "alerts", "drivers"),
        *("drivers-elsewhere", "prefixes"),
        *("certainty", "weak-links", "effects", "expectation"),
    ),
    "Questions to a run": (
        *("causal", "responses", "forecasts", "incidents", "incidents-recorded", "changes"),
        "foreign",
    ),
    "Systems that change": ("domains", "domain-index", "regimes", "low-drift"),
    "Recorded data": ("cdml", "dream3", "rivers", "netsim"),
    "Forecasters and their tests": (
        *("one-model", "own-tests", "own-tests-pretrained", "pretraining", "ranking"),
        *("screening", "post-processing"),
    ),
    "Time and memory": ("speed", "scaling", "wide"),
    "Along the paper's axes, half size": (
        *("nonlinearity", "highdim-linear", "longrange-linear", "latent", "noise", "ns-regular"),
        *("ns-extreme", "rows", "variants", "top-k", "interventions", "uncertainty", "cnn"),
        *("paper-domain-index", "paper-post-processing", "paper-curve"),
    ),
    "The paper's tables": (
        *("paper", "paper-readouts", "paper-theorem", "paper-lrp-rule", "paper-refinement"),
        "paper-causaltime",
    ),
}
RESULTS = {
    "effects": "90 % intervals hold in 88 to 95 % (500 rows, found edges)",
    "expectation": "the announced range held in 40 of 40 runs; its end is 6 times its start",
    "causal": "errors over the oracle's: dense 8.7 %, on causes 2.5 % (linear, 300 rows)",
    "responses": "90 % bands of big effects hold in 86 to 93 %, a dense VAR's in 55 to 90 %",
    "incidents": "root first in 87 %, 93 % with the target known; naive z 50 %, chance 8 %",
    "incidents-recorded": "root first: Sock Shop 73 % (service 100 %), PetShop 35 %; chance 3 %",
    "domain-index": "F1 0.96 told the domain, 0.25 not told (10,000 rows)",
    "one-model": "the same F1 as version 0.2 within 0.01, on every suite",
    "post-processing": "F1 with hidden causes 0.98 as discovered, 0.99 refined",
    "screening": "recall with 2,000 rows 1.00 linear, 0.79 monotonic, 0.94 MLP (100 variables)",
    "ranking": "AUROC 0.68 to 1.00; chance 0.5; the order by p-value is about as good",
    "paper": "[every experiment, with its state](paper/experiments.md), [claims](paper/claims.md)",
    "paper-readouts": "the gradient has 0.06 more F1 than LRP, from the same weights",
    "paper-theorem": "parents of the variance: AUROC 0.56 with squared error, 1.00 with a variance",
    "paper-refinement": "10 hidden causes: F1 0.59 before, 0.81 by LPCMCI, 0.83 by our rule",
    "paper-lrp-rule": "halving the attention doubles the share of the own last value",
    "paper-curve": "within 1 % of the VAR after 800 steps",
    "alerts": "6 of 144 sound systems are doubted, of broken ones all",
    "calibration": "F1 0.98, 0.85, 0.85, 0.99, 0.98 (10,000 rows); 1 to 6 % false at nominal 2 %",
    "calibration-50k": "F1 1.00, 0.93, 0.93, 1.00, 1.00",
    "certainty": "1 of 660 firm edges was false; AUROC 0.98",
    "changes": "92 to 100 % of the changes found; a false one in 0 to 8 % of the pairs",
    "drivers": "0 of 140 tables with a hidden driver false in silence; 0 of 23 firm links false",
    "drivers-elsewhere": "9 of 240 false in silence; 10 of 105 firm links false; sound 0 of 304",
    "foreign": "F1 0.97 with 1,200 rows; its importances above uniform 0.40",
    "forecasts": "300 rows: 1 % over the oracle, dense 10 %; recorded: 0.62, AutoARIMA 0.60",
    "gaps": "F1 0.80 complete, 0.77 with 5 % of the cells missing, 0.74 with 20 % in runs",
    "hard": "mean F1 0.93 with 2,000 rows; VAR with FDR 0.69, PCMCI+ 0.70",
    "hard-10k": "mean F1 0.95; VAR with FDR 0.68",
    "hard-gpdc": "200 rows, where nobody finds much: level with PCMCI+ by GPDC",
    "hard-neural": "mean F1 0.93, cMLP 0.71",
    "prefixes": "no jump on sound tables; 12 in 616 steps, all on tables with a hidden driver",
    "own-tests": "keeps its error rate; misses products of three",
    "own-tests-pretrained": "at most 5 % false; closed-form tests find more",
    "domains": "mean F1 0.99, 0.98, 0.99 on linear stretches, 0.91, 0.87, 0.85 on monotonic ones",
    "regimes": "all changes found on 2 and 5 linear stretches, none invented in 100 systems",
    "weak-links": "9.1 % false where 7.5 % are accepted; PCMCI+ 15 %, the same F1",
}
COMMANDS = {"one-model": "named beside each figure"}
OWN_WORDS = re.compile(
    r"^- Of \d+ columns, Forecause against the best rival of each: (.*)\.$", re.M
)


def table_of(name: str) -> str:
    """The text of a table's page."""
    return (BENCHMARKS / name / "table.md").read_text(encoding="utf-8")


def line_of(name: str) -> str:
    """| what was asked, linked | the result | the command |"""
    text = table_of(name)
    title = text.splitlines()[0].removeprefix("# ")
    told = OWN_WORDS.search(text)
    known = told[1] if told and "no rival" not in told[1] else "figures without a rival"
    result = RESULTS.get(name, known)
    return f"| [{title}]({name}/table.md) | {result} | {command_of(name)} |"


def command_of(name: str) -> str:
    """The command as the table has it; what belongs to this machine's half size is kept too."""
    if name in COMMANDS:
        return COMMANDS[name]
    found = re.search(r"^- Command: (.*)$", table_of(name), re.M)
    line = found[1] if found else "see the table"
    quoted = re.match(r"`([^`]*)`", line)
    return f"`{quoted[1] if quoted else line}`"


def groups() -> dict[str, tuple[str, ...]]:
    """The groups, and last the tables that are in none of them yet."""
    listed = {name for names in GROUPS.values() for name in names}
    found = sorted(path.parent.name for path in BENCHMARKS.glob("*/table.md"))
    others = tuple(name for name in found if name not in listed)
    return {**GROUPS, "Others": others} if others else GROUPS


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION]
    for title, names in groups().items():
        rows = [line_of(name) for name in names]
        parts.append(
            "\n".join([f"## {title}\n", "| asked | result | command |", "|---|---|---|", *rows])
        )
    tree = "```{toctree}\n:hidden:\n:maxdepth: 1\n:glob:\n\n../why/results\n*/*\n```\n"
    return "\n\n".join([*(part.rstrip() for part in parts), tree])


if __name__ == "__main__":
    (BENCHMARKS / "index.md").write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{BENCHMARKS / 'index.md'}\n")
