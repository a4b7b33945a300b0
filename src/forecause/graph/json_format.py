"""graph.json: the format `forecause.graph/1`, strict JSON that any graph can be scored in."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr

from forecause.common.bounded import check_candidates, parse_json, text_of
from forecause.common.files import save_text
from forecause.errors import InputError
from forecause.graph.axes import AXES
from forecause.graph.edge_table import EDGE_COLUMNS, edge_records, edge_table
from forecause.graph.lagged import LaggedGraph

Array = npt.NDArray[np.float64]

FORMAT = "forecause.graph/1"

# Time and memory:
MOST_SCORES = 200_000  # candidates whose scores are all written; of more, the strongest so many
KEPT_SCORES = 20_000  # strongest, or five for every edge
INFINITIES = {"Infinity": math.inf, "-Infinity": -math.inf}  # JSON has no infinite numbers


def to_json(graph: LaggedGraph, path: str | Path | None = None) -> str:
    """The graph as JSON text, one edge per line; the same graph gives the same text."""
    document = {
        "format": FORMAT,
        "variables": list(graph.variables),
        "max_lag": graph.max_lag,
        **_content(graph),
    }
    return save_text(_laid_out(document) + "\n", path)


def read_json(source: str | Path) -> LaggedGraph:
    """Read a `forecause.graph/1` file, or its text."""
    place = "The graph" if str(source).lstrip().startswith("{") else repr(str(source))
    return parse_graph(text_of(source, "{"), place)


def parse_graph(text: str, place: str) -> LaggedGraph:
    """The graph of a JSON text that stands in `place`."""
    try:
        document = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place} is not valid JSON ({error}); is it cut off?") from error
    form = document.get("format") if isinstance(document, dict) else None
    if form != FORMAT:
        raise InputError(
            f'{place} is not a graph: expected the entry "format": "{FORMAT}", found {form!r}.'
        )
    try:
        return _graph(document, _names(document), _max_lag(document))
    except InputError as error:
        raise InputError(f"{place} is not a valid graph: {error}") from error


def _content(graph: LaggedGraph) -> dict[str, Any]:
    """Edges, and where there are any scores and domains."""
    records = edge_records(graph.edges)
    content: dict[str, Any] = {
        "edges": [{key: _writable(cell) for key, cell in edge.items()} for edge in records]
    }
    if graph.scores is not None:
        content["score_lags"] = [int(lag) for lag in graph.scores["lag"].values]
        if graph.scores.size <= MOST_SCORES:
            content["scores"] = _writable_lists(graph.scores.values.tolist())
        else:
            content["strongest_scores"] = _strongest(graph.scores, 5 * len(graph.edges))
    if graph.domains:
        content["domains"] = {name: _content(part) for name, part in graph.domains.items()}
    if graph.summary is not None:
        content["summary"] = [
            {key: _writable(cell) for key, cell in pair.items()}
            for pair in graph.summary.to_dict("records")
        ]
    return content


def _strongest(scores: xr.DataArray, wanted: int) -> list[list[Any]]:
    """[target, source, lag, score] of the strongest candidates, by places, in their own order."""
    flat = np.nan_to_num(scores.values.ravel(), nan=-np.inf)
    count = min(max(wanted, KEPT_SCORES), flat.size)
    kept = np.sort(np.argpartition(-flat, count - 1)[:count])
    places = np.unravel_index(kept, scores.shape)
    lags = scores["lag"].values[places[2]]
    cells = zip(*(p.tolist() for p in (*places[:2], lags)), flat[kept].tolist(), strict=True)
    return [[*cell[:3], _writable(cell[3])] for cell in cells]


def _writable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    return value


def _writable_lists(values: Any) -> Any:
    return [_writable_lists(v) for v in values] if isinstance(values, list) else _writable(values)


def _laid_out(document: dict[str, Any]) -> str:
    """JSON with one entry per line, and one edge per line."""
    entries = []
    for key, value in document.items():
        if key in ("edges", "summary") and value:
            text = "[\n    " + ",\n    ".join(_compact(edge) for edge in value) + "\n  ]"
        else:
            text = _compact(value)
        entries.append(f"  {_compact(key)}: {text}")
    return "{\n" + ",\n".join(entries) + "\n}"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _names(document: dict[str, Any]) -> tuple[str, ...]:
    names = document.get("variables")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError('"variables" must be a list of names.')
    return tuple(names)


def _max_lag(document: dict[str, Any]) -> int:
    max_lag = document.get("max_lag")
    if type(max_lag) is not int:
        raise InputError(f'"max_lag" must be a whole number, found {max_lag!r}.')
    return max_lag


def _graph(content: dict[str, Any], names: tuple[str, ...], max_lag: int) -> LaggedGraph:
    domains = content.get("domains", {})
    if not isinstance(domains, dict) or not all(isinstance(d, dict) for d in domains.values()):
        raise InputError('"domains" must map each domain to an entry with its "edges".')
    return LaggedGraph(
        names,
        max_lag,
        _edges(content.get("edges")),
        _scores(content, names),
        {name: _graph(part, names, max_lag) for name, part in domains.items()},
        _summary(content.get("summary"), names),
    )


def _summary(pairs: Any, names: tuple[str, ...]) -> pd.DataFrame | None:
    """The table of pairs, where a file has one."""
    if pairs is None:
        return None
    if not isinstance(pairs, list) or not all(isinstance(pair, dict) for pair in pairs):
        raise InputError('"summary" must be a list of entries with source, target, p and q.')
    for place, pair in enumerate(pairs, 1):
        if pair.get("source") not in names or pair.get("target") not in names:
            raise InputError(f"summary entry {place} must name two of the variables.")
    rows = [
        (pair["source"], pair["target"], *(_number(pair.get(k), f"{k} of a pair") for k in "pq"))
        for pair in pairs
    ]
    return pd.DataFrame(rows, columns=["source", "target", "p", "q"])


def _edges(edges: Any) -> pd.DataFrame:
    if not isinstance(edges, list) or not all(isinstance(edge, dict) for edge in edges):
        raise InputError('"edges" must be a list of entries with source, target, lag and score.')
    for place, edge in enumerate(edges, 1):
        _check_edge(edge, place)
    return edge_table(_with_infinities(edges))


def _check_edge(edge: dict[str, Any], place: int) -> None:
    for key in EDGE_COLUMNS:
        if key not in edge:
            raise InputError(f"edge {place} has no {key!r}.")
    if not isinstance(edge["source"], str) or not isinstance(edge["target"], str):
        raise InputError(f"edge {place} must name its source and target as text.")
    if type(edge["lag"]) is not int:
        raise InputError(f"edge {place} must have a whole number as lag, found {edge['lag']!r}.")
    _number(edge["score"], f"the score of edge {place}")


def _with_infinities(edges: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A column of numbers gets its infinite values back; a column of text is left alone."""
    text = {"source", "target"}.union(
        key
        for edge in edges
        for key, cell in edge.items()
        if isinstance(cell, str) and cell not in INFINITIES
    )

    def restored(key: str, cell: Any) -> Any:
        return INFINITIES[cell] if isinstance(cell, str) and key not in text else cell

    return [{key: restored(key, cell) for key, cell in edge.items()} for edge in edges]


def _number(value: Any, what: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str) and value in INFINITIES:
        return INFINITIES[value]
    if type(value) not in (int, float):
        raise InputError(f"{what} must be a number or null, found {value!r}.")
    try:
        return float(value)
    except OverflowError as error:
        raise InputError(f"{what} is too large to be a number.") from error


def _scores(content: dict[str, Any], names: tuple[str, ...]) -> xr.DataArray | None:
    scores, lags = content.get("scores"), content.get("score_lags")
    strongest = content.get("strongest_scores")
    if scores is None and strongest is None:
        return None
    if not isinstance(lags, list) or not all(type(lag) is int for lag in lags):
        raise InputError('"score_lags" must list the lags of "scores" as whole numbers.')
    shape = (len(names), len(names), len(lags))
    check_candidates(len(names), len(lags))
    if scores is None:
        values = _spread_out(strongest, shape, lags)
    else:
        values = np.array(_checked_nest(scores, shape), dtype=np.float64).reshape(shape)
    coordinates = {"target": list(names), "source": list(names), "lag": lags}
    return xr.DataArray(values, dims=AXES, coords=coordinates)


def _spread_out(strongest: Any, shape: tuple[int, ...], lags: list[int]) -> Array:
    """Scores (target, source, lag) from those of the strongest candidates; 0 elsewhere."""
    values, place_of = np.zeros(shape), {lag: place for place, lag in enumerate(lags)}
    if not isinstance(strongest, list):
        raise InputError('"strongest_scores" must list [target, source, lag, score].')
    for entry in strongest:
        if not isinstance(entry, list) or len(entry) != 4:
            raise InputError('"strongest_scores" must list [target, source, lag, score].')
        target, source, lag, score = entry
        if not all(type(p) is int and 0 <= p < shape[0] for p in (target, source)):
            raise InputError('"strongest_scores" must name variables by their places.')
        if lag not in place_of:
            raise InputError(f'"strongest_scores" has the lag {lag!r}, which is none of the lags.')
        values[target, source, place_of[lag]] = _number(score, "every score")
    return values


def _checked_nest(values: Any, shape: tuple[int, ...]) -> Any:
    if not shape:
        return _number(values, "every score")
    if not isinstance(values, list) or len(values) != shape[0]:
        raise InputError('"scores" must be nested lists of [target][source][lag].')
    return [_checked_nest(value, shape[1:]) for value in values]
