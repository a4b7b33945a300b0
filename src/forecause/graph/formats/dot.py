"""A LaggedGraph in DOT, the language of Graphviz, and back from our own DOT."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

from forecause.errors import InputError
from forecause.graph.edge_table import CAUSE, Cell, edge_records, edge_table
from forecause.graph.formats.textfile import save_text, text_of
from forecause.graph.lagged import LaggedGraph

WORDS = {"true": True, "false": False, "nan": math.nan, "inf": math.inf, "minus_inf": -math.inf}

QUOTED = r'"(?:[^"\\]|\\.)*"'
NODE = re.compile(rf"n\d+ \[label=({QUOTED})\];")
EDGE = re.compile(r"n(\d+) -> n(\d+) \[(.*)\];")
ATTRIBUTE = re.compile(rf'({QUOTED}|\w+)=({QUOTED}|[^",\]]+)')
MAX_LAG = re.compile(r"max_lag=(\d+);")


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


def from_dot(source: str | Path) -> LaggedGraph:
    """Read DOT that `to_dot` wrote (not DOT in general)."""
    lines = [line.strip(" ") for line in text_of(source, "digraph").strip("\n").split("\n")]
    if lines[0] != "digraph forecause {" or lines[-1] != "}":
        raise InputError('Expected a graph in DOT as Forecause writes it ("digraph forecause").')
    max_lag = 0
    names: list[str] = []
    arrows: list[tuple[int, int, dict[str, Any]]] = []
    for line in lines[1:-1]:
        if match := MAX_LAG.fullmatch(line):
            max_lag = int(match[1])
        elif match := NODE.fullmatch(line):
            names.append(_unquoted(match[1]))
        elif match := EDGE.fullmatch(line):
            arrows.append((int(match[1]), int(match[2]), _details(match[3])))
        else:
            raise InputError(f"This line of DOT is not one that Forecause writes: {line[:80]!r}.")
    if any(max(arrow[:2]) >= len(names) for arrow in arrows):
        raise InputError("An edge of the DOT graph names a node that is not there.")
    records = [{"source": names[i], "target": names[j], **details} for i, j, details in arrows]
    return LaggedGraph(tuple(names), max_lag, edge_table(records))


def _details(text: str) -> dict[str, Any]:
    """Attributes of an edge; those before the lag are how it is drawn, not columns."""
    pairs = ATTRIBUTE.findall(text)
    first = [key for key, _ in pairs].index("lag") if any(k == "lag" for k, _ in pairs) else 1
    return {_unquoted(key): _cell(value) for key, value in pairs[first:]}


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


def _cell(text: str) -> Cell:
    if text.startswith('"'):
        return _unquoted(text)
    if text in WORDS:
        return WORDS[text]
    try:
        return float(text) if "." in text else int(text)
    except ValueError as error:
        raise InputError(f"Found {text[:80]!r} in DOT where a number was expected.") from error


def _quoted(text: str) -> str:
    """Graphviz reads backslashes and entities inside quotes, so both are escaped."""
    text = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    text = text.replace("\n", "\\n")
    return '"' + re.sub("[\x00-\x1f\x7f]", lambda m: f"&#{ord(m[0])};", text) + '"'


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    return re.sub(r"\\(.)|&amp;|&#(\d+);", _original, text[1:-1])


def _original(match: re.Match[str]) -> str:
    if match[1]:
        return "\n" if match[1] == "n" else match[1]
    return chr(int(match[2])) if match[2] else "&"
