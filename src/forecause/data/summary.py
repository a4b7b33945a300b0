"""What is remembered of the data once it is gone; when its rows were taken, in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.common.views import card
from forecause.data.findings import counted
from forecause.data.panel import Panel
from forecause.data.variables import Label, Variables
from forecause.data.windows import Window, Windows
from forecause.errors import InputError

if TYPE_CHECKING:
    from forecause.seasons.course import TimeCourse

# Looks:
SHOWN_VARIABLES = 20  # in a notebook

# Time and memory:
SAMPLE_WINDOWS = 200  # kept with a run for later looks, such as interventions
RECENT = 200  # stamps at a series' end from which its calendar is read

UNITS = (  # seconds, one, several
    (604_800.0, "week", "weeks"),
    (86_400.0, "day", "days"),
    (3_600.0, "hour", "hours"),
    (60.0, "minute", "minutes"),
    (1.0, "second", "seconds"),
    (1e-3, "millisecond", "milliseconds"),
    (1e-6, "microsecond", "microseconds"),
)
CALENDAR = ((12, "year", "years"), (3, "quarter", "quarters"), (1, "month", "months"))
MONTHS = {"M": 1, "Q": 3, "Y": 12}  # of pandas' codes, such as MS or QE-DEC
CODE = re.compile(r"(\d*)([MQY])(?:S|E)?(?:-[A-Z]{3})?$")

Timing = dict[str, Any]


@dataclass(frozen=True, repr=False)
class DataSummary:
    """What a run remembers of its data: enough to describe it and to forecast onwards.

    A variable of labels has one column per level; any other is a column.
    """

    variables: tuple[str, ...]
    rows: int
    windows: int
    missing_share: float
    lost_share: float  # of the possible windows, to missing values and gaps
    series_names: tuple[str, ...]
    notes: tuple[str, ...]
    fingerprint: str
    mean: npt.NDArray[np.float64]  # (column,)
    sd: npt.NDArray[np.float64]  # (column,)
    latest: npt.NDArray[np.float64]  # (series, max_lag, column), the end of each series
    sample: npt.NDArray[np.float64]  # (window, max_lag + 1, column), from all over the data
    domain_windows: Mapping[str, int] = field(default_factory=dict)  # of every domain or regime
    latest_domain: tuple[int, ...] = ()  # (series,) where there are domains
    sample_domain: tuple[int, ...] = ()  # (window,) where there are domains
    source: Mapping[str, Any] | None = None  # files and columns the data was read from
    labels: tuple[Label, ...] = ()  # the variables that are no numbers
    course: TimeCourse | None = None  # what time explained; means, ends and samples are without it

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns: of variables, and of the levels of labels."""
        levels = {label.name: label.column_names for label in self.labels}
        return tuple(c for name in self.variables for c in levels.get(name, (name,)))

    @property
    def coding(self) -> Variables:
        """Which columns belong to which variable."""
        return Variables.of(self.columns, self.labels)

    @property
    def variable_sd(self) -> npt.NDArray[np.float64]:
        """Standard deviation of every variable, (variable,); of a label, of the level shown."""
        return np.asarray(self.sd[self.coding.shown(self.mean)])

    def __repr__(self) -> str:
        return f"DataSummary({self._title})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        mean = self.mean[self.coding.shown(self.mean)]
        own = {"variable": self.variables, "mean": mean, "sd": self.variable_sd}
        more = len(self.variables) - SHOWN_VARIABLES
        rest = [f"The first {SHOWN_VARIABLES} of {len(self.variables)} variables:"]
        lines = [*self.notes, *(rest if more > 0 else [])]
        return card(self._title, lines, pd.DataFrame(own).head(SHOWN_VARIABLES))

    @property
    def _title(self) -> str:
        lost = f", {self.lost_share:.1%} of them lost to gaps" if self.lost_share else ""
        names = counted(len(self.variables), "variable")
        return f"{names}, {counted(self.rows, 'row')}, {counted(self.windows, 'window')}{lost}"

    @classmethod
    def of(
        cls,
        windows: Windows,
        fingerprint: str | None = None,
        source: Mapping[str, Any] | None = None,
    ) -> DataSummary:
        """Summarise the panel behind the windows.

        `fingerprint` is that of the data as read, if it differs from the panel's.
        """
        panel, sample = windows.panel, _sample(windows)
        last = [] if panel.domain is None else [int(panel.domain[e - 1]) for _, e in panel.spans]
        latest = np.full((len(panel.spans), windows.max_lag, len(panel.variables)), np.nan)
        for place, (first, end) in enumerate(panel.spans):
            rows = panel.values[max(first, end - windows.max_lag) : end]
            latest[place, windows.max_lag - len(rows) :] = rows
        return cls(
            variables=panel.coding.variables,
            rows=panel.rows,
            windows=len(windows),
            missing_share=panel.missing_share,
            lost_share=windows.lost_share,
            series_names=panel.series_names,
            notes=panel.notes,
            fingerprint=fingerprint or panel.fingerprint(),
            mean=windows.scale.mean,
            sd=windows.scale.sd,
            latest=latest,
            sample=sample.rows.astype(np.float64),
            sample_domain=() if sample.domain is None else tuple(sample.domain.tolist()),
            domain_windows=_domain_windows(windows),
            latest_domain=tuple(last),
            source=source,
            labels=panel.labels,
            course=panel.course,
        )

    @property
    def sampled(self) -> Window:
        """The kept windows, as a forecaster reads them."""
        domain = np.array(self.sample_domain) if self.sample_domain else None
        return Window.of(self.sample.astype(np.float32), domain)

    def read_again(self, data: Any = None) -> Panel:
        """The data itself: as given, or read again from where it came from."""
        options = dict(self.source or {})
        paths = options.pop("paths", None)
        if data is None and paths is None:
            raise InputError(
                "A saved run does not hold its data, and this one was not read from a file; give "
                "the data again (data=)."
            )
        panel = Panel.of(paths if data is None else data, **options)
        if panel.fingerprint() != self.fingerprint:
            where = ", ".join(paths) if data is None else "the data given"
            raise InputError(f"This is not the data that the run was made of any more: {where}.")
        return panel


def _sample(windows: Windows) -> Window:
    """Windows evenly spread over time."""
    places = np.linspace(0, len(windows) - 1, min(SAMPLE_WINDOWS, len(windows)))
    return windows.draw(np.unique(places.astype(np.int64)))


def _domain_windows(windows: Windows) -> dict[str, int]:
    if windows.panel.domain is None:
        return {}
    names = windows.panel.domain_names
    counts = np.bincount(windows.panel.domain[windows.rows], minlength=len(names))
    return dict(zip(names, counts.tolist(), strict=True))


def source_of(panel: Panel) -> dict[str, Any] | None:
    """Where the panel was read from, if from files: their paths and the options used."""
    return {"paths": list(panel.paths), **panel.reading} if panel.paths else None


def timing(panel: Panel) -> Timing:
    """How the data was sampled; `step` is in seconds for dates, in the column's units else.

    Dates also have the calendar's code where one fits (`freq`, `months`), and the last stamp of
    every series.
    """
    if panel.time is None:
        return {"kind": "rows", "step": None}
    inner = np.diff(panel.series) == 0
    if panel.time.dtype.kind in "Mm":
        nanoseconds = panel.time.astype(f"{panel.time.dtype.kind}8[ns]").astype(np.int64)
        steps = np.diff(nanoseconds)[inner] / 1e9
        kind = "dates"
    else:
        steps = np.diff(panel.time.astype(np.float64))[inner]
        kind = "numbers"
    step = float(f"{np.median(steps):.9g}") if len(steps) else None
    freq = _calendar(panel) if panel.time.dtype.kind == "M" else None
    code = CODE.match(freq) if freq is not None else None
    months = MONTHS[code[2]] * int(code[1] or 1) if code else None
    ends = [_plain(panel.time[end - 1]) if end else None for _, end in panel.spans]
    return {"kind": kind, "step": step, "freq": freq, "months": months, "ends": ends}


def sampling_text(time: Timing) -> str:
    """One row every what?"""
    if time.get("kind") == "dates" and time.get("step"):
        return "every " + _span(1, time)
    if time.get("kind") == "numbers" and time.get("step"):
        step = f"{time['step']:g}"
        return f"every {'unit' if step == '1' else step + ' units'} of the time column"
    return "in the order of the rows"


def duration(seconds: float) -> str:
    """A number of seconds in the largest unit that divides it evenly enough."""
    for size, one, several in UNITS:
        count = seconds / size
        parts = 1 if size == UNITS[0][0] else 4  # whole weeks, quarters of a day
        if count >= 1 and abs(count * parts - round(count * parts)) < 1e-6:
            return one if count == 1 else f"{count:g} {several}"
    return f"{seconds:g} seconds"


def lag_text(lag: int, time: Timing) -> str:
    """A lag in rows, and in time where that is known."""
    rows = "the same row" if lag == 0 else f"{lag} row{'s' if lag > 1 else ''}"
    if lag and time.get("kind") == "dates" and time.get("step"):
        return f"{rows} ({delay_text(lag, time)})"
    return rows


def delay_text(lag: int, time: Timing) -> str:
    """A lag in the data's own time, in rows where that is unknown."""
    if not (time.get("kind") == "dates" and time.get("step")):
        return lag_text(lag, time)
    span = _span(lag, time)
    return span if span[0].isdigit() else f"1 {span}"


def rows_to_come(time: Timing, series: int, steps: int) -> pd.Index | None:
    """The times of the next rows of a series; None where the data has no times."""
    ends, step = time.get("ends"), time.get("step")
    if not ends or step is None or ends[series] is None:
        return None
    if time["kind"] == "numbers":
        return pd.Index(ends[series] + step * np.arange(1, steps + 1), name="time")
    try:
        end = pd.Timestamp(ends[series])
        freq = time.get("freq") or pd.Timedelta(seconds=step)
        return pd.date_range(end, periods=steps + 1, freq=freq, name="time")[-steps:]
    except (ValueError, OverflowError):
        return None  # a duration, or beyond the last year that pandas knows


def _span(rows: int, time: Timing) -> str:
    """Some rows' time without a leading 1."""
    months = time.get("months")
    if not months:
        return duration(rows * float(time["step"]))
    for size, one, several in CALENDAR:
        in_months = size == 3 and months % 3  # one says 3 months, unless rows are quarters
        if rows * months % size == 0 and not in_months:
            count = rows * months // size
            return one if count == 1 else f"{count} {several}"
    raise AssertionError("every number is a multiple of 1")


def _calendar(panel: Panel) -> str | None:
    """pandas' code for the calendar of the last series' last stamps."""
    assert panel.time is not None
    stamps = pd.DatetimeIndex(panel.time[panel.series == panel.series[-1]][-RECENT:])
    with catch_warnings():
        simplefilter("ignore")  # pandas announces that it will answer with an object
        try:
            code: Any = pd.infer_freq(stamps)
        except (TypeError, ValueError):  # too few, or not in order
            return None
    return getattr(code, "freqstr", code)


def _plain(moment: Any) -> str | float | None:
    if isinstance(moment, np.datetime64):
        return None if np.isnat(moment) else pd.Timestamp(moment).isoformat()
    if isinstance(moment, np.timedelta64):
        return str(moment)
    return float(moment) if np.isfinite(float(moment)) else None
