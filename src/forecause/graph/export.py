"""A LaggedGraph in the formats of other tools: CSV, networkx, GraphML, DOT, tigramite.

These hold variables, lags and edges with their details; scores of all candidates and graphs per
domain are kept by `forecause.graph/1` JSON alone.
"""

from __future__ import annotations

import io
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.common.bounded import check_candidates
from forecause.common.files import save_text
from forecause.errors import InputError
from forecause.graph.edge_table import CAUSE, Cell, edge_records, mirrored
from forecause.graph.lagged import LaggedGraph

MARK = re.compile("[-<ox+].[->ox+]")  # tigramite's links, such as --> o-> <-> x-x

FORMULA = re.compile(r"'*\s*[=+\-@]")  # text that spreadsheets run, marked as text or not

# Characters XML cannot hold are written as _xHHHH_, the way office documents do.
NOT_XML = re.compile("[\x00-\x08\x0b-\x1f\ud800-\udfff\ufffe\uffff]|_(?=x[0-9A-F]{4})")


def to_csv(graph: LaggedGraph, path: str | Path | None = None) -> str:
    """The edge table as CSV with a header, strongest edge first.

    Text that a spreadsheet would run, such as =1+1, has a ' before it; tigramite's marks stay.
    """
    names = list(graph.edges.columns)
    rows: list[list[Cell]] = [[*names]]
    for edge in edge_records(graph.edges):
        cells = ((name, edge[name]) for name in names)
        rows.append([no_formula(c) if isinstance(c, str) and n != "mark" else c for n, c in cells])
    lines = [",".join(_csv_cell(cell) for cell in row) for row in rows]
    return save_text("".join(f"{line}\n" for line in lines), path)


def no_formula(text: str) -> str:
    """Text that a spreadsheet would take for a formula, marked as text by a ' before it."""
    return f"'{text}" if FORMULA.match(text) else text


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


def to_graphml(graph: LaggedGraph, path: str | Path | None = None) -> str:
    """The networkx graph as GraphML; characters that XML cannot hold appear as _xHHHH_."""
    import networkx as nx

    buffer = io.BytesIO()
    nx.write_graphml_xml(_safe_for_xml(to_networkx(graph)), buffer)
    return save_text(buffer.getvalue().decode("utf-8") + "\n", path)


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


def _csv_cell(cell: Cell) -> str:
    if cell is None or cell != cell:
        return ""
    text = str(cell)
    special = text == "" or text != text.strip() or any(c in text for c in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if special else text


def _safe_for_xml(network: Any) -> Any:
    """The same graph with every text as XML can hold it."""
    safe = type(network)(**network.graph)
    safe.add_nodes_from(_xml_safe(str(name)) for name in network.nodes)
    for source, target, key, details in network.edges(keys=True, data=True):
        ends = _xml_safe(str(source)), _xml_safe(str(target))
        safe.add_edge(*ends, key=key)
        safe.edges[*ends, key].update(
            {_xml_safe(n): _xml_safe(v) if isinstance(v, str) else v for n, v in details.items()}
        )
    return safe


def _xml_safe(text: str) -> str:
    return NOT_XML.sub(lambda match: f"_x{ord(match[0]):04X}_", text)


def to_dot(graph: LaggedGraph, path: str | Path | None = None) -> str:
    """The graph as DOT: variables are the nodes n0, n1, ... and edges are labelled by their lag.

    A `mark` is drawn by the ends of its edge: a head for >, a circle for o, nothing else.
    """
    place = {name: f"n{i}" for i, name in enumerate(graph.variables)}
    lines = [f"max_lag={graph.max_lag};"]
    lines += [f"{place[name]} [label={_quoted(name)}];" for name in graph.variables]
    for edge in edge_records(graph.edges):
        source, target = place[str(edge.pop("source"))], place[str(edge.pop("target"))]
        details = [f"{_name(key)}={_value(cell)}" for key, cell in edge.items() if cell is not None]
        drawn = [f'label="{edge["lag"]}"', *_ends(edge.get("mark"))]
        lines.append(f"{source} -> {target} [{', '.join(drawn + details)}];")
    body = "".join(f"  {line}\n" for line in lines)
    return save_text(f"digraph forecause {{\n{body}}}\n", path)


def _ends(mark: Cell) -> list[str]:
    """How the ends of an edge with this mark are drawn; the usual arrow needs no words."""
    if not isinstance(mark, str) or len(mark) != 3 or mark == CAUSE:
        return []
    shape = {">": "normal", "<": "normal", "o": "odot"}
    tail, head = (shape.get(end, "none") for end in (mark[0], mark[2]))
    return ["dir=both", f"arrowtail={tail}", f"arrowhead={head}"]


def _name(key: str) -> str:
    plain = re.fullmatch("[A-Za-z_][A-Za-z_0-9]*", key)
    reserved = {"node", "edge", "graph", "digraph", "subgraph", "strict"}
    return key if plain and key.lower() not in reserved else _quoted(key)


def _value(cell: Cell) -> str:
    """Text is quoted and numbers are not; DOT knows no exponents."""
    if isinstance(cell, str):
        return _quoted(cell)
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and not math.isfinite(cell):
        return "nan" if math.isnan(cell) else ("inf" if cell > 0 else "minus_inf")
    if isinstance(cell, float):
        digits = f"{Decimal(repr(cell)):f}"
        return digits if "." in digits else f"{digits}.0"
    return str(cell)


def _quoted(text: str) -> str:
    """Graphviz reads backslashes and entities inside quotes, so both are escaped."""
    text = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    text = text.replace("\n", "\\n")
    return '"' + re.sub("[\x00-\x1f\x7f]", lambda m: f"&#{ord(m[0])};", text) + '"'
