"""The whole path: table -> panel -> windows -> forecaster -> relevance -> graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from pydantic import Field, ValidationError

from forecause.attribute import relevance as read_relevance
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.discovery import DataSummary, Discovery
from forecause.errors import InputError
from forecause.forecast import Forecaster, fit_forecaster
from forecause.forecast.base import Report, Settings, silent
from forecause.forecast.choice import Choice
from forecause.forecast.significance import edge_p_values
from forecause.graph import select as rules
from forecause.graph.fdr import adjusted_p_values
from forecause.graph.lagged import LaggedGraph
from forecause.options import ByName, ForecasterName, PresetName, ReadoutName, RuleName

READ_WINDOWS = 2000  # windows the relevance is averaged over
LEAST_SHARE = 0.01  # of what moves a target, below which an input is not called a cause
PAPER_RULES = {"forecaster": "transformer", "readout": "lrp", "select": "top-k", "k": 3}


class DiscoverSettings(Settings):
    """Everything that decides a run besides the data; saved with it."""

    max_lag: int = Field(default=5, ge=1)
    forecaster: ForecasterName = "auto"
    preset: PresetName = "default"
    readout: ReadoutName = "gradient"
    select: RuleName = "auto"
    by: ByName = "score"  # what top-k and global-top-k compare
    k: int = Field(default=3, ge=1)
    fdr: float = Field(default=0.01, gt=0, lt=1)
    held_out: float = Field(default=0.2, gt=0, lt=0.9)
    seed: int = Field(default=0, ge=0)
    device: str = "auto"


def discover(
    data: Any,
    max_lag: int = 5,
    *,
    time: str | None = None,
    series: str | None = None,
    domain: str | None = None,
    interpolate: int = 0,
    report: Report = silent,
    **settings: Any,
) -> Discovery:
    """Find which variable drives which, with which delay.

    `data` is a table (pandas, polars, pyarrow, xarray, numpy), a path, or a list of them for
    several series. Further settings are the fields of DiscoverSettings, by name.
    """
    chosen = make_settings(max_lag=max_lag, **settings)
    panel = Panel.of(data, time=time, series=series, domain=domain, interpolate=interpolate)
    windows = Windows.of(panel, chosen.max_lag)
    forecaster, losses = fit_forecaster(
        chosen.forecaster,
        windows,
        preset=chosen.preset,
        held_out=chosen.held_out,
        seed=chosen.seed,
        device=pick_device(chosen.device),
        report=report,
    )
    sample = windows.sample(READ_WINDOWS, np.random.default_rng(chosen.seed))
    found = read_relevance(forecaster, sample, chosen.readout, report)
    found["p_value"] = _p_values(windows, forecaster, chosen, like=found["relevance"])
    return Discovery(
        graph=_graph(found, chosen),
        relevance=found,
        forecaster=forecaster.cpu(),
        losses=losses,
        settings=chosen,
        data=DataSummary.of(windows),
    )


def make_settings(**settings: Any) -> DiscoverSettings:
    """Checked settings; `preset='paper'` brings the paper's rules unless they are overridden."""
    if settings.get("preset") == "paper":
        settings = PAPER_RULES | settings
    try:
        return DiscoverSettings(**settings)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InputError(f"The setting {name}={first['input']!r}: {first['msg']}.") from None


def pick_device(asked: str) -> str:
    """`auto` takes CUDA or Apple's GPU when there is one."""
    import torch

    if asked != "auto":
        try:
            return str(torch.device(asked))
        except RuntimeError:
            raise InputError(f"Unknown device {asked!r}; try auto, cpu, cuda or mps.") from None
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _p_values(
    windows: Windows, forecaster: Forecaster, settings: DiscoverSettings, like: xr.DataArray
) -> xr.DataArray:
    """Tests of every candidate; unknown (nan) where there are too few rows and no need."""
    kinds = forecaster.settings.kinds if isinstance(forecaster, Choice) else [forecaster.kind]
    curved = [kind != "linear" for kind in kinds]
    try:
        return edge_p_values(windows, curved * (windows.shape[1] // len(curved)))
    except InputError:
        if settings.select in ("auto", "fdr"):
            raise
        return xr.full_like(like, np.nan)


def _graph(found: xr.Dataset, settings: DiscoverSettings) -> LaggedGraph:
    """Choose the edges and give each its details."""
    scores = found["relevance"]
    ranked = scores if settings.by == "score" else found["mean_rank"]
    match settings.select:
        case "top-k":
            chosen = rules.top_k(ranked, settings.k)
        case "global-top-k":
            chosen = rules.global_top_k(ranked, settings.k)
        case "uniform":
            chosen = rules.uniform(scores)
        case "auto" | "fdr":
            chosen = rules.false_discovery(scores, found["p_value"], settings.fdr, LEAST_SHARE)
    q_values = found["p_value"].copy(data=adjusted_p_values(found["p_value"].values))
    details: dict[str, xr.DataArray] = {
        "effect": found["effect"],
        "sign": found["effect"].copy(data=np.sign(found["effect"].values).astype(int)),
        "share": rules.target_shares(scores),
        "confidence": 1 - q_values,
        "q_value": q_values,
        "mean_rank": found["mean_rank"],
        "sd_rank": found["sd_rank"],
        "sign_consistency": found["sign_consistency"],
    }
    return LaggedGraph.from_scores(scores, chosen, details)
