"""Systems that others recorded or generated: a panel and what is known of its truth.

CausalTime, DREAM3, NetSim, CDML and river gauges are read from a folder; Lorenz-96 is made from its
equation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.data.panel import Panel
from forecause.errors import InputError
from forecause.graph.lagged import LaggedGraph
from forecause_bench.lorenz96 import lorenz96 as lorenz96_system

TIME = "Time"  # column of a DREAM3 table


@dataclass(frozen=True, eq=False)
class Dataset:
    """One system. The truth has every edge at lag 1, but its lags mean nothing."""

    name: str
    panel: Panel
    truth: LaggedGraph

    def fingerprint(self) -> str:
        """A hash of the data and the truth."""
        text = f"{self.panel.fingerprint()} {self.truth.adjacency.values.tobytes().hex()}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def summary_truth(variables: Sequence[str], drives: npt.NDArray[np.bool_]) -> LaggedGraph:
    """The summary graph from a mask (target, source), self-links where its diagonal is set."""
    edges = [(variables[j], variables[i], 1) for i, j in zip(*np.nonzero(drives), strict=True)]
    return LaggedGraph.from_edges(variables, 1, edges)


def find_file(folder: Path, name: str) -> Path:
    """The file of this name in the folder."""
    path = folder / name
    if not path.is_file():
        raise InputError(
            f"Expected the file {name!r} in {str(folder)!r}, found none; give the folder that "
            "holds it with --data, or leave its column out with --columns."
        )
    return path


def causaltime(folder: Path, item: str) -> list[Dataset]:
    """The one system of a subfolder; each sample is a series of its own.

    CausalTime (Cheng et al. 2024) is air quality, traffic and medical records, generated anew.
    `gen_data.npy` is (sample, step, 2 N): N variables, then as many residual terms that are not
    used. `graph.npy` is (effect, cause), its diagonal telling which variables drive themselves.
    """
    data = _array(find_file(folder, f"{item}/gen_data.npy"), 3)
    graph = _array(find_file(folder, f"{item}/graph.npy"), 2)
    count = len(graph)
    if graph.shape != (count, count) or data.shape[2] != 2 * count:
        raise InputError(
            f"Expected {item}/graph.npy of shape (N, N) and {item}/gen_data.npy of shape "
            f"(samples, steps, 2 N), found {graph.shape} and {data.shape}."
        )
    names = [f"X{i + 1}" for i in range(count)]
    samples = list(data[:, :, :count].astype(np.float64))
    series = [f"sample {i + 1}" for i in range(len(samples))]
    panel = Panel.from_arrays(samples, names, series)
    return [Dataset(item, panel, summary_truth(names, graph != 0))]


def _array(path: Path, axes: int) -> npt.NDArray[Any]:
    try:
        values = np.load(path, allow_pickle=False)
    except (ValueError, OSError) as problem:
        raise InputError(f"Cannot read {str(path)!r} as an array: {problem}.") from None
    if not isinstance(values, np.ndarray) or values.ndim != axes:
        raise InputError(f"Expected an array with {axes} axes in {str(path)!r}, found another.")
    return values


def dream3(folder: Path, item: str) -> list[Dataset]:
    """The one network of `item`.tsv and `item`_true.txt.

    DREAM3 (Prill et al. 2010) is gene networks that are disturbed and return to rest. A table has
    the column Time, which restarts at 0 with every series, and one column per gene. The truth
    lists source, target and 0 or 1 for every pair of different genes: it says nothing about a
    gene's effect on itself, so self-links count as absent.
    """
    table = _gene_table(find_file(folder, f"{item}.tsv"))
    genes = [str(name) for name in table.columns if name != TIME]
    number = table[TIME].diff().lt(0).cumsum()
    parts = [part[genes].to_numpy(np.float64) for _, part in table.groupby(number)]
    panel = Panel.from_arrays(parts, genes)
    truth = _gene_truth(find_file(folder, f"{item}_true.txt"), genes)
    return [Dataset(item, panel, summary_truth(genes, truth))]


def _gene_table(path: Path) -> pd.DataFrame:
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


def _gene_truth(path: Path, genes: list[str]) -> npt.NDArray[np.bool_]:
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


def netsim(folder: Path, item: str) -> list[Dataset]:
    """One system per subject of `item`.mat.

    NetSim (Smith et al. 2011) is simulated brain scans. `ts` is (subject * step, region), `net`
    (subject, from, to). The diagonal of `net` is -1, the decay of a region's own activity, so
    every region drives itself.
    """
    path = find_file(folder, f"{item}.mat")
    content = _matlab_content(path)
    ts, net = (np.asarray(content.get(name, ())) for name in ("ts", "net"))
    subjects = len(net)
    fits = net.ndim == 3 and ts.ndim == 2 and net.shape[1:] == (ts.shape[1],) * 2
    if not fits or not subjects or len(ts) % subjects:
        raise InputError(
            f"Expected `ts` (subjects * steps, N) and `net` (subjects, N, N) in {str(path)!r}, "
            f"found {ts.shape} and {net.shape}."
        )
    regions = [f"R{i + 1}" for i in range(ts.shape[1])]
    return [
        Dataset(
            f"{item}, subject {number + 1}",
            Panel.from_arrays([np.asarray(values, dtype=np.float64)], regions),
            summary_truth(regions, net[number].T != 0),  # from row to column
        )
        for number, values in enumerate(np.split(ts, subjects))
    ]


def cdml(folder: Path, item: str) -> list[Dataset]:
    """One system for every file cdml_..._cplx=`item`_..._data.csv.

    The generator writes columns X1, X2, ... and Y1. Its truth has a row for every cause at every
    lag (X3_t-1) and a column for every variable at every lag; those that end in _t are effects.
    """
    paths = sorted(folder.glob(f"cdml_*_cplx={item}_*_data.csv"))
    if not paths:
        raise InputError(
            f"Expected files cdml_*_cplx={item}_*_data.csv in {str(folder)!r}, found none; give "
            "the folder that holds them with --data."
        )
    return [_generated(path) for path in paths]


def _generated(path: Path) -> Dataset:
    stem = path.name.removesuffix("_data.csv")
    table = pd.read_csv(path)
    weights = pd.read_csv(find_file(path.parent, f"{stem}_target.csv"), index_col=0)
    names = [str(name) for name in table.columns]
    causes = [str(row).rsplit("_t-", 1)[0] for row in weights.index]
    lagged = ["_t-" in str(row) for row in weights.index]
    drives = np.zeros((len(names), len(names)), dtype=bool)
    for target, name in enumerate(names):
        nonzero = weights[f"{name}_t"].to_numpy() != 0
        for row in np.flatnonzero(nonzero & np.array(lagged)):
            drives[target, names.index(causes[row])] = True
    values = table.to_numpy(np.float64)
    return Dataset(stem, Panel.from_arrays([values], names), summary_truth(names, drives))


def rivers(folder: Path, item: str) -> list[Dataset]:
    """The discharge of river gauges in `item`.csv, and which gauge lies below which.

    `summary_matrix.npy` is (effect, cause) in the order of the columns after the time.
    """
    table = pd.read_csv(find_file(folder, f"{item}.csv"))
    names = [str(name) for name in table.columns[1:]]
    drives = _array(find_file(folder, "summary_matrix.npy"), 2) != 0
    if drives.shape != (len(names), len(names)):
        raise InputError(
            f"Expected summary_matrix.npy of shape {(len(names), len(names))}, found "
            f"{drives.shape}."
        )
    values = table.iloc[:, 1:].to_numpy(np.float64)
    return [Dataset(item, Panel.from_arrays([values], names), summary_truth(names, drives))]


def _matlab_content(path: Path) -> dict[str, Any]:
    from scipy.io import loadmat

    try:
        content: dict[str, Any] = loadmat(path, variable_names=["ts", "net"])
    except Exception as problem:  # loadmat raises many kinds on a broken file
        raise InputError(f"Cannot read {str(path)!r} as a MATLAB file: {problem}.") from None
    return content


def lorenz96(rows: int, seed: int, **equation: Any) -> Dataset:
    """One run; i-2, i-1, i and i+1 drive i, so every variable drives itself."""
    made = lorenz96_system(rows=rows, seed=seed, **equation)
    return Dataset(f"Lorenz-96, seed {seed}", made.panel, made.graph)


RECORDED: dict[str, Callable[[Path, str], list[Dataset]]] = {
    "causaltime": causaltime,
    "dream3": dream3,
    "netsim": netsim,
    "cdml": cdml,
    "rivers": rivers,
}
"""What reads a folder, by the `dataset` of a suite's cell."""
