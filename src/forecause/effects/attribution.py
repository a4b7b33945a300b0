"""Which input mattered for the forecasts of a finished run, and when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from forecause.data.panel import Panel, Scale
from forecause.data.windows import Windows
from forecause.effects.answering import Models
from forecause.errors import InputError
from forecause.forecast.attribution.over_time import attribution_over_time
from forecause.progress import QUIET, Progress
from forecause.result import Result


def attribution_of_run(
    found: Result,
    target: str,
    rows: slice | None = None,
    readout: str = "input-gradient",
    *,
    bins: int | None = None,
    data: Any = None,
    progress: Progress = QUIET,
) -> xr.Dataset:
    """`attribution_over_time` of a run's causal forecaster in rows of its data or of `data`."""
    panel = _with_domains(found, found.deseasonalised_panel(data))
    scale = Scale(found.data.mean, found.data.sd)
    windows = replace(Windows.of(panel, found.graph.max_lag), scale=scale)
    if rows is not None:
        first, end, step = rows.indices(panel.rows)
        wanted = np.isin(windows.rows, np.arange(first, end, step))
        windows = windows.at(np.flatnonzero(wanted))
        if not len(windows):
            raise InputError(
                f"None of the rows {first} to {end - 1} can be forecast: each needs "
                f"{found.graph.max_lag} complete rows before it; ask for others of the "
                f"{panel.rows}."
            )
    return attribution_over_time(
        Models.of(found).causal, windows, target, readout=readout, bins=bins, progress=progress
    )


def _with_domains(found: Result, panel: Panel) -> Panel:
    """The panel with the domains that the run gave it, checked against those it was fitted to."""
    regimes = found.regimes
    if found.config.forecasting.per_series:
        panel = panel.with_domain(panel.series, panel.series_names)
    elif regimes is not None and len(regimes.names) > 1 and len(regimes.of_row) == panel.rows:
        panel = regimes.applied(panel)
    fitted = tuple(found.data.domain_windows)
    if found.forecaster.domains and panel.domain_names != fitted:
        raise InputError(
            f"Expected data with the domains {', '.join(fitted)}, found "
            f"{', '.join(panel.domain_names) or 'none'}; pass the data of the run."
        )
    return panel
