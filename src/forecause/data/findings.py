"""What was done to a table on the way to a Panel, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from forecause.config.advice import Advice, sentence
from forecause.data.scratch import chunks
from forecause.errors import InputError, MissingExtra

ChangeKind = Literal[
    "read",
    "left out",
    "missing",
    "sorted",
    "averaged",
    "resampled",
    "chosen",
    "filled",
    "doubtful",
    "counter",
]
# Numerics:
SMALLEST, LARGEST = 1e-100, 1e100  # a smaller spread or larger size cannot be squared safely

# Looks:
MOST_SHOWN = 20  # problems listed in one message


@dataclass(frozen=True)
class Change:
    """One change of the table, or with kind `doubtful` something that was only noticed.

    `seen` tells the user, `count` is how many cells, rows or columns it concerns.
    """

    kind: ChangeKind
    seen: str
    count: int = 1
    column: str | None = None
    advice: tuple[Advice, ...] = ()
    value: float | None = None  # of a column that was left out because it never changes

    @property
    def sentence(self) -> str:
        """What happened, and what may help."""
        return sentence(self.seen.removesuffix("."), self.advice)


class SeveralProblems(InputError):
    """An InputError that lists more than one sentence."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self.sentences = tuple(sentences)
        shown = [f"({n}) {sentence}" for n, sentence in enumerate(sentences[:MOST_SHOWN], 1)]
        rest = len(sentences) - len(shown)
        shown += [f"And {rest} more."] if rest else []
        super().__init__(f"The data cannot be used for {len(sentences)} reasons: {' '.join(shown)}")


class Problems:
    """Collects what is wrong with a table, so that one message can list all of it."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def add(self, sentence: str) -> None:
        """Remember a problem; the same one is listed once."""
        if sentence not in self.sentences:
            self.sentences.append(sentence)

    @contextmanager
    def collected(self, where: str = "") -> Iterator[None]:
        """An InputError raised within becomes a problem of the list, and the work goes on."""
        try:
            yield
        except MissingExtra:
            raise
        except SeveralProblems as error:
            for sentence in error.sentences:
                self.add(f"In {where}: {sentence}" if where else sentence)
        except InputError as error:
            self.add(f"In {where}: {error}" if where else str(error))

    def raise_if_any(self) -> None:
        """Raise one InputError that lists everything."""
        if len(self.sentences) == 1:
            raise InputError(self.sentences[0])
        if self.sentences:
            raise SeveralProblems(self.sentences)


def counted(count: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def check_shape(values: npt.NDArray[Any], variables: tuple[str, ...]) -> None:
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


def check_values(values: npt.NDArray[Any], variables: tuple[str, ...]) -> None:
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
