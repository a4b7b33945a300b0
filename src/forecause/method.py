"""The method on one screen: table -> panel -> windows -> forecaster -> relevance -> graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal
from warnings import warn

from forecause.common.work_sharing import one_thread
from forecause.config import (
    Config,
    DataOptions,
    ForecasterName,
    ForecasterSpec,
    PresetName,
    ReadoutName,
    RuleName,
    SeasonName,
    SelectionRule,
)
from forecause.config.advice import Advice, sentence, with_known_names
from forecause.config.thresholds import using
from forecause.data.panel import Panel
from forecause.data.summary import DataSummary, source_of
from forecause.data.windows import Windows
from forecause.diagnostics.diagnose import diagnose
from forecause.diagnostics.finding import doubted_edges, unforecast_links
from forecause.diagnostics.lag_window import propose_max_lag
from forecause.diagnostics.power import Learned
from forecause.diagnostics.regimes import Regimes, find_regimes
from forecause.discovery import Discovery
from forecause.edges.certainty import with_grades
from forecause.edges.knowledge import Candidates
from forecause.edges.reading import (
    ReadingContext,
    Statistics,
    choose_edges,
    keep_tested,
    read_relevance,
    test_inputs,
    usual_fdr,
    with_final_fdr,
)
from forecause.edges.reading import reread as read_again
from forecause.edges.summary_tests import summary_edges
from forecause.effects.intervals import with_effects
from forecause.errors import ForecauseWarning, InputError
from forecause.forecast.guard import fit_causal
from forecause.forecast.input_tests.refits import Refits
from forecause.forecast.outlook_fit import with_outlook
from forecause.forecast.selection import UNLIMITED, Plan, specs_tried
from forecause.networks.settings import TrainedSettings
from forecause.progress import QUIET, Progress, usual_progress
from forecause.resources.cost import check_memory, expected_cost, plan_for, slowdown
from forecause.resources.fitting import fit_all, fit_as_asked, fit_context, is_tested_by_refits
from forecause.resources.workers import LOCAL, Workers, helping
from forecause.seasons.course import time_taken_out


@with_known_names
def discover(
    data: Any,
    max_lag: int | Literal["auto"] | None = None,
    *,
    time: str | None = None,
    series: str | None = None,
    domain: str | None = None,
    season: SeasonName | Sequence[float] | float | str | None = None,
    forecaster: ForecasterName | ForecasterSpec | None = None,
    preset: PresetName | None = None,
    readout: ReadoutName | None = None,
    select: RuleName | SelectionRule | None = None,
    fdr: float | None = None,
    regimes: Literal["auto"] | int | str | None = None,
    forbid: Sequence[Any] | str | None = None,
    require: Sequence[Any] | str | None = None,
    seed: int | None = None,
    device: str | None = None,
    budget: str | float | None = None,
    workers: Workers = LOCAL,
    progress: Progress | None = None,
    config: Config | None = None,
) -> Discovery:
    """Find which variable drives which, with which delay.

    Parameters
    ----------
    data
        A table (pandas, polars, pyarrow, xarray, numpy), a path, or a list of them for several
        series. Time runs down the rows. `fc.read` makes one with labels, missing values, a grid.
    max_lag
        The longest delay to look for, in rows; 5 by default, "auto" proposes one.
    time, series, domain
        Names of the columns with the time, with the series a row belongs to, and with a known
        regime. Each domain gets a graph of its own.
    season
        Cycles that time alone explains are taken out of every number: "auto", the default, finds
        them from the time stamps and the spectrum; "none" leaves them in; or periods in rows.
    forecaster
        What predicts: a name, or an object such as `fc.forecasters.MLP(hidden=64)`. "auto", the
        default, keeps for every variable the one that predicts it best.
    preset
        "paper" is the published model, readout and rule, "paper-shallow" the same with one layer;
        "quick" trains for at most 1,000 steps; "sparse" puts a penalty on gradients, for few rows.
    readout
        How relevance is read from the forecaster; "gradient" by default.
    select
        How edges are chosen: a name, or an object such as `fc.TopK(3)`. "auto", the default,
        tests every candidate and keeps the share of false edges below `fdr`.
    fdr
        The accepted share of false edges; 0.02 by default, with fewer than 1,500 windows 0.05, or
        up to 0.1 where the links found are weak. `run.config.edges.fdr` tells which it was.
    regimes
        Look for unknown regimes: "auto", or how many.
    forbid, require
        Edges that cannot be or must be, such as "rain -> river @ 1-3" or ("rain", "river", 1).
    seed
        The same seed gives the same result.
    device
        "auto", "cpu", "cuda" or "mps".
    budget
        Time to keep to, such as "90s" or "10m".
    workers
        Who shares the work: the processes of this machine the fits of a cross-fit, a Ray cluster
        (`fc.Workers(ray="HOST:PORT")`) every stage that takes long. The result is the same.
    progress
        Who is told how far the work is; a line in a notebook and nobody elsewhere by default.
    config
        A configuration with every other option; whatever is named above replaces its options.

    Returns
    -------
    Discovery
        The graph, the scores behind it, the forecaster, and reasons for doubt. Where no error
        rate can be promised a ForecauseWarning says why, and so does `doubts`.

    Examples
    --------
    >>> import forecause as fc
    >>> system = fc.simulate(nodes=4, max_lag=2, rows=500, seed=1)
    >>> run = fc.discover(system.frame(), max_lag=2, forecaster="linear")
    >>> run.graph.max_lag
    2
    """
    asked = Config.of(
        config,
        max_lag=max_lag,
        time=time,
        series=series,
        domain=domain,
        season=season,
        forecaster=forecaster,
        preset=preset,
        readout=readout,
        select=select,
        fdr=fdr,
        regimes=regimes,
        forbid=forbid,
        require=require,
        seed=seed,
        device=device,
        budget=budget,
    )
    if not isinstance(workers, Workers) or not isinstance(progress, Progress | None):
        raise InputError("workers must be fc.Workers and progress a fc.Progress.")
    with (
        progress if progress is not None else usual_progress() as listener,
        helping(workers),
        using(asked.thresholds),
    ):
        run = run_method(data, asked, Run(workers, listener))
    for finding in run.findings:
        if finding.grave:
            warn(finding.warning, ForecauseWarning, stacklevel=3)
            break
    return run


@dataclass
class Run:
    """Who does the work, who hears of it, and what should be told to the user at the end."""

    workers: Workers = LOCAL
    progress: Progress = QUIET
    notes: list[str] = field(default_factory=list)


@one_thread()
def run_method(data: Any, config: Config, run: Run) -> Discovery:
    """All stages of the method, each one call."""
    read = Panel.of(data, **config.data.reading)
    config = config.with_options(**read.reading)
    run.notes.extend(readout_notes(config))
    left = take_out_time(read, config, run)
    config = choose_max_lag(left, config, run)
    panel, regimes = split_domains(left, config, run)
    windows = Windows.of(panel, config.lag)
    candidates = Candidates.of(config.edges, panel.coding.variables, config.lag)
    plan = plan_work(windows, config, run)
    fit = partial(fit_as_asked, config=config, candidates=candidates, plan=plan)
    fitted, parts, refits = fit_all(fit, windows, config, run.workers, run.progress)
    context = reading_context(config, candidates, plan, windows, refits, run)
    tests = test_inputs(windows, fitted, context)  # by the forecaster that each target keeps
    fitted = keep_tested(fitted, tests, panel.coding)
    statistics = read_relevance(fitted.forecaster, windows, tests, context, parts)
    context = settle_fdr(context, statistics, run)
    config = with_fdr(config, context)
    graph = choose_edges(statistics, context)
    if config.edges.tested:
        pairs = summary_edges(windows, statistics.whole["p_value"], candidates.allowed)
        graph = replace(graph, summary=pairs)
    refit = fit_context(windows, config, candidates, plan, run.progress)
    causal = fit_causal(windows, graph, fitted, config.forecasting, refit)
    causal = with_outlook(causal, read, windows, config)  # several steps ahead
    findings = diagnose(windows, fitted, graph, config, causal)
    graph = with_grades(
        graph, lambda part: doubted_edges(findings, part) | unforecast_links(causal, part)
    )
    graph = with_effects(graph, windows, config.edges.fdr if config.edges.tested else None)
    windows = replace(windows, panel=replace(panel, notes=(*read.notes, *run.notes)))
    return Discovery(
        graph=graph,
        relevance=statistics.whole,
        forecaster=fitted.forecaster.picklable(),
        causal=causal,
        losses=fitted.losses,
        nll=fitted.nll,
        config=config,
        data=DataSummary.of(windows, read.fingerprint(), source_of(read)),
        regimes=regimes,
        panel=read,
        windows=windows,
        findings=findings,
    )


@one_thread()
def reread(found: Discovery, asked: Mapping[str, Any], data: Any = None) -> Discovery:
    """A finished run with another readout, rule or error rate; nothing is fitted again."""
    if found.graph.domains:
        raise InputError("A run with domains cannot be read again; call discover.")
    kept = found.config.changed()
    if asked.get("select") is not None:  # what belonged to the rule before
        kept = {name: value for name, value in kept.items() if name not in ("k", "by", "fdr")}
    config = Config(**kept | {name: value for name, value in asked.items() if value is not None})
    if config.edges.tested and not found.config.edges.tested:
        raise InputError(
            f"The run chose its edges by {found.config.edges.select} and tested no input; call "
            "discover for edges that are chosen by tests."
        )
    windows = found.windows
    if windows is None:
        windows = Windows.of(found.deseasonalised_panel(data), found.graph.max_lag)
    candidates = Candidates.of(config.edges, found.graph.variables, found.graph.max_lag)
    run = Run()
    with using(config.thresholds):
        context = reading_context(config, candidates, UNLIMITED, windows, None, run)
        known = found.relevance
        if config.edges.readout != found.config.edges.readout:
            known = read_again(known, found.forecaster, windows, context)
        graph = choose_edges(Statistics(known, tuple(found.losses["chosen"])), context)
        graph = with_grades(graph, lambda part: doubted_edges(found.findings, part))
        graph = with_effects(graph, windows, context.fdr if config.edges.tested else None)
    before = readout_notes(found.config)
    notes = [note for note in found.data.notes if note not in before]
    return replace(
        found,
        data=replace(found.data, notes=(*notes, *readout_notes(config))),
        graph=replace(graph, summary=found.graph.summary if config.edges.tested else None),
        relevance=known,
        config=config,
        causal=None,
        evidence={},
        measured_power=None,
    )


def take_out_time(panel: Panel, config: Config, run: Run) -> Panel:
    """The panel without the cycles, trends and level shifts that time alone explains."""
    run.progress.step("looking for seasons and trends", 0.0)
    left = time_taken_out(panel, config)
    if left.course is not None:
        run.notes.append(left.course.sentence)
    return left


def readout_notes(config: Config) -> list[str]:
    """What LRP is of a forecaster without layers, which has no rules for it."""
    readout, kind = config.edges.readout, config.spec
    if "lrp" not in readout or (kind and issubclass(kind, TrainedSettings)):
        return []
    return [f"Of a forecaster that is no network, the readout {readout} is input x gradient."]


def choose_max_lag(panel: Panel, config: Config, run: Run) -> Config:
    """The lag window as asked for, or as the data proposes."""
    if config.max_lag != "auto":
        return config
    run.progress.step("choosing the lag window", 0.0)
    max_lag, reason = propose_max_lag(panel)
    run.notes.append(reason.sentence)
    return config.with_options(max_lag=max_lag)


def split_domains(panel: Panel, config: Config, run: Run) -> tuple[Panel, Regimes | None]:
    """The panel with regimes or series as its domains, where asked for."""
    asked = config.forecasting
    if panel.domain is not None and (asked.regimes or asked.per_series):
        raise InputError(
            "The data has domains of its own; neither look for regimes nor ask for a graph per "
            "series at the same time."
        )
    if asked.per_series:
        return panel.with_domain(panel.series, panel.series_names), None
    if not asked.regimes:
        return panel, None
    count = None if asked.regimes == "auto" else asked.regimes
    regimes = find_regimes(Windows.of(panel, config.lag), count, run.progress)
    run.notes.append(regimes.sentence)
    return (regimes.applied(panel) if len(regimes.names) > 1 else panel), regimes


def plan_work(windows: Windows, config: Config, run: Run) -> Plan:
    """Say what is to be expected, and decide how to keep to the budget if there is one."""
    spec = config.spec
    if spec is not None and spec.weights_use != "none":
        return UNLIMITED  # nothing is known of foreign weights before they load
    tried = specs_tried(config.forecasting, windows)
    fits = 1 + config.forecasting.cross_fit + (2 if is_tested_by_refits(config) else 0)
    cost = expected_cost(windows, tried, config.forecasting.head != "mse", fits)
    if config.run.budget is not None or run.progress is not QUIET:
        cost = replace(cost, slowdown=slowdown())
    run.progress.say(cost.sentence)
    check_memory(cost)
    if config.run.budget is None:
        return UNLIMITED
    asked = None if spec is None else tried[0].kind
    plan = plan_for(config.run.budget, cost, asked)
    run.notes.extend(plan.notes)
    if not any(isinstance(settings, TrainedSettings) for settings in tried):
        return plan
    from forecause.networks import distributed

    return distributed.current().same(plan, "planning")


def reading_context(
    config: Config,
    candidates: Candidates,
    plan: Plan,
    windows: Windows,
    refits: Refits | None,
    run: Run,
) -> ReadingContext:
    """What reading, testing and choosing need of a run."""
    asked = config.edges.fdr
    return ReadingContext(
        config.edges,
        candidates,
        *(usual_fdr(len(windows), windows.inputs) if asked is None else (asked, asked)),
        config.forecasting.head,
        config.run.seed,
        plan.effort,
        run.progress,
        refits,
    )


def run_on(panel: Panel, config: Config, progress: Progress = QUIET) -> Discovery:
    """A run with these settings on a panel that was read before."""
    with using(config.thresholds):
        return run_method(panel, config, Run(progress=progress))


def rediscover(config: Config, panel: Panel, seed: int, progress: Progress = QUIET) -> Learned:
    """What a run with these settings learns from other data; domains of the panel are known.

    The panel needs no reading, and nothing of time was simulated.
    """
    own = {"seed": seed, "device": "cpu", "regimes": None, "per_series": False}
    known = config.model_copy(update={"data": DataOptions(season="none", trend="none")})
    return run_on(panel, known.with_options(**own), progress).learned


def settle_fdr(context: ReadingContext, statistics: Statistics, run: Run) -> ReadingContext:
    """The context with the accepted share of false edges that the tests ask for; a note if that is
    more than usual."""
    settled = with_final_fdr(context, statistics)
    if settled.fdr > context.fdr:
        seen = (
            f"The links found are weak: up to {100 * settled.fdr:g} % of the edges may be false "
            f"instead of {100 * context.fdr:g} %"
        )
        run.notes.append(sentence(seen, [Advice("fdr", context.fdr)]))
    return settled


def with_fdr(config: Config, context: ReadingContext) -> Config:
    """The configuration with the accepted share of false edges written down, where tests decide."""
    return config.with_options(fdr=context.fdr) if config.edges.tested else config
