"""The whole path: table -> panel -> windows -> forecaster -> relevance -> graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from pydantic import Field, PositiveInt

from forecause.config import (
    ByName,
    ForecasterName,
    GapsName,
    HeadChoice,
    HowName,
    PresetName,
    ReadoutName,
    RuleName,
)
from forecause.data.cells import Missing
from forecause.data.panel import Panel
from forecause.data.summary import DataSummary, source_of
from forecause.data.windows import Windows
from forecause.diagnostics.alerts import find_alerts
from forecause.diagnostics.lag_window import propose_max_lag
from forecause.diagnostics.regimes import Regimes, find_regimes
from forecause.discovery import Discovery
from forecause.edges.knowledge import Knowledge, rule_texts
from forecause.edges.reading import Reader, allowed_inputs, usual_fdr
from forecause.errors import InputError
from forecause.forecast import Fitted, fit_forecaster
from forecause.forecast.fitting import INSTANT, WITH_WEIGHTS, kinds_tried
from forecause.forecast.forecaster import Settings
from forecause.forecast.training import distributed
from forecause.progress import QUIET, Progress
from forecause.report.evidence import collect
from forecause.resources.budget import UNLIMITED, Plan, parse_budget, plan_for
from forecause.resources.cost import expected_cost
from forecause.resources.cross_fit import fit_parts
from forecause.resources.workers import HERE, Workers

PAPER_RULES = {
    "forecaster": "transformer",
    "readout": "lrp",
    "select": "top-k",
    "k": 3,
    "domain_input": False,
}


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
    domain_input: bool = True  # False: the forecaster must tell the domains apart from the past
    regimes: Literal["auto"] | PositiveInt | None = None  # look for unknown regimes; how many
    per_series: bool = False  # a graph for every series besides that of all
    forbid: tuple[str, ...] = ()  # rules; see forecause.edges.knowledge
    require: tuple[str, ...] = ()
    weights: str | None = None  # of a pretrained forecaster: a folder or an id on the hub
    budget: float | None = None  # seconds to keep to


def discover(
    data: Any,
    max_lag: int | Literal["auto"] = 5,
    *,
    time: str | None = None,
    series: str | None = None,
    domain: str | None = None,
    labels: Sequence[str] = (),
    missing: Missing = (),
    every: str | float | None = None,
    every_how: HowName = "mean",
    rows: str | None = None,
    interpolate: int = 0,
    gaps: GapsName = "fill",
    workers: Workers = HERE,
    progress: Progress = QUIET,
    **settings: Any,
) -> Discovery:
    """Find which variable drives which, with which delay.

    `data` is a table (pandas, polars, pyarrow, xarray, numpy), a path, or a list of them for
    several series. `time` to `gaps` say how it is read; see Panel.of. `workers` share the fits of
    a cross-fit. Further settings are the fields of DiscoverSettings, by name.
    """
    chosen = make_settings(max_lag=5 if max_lag == "auto" else max_lag, **settings)
    options: dict[str, Any] = {"time": time, "series": series, "domain": domain}
    options["interpolate"] = interpolate
    if labels:
        options["labels"] = [labels] if isinstance(labels, str) else list(labels)
    if missing:
        options["missing"] = [missing] if isinstance(missing, str) else list(missing)
    if every is not None:
        options |= {"every": every, "every_how": every_how}
    if rows is not None:
        options["rows"] = rows
    if gaps != "fill":
        options["gaps"] = gaps
    read, source = Panel.of(data, **options), source_of(data, **options)
    panel, notes = read, read.notes
    if max_lag == "auto":
        progress.step("choosing the lag window", 0.0)
        proposal = propose_max_lag(panel)
        chosen = chosen.model_copy(update={"max_lag": proposal.max_lag})
        notes = (*notes, proposal.sentence)
    panel, regimes = _with_domains(panel, chosen, progress)
    if regimes:
        notes = (*notes, regimes.sentence)
    windows = Windows.of(panel, chosen.max_lag)
    plan = _plan(windows, chosen, progress)
    windows = replace(windows, panel=replace(panel, notes=(*notes, *plan.notes)))
    chosen = chosen.model_copy(update={"fdr": chosen.fdr or usual_fdr(len(windows))})
    knowledge = Knowledge.of(chosen.forbid, chosen.require)
    knowledge.required(panel.coding.variables, chosen.max_lag)  # mistakes show before training
    fit = partial(fit_as_asked, settings=chosen, plan=plan)
    forecaster, losses, surprise = fit(windows, progress=progress)
    if chosen.forecaster in INSTANT and workers.ray is None:
        workers = HERE  # the fit is over before a process has started
    parts = fit_parts(fit, windows, chosen.cross_fit, progress, workers)
    device = pick_device(chosen.device)  # other processes hand their parts back without it
    parts = [part.to(device) for part in parts]
    reader = Reader(forecaster, chosen, parts, knowledge, progress, plan.effort)
    domains = reader.by_domain(windows)
    found = reader.together(windows, domains)
    discovery = Discovery(
        graph=reader.graph_with_domains(found, domains, windows),
        relevance=found,
        forecaster=forecaster.cpu(),
        losses=losses,
        surprise=surprise,
        settings=chosen,
        data=DataSummary.of(windows, read.fingerprint(), source),
        regimes=regimes,
        panel=read,
    )
    alerts = find_alerts(windows, forecaster, losses, discovery.graph, chosen.held_out)
    return replace(discovery, alerts=alerts, evidence=collect(discovery, windows))


def fit_as_asked(
    windows: Windows,
    settings: DiscoverSettings,
    progress: Progress = QUIET,
    plan: Plan | None = None,
) -> Fitted:
    """Fit the forecaster that the settings ask for, forbidden inputs kept out."""
    coding = windows.panel.coding
    knowledge = Knowledge.of(settings.forbid, settings.require)
    allowed = knowledge.allowed(coding.variables, settings.max_lag)
    return fit_forecaster(
        settings.forecaster,
        windows,
        preset=settings.preset,
        head=settings.head,
        held_out=settings.held_out,
        seed=settings.seed,
        device=pick_device(settings.device),
        domain_input=settings.domain_input,
        weights=settings.weights,
        allowed=allowed_inputs(allowed, coding) if knowledge.forbid else None,
        plan=plan,
        progress=progress,
    )


def _plan(windows: Windows, settings: DiscoverSettings, progress: Progress) -> Plan:
    """Say what is to be expected, and decide how to keep to the budget if there is one."""
    if settings.forecaster in WITH_WEIGHTS:  # nothing is known of foreign weights before they load
        return UNLIMITED
    kinds = kinds_tried(settings.forecaster, windows, settings.head, settings.preset)
    cost = expected_cost(windows, kinds, settings.preset)
    progress.say(cost.sentence)
    if settings.budget is None:
        return UNLIMITED
    plan = plan_for(settings.budget, cost, settings.forecaster, 1 + settings.cross_fit)
    return distributed.current().same(plan, "planning")


def _with_domains(
    panel: Panel, settings: DiscoverSettings, progress: Progress
) -> tuple[Panel, Regimes | None]:
    """The panel with regimes or series as its domains, where asked for."""
    if panel.domain is not None and (settings.regimes or settings.per_series):
        raise InputError(
            "The domains are known (--domain); neither look for regimes nor ask for a graph per "
            "series at the same time."
        )
    if settings.per_series:
        if settings.regimes:
            raise InputError("Ask either for regimes or for a graph per series, not for both.")
        return panel.with_domain(panel.series, panel.series_names), None
    if not settings.regimes:
        return panel, None
    count = None if settings.regimes == "auto" else settings.regimes
    regimes = find_regimes(Windows.of(panel, settings.max_lag), count, progress)
    return (regimes.applied(panel) if len(regimes.names) > 1 else panel), regimes


def make_settings(**settings: Any) -> DiscoverSettings:
    """Checked settings; `preset='paper'` brings the paper's rules unless they are overridden.

    A head that learns more than the mean brings the readout `score`: a parent that drives only
    the variance is invisible to the gradient of the mean.
    """
    if settings.get("head", "mse") != "mse":
        settings = {"readout": "score"} | settings
    if settings.get("preset") == "paper":
        settings = PAPER_RULES | settings
        if settings["forecaster"] == "chronos":  # whose inside LRP has no rules for
            settings["readout"] = "gradient"
    asked = settings.get("regimes")
    if isinstance(asked, str) and asked != "auto":
        if not asked.isdecimal():
            raise InputError(f"regimes must be 'auto' or a whole number, found {asked!r}.")
        settings["regimes"] = int(asked)
    if settings.get("budget") is not None:
        settings["budget"] = parse_budget(settings["budget"])
    for name in ("forbid", "require"):
        settings[name] = rule_texts(settings.get(name, ()))
    return DiscoverSettings.checked(**settings)


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
