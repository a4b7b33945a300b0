"""Dates as people write them, read from a column of text or numbers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from datetime import date
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.data.cells import as_objects

Array = npt.NDArray[Any]

DATE = re.compile(r"\s*(\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|(\d{4}-(0[1-9]|1[0-2])|\d{1,2}/\d{4})\s*$)")
FORMS = ("ISO8601", "%b %Y", "%B %Y", "%Y %b", "%Y %B", "%b-%Y", "%b-%y", "%d-%b-%y", "%m/%Y")
IN_WORDS = re.compile(r"\s*((\d{1,2}[- ])?[^\W\d]{3,9}[- ]\d{2,4}|\d{4}[- ]?[^\W\d]{3,9})\s*")
# 2010Q1, 2010-Q1, Q1 2010; 2010M01, 2010-M1; 2010-W05
PERIOD = re.compile(r"\s*(?:(\d{4})[-/ ]?([QqMmWw])(\d{1,2})|[Qq]([1-4])[-/ ]?(\d{4}))\s*")
# 25.10.2022, 10/25/22 2:05 PM: which number is the day does not show in one of them
THREE_NUMBERS = re.compile(
    r"\d{1,2}([-/.])\d{1,2}\1(\d{4}|\d{2})(?:( )\d{1,2}(:\d\d)(:\d\d)?( ?[ap]m)?)?", re.IGNORECASE
)


def looks_like_dates(values: Array) -> bool:
    """Whether the first cell of a column is text that has the look of a date."""
    if values.dtype.kind not in "OU" or not len(values):
        return False
    first = values[0]
    forms = (DATE.match, PERIOD.fullmatch, IN_WORDS.fullmatch)
    return isinstance(first, str) and any(form(first) for form in forms)


def are_dates(values: Array) -> bool:
    """Whether text can be read as dates, such as months in words."""
    read = dates_or_numbers(values) if values.dtype.kind in "OU" and len(values) else None
    return read is not None and read.dtype.kind == "M"


def dates_or_numbers(values: Array) -> Array | None:
    """A column (row,) with NaT or NaN where a cell is missing; None if it holds neither."""
    if values.dtype.kind in "Mm":
        return values
    if values.dtype.kind in "iuf":
        return _compact_dates(values)
    if values.dtype.kind not in "OU":
        return None
    cells = as_objects(values)
    try:
        as_numbers = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64)
    except OverflowError:
        return None  # whole numbers beyond all floats
    if (np.isnan(as_numbers) == cells.isna().to_numpy()).all():
        return _compact_dates(as_numbers)
    readings = [dates for _, dates in _by_order(cells)]
    if readings:
        return min(readings, key=_unevenness)
    return next(_by_form(cells.map(_start_of_period)), None)


def order_chosen(values: Array) -> str:
    """`day.month.year` where the dates of a column could also be read in another order."""
    if values.dtype.kind not in "OU":
        return ""
    readings = _by_order(as_objects(values))
    if len(readings) < 2:
        return ""
    form, _ = min(readings, key=lambda reading: _unevenness(reading[1]))
    names = {"d": "day", "m": "month", "y": "year", "Y": "year"}
    return re.sub("%(.)", lambda match: names[match[1]], form.split(" ")[0])


def first_unreadable(values: Array) -> int:
    """The row of the first cell that is no date."""
    if values.dtype.kind not in "OU":
        return 0
    cells = as_objects(values)
    dates = pd.to_datetime(cells, errors="coerce", utc=True, format="ISO8601")
    odd = np.flatnonzero(dates.isna() & cells.notna())
    return int(odd[0]) if len(odd) else 0


def _by_order(cells: pd.Series[Any]) -> list[tuple[str, Array]]:
    """Dates of three numbers in every order that all cells allow, the more usual order first."""
    first = next((cell for cell in cells if isinstance(cell, str)), "")
    match = THREE_NUMBERS.fullmatch(first.strip())
    if match is None:
        return []
    mark, digits, clock, _, seconds, half = match.groups()
    year = "%Y" if len(digits) == 4 else "%y"
    orders = [("%m", "%d", year), ("%d", "%m", year)]
    if mark == ".":
        orders.reverse()
    if year == "%y":
        orders.append((year, "%m", "%d"))
    time = f" {'%I' if half else '%H'}:%M{':%S' if seconds else ''}" if clock else ""
    if half:
        time += half[:-2] + "%p"
    found: list[tuple[str, Array]] = []
    for form in (mark.join(order) + time for order in orders):
        dates = _dates(cells, format=form)
        if dates is not None and not any(np.array_equal(dates, other) for _, other in found):
            found.append((form, dates))
    return found


def _unevenness(dates: Array) -> float:
    """The longest step between dates over the usual one; the wrong order makes great leaps."""
    steps = np.diff(np.unique(dates[~np.isnat(dates)])).astype(np.float64)
    return float(steps.max() / np.median(steps)) if len(steps) else 1.0


def _by_form(cells: pd.Series[Any]) -> Iterator[Array]:
    """Dates in all other forms, read in every way that works."""
    known: list[dict[str, Any]] = [{"format": form} for form in FORMS]
    for form in (*known, {}, {"dayfirst": True}):
        dates = _dates(cells, **form)
        if dates is not None:
            yield dates


def _dates(cells: pd.Series[Any], **form: Any) -> Array | None:
    """All cells in one form, as times of UTC without their zone; None if one is not in it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            dates = pd.to_datetime(cells, utc=True, **form)
        except (ValueError, TypeError, OverflowError):
            return None
    if any("infer format" in str(warning.message) for warning in caught):  # no guessing
        return None
    return np.asarray(dates.dt.tz_localize(None).to_numpy())


def _start_of_period(cell: Any) -> Any:
    """The first day of a quarter, month or week, such as 2010Q1; other cells as they are."""
    if isinstance(cell, pd.Period):
        return cell.to_timestamp()
    match = PERIOD.fullmatch(cell) if isinstance(cell, str) else None
    if match is None:
        return cell
    year, unit, number, quarter, year_after = match.groups()
    year, place = int(year or year_after), int(number or quarter)
    months = {"Q": 3, "M": 1}.get((unit or "Q").upper())
    try:
        if months is None:
            return str(date.fromisocalendar(year, place, 1))
        return str(date(year, months * (place - 1) + 1, 1))
    except ValueError:
        return cell


def _compact_dates(values: Array) -> Array:
    """Whole numbers such as 20240131 are dates; others stay numbers."""
    values = values.astype(np.float64)
    likely = (values > 19_000_000) & (values < 22_000_000) & (values == np.floor(values))
    if len(values) < 2 or not likely.all():
        return values
    text = pd.Series(values.astype(np.int64).astype(str))
    dates = pd.to_datetime(text, format="%Y%m%d", errors="coerce").to_numpy()
    return values if np.isnat(dates).any() else np.asarray(dates)
