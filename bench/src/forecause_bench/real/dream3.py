"""DREAM3 (Prill et al. 2010): gene networks that are disturbed and return to rest.

A table has the column Time, which restarts at 0 with every series, and one column per gene. The
truth lists source, target and 0 or 1 for every pair of different genes: it says nothing about a
gene's effect on itself, so self-links count as absent.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from forecause.data.panel import Panel
from forecause.errors import InputError
from forecause_bench.real.dataset import Dataset, find_file, summary_truth

TIME = "Time"


def datasets(folder: Path, item: str) -> list[Dataset]:
    """The one network of `item`.tsv and `item`_true.txt."""
    table = _table(find_file(folder, f"{item}.tsv"))
    genes = [str(name) for name in table.columns if name != TIME]
    number = table[TIME].diff().lt(0).cumsum()
    parts = [part[genes].to_numpy(np.float64) for _, part in table.groupby(number)]
    panel = Panel.from_arrays(parts, genes)
    truth = _truth(find_file(folder, f"{item}_true.txt"), genes)
    return [Dataset(item, panel, summary_truth(genes, truth))]


def _table(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, sep="\t")
        numbers = table.astype(np.float64)
    except (ValueError, UnicodeDecodeError) as problem:
        raise InputError(f"Expected a table of numbers in {str(path)!r}: {problem}.") from None
    if TIME not in numbers:
        raise InputError(
            f"Expected the columns {TIME} and one per gene, parted by tabs, in {str(path)!r}, "
            f"found {', '.join(map(str, numbers.columns))}."
        )
    return numbers


def _truth(path: Path, genes: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Mask (target, source)."""
    place = {gene: i for i, gene in enumerate(genes)}
    drives = np.zeros((len(genes), len(genes)), dtype=bool)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip():
            continue
        words = line.split()
        if len(words) != 3 or not set(words[:2]) <= set(place) or words[2] not in ("0", "1"):
            raise InputError(
                f"Expected source, target and 0 or 1 in line {number} of {str(path)!r}, with "
                f"genes of the table, found {line!r}."
            )
        drives[place[words[1]], place[words[0]]] = words[2] == "1"
    return drives
