"""The studies of what a run answers: responses, incidents, changes. `forecause bench NAME`.

Each has a module with `measure`, which yields tables of lines; here they are gathered into
`results.csv` and `table.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from forecause.common.files import write_whole
from forecause.errors import InputError
from forecause.progress import QUIET, Progress
from forecause_bench.run import describe_machine

STUDIES = {
    "responses": "Bands of total effects: how often they hold, beside a dense VAR's",
    "incidents": "Who caused it: simulated incidents, or recorded ones with --data",
    "changes": "What changed between two periods: power and false alarms",
}
NOTES = {
    "responses": "Effects in standard deviations of the target per sd of the source: big from 0.1 "
    "on, small from 0.02. Held: share of 90 % bands with the truth in them; the error is the root "
    "mean square of the point.",
    "incidents": "First, three: the true root is first, or among the first three. Flagged: calm "
    "stretches that are called an event at 5 %. Same: the first cause is the same for all cuts.",
    "changes": "Found: share of changed links that are found. Any false: share of pairs of periods "
    "with a change that is none.",
}


def run_study(
    name: str,
    *,
    seeds: int | None = None,
    rows: Sequence[int] | None = None,
    data: Path | None = None,
    out: Path | None = None,
    progress: Progress = QUIET,
) -> Path:
    """Run a study and write its page; what is not given is as the study says."""
    module: Any = import_module(f"forecause_bench.{name}")
    if data is not None and name != "incidents":
        raise InputError(f"The study {name!r} makes its own data; leave --data out.")
    count = seeds or module.SEEDS
    folder = out or Path(f"bench-{name}")
    folder.mkdir(parents=True, exist_ok=True)
    parts: list[pd.DataFrame] = []
    for part in module.measure(module.FIRST_SEED, count, tuple(rows or module.ROWS), data):
        parts.append(part)
        if "seed" in part:
            done = int(part["seed"].iloc[0]) - module.FIRST_SEED
            progress.step(f"bench {name}", done / count)
    found = pd.concat(parts, ignore_index=True)
    write_whole(folder / "results.csv", found.to_csv(index=False).encode())
    words = ["forecause bench", name, "--data FOLDER" if data else f"--seeds {count}"]
    lines = [
        f"# {STUDIES[name]}",
        "",
        f"- Command: `{' '.join(words)}`",
        f"- Machine: {describe_machine()}",
        f"- {NOTES[name]}",
        "",
        *(line for table in module.summary(found) for line in [*markdown(table), ""]),
    ]
    page = folder / "table.md"
    write_whole(page, "\n".join(lines).encode())
    return page


def markdown(table: pd.DataFrame) -> list[str]:
    """A table in Markdown, numbers with three digits."""
    shown = table.map(lambda cell: f"{cell:.3f}" if isinstance(cell, float) else str(cell))
    names = [str(name) for name in table.columns]
    rows = [names, ["---"] * len(names), *shown.to_numpy().tolist()]
    return ["| " + " | ".join(row).replace("nan", "-") + " |" for row in rows]
