"""A graph as users keep it: a file with a line source,target for every link."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

from forecause.common.bounded import text_of
from forecause.errors import InputError

HEADER = ["source", "target"]


def read_pairs(path: Path) -> list[tuple[str, str]]:
    """The pairs of a CSV file; a first line that says source,target is no pair."""
    text = StringIO(text_of(path), newline="")
    try:
        lines = [[cell.strip() for cell in line] for line in csv.reader(text)]
    except csv.Error as error:
        raise InputError(f"{str(path)!r} cannot be read as a CSV file: {error}.") from None
    kept = [(number, line) for number, line in enumerate(lines, 1) if any(line)]
    if kept and [cell.lower() for cell in kept[0][1]] == HEADER:
        del kept[0]
    for number, line in kept:
        if len(line) != 2 or not all(line):
            raise InputError(
                f"{str(path)!r}: expected source,target in line {number}, found "
                f"{','.join(line)!r:.80}."
            )
    if not kept:
        raise InputError(f"{str(path)!r} holds no pairs source,target.")
    return [(source, target) for _, (source, target) in kept]
