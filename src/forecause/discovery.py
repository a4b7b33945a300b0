"""Discovery: what a run found, and what can be done with it afterwards."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
import xarray as xr

from forecause.data.windows import Windows
from forecause.errors import InputError
from forecause.forecast.base import Forecaster
from forecause.graph.lagged import LaggedGraph

if TYPE_CHECKING:
    from forecause.alerts import Alert
    from forecause.forecast.base import Report
    from forecause.pipeline import DiscoverSettings
    from forecause.power import Power
    from forecause.report.plots import Plots

SAMPLE_WINDOWS = 200  # kept with a run for later looks, such as interventions


@dataclass(frozen=True)
class DataSummary:
    """What a run remembers of its data: enough to describe it and to forecast onwards."""

    variables: tuple[str, ...]
    rows: int
    windows: int
    missing_share: float
    lost_share: float  # of the possible windows, to missing values and gaps
    series_names: tuple[str, ...]
    notes: tuple[str, ...]
    fingerprint: str
    mean: npt.NDArray[np.float64]  # (variable,)
    sd: npt.NDArray[np.float64]  # (variable,)
    latest: npt.NDArray[np.float64]  # (series, max_lag, variable), the end of each series
    sample: npt.NDArray[np.float64]  # (window, max_lag + 1, variable), standardised, over all time

    @classmethod
    def of(cls, windows: Windows) -> DataSummary:
        """Summarise the panel behind the windows."""
        panel = windows.panel
        ends = [
            np.flatnonzero(panel.series == s)[-windows.max_lag :]
            for s in range(len(panel.series_names))
        ]
        latest = np.full((len(ends), windows.max_lag, len(panel.variables)), np.nan)
        for place, rows in enumerate(ends):
            latest[place, windows.max_lag - len(rows) :] = panel.values[rows]
        return cls(
            variables=panel.variables,
            rows=panel.rows,
            windows=len(windows),
            missing_share=panel.missing_share,
            lost_share=windows.lost_share,
            series_names=panel.series_names,
            notes=panel.notes,
            fingerprint=panel.fingerprint(),
            mean=windows.scale.mean,
            sd=windows.scale.sd,
            latest=latest,
            sample=_sample(windows),
        )


def _sample(windows: Windows) -> npt.NDArray[np.float64]:
    """Windows evenly spread over time, (window, max_lag + 1, variable)."""
    places = np.linspace(0, len(windows) - 1, min(SAMPLE_WINDOWS, len(windows)))
    return np.asarray(windows.draw(np.unique(places.astype(np.int64))), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Discovery:
    """The graph, the scores behind it, and the forecaster they were read from."""

    graph: LaggedGraph
    relevance: xr.Dataset  # statistics over (target, source, lag); see attribute.stream
    forecaster: Forecaster
    losses: pd.DataFrame  # held-out loss per variable and candidate, and which was chosen
    settings: DiscoverSettings
    data: DataSummary
    evidence: dict[str, Any] = field(default_factory=dict)  # for the page; see report.evidence
    alerts: tuple[Alert, ...] = ()  # reasons for doubt; empty is good
    measured_power: Power | None = None  # what `power` found, if it was asked for

    @property
    def scores(self) -> xr.DataArray:
        """What edges were chosen by, (target, source, lag)."""
        return self.relevance["relevance"]

    @torch.no_grad()
    def forecast(self, steps: int = 1, series: str | None = None) -> pd.DataFrame:
        """Forecast the next steps of a series (the last one by default), in the data's units."""
        if steps < 1:
            raise InputError(f"The number of steps must be at least 1, found {steps}.")
        names = self.data.series_names
        if series is not None and series not in names:
            raise InputError(f"Unknown series {series!r}; choose one of {', '.join(names)}.")
        end = self.data.latest[names.index(series) if series else -1]
        if np.isnan(end).any():
            raise InputError(
                f"The last {len(end)} rows of the series hold missing values, so there is nothing "
                "to forecast from; fill them (interpolate) or drop the incomplete rows."
            )
        past = torch.from_numpy(((end - self.data.mean) / self.data.sd).astype(np.float32))
        rows = []
        for _ in range(steps):
            following = self.forecaster(past[None])
            past = torch.cat([past[1:], following])
            rows.append(following[0].numpy() * self.data.sd + self.data.mean)
        index = pd.RangeIndex(1, steps + 1, name="step")
        return pd.DataFrame(np.stack(rows), index=index, columns=list(self.data.variables))

    def power(
        self, seed: int = 0, repeats: int | None = None, report: Report | None = None
    ) -> Power:
        """Which of its edges a run like this one would find again, by their strength.

        Simulates from the forecaster along the graph and rediscovers; see forecause.power.
        """
        from forecause.power import measure_power

        return measure_power(self, seed=seed, repeats=repeats, report=report)

    def with_power(
        self, seed: int = 0, repeats: int | None = None, report: Report | None = None
    ) -> Discovery:
        """This run together with its `power`, which is then saved and reported with it."""
        return replace(self, measured_power=self.power(seed, repeats, report))

    @property
    def plot(self) -> Plots:
        """Figures of this run: `plot.graph()`, `plot.heatmap()`, ...; axes in, axes out."""
        from forecause.report.plots import Plots

        return Plots(self)

    def report(
        self,
        path: str | Path = "report.html",
        *,
        compare: Discovery | None = None,
        truth: LaggedGraph | None = None,
    ) -> Path:
        """Write the one-page report, beside another run or the true graph if given."""
        from forecause.report.page import write_report

        return write_report(self, Path(path), compare=compare, truth=truth)

    def save(self, folder: str | Path) -> Path:
        """Save the run; `forecause.load(folder)` gives it back."""
        from forecause.store import save

        return save(self, Path(folder))

    def __repr__(self) -> str:
        return (
            f"Discovery({len(self.graph)} edges among {len(self.data.variables)} variables, "
            f"max_lag={self.graph.max_lag}, forecaster={self.forecaster.kind!r})"
        )
