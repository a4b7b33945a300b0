"""From any table to a Panel: columns get their roles, series are told apart, time is checked."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.data.labels import LabelColumn, coded, read_labels
from forecause.data.missing import interpolated
from forecause.data.panel import Panel, check_finite
from forecause.data.sources.cells import label_codes
from forecause.data.sources.rawtable import UNNAMED, RawTable, raw_table
from forecause.data.sources.readers import read_table
from forecause.data.sources.scratch import joined, side_by_side, taken
from forecause.data.timeline import breaks, recognised_time, time_values
from forecause.data.variables import Label
from forecause.errors import InputError

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Roles:
    """The columns that are not variables, and the variables that are labels."""

    time: str | None
    series: str | None
    domain: str | None
    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """One table with its rows sorted by series, ready to be stacked with others."""

    values: Array  # (row, variable), those that are numbers
    starts: Array  # first row of each unbroken stretch
    series: Array  # (row,) codes
    series_names: list[str]
    time: Array | None
    gaps: int
    domain: Array | None
    domain_names: list[str]
    labels: dict[str, LabelColumn]


def panel_of(
    data: Any,
    *,
    time: str | None,
    series: str | None,
    domain: str | None,
    labels: Sequence[str] = (),
    interpolate: int,
) -> Panel:
    """Make a panel from a table, an array, a path, a list of them, or a panel."""
    if interpolate < 0:
        raise InputError(f"The gap to interpolate must be 0 rows or more, found {interpolate}.")
    if isinstance(data, Panel):
        if time or series or domain or labels:
            raise InputError("A Panel has its time, series and domain already; name no columns.")
        return _interpolated(data, interpolate)
    origins, tables = _raw_tables(data)
    for origin, table in zip(origins, tables, strict=True):
        if not table.rows:
            raise InputError(f"There are no rows in {origin or 'the data'}.")
    _check_same_columns(origins, tables)
    asked = Roles(time, series, domain, (labels,) if isinstance(labels, str) else tuple(labels))
    _check_roles(tables[0], asked)
    roles = asked if time else replace(asked, time=_recognised_time(tables[0], asked))
    variables = _variables(tables[0], roles)
    parts = []
    for origin, table in zip(origins, tables, strict=True):
        try:
            parts.append(_part(table, roles, variables, origin))
        except InputError as error:
            if len(tables) == 1:
                raise
            raise InputError(f"In {origin}: {error}") from error
    notes = [note for table in tables for note in table.notes]
    if roles.time is not None and time is None:
        notes.append(_time_note(roles.time, tables[0]))
    return _interpolated(_stacked(parts, variables, notes), interpolate)


def _raw_tables(data: Any) -> tuple[list[str], list[RawTable]]:
    """A name for each table, the file's or its place in the list, and the tables."""
    if not isinstance(data, list | tuple):
        return [""], [read_table(data) if isinstance(data, str | Path) else raw_table(data)]
    if not data:
        raise InputError("Expected at least one table, found an empty list.")
    paths = [str(item) if isinstance(item, str | Path) else None for item in data]
    stems = [Path(path).stem for path in paths if path]
    labels, tables = [], []
    for place, (item, path) in enumerate(zip(data, paths, strict=True), 1):
        tables.append(raw_table(item) if path is None else read_table(path))
        stem = f"series {place}" if path is None else Path(path).stem
        labels.append(path if path and stems.count(stem) > 1 else stem)
    if len(set(labels)) < len(labels):
        raise InputError("The same file was given twice.")
    return ([""] if len(labels) == 1 else labels), tables


def _check_same_columns(labels: Sequence[str], tables: Sequence[RawTable]) -> None:
    for label, table in zip(labels[1:], tables[1:], strict=True):
        for one, other, lacking in ((tables[0], table, label), (table, tables[0], labels[0])):
            absent = [name for name in (*one.names, *one.beside) if not _has(other, name)]
            if absent:
                having = labels[0] if lacking == label else label
                raise InputError(
                    f"All series must have the same columns, but {lacking!r} has no column "
                    f"{absent[0]!r}, which {having!r} has."
                )


def _has(table: RawTable, name: str) -> bool:
    return name in table.names or name in table.beside


def _check_roles(table: RawTable, roles: Roles) -> None:
    named = {"time": roles.time, "series": roles.series, "domain": roles.domain}
    used = [name for name in named.values() if name is not None]
    for role, name in named.items():
        if name is None:
            continue
        _check_column(table, name, role)
        if used.count(name) > 1:
            raise InputError(f"Column {name!r} cannot have two roles of time, series and domain.")
    for name in roles.labels:
        _check_column(table, name, "label")
        if name in used or name not in table.names:
            raise InputError(
                f"Column {name!r} cannot be a variable of labels: it stands beside the table or "
                "was named as time, series or domain."
            )


def _recognised_time(table: RawTable, roles: Roles) -> str | None:
    codes = _built_in_series(table)
    if roles.series is not None:
        codes, _ = label_codes(roles.series, table.column(roles.series))
    return recognised_time(table, codes, taken=(roles.series, roles.domain, *roles.labels))


def _check_column(table: RawTable, name: str, role: str) -> None:
    known = [*table.names, *table.beside]
    if name in known:
        return
    close = difflib.get_close_matches(name, known, 1)
    shown = ", ".join(map(repr, known[:20])) + (", ..." if len(known) > 20 else "")
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise InputError(f"There is no {role} column {name!r}: the columns are {shown}{hint}")


def _variables(table: RawTable, roles: Roles) -> tuple[str, ...]:
    used = {roles.time, roles.series, roles.domain}
    variables = tuple(name for name in table.names if name not in used)
    if not variables:
        raise InputError("There is no column left that could be a variable.")
    if "" in variables:
        place = table.names.index("") + 1
        raise InputError(f"Column {place} has no name; name it in the header or remove it.")
    return variables


def _time_note(name: str, table: RawTable) -> str:
    if name in UNNAMED:
        return "The unnamed first column was taken as the time."
    place = "The index" if name in table.beside else "The column"
    return f"{place} {name!r} was taken as the time."


def _built_in_series(table: RawTable) -> Array:
    """Codes (row,) of the series that are stacked in the table itself."""
    lengths = table.lengths or (table.rows,)
    return np.repeat(np.arange(len(lengths)), lengths)


def _part(table: RawTable, roles: Roles, variables: tuple[str, ...], label: str) -> Part:
    series, names = _series(table, roles.series, label)
    rows = np.argsort(series, kind="stable")
    in_order = bool((np.diff(rows) == 1).all())
    numeric = tuple(name for name in variables if name not in roles.labels)
    values = table.values(numeric)
    if label or not in_order:
        check_finite(values, numeric)  # rows are counted in the user's table
    if not in_order:
        values, series = taken(values, rows), series[rows]
    first = np.diff(series, prepend=-1) != 0
    time, gaps = None, np.zeros(len(series), dtype=bool)
    if roles.time is not None:
        time = time_values(roles.time, table.column(roles.time))[rows]
        gaps = breaks(roles.time, time, series, rows, one_series=len(names) == 1)
    domain: Array | None = None
    domain_names: list[str] = []
    if roles.domain is not None:
        codes, domain_names = label_codes(roles.domain, table.column(roles.domain))
        domain = codes[rows]
    starts = np.flatnonzero(first | gaps)
    labels = {}
    for name in variables:
        if name in roles.labels:
            found = read_labels(name, table.column(name))
            labels[name] = LabelColumn(found.codes[rows], found.levels)
    return Part(values, starts, series, names, time, int(gaps.sum()), domain, domain_names, labels)


def _series(table: RawTable, column: str | None, label: str) -> tuple[Array, list[str]]:
    if column is not None:
        codes, names = label_codes(column, table.column(column))
        return codes, [f"{label} / {name}" if label else name for name in names]
    codes = _built_in_series(table)
    if len(table.lengths) > 1:
        names = [f"series {i + 1}" for i in range(len(table.lengths))]
        return codes, [f"{label} / {name}" if label else name for name in names]
    return codes, [label or "series"]


def _stacked(parts: Sequence[Part], variables: tuple[str, ...], notes: Sequence[str]) -> Panel:
    offsets = np.cumsum([0, *(len(part.values) for part in parts)])
    before = np.cumsum([0, *(len(part.series_names) for part in parts)])
    gaps = sum(part.gaps for part in parts)
    if gaps:
        what = (
            "1 gap in time; no window crosses it."
            if gaps == 1
            else (f"{gaps} gaps in time; no window crosses them.")
        )
        notes = [*notes, what]
    kinds = {part.time.dtype.kind for part in parts if part.time is not None}
    if len(kinds) > 1:
        raise InputError("The time is given as dates in one series and as numbers in another.")
    domain_names = list(dict.fromkeys(name for part in parts for name in part.domain_names))
    domains = [_recoded(part, domain_names) for part in parts]
    values, columns, labels, remarks = _with_labels(parts, variables)
    return Panel(
        values=values,
        variables=columns,
        starts=np.concatenate([p.starts + o for p, o in zip(parts, offsets, strict=False)]),
        series=np.concatenate([p.series + b for p, b in zip(parts, before, strict=False)]),
        series_names=tuple(name for part in parts for name in part.series_names),
        domain=joined(domains) if domain_names else None,
        domain_names=tuple(domain_names),
        time=joined([part.time for part in parts]) if kinds else None,
        notes=(*notes, *remarks),
        labels=labels,
    )


def _with_labels(
    parts: Sequence[Part], variables: tuple[str, ...]
) -> tuple[Array, tuple[str, ...], tuple[Label, ...], list[str]]:
    """All columns in the order of the variables, their names, the labels among them, and notes."""
    values = joined([part.values for part in parts])
    if not parts[0].labels:
        return values, variables, (), []
    columns: list[Array] = []
    names: list[str] = []
    labels: list[Label] = []
    notes: list[str] = []
    numeric = iter(values.T)
    for name in variables:
        if name not in parts[0].labels:
            columns.append(next(numeric))
            names.append(name)
            continue
        label, levels, remarks = coded(name, len(names), [part.labels[name] for part in parts])
        columns += list(levels.T)
        names += label.column_names
        labels.append(label)
        notes += remarks
    return side_by_side(columns, np.float64), tuple(names), tuple(labels), notes


def _recoded(part: Part, names: list[str]) -> Array | None:
    if part.domain is None:
        return None
    return np.array([names.index(name) for name in part.domain_names], dtype=np.int64)[part.domain]


def _interpolated(panel: Panel, longest: int) -> Panel:
    if not longest:
        return panel
    numeric = panel.coding.numeric_columns
    values, count = interpolated(panel.values, panel.starts, longest, numeric.tolist())
    if not count:
        return panel
    note = f"{count} missing value{'s' * (count > 1)} filled by interpolation."
    return replace(panel, values=values, notes=(*panel.notes, note))
