"""From any table to a Panel: columns get their roles, series are told apart, time is checked."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.config.advice import Advice, with_known_names
from forecause.config.options import ReadingOptions
from forecause.config.spec import GapsName, HowName
from forecause.data.cells import known_labels, level_text
from forecause.data.cleaning import left_out_columns, rate
from forecause.data.dates import order_chosen
from forecause.data.findings import MOST_SHOWN, Change, Problems, counted
from forecause.data.gaps import additive_outliers, expected, interpolated
from forecause.data.panel import Panel
from forecause.data.parts import Every, Part, built_in_series, part_of, stacked
from forecause.data.row_choice import columns_named
from forecause.data.scratch import copied
from forecause.data.sources.rawtable import UNNAMED, RawTable, raw_table
from forecause.data.sources.readers import read_table
from forecause.data.timeline import recognised_time, with_calendar_time
from forecause.errors import InputError

Array = npt.NDArray[Any]


@with_known_names
def read(
    data: Any,
    *,
    time: str | None = None,
    series: str | None = None,
    domain: str | None = None,
    labels: Sequence[str] | str = (),
    missing: Sequence[float | str] | float | str = (),
    every: str | float | None = None,
    every_how: HowName = "mean",
    rows: str | None = None,
    interpolate: int = 0,
    gaps: GapsName = "fill",
    columns: Sequence[str] | str = (),
    exclude: Sequence[str] | str = (),
    encoding: str | None = None,
    sheet: str | None = None,
    counter: Sequence[str] | str = (),
) -> Panel:
    """Read a table as `discover` takes it, with more to say about its columns, rows and gaps.

    Parameters
    ----------
    data
        A table (pandas, polars, pyarrow, xarray, numpy), a path, or a list of them for several
        series. Time runs down the rows.
    time, series, domain
        Names of the columns with the time, with the series a row belongs to, and with a known
        regime.
    labels
        Columns that hold labels, not numbers.
    missing
        Cells that mean a missing value, such as -9999 or "bad".
    every, every_how
        Put the rows on a regular grid, such as "1h", by their mean, sum or last value.
    rows
        Explain only these rows: a column of truth values, or a condition such as
        "season == 'winter'". Their past may lie outside.
    interpolate, gaps
        Fill gaps of at most `interpolate` missing values by straight lines. Other short gaps are
        filled by what is expected from their neighbours, unless `gaps` is "drop".
    columns, exclude
        Read these columns alone; leave these out. Of an array, `columns` names its columns.
    encoding, sheet
        How the text of a file is encoded, where it is not found out, such as "cp1250"; the sheet
        of an Excel file.
    counter
        Columns that count up, whose increase from row to row is what matters. Most are found;
        "none" leaves all columns as they are.

    Returns
    -------
    Panel
        The checked table, which remembers how it was read: a run saves it, and reads new data the
        same way.

    Examples
    --------
    >>> import pandas as pd
    >>> import forecause as fc
    >>> flow, weather = [1.0, 2.5, -9999, 4.2] * 10, ["dry", "wet"] * 20
    >>> table = pd.DataFrame({"flow": flow, "weather": weather})
    >>> fc.read(table, labels="weather", missing=-9999).coding.variables
    ('flow', 'weather')
    """
    return Panel.of(
        data,
        time=time,
        series=series,
        domain=domain,
        labels=labels,
        missing=missing,
        every=every,
        every_how=every_how,
        rows=rows,
        interpolate=interpolate,
        gaps=gaps,
        columns=columns,
        exclude=exclude,
        encoding=encoding,
        sheet=sheet,
        counter=counter,
    )


def file_paths(data: Any) -> tuple[str, ...]:
    """The full paths of data that is a file or several; empty if it is anything else."""
    several = data if isinstance(data, list | tuple) else [data]
    if not several or not all(isinstance(one, str | Path) for one in several):
        return ()
    return tuple(str(Path(one).resolve()) for one in several)


def panel_of(data: Any, asked: ReadingOptions) -> Panel:
    """Make a panel from a table, an array, a path, a list of them, or a panel."""
    try:
        return _panel_of(data, asked)
    except UnicodeEncodeError as error:
        raise InputError(
            f"The data holds the text {error.object[:40]!r}, half of a character pair, which no "
            "file can hold; replace it."
        ) from None


def _panel_of(data: Any, asked: ReadingOptions) -> Panel:
    if isinstance(data, Panel):
        if asked.model_copy(update={"interpolate": 0, "gaps": "fill"}) != ReadingOptions():
            raise InputError("A Panel has its time, series and domain already; name no columns.")
        return _without_gaps(data, asked)
    origins, tables = _raw_tables(data, asked)
    for origin, table in zip(origins, tables, strict=True):
        if not table.rows:
            raise InputError(f"There are no rows in {origin or 'the data'}.")
    tables = [_with_columns(table, asked) for table in tables]
    _check_same_columns(origins, tables)
    roles = asked
    _check_roles(tables[0], roles)
    if roles.every is not None:
        Every.of(roles.every)  # refused before any work if it cannot be read
    if roles.time is None:
        roles = roles.model_copy(update={"time": _recognised_time(tables[0], roles)})
    if roles.every is not None and roles.time is None:
        raise InputError(
            f"A regular grid (every) needs a time column; name it with {Advice('time')}."
        )
    changes = [Change("read", note) for table in tables for note in table.notes]
    if roles.time is not None and asked.time is None:
        changes.append(Change("read", _time_note(roles.time, tables[0]), column=roles.time))
    panel = _checked(origins, tables, roles, changes)
    return _without_gaps(panel, asked)


def plain_rows(
    data: Any, asked: ReadingOptions, known: Panel
) -> tuple[Array, Array | None, dict[str, Array], int]:
    """The columns of a known panel in another table, (row, column), and its times (row,).

    In the order of time. Nothing is refused for being short or constant, and nothing is filled: it
    may be the few minutes of an event. Columns that never moved in the panel come apart, by name;
    others are left aside. Last, which series of the panel it is: the last one, if it is not named.
    """
    if isinstance(data, Panel):
        if data.variables != known.variables:
            raise InputError("The panel given has other variables than the run.")
        missing = np.zeros(data.values.shape, bool) if data.filled is None else data.filled
        return np.where(missing, np.nan, data.values), data.time, {}, len(known.series_names) - 1
    origins, tables = _raw_tables(data, asked)
    if len(tables) > 1:
        raise InputError(f"Expected one table, found {len(tables)}.")
    table, variables = _with_columns(tables[0], asked), known.coding.variables
    absent = [name for name in variables if name not in table.names]
    if absent:
        raise InputError(f"The data given has no column {absent[0]!r}, which the run has.")
    if not table.rows:
        raise InputError("There are no rows in the data given.")
    named = asked.series if asked.series in table.names else None
    roles = asked.model_copy(update={"rows": None, "domain": None, "series": named})
    if roles.time is None and known.time is not None:
        roles = roles.model_copy(update={"time": _recognised_time(table, roles)})
    problems = Problems()
    constant = [c.column for c in known.changes if c.value is not None and c.column in table.names]
    part = part_of(table, roles, [*variables, *constant], origins[0], problems)
    problems.raise_if_any()
    if len(part.series.levels) > 1:
        raise InputError(
            f"The data given holds {len(part.series.levels)} series, {part.series.levels[0]} and "
            "others; an event is of one."
        )
    numbers = [name for name in (*variables, *constant) if name not in roles.labels]
    columns = []
    labels = {label.name: label for label in known.labels}
    for name in variables:
        if name in labels:
            texts = np.array([*map(level_text, part.labels[name].levels), ""], dtype=object)
            own = texts[part.labels[name].codes]
            levels = [np.where(own == "", np.nan, own == level) for level in labels[name].levels]
            columns += [column.astype(np.float64) for column in levels]
        else:
            cells = part.values[:, numbers.index(name)].astype(np.float64)
            columns.append(rate(cells, part.gaps) if name in asked.counter else cells)
    constants = {name: part.values[:, numbers.index(name)].astype(np.float64) for name in constant}
    names = [name.rsplit(" / ", 1)[-1] for name in known.series_names]
    series_name = part.series.levels[0].rsplit(" / ", 1)[-1]
    series = names.index(series_name) if series_name in names else len(names) - 1
    return np.stack(columns, axis=1), part.time, constants, series


def _checked(
    origins: Sequence[str], tables: Sequence[RawTable], roles: ReadingOptions, changes: list[Change]
) -> Panel:
    """Read all columns of all tables; every problem is listed in one message."""
    problems = Problems()
    variables = _variables(tables[0], roles)
    numeric = [name for name in variables if name not in roles.labels]
    left_out, refused = left_out_columns(origins, tables, numeric, roles.missing, problems)
    used = columns_named(roles.rows) if roles.rows else set()
    changes += [change for name, change in left_out.items() if name not in used]
    readable = tuple(name for name in variables if name not in left_out and name not in refused)
    if not readable:
        problems.raise_if_any()
        reasons = " ".join(change.sentence for change in left_out.values())
        raise InputError(f"There is no column left that could be a variable. {reasons}".strip())
    parts: list[Part] = []
    for origin, table in zip(origins, tables, strict=True):
        with problems.collected("" if len(tables) == 1 else origin):
            parts.append(part_of(table, roles, readable, origin, problems))
    panel = None
    if len(parts) == len(tables):
        with problems.collected():
            panel = stacked(parts, readable, changes, roles.counter)
    problems.raise_if_any()
    assert panel is not None
    if panel.explained is None:
        return panel
    count = int(panel.explained.sum())
    said = f"{count:,} of {counted(panel.rows, 'row')} are explained: {roles.rows}."
    return panel.with_changes([Change("chosen", said, count)])


def _without_gaps(panel: Panel, asked: ReadingOptions) -> Panel:
    """Gaps filled: by lines as far as asked, other short ones by what is expected there."""
    numeric = panel.coding.numeric_columns.tolist()
    if asked.interpolate:
        values, count = interpolated(panel.values, panel.starts, asked.interpolate, numeric)
        if count:
            said = f"{counted(count, 'missing value')} filled by interpolation."
            panel = replace(panel, values=values).with_changes([Change("filled", said, count)])
    if asked.gaps == "drop":
        return panel
    panel = _without_outliers(panel, numeric)
    if not panel.incomplete.any():
        return panel
    values, cells = expected(panel.values, panel.starts, numeric)
    if cells is None:
        return panel
    count = int(cells.sum())
    said = (
        f"{counted(count, 'missing value')} ({cells.mean():.1%} of all) filled by what the rows "
        "before and the other variables let expect"
    )
    advice = Advice("gaps", "drop", "{} leaves such windows out")
    filled = replace(panel, values=values, filled=cells)
    return filled.with_changes([Change("filled", said, count, advice=(advice,))])


def _without_outliers(panel: Panel, columns: list[int]) -> Panel:
    """Cells that are far off and that nothing feels are read as missing, to be filled."""
    cells = additive_outliers(panel.values, panel.starts, columns)
    if cells is None:
        return panel
    values, count = copied(panel.values), int(cells.sum())
    values[cells] = np.nan
    hit = [panel.variables[column] for column in np.flatnonzero(cells.any(axis=0))]
    shown = ", ".join(hit[:MOST_SHOWN]) + (" and others" if len(hit) > MOST_SHOWN else "")
    said = (
        f"{counted(count, 'value')} of {shown} far off for a row or two, with no sign of them in "
        "the rows after: read as missing (thresholds.reading.outlier sets how far)"
    )
    return replace(panel, values=values).with_changes([Change("missing", said, count)])


def _raw_tables(data: Any, asked: ReadingOptions) -> tuple[list[str], list[RawTable]]:
    """A name for each table, the file's or its place in the list, and the tables."""
    from_file = partial(read_table, encoding=asked.encoding, sheet=asked.sheet)
    if not isinstance(data, list | tuple):
        return [""], [from_file(data) if isinstance(data, str | Path) else raw_table(data)]
    if not data:
        raise InputError("Expected at least one table, found an empty list.")
    paths = [str(item) if isinstance(item, str | Path) else None for item in data]
    stems = [Path(path).stem for path in paths if path]
    labels, tables = [], []
    for place, (item, path) in enumerate(zip(data, paths, strict=True), 1):
        tables.append(raw_table(item) if path is None else from_file(path))
        stem = f"series {place}" if path is None else Path(path).stem
        labels.append(path if path and stems.count(stem) > 1 else stem)
    if len(set(labels)) < len(labels):
        raise InputError("The same file was given twice.")
    return ([""] if len(labels) == 1 else labels), tables


def _dated(table: RawTable, asked: ReadingOptions) -> RawTable:
    """The table, whose year, month, ... are one column of dates if it has no other time."""
    conditions = columns_named(asked.rows) if asked.rows else set()
    named = {asked.series, asked.domain, *asked.labels, *asked.columns, *asked.exclude}
    made = with_calendar_time(table, named | conditions)
    if made is table or asked.time is not None or asked.series is not None:
        return table
    return table if _recognised_time(table, asked) is not None else made


def _with_columns(table: RawTable, asked: ReadingOptions) -> RawTable:
    """The columns that are asked for and those with a role; an array's get their names."""
    table = _dated(table, asked)
    names = table.names
    if table.unnamed and len(asked.columns) == len(names) and not set(asked.columns) & set(names):
        return replace(table, names=asked.columns, unnamed=False)
    for name in (*asked.columns, *asked.exclude):
        _check_column(table, name, "such")
    if not (asked.columns or asked.exclude):
        return table
    roles = {asked.time, asked.series, asked.domain, asked.rows, *asked.labels}
    roles |= columns_named(asked.rows) if asked.rows else set()
    if asked.time is None:  # it shows itself, whatever is asked for
        roles.add(_recognised_time(table, asked))
    wanted = (set(asked.columns) or set(names)) - set(asked.exclude)
    kept = [place for place, name in enumerate(names) if name in wanted | roles]
    return replace(
        table,
        names=tuple(names[place] for place in kept),
        columns=[table.columns[place] for place in kept],
        matrix=None,
    )


def _check_same_columns(labels: Sequence[str], tables: Sequence[RawTable]) -> None:
    for label, table in zip(labels[1:], tables[1:], strict=True):
        for one, other, lacking in ((tables[0], table, label), (table, tables[0], labels[0])):
            there = (*other.names, *other.beside)
            absent = [name for name in (*one.names, *one.beside) if name not in there]
            if absent:
                having = labels[0] if lacking == label else label
                raise InputError(
                    f"All series must have the same columns, but {lacking!r} has no column "
                    f"{absent[0]!r}, which {having!r} has."
                )


def _check_roles(table: RawTable, roles: ReadingOptions) -> None:
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


def _recognised_time(table: RawTable, roles: ReadingOptions) -> str | None:
    codes = built_in_series(table)
    if roles.series is not None:
        codes = known_labels(roles.series, table.column(roles.series)).codes
    return recognised_time(table, codes, taken=(roles.series, roles.domain, *roles.labels))


def _check_column(table: RawTable, name: str, role: str) -> None:
    known = [*table.names, *table.beside]
    if name in known:
        return
    close = difflib.get_close_matches(name, known, 1)
    shown = ", ".join(map(repr, known[:20])) + (", ..." if len(known) > 20 else "")
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise InputError(f"There is no {role} column {name!r}: the columns are {shown}{hint}")


def _variables(table: RawTable, roles: ReadingOptions) -> tuple[str, ...]:
    used = {roles.time, roles.series, roles.domain, roles.rows}
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
    order = order_chosen(table.column(name))
    written = f", its dates as {order}" if order else ""
    return f"{place} {name!r} was taken as the time{written}."
