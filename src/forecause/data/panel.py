"""Panel: the checked table that everything else works on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from forecause.config.options import ReadingOptions, normalised
from forecause.config.spelling import refuse_unknown
from forecause.data.findings import Change, Problems
from forecause.data.scratch import joined, pieces
from forecause.data.standardised import Scale, StandardTable
from forecause.data.variables import Label, Variables
from forecause.errors import InputError

if TYPE_CHECKING:
    from forecause.seasons.course import TimeCourse

# Numerics:
SMALLEST, LARGEST = 1e-100, 1e100  # a smaller spread or larger size cannot be squared safely


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
        _check_shape(self.values, self.variables)
        _check_values(self.values, self.variables)

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


def chunks(values: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Pieces of a (row, variable) array, so that a mapped file is never loaded whole."""
    return (values[rows] for rows in pieces(values.shape, np.float64))


def _known_sum(part: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Sums of columns (column,) without what is missing."""
    total = part.sum(0, dtype=np.float64)
    if np.isnan(total).any():
        total = np.nansum(part, 0, dtype=np.float64)
    return np.asarray(total)


def _check_shape(values: npt.NDArray[Any], variables: tuple[str, ...]) -> None:
    if values.ndim != 2:
        raise InputError(
            f"Expected a table of rows (time) by columns (variables), found {values.ndim} "
            f"dimension(s) of shape {values.shape}."
        )
    rows, columns = values.shape
    if rows == 0 or columns == 0:
        raise InputError(f"The data is empty: {rows} rows and {columns} numeric columns.")
    if columns != len(variables):
        raise InputError(f"Found {columns} columns but {len(variables)} names.")
    if any("\0" in name for name in variables):
        raise InputError("A column's name must not hold the null character.")
    repeated = sorted({name for name in variables if variables.count(name) > 1})
    if repeated:
        raise InputError(f"Column names must differ; {repeated} appear more than once.")
    if columns > rows:
        raise InputError(
            f"The table has more columns ({columns}) than rows ({rows}): time must run down the "
            "rows and variables across the columns; transpose it."
        )


def check_finite(values: npt.NDArray[Any], variables: tuple[str, ...]) -> None:
    """Refuse infinite values, naming each column that holds one and its first row."""
    problems, start, seen = Problems(), 1, set[int]()
    for part in chunks(values):
        if np.isinf(part).any():
            for row, column in np.argwhere(np.isinf(part)).tolist():
                if column not in seen:
                    seen.add(column)
                    problems.add(
                        f"Column {variables[column]!r} holds an infinite value in row "
                        f"{start + row}; remove it or leave the cell empty."
                    )
        start += len(part)
    problems.raise_if_any()


def column_ranges(
    values: npt.NDArray[Any],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Smallest and largest known value per column; inf and -inf where there is none."""
    columns = values.shape[1]
    low, high = np.full(columns, np.inf), np.full(columns, -np.inf)
    for part in chunks(values):
        low = np.fmin(low, np.fmin.reduce(part, axis=0))
        high = np.fmax(high, np.fmax.reduce(part, axis=0))
    return low, high


def _check_values(values: npt.NDArray[Any], variables: tuple[str, ...]) -> None:
    """Refuse values that cannot be used, all of them in one message."""
    problems = Problems()
    low, high = column_ranges(values)
    if ((low == -np.inf) | (high == np.inf)).any():
        with problems.collected():
            check_finite(values, variables)
    for column, name in enumerate(variables):
        if not low[column] <= high[column]:
            problems.add(f"Column {name!r} holds no value at all; remove it.")
        elif np.isinf([low[column], high[column]]).any():
            continue  # said already
        elif high[column] - low[column] <= SMALLEST:
            problems.add(
                f"Column {name!r} is constant ({low[column]:g}): nothing can drive it or be "
                "driven by it; remove it."
            )
        elif max(-low[column], high[column]) >= LARGEST:
            problems.add(f"Column {name!r} holds values beyond {LARGEST:g}; rescale it.")
    with problems.collected():
        _check_duplicated_columns(values, variables, low, high)
    problems.raise_if_any()


def _check_duplicated_columns(
    values: npt.NDArray[Any],
    variables: tuple[str, ...],
    low: npt.NDArray[Any],
    high: npt.NDArray[Any],
) -> None:
    """Columns with the same range are compared value by value, until they differ."""
    seen: dict[tuple[float, float], list[int]] = {}
    pairs: list[tuple[int, int]] = []
    for column in np.flatnonzero(low < high).tolist():
        alike = seen.setdefault((float(low[column]), float(high[column])), [])
        pairs += [(other, column) for other in alike]
        alike.append(column)
    for part in chunks(values) if pairs else ():
        pairs = [(i, j) for i, j in pairs if np.array_equal(part[:, i], part[:, j], equal_nan=True)]
        if not pairs:
            return
    problems = Problems()
    for one, other in ((variables[i], variables[j]) for i, j in pairs):
        problems.add(
            f"Columns {one!r} and {other!r} hold the same values: which of them is the cause "
            "cannot be told; remove one."
        )
    problems.raise_if_any()
