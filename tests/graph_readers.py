"""Readers of the formats that a LaggedGraph writes, to check that nothing is lost in them."""

import csv
import io
import math
import re

import networkx as nx
import numpy as np

from forecause.common.bounded import text_of
from forecause.graph import LaggedGraph
from forecause.graph.edge_table import CAUSE, edge_table, mirrored
from forecause.graph.export import FORMULA

EDGE_COLUMNS = ("source", "target", "lag", "score")
ESCAPED = re.compile("_x([0-9A-F]{4})_")
WORDS = {"true": True, "false": False, "nan": math.nan, "inf": math.inf, "minus_inf": -math.inf}
QUOTED = r'"(?:[^"\\]|\\.)*"'
NODE = re.compile(rf"n\d+ \[label=({QUOTED})\];")
EDGE = re.compile(r"n(\d+) -> n(\d+) \[(.*)\];")
ATTRIBUTE = re.compile(rf'({QUOTED}|\w+)=({QUOTED}|[^",\]]+)')
MAX_LAG = re.compile(r"max_lag=(\d+);")


def read_csv(source, variables=None, max_lag=None):
    """Read an edge table; without `variables` or `max_lag`, those that the edges show."""
    text = text_of(source, ",".join(EDGE_COLUMNS))
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns = {name: [_as_written(name, row[i]) for row in rows] for i, name in enumerate(header)}
    for name in set(columns) - {"source", "target"}:
        columns[name] = _typed(columns[name])
    records = [{name: columns[name][i] for name in header} for i in range(len(rows))]
    seen = dict.fromkeys(name for r in records for name in (r["source"], r["target"]))
    lags = [lag for lag in columns["lag"] if isinstance(lag, int)]
    return LaggedGraph(tuple(variables or seen), max_lag or max([1, *lags]), edge_table(records))


def from_networkx(network):
    """The way back; edges without the attributes `lag` and `score` have their key as lag."""
    network = nx.MultiDiGraph(network)
    records = [
        {"lag": key, "score": 1.0, **details, "source": source, "target": target}
        for source, target, key, details in network.edges(keys=True, data=True)
    ]
    lags = [record["lag"] for record in records if isinstance(record["lag"], int)]
    max_lag = network.graph.get("max_lag", max([1, *lags]))
    return LaggedGraph(tuple(network.nodes), max_lag, edge_table(records))


def from_graphml(source):
    """Read GraphML that has variables as nodes and `lag` (and `score`) as edge attributes."""
    network = nx.parse_graphml(text_of(source, "<"), force_multigraph=True)
    return from_networkx(_renamed(network, _xml_original))


def from_tigramite(links, variables):
    """The way back, with score 1; the column `mark` appears if any link is not '-->'.

    A link at lag 0 that points neither way (o-o, x-x, <->) starts at the earlier variable.
    """
    records = []
    for i, j, lag in np.argwhere(links != ""):
        mark = str(links[i, j, lag])
        assert lag > 0 or links[j, i, 0] == mirrored(mark)
        forward, backward = mark[2] == ">", mark[0] == "<"
        if lag == 0 and ((backward and not forward) or (forward == backward and i > j)):
            continue  # the same link, seen from its other end
        record = {"source": variables[i], "target": variables[j], "lag": int(lag), "score": 1.0}
        records.append({**record, "mark": mark})
    if all(record["mark"] == CAUSE for record in records):
        records = [{k: v for k, v in record.items() if k != "mark"} for record in records]
    return LaggedGraph(tuple(variables), links.shape[2] - 1, edge_table(records))


def _as_written(column, cell):
    return cell[1:] if column != "mark" and cell[:1] == "'" and FORMULA.match(cell) else cell


def _typed(cells):
    """CSV has no types: whole numbers, numbers or true/false if every cell is one, else text."""
    for read in (int, float, {"True": True, "False": False}.__getitem__):
        try:
            return [read(cell) if cell else None for cell in cells]
        except (ValueError, KeyError):
            continue
    return [cell or None for cell in cells]


def _xml_original(text):
    return ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)


def _renamed(network, rename):
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


def from_dot(source):
    """Read DOT that `to_dot` wrote (not DOT in general)."""
    lines = [line.strip(" ") for line in text_of(source, "digraph").strip("\n").split("\n")]
    assert (lines[0], lines[-1]) == ("digraph forecause {", "}")
    max_lag = 0
    names, arrows = [], []
    for line in lines[1:-1]:
        if match := MAX_LAG.fullmatch(line):
            max_lag = int(match[1])
        elif match := NODE.fullmatch(line):
            names.append(_unquoted(match[1]))
        else:
            match = EDGE.fullmatch(line)
            arrows.append((int(match[1]), int(match[2]), _details(match[3])))
    records = [{"source": names[i], "target": names[j], **details} for i, j, details in arrows]
    return LaggedGraph(tuple(names), max_lag, edge_table(records))


def _details(text):
    """Attributes of an edge; those before the lag are how it is drawn, not columns."""
    pairs = ATTRIBUTE.findall(text)
    first = [key for key, _ in pairs].index("lag") if any(k == "lag" for k, _ in pairs) else 1
    return {_unquoted(key): _cell(value) for key, value in pairs[first:]}


def _cell(text):
    if text.startswith('"'):
        return _unquoted(text)
    if text in WORDS:
        return WORDS[text]
    return float(text) if "." in text else int(text)


def _unquoted(text):
    if not text.startswith('"'):
        return text
    return re.sub(r"\\(.)|&amp;|&#(\d+);", _original, text[1:-1])


def _original(match):
    if match[1]:
        return "\n" if match[1] == "n" else match[1]
    return chr(int(match[2])) if match[2] else "&"
