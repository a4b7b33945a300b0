"""The whole path: table -> panel -> windows -> forecaster -> relevance -> graph."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from pydantic import Field, ValidationError

from forecause.alerts import find_alerts
from forecause.attribute import cross_fitted
from forecause.attribute import relevance as read_relevance
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.discovery import DataSummary, Discovery
from forecause.errors import InputError
from forecause.forecast import fit_forecaster
from forecause.forecast.base import Report, Settings, silent
from forecause.forecast.significance import edge_tests
from forecause.forecast.variance_test import variance_p_values
from forecause.graph import select as rules
from forecause.graph.fdr import adjusted_p_values
from forecause.graph.lagged import LaggedGraph
from forecause.options import ByName, ForecasterName, HeadChoice, PresetName, ReadoutName, RuleName
from forecause.report.evidence import collect

READ_WINDOWS = 2000  # windows the relevance is averaged over
LEAST_SHARE = 0.003  # of what moves a target, below which an input is not called a cause
SUSPECT_SHARE = (
    0.02  # above which an input's products with others are tested whatever it shows alone
)
FEW_WINDOWS = 1500  # below which 5 % false edges are accepted instead of 2 %
EDGE_DETAILS = ("q_value", "stability", "mean_rank", "sd_rank", "sign_consistency")
PAPER_RULES = {"forecaster": "transformer", "readout": "lrp", "select": "top-k", "k": 3}


class DiscoverSettings(Settings):
    """Everything that decides a run besides the data; saved with it."""

    max_lag: int = Field(default=5, ge=1)
    forecaster: ForecasterName = "auto"
    preset: PresetName = "default"
    head: HeadChoice = "mse"  # what a neural forecaster learns of the distribution
    readout: ReadoutName = "gradient"
    cross_fit: int = Field(default=0, ge=0)  # models on disjoint blocks of time; 0: one model
    select: RuleName = "auto"
    by: ByName = "score"  # what top-k and global-top-k compare
    k: int = Field(default=3, ge=1)
    fdr: float | None = Field(default=None, gt=0, lt=1)  # None: 2 %, or 5 % with few windows
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
    fdr = chosen.fdr or _usual_fdr(windows)
    chosen = chosen.model_copy(update={"fdr": fdr})  # the run keeps what was used
    fit = partial(
        fit_forecaster,
        chosen.forecaster,
        preset=chosen.preset,
        head=chosen.head,
        held_out=chosen.held_out,
        seed=chosen.seed,
        device=pick_device(chosen.device),
        report=report,
    )
    forecaster, losses = fit(windows)
    sample = windows.sample(READ_WINDOWS, np.random.default_rng(chosen.seed))
    found = read_relevance(forecaster, sample, chosen.readout, report)
    if chosen.cross_fit:
        parts = [fit(part)[0] for part in windows.interleaved(chosen.cross_fit)]
        found["relevance"] = cross_fitted(parts, sample, chosen.readout, report)
    found = found.merge(_tests(windows, found["relevance"], chosen, fdr))
    discovery = Discovery(
        graph=_graph(found, chosen, fdr),
        relevance=found,
        forecaster=forecaster.cpu(),
        losses=losses,
        settings=chosen,
        data=DataSummary.of(windows),
    )
    alerts = find_alerts(windows, forecaster, losses, discovery.graph, chosen.held_out)
    return replace(discovery, alerts=alerts, evidence=collect(discovery, windows))


def make_settings(**settings: Any) -> DiscoverSettings:
    """Checked settings; `preset='paper'` brings the paper's rules unless they are overridden.

    A head that learns more than the mean brings the readout `score`: a parent that drives only
    the variance is invisible to the gradient of the mean.
    """
    if settings.get("head", "mse") != "mse":
        settings = {"readout": "score"} | settings
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


def _usual_fdr(windows: Windows) -> float:
    """Strict where rows are plenty; with few, strictness costs more true edges than false ones."""
    return 0.02 if len(windows) >= FEW_WINDOWS else 0.05


def _tests(
    windows: Windows, scores: xr.DataArray, settings: DiscoverSettings, fdr: float
) -> xr.Dataset:
    """Tests of every candidate; unknown (nan) where there are too few rows and no need."""
    try:
        suspects = rules.target_shares(scores) >= SUSPECT_SHARE
        tests = edge_tests(windows, suspects, fdr)
        if settings.head != "mse":  # an effect on the mean or on the variance counts
            smaller = np.minimum(tests["p_value"], variance_p_values(windows))
            tests["p_value"] = np.minimum(2 * smaller, 1.0)
    except InputError:
        if settings.select in ("auto", "fdr"):
            raise
        unknown = xr.full_like(scores, np.nan)
        tests = xr.Dataset({"p_value": unknown, "stability": unknown})
    tests["q_value"] = tests["p_value"].copy(data=adjusted_p_values(tests["p_value"].values))
    return tests


def _graph(found: xr.Dataset, settings: DiscoverSettings, fdr: float) -> LaggedGraph:
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
            chosen = rules.false_discovery(scores, found["p_value"], fdr, LEAST_SHARE)
    details: dict[str, xr.DataArray] = {
        "effect": found["effect"],
        "sign": found["effect"].copy(data=np.sign(found["effect"].values).astype(int)),
        "share": rules.target_shares(scores),
        "confidence": 1 - found["q_value"],
        **{name: found[name] for name in EDGE_DETAILS},
    }
    return LaggedGraph.from_scores(scores, chosen, details)
