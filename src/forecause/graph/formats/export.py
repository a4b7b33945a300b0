"""A LaggedGraph in the formats of other tools, and back: CSV, networkx, GraphML, tigramite.

These hold variables, lags and edges with their details; scores of all candidates and graphs per
domain are kept by `forecause.graph/1` JSON alone.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.bounded import check_candidates
from forecause.errors import InputError
from forecause.graph.edge_table import CAUSE, EDGE_COLUMNS, Cell, edge_records, edge_table, mirrored
from forecause.graph.formats.dot import from_dot, to_dot
from forecause.graph.formats.json_format import read_json, to_json
from forecause.graph.formats.textfile import FORMULA, no_formula, save_text, text_of
from forecause.graph.lagged import LaggedGraph

__all__ = [
    "from_dot",
    "from_graphml",
    "from_networkx",
    "from_tigramite",
    "read_csv",
    "read_json",
    "to_csv",
    "to_dot",
    "to_graphml",
    "to_json",
    "to_networkx",
    "to_tigramite",
]

MARK = re.compile("[-<ox+].[->ox+]")  # tigramite's links, such as --> o-> <-> x-x

# Characters XML cannot hold are written as _xHHHH_, the way office documents do.
NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-F]{4})")
ESCAPED = re.compile("_x([0-9A-F]{4})_")


def to_csv(graph: LaggedGraph, path: str | Path | None = None) -> str:
    """The edge table as CSV with a header, strongest edge first.

    Text that a spreadsheet would run, such as =1+1, has a ' before it; `read_csv` takes it off.
    """
    names = list(graph.edges.columns)
    rows: list[list[Cell]] = [[*names]]
    for edge in edge_records(graph.edges):
        rows.append([_no_formula(name, edge[name]) for name in names])
    lines = [",".join(_csv_cell(cell) for cell in row) for row in rows]
    return save_text("".join(f"{line}\n" for line in lines), path)


def read_csv(
    source: str | Path, variables: Sequence[str] | None = None, max_lag: int | None = None
) -> LaggedGraph:
    """Read an edge table; without `variables` or `max_lag`, those that the edges show."""
    text = text_of(source, ",".join(EDGE_COLUMNS))
    try:
        header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    except (csv.Error, ValueError) as error:
        raise InputError(f"This is not a table of edges in CSV ({error}).") from error
    if missing := [name for name in EDGE_COLUMNS if name not in header]:
        raise InputError(f"An edge table needs the columns {EDGE_COLUMNS}; {missing} are missing.")
    if uneven := [i for i, row in enumerate(rows, 1) if len(row) != len(header)]:
        raise InputError(f"Row {uneven[0]} of the edge table has not {len(header)} cells.")
    columns: dict[str, list[Any]] = {
        name: [_as_written(name, row[i]) for row in rows] for i, name in enumerate(header)
    }
    for name in set(columns) - {"source", "target"}:
        columns[name] = _typed(columns[name])
    records = [{name: columns[name][i] for name in header} for i in range(len(rows))]
    seen = dict.fromkeys(name for r in records for name in (r["source"], r["target"]))
    lags = [lag for lag in columns["lag"] if isinstance(lag, int)]
    return LaggedGraph(tuple(variables or seen), max_lag or max([1, *lags]), edge_table(records))


def to_networkx(graph: LaggedGraph) -> Any:
    """A MultiDiGraph whose edges have their lag as key and every column as an attribute."""
    import networkx as nx

    network = nx.MultiDiGraph(max_lag=graph.max_lag)
    network.add_nodes_from(graph.variables)
    for edge in edge_records(graph.edges):
        source, target, lag = edge.pop("source"), edge.pop("target"), edge["lag"]
        details = {name: cell for name, cell in edge.items() if cell is not None}
        network.add_edge(source, target, key=lag)
        network.edges[source, target, lag].update(details)
    return network


def from_networkx(network: Any) -> LaggedGraph:
    """The way back; edges without the attributes `lag` and `score` have their key as lag."""
    import networkx as nx

    if not network.is_directed():
        raise InputError("Expected a directed graph, found edges without a direction.")
    network = nx.MultiDiGraph(network)
    records = [
        {"lag": key, "score": 1.0, **details, "source": source, "target": target}
        for source, target, key, details in network.edges(keys=True, data=True)
    ]
    lags = [record["lag"] for record in records if isinstance(record["lag"], int)]
    max_lag = network.graph.get("max_lag", max([1, *lags]))
    return LaggedGraph(tuple(network.nodes), max_lag, edge_table(records))


def to_graphml(graph: LaggedGraph, path: str | Path | None = None) -> str:
    """The networkx graph as GraphML; characters that XML cannot hold appear as _xHHHH_."""
    import networkx as nx

    buffer = io.BytesIO()
    nx.write_graphml_xml(_renamed(to_networkx(graph), _xml_safe), buffer)
    return save_text(buffer.getvalue().decode("utf-8") + "\n", path)


def from_graphml(source: str | Path) -> LaggedGraph:
    """Read GraphML that has variables as nodes and `lag` (and `score`) as edge attributes."""
    import networkx as nx

    text = text_of(source, "<")
    if "<!DOCTYPE" in text:
        raise InputError("GraphML with a DOCTYPE is not read; remove it.")
    try:
        network = nx.parse_graphml(text, force_multigraph=True)
    except (nx.NetworkXError, SyntaxError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"This is not valid GraphML ({error}).") from error
    return from_networkx(_renamed(network, _xml_original))


def to_tigramite(graph: LaggedGraph) -> npt.NDArray[np.str_]:
    """tigramite's string array [source, target, lag 0..max_lag] of '-->' and ''.

    An edge column `mark` replaces the arrow, e.g. 'o->' or '<->'. Links at lag 0 appear twice,
    mirrored at the transposed place, as tigramite expects.
    """
    place = {name: i for i, name in enumerate(graph.variables)}
    check_candidates(len(place), graph.max_lag + 1)
    links = np.full((len(place), len(place), graph.max_lag + 1), "", dtype="<U3")
    for edge in edge_records(graph.edges):
        mark = str(edge.get("mark") or CAUSE)
        if not MARK.fullmatch(mark):
            raise InputError(f"The mark {mark!r} is not one of tigramite's, such as '-->'.")
        source, target = place[str(edge["source"])], place[str(edge["target"])]
        lag = int(edge["lag"] or 0)
        if lag == 0 and links[source, target, 0] not in ("", mark):
            raise InputError(
                f"The edges between {edge['source']!r} and {edge['target']!r} at lag 0 contradict "
                "each other; tigramite holds one link per pair there."
            )
        links[source, target, lag] = mark
        if lag == 0:
            links[target, source, 0] = mirrored(mark)
    return links


def from_tigramite(links: npt.NDArray[np.str_], variables: Sequence[str]) -> LaggedGraph:
    """The way back, with score 1; the column `mark` appears if any link is not '-->'.

    A link at lag 0 that points neither way (o-o, x-x, <->) starts at the earlier variable.
    """
    if links.ndim != 3 or links.shape[:2] != (len(variables),) * 2 or links.shape[2] < 2:
        raise InputError(
            f"Expected links [source, target, lag 0..max_lag] between {len(variables)} variables, "
            f"found the shape {links.shape}."
        )
    records = []
    for i, j, lag in np.argwhere(links != ""):
        mark = str(links[i, j, lag])
        if lag == 0 and links[j, i, 0] != mirrored(mark):
            raise InputError(
                f"The links between {variables[i]!r} and {variables[j]!r} at lag 0 do not mirror."
            )
        forward, backward = mark[2] == ">", mark[0] == "<"
        if lag == 0 and ((backward and not forward) or (forward == backward and i > j)):
            continue  # the same link, seen from its other end
        record = {"source": variables[i], "target": variables[j], "lag": int(lag), "score": 1.0}
        records.append({**record, "mark": mark})
    if all(record["mark"] == CAUSE for record in records):
        records = [{k: v for k, v in record.items() if k != "mark"} for record in records]
    return LaggedGraph(tuple(variables), links.shape[2] - 1, edge_table(records))


def _no_formula(column: str, cell: Cell) -> Cell:
    """Text that a spreadsheet would take for a formula, marked as text; tigramite's marks stay."""
    return no_formula(cell) if isinstance(cell, str) and column != "mark" else cell


def _as_written(column: str, cell: str) -> str:
    return cell[1:] if column != "mark" and cell[:1] == "'" and FORMULA.match(cell) else cell


def _csv_cell(cell: Cell) -> str:
    if cell is None or cell != cell:
        return ""
    text = str(cell)
    special = text == "" or text != text.strip() or any(c in text for c in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if special else text


def _typed(cells: list[str]) -> list[Cell]:
    """CSV has no types: whole numbers, numbers or true/false if every cell is one, else text."""
    for read in (int, float, {"True": True, "False": False}.__getitem__):
        try:
            return [read(cell) if cell else None for cell in cells]
        except (ValueError, KeyError):
            continue
    return [cell or None for cell in cells]


def _renamed(network: Any, rename: Callable[[str], str]) -> Any:
    """The same graph with every text passed through `rename`."""
    renamed = type(network)(**network.graph)
    renamed.add_nodes_from(rename(str(name)) for name in network.nodes)
    for source, target, key, details in network.edges(keys=True, data=True):
        ends = rename(str(source)), rename(str(target))
        renamed.add_edge(*ends, key=key)
        renamed.edges[*ends, key].update(
            {
                rename(n): rename(cell) if isinstance(cell, str) else cell
                for n, cell in details.items()
            }
        )
    return renamed


def _xml_safe(text: str) -> str:
    return NOT_XML.sub(lambda match: f"_x{ord(match[0]):04X}_", text)


def _xml_original(text: str) -> str:
    return ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
