"""Discovery: what a run found, and what can be done with it afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import xarray as xr

from forecause.data.summary import DataSummary
from forecause.forecast.forecaster import Forecaster
from forecause.graph.lagged import LaggedGraph
from forecause.progress import QUIET, Progress
from forecause.resources.workers import HERE, Workers

if TYPE_CHECKING:
    from forecause.data.panel import Panel
    from forecause.diagnostics.alerts import Alert
    from forecause.diagnostics.power import Power
    from forecause.diagnostics.regimes import Regimes
    from forecause.evaluate import Evaluation, Refit
    from forecause.method import DiscoverSettings
    from forecause.refine.instantaneous import InstantaneousMethod
    from forecause.report.plots import Plots
from forecause.effects.what_if import Effect


@dataclass(frozen=True, eq=False)
class Discovery:
    """The graph, the scores behind it, and the forecaster they were read from."""

    graph: LaggedGraph
    relevance: xr.Dataset  # statistics over (target, source, lag); see attribute.stream
    forecaster: Forecaster
    losses: pd.DataFrame  # held-out squared error per variable and candidate; which was chosen
    settings: DiscoverSettings
    data: DataSummary
    evidence: dict[str, Any] = field(default_factory=dict)  # for the page; see report.evidence
    alerts: tuple[Alert, ...] = ()  # reasons for doubt; empty is good
    measured_power: Power | None = None  # what `power` found, if it was asked for
    regimes: Regimes | None = None  # when the mechanism changes, if it was asked for
    panel: Panel | None = None  # the data; not saved with the run
    # held-out negative log-likelihood, laid out like `losses`, where the choice went by it: if a
    # head other than mse took part
    surprise: pd.DataFrame | None = None

    @property
    def scores(self) -> xr.DataArray:
        """What edges were chosen by, (target, source, lag)."""
        return self.relevance["relevance"]

    def forecast(self, steps: int = 1, series: str | None = None) -> pd.DataFrame:
        """Forecast the next steps of a series (the last one by default), in the data's units.

        Of a variable of labels, the probability of each level, in columns named variable=level.
        """
        from forecause.effects.what_if import future

        return future(self, steps, series)

    def effect(self, source: str, target: str, lag: int) -> Effect:
        """What raising a variable by one sd does to the forecast of another `lag` rows later."""
        from forecause.effects.what_if import effect

        return effect(self, source, target, lag)

    def simulate_do(
        self,
        do: Mapping[str, Any],
        steps: int,
        series: str | None = None,
        draws: int = 0,
        seed: int = 0,
    ) -> pd.DataFrame:
        """The future of a series if some variables are held at a value, or at one per step.

        Compare with `forecast(steps)`. `draws` futures with noise instead of their mean course.
        A variable of labels is held at a level; in a draw, one of its columns is 1.
        """
        from forecause.effects.what_if import future

        return future(self, steps, series, do, draws, seed)

    def refine(
        self,
        *,
        latent: bool = False,
        instantaneous: bool = False,
        method: InstantaneousMethod = "pcmci+",
        data: Any = None,
        progress: Progress = QUIET,
    ) -> Discovery:
        """This run with its graph refined for hidden common causes, or for effects within a row.

        A run that was loaded reads its data again from where it came from, or from `data`.
        """
        from forecause.refine.run import refine

        return refine(
            self,
            latent=latent,
            instantaneous=instantaneous,
            method=method,
            data=data,
            progress=progress,
        )

    def evaluate(
        self,
        steps: int = 12,
        origins: int = 5,
        *,
        season: int | Literal["auto"] | None = "auto",
        refit: Refit = "auto",
        data: Any = None,
        progress: Progress = QUIET,
    ) -> Evaluation:
        """How well this run's forecaster predicts rows it was not fitted to, beside simple rivals.

        Fits again on what came before each origin; see forecause.evaluate.
        """
        from forecause.evaluate import evaluate

        return evaluate(
            self,
            data=data,
            steps=steps,
            origins=origins,
            season=season,
            refit=refit,
            progress=progress,
        )

    def attribution_over_time(
        self,
        target: str,
        rows: slice | None = None,
        readout: str = "input-gradient",
        *,
        bins: int | None = None,
        data: Any = None,
    ) -> xr.Dataset:
        """Which input mattered for the forecast of a target, and when: (time, source, lag)."""
        from forecause.attribute.over_time import attribution_of_run

        return attribution_of_run(self, target, rows, readout, bins=bins, data=data)

    def power(
        self,
        seed: int = 0,
        repeats: int | None = None,
        progress: Progress = QUIET,
        workers: Workers = HERE,
    ) -> Power:
        """Which of its edges a run like this one would find again, by their strength.

        Simulates from the forecaster along the graph and rediscovers; see diagnostics.power.
        """
        from forecause.diagnostics.power import measure_power

        return measure_power(self, seed=seed, repeats=repeats, progress=progress, workers=workers)

    def with_power(
        self,
        seed: int = 0,
        repeats: int | None = None,
        progress: Progress = QUIET,
        workers: Workers = HERE,
    ) -> Discovery:
        """This run together with its `power`, which is then saved and reported with it."""
        return replace(self, measured_power=self.power(seed, repeats, progress, workers))

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
