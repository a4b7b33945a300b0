"""Panel: the checked table that everything else works on, also in standard deviations."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import sliding_window_view

from forecause.config.advice import refuse_unknown
from forecause.config.options import ReadingOptions, normalised
from forecause.data.findings import Change, check_shape, check_values
from forecause.data.scratch import chunks, joined, pieces
from forecause.data.sources.parquet import StoredRows
from forecause.data.variables import Label, Variables

if TYPE_CHECKING:
    from forecause.seasons.course import TimeCourse

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Single = npt.NDArray[np.float32]

# Time and memory:
ROWS_AT_ONCE = 1 << 14
MOST_STANDARDISED = 25_000_000  # values of a table that is kept standardised: 100 MB


@dataclass(frozen=True, eq=False)
class Panel:
    """Named variables recorded over time, as one series or several.

    All series are stacked in `values`; `starts` says where each unbroken stretch begins, so that
    no window ever crosses from one series to the next or over a gap in time. A variable of labels
    has one column per level; `variables` then names the columns, and `coding.variables` what a
    graph speaks of.

    Examples
    --------
    >>> import numpy as np
    >>> import forecause as fc
    >>> panel = fc.Panel.of(np.random.default_rng(0).normal(size=(50, 2)))
    >>> panel.rows, panel.variables
    (50, ('x0', 'x1'))
    """

    values: npt.NDArray[Any]  # (row, variable), float; NaN where missing; may be a mapped file
    variables: tuple[str, ...]
    starts: npt.NDArray[np.int64]  # first row of each unbroken stretch; starts[0] == 0
    series: npt.NDArray[np.int64]  # (row,) index into series_names
    series_names: tuple[str, ...] = ("series",)
    domain: npt.NDArray[np.int64] | None = None  # (row,) index into domain_names
    domain_names: tuple[str, ...] = ()
    time: npt.NDArray[Any] | None = None  # (row,) time stamps or numbers, where given
    notes: tuple[str, ...] = ()  # what the reader of the data should tell the user
    labels: tuple[Label, ...] = ()  # the variables that are no numbers
    changes: tuple[Change, ...] = ()  # what was done to the table; `notes` has their sentences
    explained: npt.NDArray[np.bool_] | None = None  # (row,) rows that may be targets; None: all
    filled: npt.NDArray[np.bool_] | None = None  # (row, column) cells that were estimated
    course: TimeCourse | None = None  # what time explained and was taken out of the values
    read_by: ReadingOptions | None = None  # the options of `read`, where a table was read
    paths: tuple[str, ...] = ()  # the files it was read from, if it was

    def __post_init__(self) -> None:
        check_shape(self.values, self.variables)
        check_values(self.values, self.variables)

    @classmethod
    def of(cls, data: Any, **options: Any) -> Panel:
        """Make a panel from a table, an array, a path, a list of them, or a panel.

        The options, such as `time="date"`, are those of `forecause.read`.
        """
        from forecause.data.tables import file_paths, panel_of

        refuse_unknown(options, ReadingOptions.model_fields)
        asked = ReadingOptions.checked(**normalised(options))
        if isinstance(data, Panel):
            known = data.read_by is not None and asked in (data.read_by, ReadingOptions())
            return data if known else panel_of(data, asked)
        panel = panel_of(data, asked)
        counters = tuple(one.column for one in panel.changes if one.kind == "counter")
        if counters:  # so that fewer rows are read the same way
            asked = asked.model_copy(update={"counter": counters})
        return replace(panel, read_by=asked, paths=file_paths(data))

    @classmethod
    def from_arrays(
        cls,
        arrays: Sequence[npt.NDArray[Any]],
        variables: Sequence[str],
        series_names: Sequence[str] | None = None,
    ) -> Panel:
        """Stack arrays of (row, variable), one per series; a single one is not copied."""
        lengths = [len(values) for values in arrays]
        names = series_names or [f"series {i + 1}" for i in range(len(arrays))]
        return cls(
            values=joined(arrays),
            variables=tuple(variables),
            starts=np.cumsum([0, *lengths[:-1]]).astype(np.int64),
            series=np.repeat(np.arange(len(arrays)), lengths),
            series_names=tuple(names),
        )

    def with_changes(self, changes: Sequence[Change]) -> Panel:
        """The same data with these changes listed, and what was done said in the notes.

        What was only noticed becomes an alert of the run.
        """
        said = tuple(change.sentence for change in changes if change.kind != "doubtful")
        return replace(self, changes=(*self.changes, *changes), notes=(*self.notes, *said))

    def at_rows(self, kept: npt.NDArray[np.int64]) -> Panel:
        """These rows alone, in ascending order; rows that follow each other are not copied."""
        follow = len(kept) and int(kept[-1] - kept[0]) == len(kept) - 1
        rows: Any = slice(int(kept[0]), int(kept[-1]) + 1) if follow else kept

        def cut(values: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
            return None if values is None else values[rows]

        return replace(
            self,
            values=self.values[rows],
            starts=np.flatnonzero(np.isin(kept, self.starts)),
            series=self.series[rows],
            domain=cut(self.domain),
            time=cut(self.time),
            explained=cut(self.explained),
            filled=cut(self.filled),
        )

    def with_domain(self, domain: npt.NDArray[np.int64], names: Sequence[str]) -> Panel:
        """The same data with these domains, (row,) indices into `names`."""
        return replace(self, domain=domain, domain_names=tuple(names))

    @cached_property
    def coding(self) -> Variables:
        """Which columns belong to which variable."""
        return Variables.of(self.variables, self.labels)

    @property
    def reading(self) -> dict[str, Any]:
        """The options that the table was read with, by name; empty where none was read."""
        return {} if self.read_by is None else self.read_by.model_dump()

    @property
    def rows(self) -> int:
        """Rows of all series together."""
        return int(self.values.shape[0])

    @property
    def missing_share(self) -> float:
        """Share of the values that are missing; filled ones count, for they were."""
        missing = sum(int(np.isnan(part).sum()) for part in chunks(self.values))
        missing += 0 if self.filled is None else int(self.filled.sum())
        return missing / self.values.size

    @cached_property
    def spans(self) -> list[tuple[int, int]]:
        """First row and end of every series; a series' rows stand together."""
        spans = [(0, 0)] * len(self.series_names)
        edges = np.flatnonzero(np.diff(self.series, prepend=-1, append=-1))
        for first, end in pairwise(edges.tolist()):
            spans[int(self.series[first])] = (first, end)
        return spans

    @cached_property
    def incomplete(self) -> npt.NDArray[np.bool_]:
        """Where a row (row,) lacks a value."""
        return np.concatenate([np.isnan(part).any(1) for part in chunks(self.values)])

    @cached_property
    def moments(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Mean and standard deviation (column,) over all rows, missing values left out."""
        count, total, square = (np.zeros(len(self.variables)) for _ in range(3))
        for part in chunks(self.values):
            count += np.isfinite(part).sum(0)
            total += _known_sum(part)
        mean = total / count
        for part in chunks(self.values):
            square += _known_sum((part - mean) ** 2)
        return mean, np.sqrt(square / count)

    @cached_property
    def standardised(self) -> StandardTable:
        """The values on one scale, shared by all windows of this panel."""
        return StandardTable(self.values, Scale(*self.moments))

    def fingerprint(self) -> str:
        """A hash of values, names, series and domains: the same data, the same fingerprint.

        Cells that were filled count as missing, which they were in the data.
        """
        names = (self.variables, self.series_names, self.domain_names)
        digest = hashlib.sha256(repr(names).encode())
        for codes in (self.starts, self.series, self.domain, self.explained):
            digest.update(b"" if codes is None else codes.astype(np.int64).tobytes())
        for rows in pieces(self.values.shape, np.float64):
            part = self.values[rows]
            if self.filled is not None:
                part = np.where(self.filled[rows], np.nan, part)
            digest.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
        return digest.hexdigest()[:16]


def _known_sum(part: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Sums of columns (column,) without what is missing."""
    total = part.sum(0, dtype=np.float64)
    if np.isnan(total).any():
        total = np.nansum(part, 0, dtype=np.float64)
    return np.asarray(total)


@dataclass(frozen=True)
class Scale:
    """Mean and standard deviation per variable, to put every variable on one scale."""

    mean: Array  # (variable,)
    sd: Array  # (variable,)


class StandardTable:
    """A table in standard deviations from the mean, worked out once for all of its windows.

    Whole where it lies in memory and is not too large, otherwise of the rows that are asked for;
    either way in float64 before it is rounded, whatever the data is.
    """

    def __init__(self, values: npt.NDArray[Any] | StoredRows, scale: Scale) -> None:
        self.values, self.scale = values, scale

    def __getstate__(self) -> dict[str, Any]:
        """Without what was worked out here."""
        return {"values": self.values, "scale": self.scale}

    @cached_property
    def whole(self) -> Single | None:
        """(row, column), not to be written to."""
        if not isinstance(self.values, np.ndarray) or self.values.size > MOST_STANDARDISED:
            return None
        if is_mapped(self.values):
            return None
        table = np.empty(self.values.shape, dtype=np.float32)
        for first in range(0, len(table), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            table[rows] = _scaled(self.values[rows], self.scale)
        table.flags.writeable = False
        return table

    def windows(self, last: Index, max_lag: int) -> Single:
        """The windows that end with these rows, (window, max_lag + 1, column).

        A view that is not to be written to where they follow each other in the whole table.
        """
        if self.whole is not None:
            width = self.whole.shape[1]
            # a window of consecutive rows is a stretch of the flattened table
            flat = sliding_window_view(self.whole.ravel(), (max_lag + 1) * width)[::width]
            chosen = flat[last[0] - max_lag : last[-1] - max_lag + 1] if follow(last) else None
            if chosen is None:
                chosen = flat[last - max_lag]
            return chosen.reshape(len(last), max_lag + 1, width)
        rows = last[:, None] + np.arange(-max_lag, 1)
        first = int(rows[:, 0].min(initial=len(self.values)))
        end = int(rows[:, -1].max(initial=0)) + 1
        if end - first <= rows.size:  # overlapping windows are cut from one stretch
            return _scaled(self.values[first:end], self.scale).take(rows - first, axis=0)
        return _scaled(self.values[rows], self.scale)


def follow(rows: Index) -> bool:
    """Whether rows are neighbours in order; none are not."""
    return len(rows) > 0 and bool((np.diff(rows) == 1).all())


def is_mapped(values: npt.NDArray[Any]) -> bool:
    """Whether an array is memory-mapped, also as a view of a view of a file."""
    table: npt.NDArray[Any] | None = values
    while table is not None and not isinstance(table, np.memmap):
        table = table.base if isinstance(table.base, np.ndarray) else None
    return table is not None


def _scaled(values: npt.NDArray[Any], scale: Scale) -> Single:
    """Values (..., variable) in standard deviations from the mean."""
    scaled = values - scale.mean
    scaled /= scale.sd
    return scaled.astype(np.float32)
