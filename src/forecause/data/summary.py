"""DataSummary: what is remembered of the data once the data itself is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from forecause.data.findings import counted
from forecause.data.panel import Panel
from forecause.data.variables import Label, Variables
from forecause.data.windows import Window, Windows
from forecause.errors import InputError
from forecause.views import card

if TYPE_CHECKING:
    from forecause.seasons.course import TimeCourse

# Looks:
SHOWN_VARIABLES = 20  # in a notebook

# Time and memory:
SAMPLE_WINDOWS = 200  # kept with a run for later looks, such as interventions


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
