"""Result: what a run found, as plain data. `Discovery` adds what can be asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import xarray as xr

from forecause.config import Config
from forecause.config.thresholds import using
from forecause.data.panel import Panel
from forecause.data.summary import DataSummary, Timing, timing
from forecause.data.windows import Windows
from forecause.diagnostics.finding import Finding
from forecause.diagnostics.power import Power
from forecause.diagnostics.regimes import Regimes
from forecause.errors import InputError
from forecause.forecast.causal import Causal
from forecause.forecast.forecaster import Forecaster
from forecause.graph.lagged import LaggedGraph
from forecause.seasons.course import time_taken_out


@dataclass(frozen=True, eq=False)
class Result:
    """The graph, the scores behind it, and the forecaster they were read from."""

    graph: LaggedGraph
    relevance: xr.Dataset  # statistics over (target, source, lag); see attribute.relevance
    forecaster: Forecaster
    losses: pd.DataFrame  # held-out squared error per variable and candidate; which was chosen
    config: Config
    data: DataSummary
    evidence: dict[str, Any] = field(default_factory=dict)  # for the page; see report.evidence
    findings: tuple[Finding, ...] = ()  # what the diagnosis saw, the gravest first
    causal: Causal | None = None  # every target fitted again on its causes; None before 0.3
    measured_power: Power | None = None  # what `power` found, if it was asked for
    regimes: Regimes | None = None  # when the mechanism changes, if it was asked for
    panel: Panel | None = None  # the data as it was read; not saved with the run
    windows: Windows | None = None  # what was fitted and read; not saved with the run
    # held-out negative log-likelihood, laid out like `losses`, where the choice went by it: if a
    # head other than mse took part
    nll: pd.DataFrame | None = None

    @property
    def scores(self) -> xr.DataArray:
        """What candidates are ranked by, (target, source, lag).

        Their relevance; where tests choose the edges, less of it the less chance is excluded.
        """
        return self.relevance.get("score", self.relevance["relevance"])

    @property
    def alerts(self) -> tuple[Finding, ...]:
        """The findings that are reasons to look again: all but notes; empty is good."""
        return tuple(finding for finding in self.findings if finding.gravity != "note")

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why no error rate can be promised, for all links or for some, in sentences."""
        return tuple(finding.sentence for finding in self.findings if finding.gravity == "doubt")

    @property
    def summary(self) -> pd.DataFrame | None:
        """Whether one variable drives another at any lag: source, target, p, q.

        Each pair is tested over all lags, with a false discovery rate of its own: keep what has a
        q of at most the accepted share. None where edges are not chosen by tests.
        """
        return self.graph.summary

    @property
    def timing(self) -> Timing:
        """When the rows were taken, as far as it is known."""
        if self.panel is not None:
            return timing(self.panel)
        return dict(self.evidence.get("time", {}))

    def panel_of(self, data: Any = None) -> Panel:
        """The data of the run, or `data` with the same variables."""
        if data is None and self.panel is not None:
            return self.panel
        with using(self.config.thresholds):
            if data is None:
                return self.data.read_again()
            panel = Panel.of(data, **self.config.data.reading)
        if panel.coding.variables != self.data.variables:
            absent = [v for v in self.data.variables if v not in panel.coding.variables]
            why = f"; there is no {absent[0]!r} that varies" if absent else ""
            raise InputError(
                f"Expected the variables of the run, {', '.join(self.data.variables)}, in this "
                f"order; found {', '.join(panel.coding.variables)}{why}."
            )
        return panel

    def deseasonalised_panel(self, data: Any = None, panel: Panel | None = None) -> Panel:
        """The same without what time alone explains, which is what the forecaster was fitted to."""
        with using(self.config.thresholds):
            return time_taken_out(self.panel_of(data) if panel is None else panel, self.config)
