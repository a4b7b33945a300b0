"""One table becomes a Part: rows in order, on a grid if asked; the Parts are stacked to a Panel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.config.advice import Advice
from forecause.config.options import ReadingOptions
from forecause.config.spec import HowName
from forecause.data.cells import LabelColumn, coded, known_labels, read_labels
from forecause.data.cleaning import (
    doubtful_values,
    with_missing,
    without_constants,
    without_counters,
)
from forecause.data.findings import Change, Problems, check_finite, counted
from forecause.data.panel import Panel
from forecause.data.row_choice import chosen_rows
from forecause.data.scratch import joined, side_by_side, taken
from forecause.data.sources.rawtable import RawTable
from forecause.data.timeline import breaks, in_time_order, same_times, time_values
from forecause.data.variables import Label
from forecause.errors import InputError

Array = npt.NDArray[Any]

EVERY = re.compile(r"\s*(\d+(?:\.\d+)?)?\s*([a-zA-Z]*)\s*")
SECONDS = {"s": 1, "sec": 1, "second": 1, "min": 60, "minute": 60, "h": 3600, "hour": 3600}
SECONDS |= {"d": 86_400, "day": 86_400, "w": 7 * 86_400, "week": 7 * 86_400}
MONTHS = {"mo": 1, "month": 1, "q": 3, "quarter": 3, "y": 12, "a": 12, "year": 12}
# Time and memory:
MOST_STEPS_PER_ROW = 100  # a finer grid would be almost empty
MONDAY = np.datetime64("1970-01-05", "ns")  # so that weeks begin on Mondays


@dataclass(frozen=True)
class Every:
    """The length of a step: a number of months or of nanoseconds, or a plain number."""

    size: float
    unit: Literal["months", "nanoseconds", "number"]

    @classmethod
    def of(cls, text: str | float) -> Every:
        """Read `1h`, `15min`, `2 weeks`, `1 month`, or a number for times that are numbers."""
        match = EVERY.fullmatch(str(text))
        number, name = match.groups() if match else (None, "?")
        size = float(number) if number else 1.0
        unit = name.lower()
        if len(unit) > 1:
            unit = unit.removesuffix("s")  # hours, weeks
        if size > 0 and not name and number:
            return cls(size, "number")
        if size > 0 and unit in SECONDS:
            return cls(round(size * SECONDS[unit] * 1e9), "nanoseconds")
        if size > 0 and unit in MONTHS and size.is_integer():
            return cls(size * MONTHS[unit], "months")
        raise InputError(
            f"Expected the length of a step (every) such as 15min, 1h, 1d, 1w, 1month, 1quarter, "
            f"1year or a number, found {text!r}."
        )

    def steps(self, time: Array) -> npt.NDArray[np.int64]:
        """The number of the step that each time falls into, (row,)."""
        self._check(time)
        if self.unit == "number":
            return np.floor(time.astype(np.float64) / self.size).astype(np.int64)
        if self.unit == "months":
            return np.asarray(time.astype("datetime64[M]").astype(np.int64) // int(self.size))
        if time.dtype.kind == "M":
            time = time.astype("datetime64[ns]") - MONDAY
        return np.asarray(time.astype("timedelta64[ns]").astype(np.int64) // int(self.size))

    def times(self, steps: npt.NDArray[np.int64], like: Array) -> Array:
        """When these steps begin, of the type of the times `like`."""
        if self.unit == "number":
            return steps * self.size
        if self.unit == "months":
            return (steps * int(self.size)).astype("datetime64[M]").astype(like.dtype)
        span = (steps * int(self.size)).astype("timedelta64[ns]")
        return (span if like.dtype.kind == "m" else MONDAY + span).astype(like.dtype)

    def _check(self, time: Array) -> None:
        dated = time.dtype.kind in "Mm"
        if dated == (self.unit == "number"):
            have, want = ("dates", "1h") if dated else ("numbers", "10")
            raise InputError(f"The times are {have}: give every as something like {want}.")
        if self.unit == "months" and time.dtype.kind != "M":
            raise InputError("Months need dates, and the times are durations; use days.")


@dataclass(frozen=True)
class Groups:
    """Rows that become one: each of `count` new rows is made of the rows of one group."""

    of_row: npt.NDArray[np.int64]  # (row,) the new row, ascending; some may have no row
    count: int

    @property
    def first(self) -> npt.NDArray[np.int64]:
        """The first row of every group that has rows."""
        return np.flatnonzero(np.diff(self.of_row, prepend=-1))

    def merged(self, values: Array, how: HowName = "mean") -> Array:
        """Values (row, column) with one row per group; NaN where nothing is known."""
        groups = pd.DataFrame(values).groupby(self.of_row)
        made = groups.sum(min_count=1) if how == "sum" else groups.agg(how)
        return made.reindex(range(self.count)).to_numpy(values.dtype)

    def last_label(self, labels: LabelColumn, carried: bool = False) -> LabelColumn:
        """The last known label of each group; none where there is none, or, if `carried`, that of
        the group before it."""
        known = pd.Series(labels.codes).where(labels.codes >= 0)
        made = known.groupby(self.of_row).last().reindex(range(self.count))
        codes = (made.ffill() if carried else made).fillna(-1).to_numpy(np.int64)
        return LabelColumn(codes, labels.levels)

    def all_true(self, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Whether all rows of a group are True; False where there are none."""
        made = pd.Series(chosen).groupby(self.of_row).all()
        return made.reindex(range(self.count), fill_value=False).to_numpy(bool)


def on_grid(every: Every, time: Array, series: Array) -> tuple[Groups, Array, Array]:
    """Groups of sorted rows by steps of time, and the time and series (new row,) of each.

    Every series has all steps from its first to its last, whether there are rows or not.
    """
    steps = every.steps(time)
    first = np.flatnonzero(np.diff(series, prepend=-1))
    ends = np.append(first[1:], len(series))
    lengths = steps[ends - 1] - steps[first] + 1
    total = int(lengths.sum())
    if total > MOST_STEPS_PER_ROW * len(time):
        raise InputError(
            f"Such steps make {total:,} rows of {len(time):,}, nearly all of them empty; take a "
            "longer step (every)."
        )
    offsets = np.cumsum(lengths) - lengths
    of_row = steps - np.repeat(steps[first] - offsets, ends - first)
    numbers = np.arange(total) + np.repeat(steps[first] - offsets, lengths)
    return Groups(of_row, total), every.times(numbers, time), np.repeat(series[first], lengths)


@dataclass(frozen=True)
class Part:
    """One table with its rows sorted by series and time, ready to be stacked with others."""

    values: Array  # (row, variable), those that are numbers
    series: LabelColumn
    time: Array | None
    domain: LabelColumn | None
    labels: dict[str, LabelColumn]
    explained: Array | None  # (row,) whether a row may be a target
    changes: tuple[Change, ...] = ()

    @property
    def rows(self) -> int:
        return len(self.series.codes)

    @property
    def gaps(self) -> Array:
        """True (row,) where the time leaps over a gap."""
        if self.time is None:
            return np.zeros(self.rows, dtype=bool)
        return breaks(self.time, self.series.codes)

    def at(self, rows: Array) -> Part:
        """These rows in this order."""
        return replace(
            self,
            values=taken(self.values, rows),
            series=self.series.at(rows),
            time=None if self.time is None else self.time[rows],
            domain=None if self.domain is None else self.domain.at(rows),
            labels={name: column.at(rows) for name, column in self.labels.items()},
            explained=None if self.explained is None else self.explained[rows],
        )

    def merged(self, groups: Groups, how: HowName, time: Array, series: Array) -> Part:
        """One row per group, with this time and these codes of the series."""
        domain = self.domain
        return replace(
            self,
            values=groups.merged(self.values, how),
            series=LabelColumn(series, self.series.levels),
            time=time,
            domain=None if domain is None else groups.last_label(domain, carried=True),
            labels={name: groups.last_label(column) for name, column in self.labels.items()},
            explained=None if self.explained is None else groups.all_true(self.explained),
        )

    def with_change(self, *changes: Change) -> Part:
        return replace(self, changes=(*self.changes, *changes))


def part_of(
    table: RawTable, roles: ReadingOptions, variables: Sequence[str], label: str, problems: Problems
) -> Part:
    """Read the columns of a table; what is wrong with them is added to the problems."""
    numeric = tuple(name for name in variables if name not in roles.labels)
    values, changes = with_missing(table.values(numeric, roles.missing), numeric, roles.missing)
    series = _series(table, roles.series, label)
    known = len(problems.sentences)
    with problems.collected(label):
        check_finite(values, numeric)  # here rows are counted as in the user's table
    if len(problems.sentences) > known:
        values = np.where(np.isinf(values), np.nan, values)  # said once is enough
    time, domain, explained = None, None, None
    labels: dict[str, LabelColumn] = {}
    with problems.collected(label):
        if roles.time is not None:
            time = time_values(roles.time, table.column(roles.time))
    with problems.collected(label):
        if roles.domain is not None:
            domain = known_labels(roles.domain, table.column(roles.domain))
    with problems.collected(label):
        if roles.rows is not None:
            explained = chosen_rows(table, roles.rows)
    for name in variables:
        if name in roles.labels:
            with problems.collected(label):
                labels[name] = read_labels(name, table.column(name), roles.missing)
    changes += doubtful_values(values, numeric)
    part = Part(values, series, time, domain, labels, explained)
    return _in_order(part.with_change(*changes), roles)


def built_in_series(table: RawTable) -> Array:
    """Codes (row,) of the series that are stacked in the table itself."""
    lengths = table.lengths or (table.rows,)
    return np.repeat(np.arange(len(lengths)), lengths)


def _series(table: RawTable, column: str | None, label: str) -> LabelColumn:
    if column is not None:
        series = known_labels(column, table.column(column))
    elif len(table.lengths) > 1:
        names = [f"series {i + 1}" for i in range(len(table.lengths))]
        series = LabelColumn(built_in_series(table), names)
    else:
        return LabelColumn(built_in_series(table), [label or "series"])
    if label:
        return replace(series, levels=[f"{label} / {name}" for name in series.levels])
    return series


def _in_order(part: Part, roles: ReadingOptions) -> Part:
    """Rows sorted by series and time; those of one time, or of one step of the grid, are one."""
    if part.time is None or roles.time is None:
        return _sorted(part, np.argsort(part.series.codes, kind="stable"))
    alone = len(part.series.levels) == 1
    rows, changes = in_time_order(roles.time, part.time, part.series.codes, alone)
    part = _sorted(part, rows).with_change(*changes)
    assert part.time is not None
    if roles.every is not None:
        groups, time, series = on_grid(Every.of(roles.every), part.time, part.series.codes)
        said = (
            f"{counted(part.rows, 'row')} became {counted(groups.count, 'row')} of equal "
            f"steps by their {roles.every_how}."
        )
        made = part.merged(groups, roles.every_how, time, series)
        return made.with_change(Change("resampled", said, groups.count, roles.time))
    of_row, changes = same_times(roles.time, part.time, part.series.codes, rows, alone)
    if not changes:
        return part
    groups = Groups(of_row, int(of_row[-1]) + 1)
    first = groups.first
    made = part.merged(groups, "mean", part.time[first], part.series.codes[first])
    return made.with_change(*changes)


def _sorted(part: Part, rows: Array) -> Part:
    return part if bool((np.diff(rows) == 1).all()) else part.at(rows)


def stacked(
    parts: Sequence[Part],
    variables: tuple[str, ...],
    changes: Sequence[Change],
    counter: Sequence[str] = (),
) -> Panel:
    """The parts one below the other; `changes` are those that came before the parts' own."""
    before = np.cumsum([0, *(len(part.series.levels) for part in parts)])
    kinds = {part.time.dtype.kind for part in parts if part.time is not None}
    if len(kinds) > 1:
        raise InputError("The time is given as dates in one series and as numbers in another.")
    gaps = [part.gaps for part in parts]
    series = np.concatenate([p.series.codes + b for p, b in zip(parts, before, strict=False)])
    begins = (np.diff(series, prepend=-1) != 0) | np.concatenate(gaps)
    domains = [part.domain for part in parts if part.domain is not None]
    domain_names = list(dict.fromkeys(name for domain in domains for name in domain.levels))
    values, columns, labels, remarks = _with_labels(parts, variables, begins, counter)
    listed = [*changes, *_together(parts), *remarks, *_gap_change(int(sum(map(np.sum, gaps))))]
    panel = Panel(
        values=values,
        variables=columns,
        starts=np.flatnonzero(begins),
        series=series,
        series_names=tuple(name for part in parts for name in part.series.levels),
        domain=joined([d.coded_by(domain_names) for d in domains]) if domains else None,
        domain_names=tuple(domain_names),
        time=joined([part.time for part in parts]) if kinds else None,
        labels=labels,
        explained=joined([p.explained for p in parts]) if parts[0].explained is not None else None,
    )
    return panel.with_changes(listed)


def _gap_change(gaps: int) -> list[Change]:
    if not gaps:
        return []
    said = "1 gap in time; no window crosses it."
    if gaps > 1:
        said = (
            f"{gaps} gaps in time; no window crosses them. If the times are uneven, "
            f"{Advice('every')} puts the rows on a regular grid."
        )
    return [Change("read", said, gaps)]


def _together(parts: Sequence[Part]) -> list[Change]:
    """The parts' changes; of several series, each says where, and doubts are said once."""
    if len(parts) == 1:
        return list(parts[0].changes)
    joint: dict[tuple[str, str | None], Change] = {}
    for part in parts:
        for change in part.changes:
            key = (change.kind, change.column)
            first = joint.get(key)
            where = part.series.levels[0]
            said = f"In {where}: {change.seen}" if first is None else first.seen
            count = change.count + (first.count if first else 0)
            joint[key] = replace(change, seen=said, count=count)
    return list(joint.values())


def _with_labels(
    parts: Sequence[Part], variables: tuple[str, ...], starts: Array, counter: Sequence[str]
) -> tuple[Array, tuple[str, ...], tuple[Label, ...], list[Change]]:
    """All columns in the order of the variables, their names, the labels among them, changes.

    Columns of numbers that hold one value or none are left out; counters become rates.
    """
    numeric_names = [name for name in variables if name not in parts[0].labels]
    has_time = parts[0].time is not None
    values, kept, changes = without_constants(joined([p.values for p in parts]), numeric_names)
    values, kept, growing = without_counters(values, kept, starts, counter, has_time)
    changes += growing
    if not parts[0].labels:
        return values, kept, (), changes
    columns: list[Array] = []
    names: list[str] = []
    labels: list[Label] = []
    numeric = dict(zip(kept, values.T, strict=True))
    for name in variables:
        if name in numeric:
            columns.append(numeric[name])
            names.append(name)
        elif name in parts[0].labels:
            label, levels, remarks = coded(name, len(names), [part.labels[name] for part in parts])
            columns += list(levels.T)
            names += label.column_names
            labels.append(label)
            changes += [Change("read", remark, column=name) for remark in remarks]
    return side_by_side(columns, np.float64), tuple(names), tuple(labels), changes
