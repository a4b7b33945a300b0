"""From fitted forecasters to a graph: test the inputs, read the relevance, choose the edges.

The forecaster that a target keeps decides its row: its tests give the p-values, its relevance the
scores. The same is done for all windows together and for those of every domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import xarray as xr

from forecause.common.arrays import Array, Index, Mask
from forecause.config import EdgeOptions
from forecause.config.thresholds import thresholds
from forecause.data.variables import Variables
from forecause.data.windows import Windows
from forecause.edges import select as rules
from forecause.edges.certainty import certainty
from forecause.edges.knowledge import Candidates, with_required
from forecause.forecast.attribution import cross_fitted, relevance
from forecause.forecast.forecaster import Forecaster
from forecause.forecast.input_tests.kept import kept_tests, untested_rule_tests
from forecause.forecast.input_tests.protocol import (
    InputTests,
    TestRequest,
    link_q_values,
    own_past_weights,
)
from forecause.forecast.input_tests.refits import Refits
from forecause.forecast.selection import Fitted, energy_shares
from forecause.graph.axes import by_step, labelled
from forecause.graph.lagged import LaggedGraph, with_domains
from forecause.progress import QUIET, Progress

# Time and memory:
READ_WINDOWS = 2000  # windows the relevance is averaged over
LEAST_READ = 500  # of every domain, if there are that many

# Numerics:
LEAST_SD = 1e-9  # of a rank, one that never varies
TIE_BREAK_WEIGHT = 1e-6  # of gradients, to rank inputs that a forecaster without them ignores

EDGE_DETAILS = ("q_value", "certainty", "stability", "mean_rank", "sd_rank", "sign_consistency")


@dataclass(frozen=True, eq=False)
class Tests:
    """What the kept forecasters say of their inputs, over all windows or in every domain.

    `domains` holds the windows and the tests of every domain that has enough of them; without
    domains it is empty and `whole` is known.
    """

    whole: InputTests | None
    domains: Mapping[str, tuple[Windows, InputTests]] = field(default_factory=dict)

    @property
    def decided_by(self) -> tuple[str, ...]:
        """(target,) who decided; with domains, whoever did in any of them."""
        if self.whole is not None:
            return self.whole.decided_by
        each = [tests.decided_by for _, tests in self.domains.values()]
        return tuple(" / ".join(dict.fromkeys(labels)) for labels in zip(*each, strict=True))


@dataclass(frozen=True, eq=False)
class Statistics:
    """What is known of every candidate edge, over (target, source, lag), and who decided.

    `whole` is over all windows; `domains` holds those of every domain that has enough windows.
    """

    whole: xr.Dataset
    decided_by: tuple[str, ...]
    domains: Mapping[str, tuple[xr.Dataset, tuple[str, ...]]] = field(default_factory=dict)


@dataclass(frozen=True)
class ReadingContext:
    """What reading and testing need besides the forecaster and the windows."""

    options: EdgeOptions
    candidates: Candidates
    fdr: float  # the accepted share of false edges
    fdr_if_weak: float  # the same where the links found are weak ones
    head: str = "mse"  # whether effects on the variance count, too
    seed: int = 0
    effort: float = 1.0  # share of the windows that are read and tested
    progress: Progress = QUIET
    refits: Refits | None = None  # of a forecaster that is tested on what it did not learn from


def test_inputs(windows: Windows, fitted: Fitted, context: ReadingContext) -> Tests:
    """The tests of the forecaster that each target keeps, over all windows or in every domain."""
    suspects = _suspects(windows, fitted, context)
    domains = _domains_with_enough(windows, context)
    if not domains:
        return Tests(_tests(windows, fitted, suspects, context))
    tested = {}
    for place, (name, own) in enumerate(domains.items()):
        context.progress.step("testing the domains", place / len(domains))
        tested[name] = own, _tests(own, fitted, suspects, context)
    return Tests(None, tested)


def keep_tested(fitted: Fitted, tests: Tests, coding: Variables) -> Fitted:
    """Each target keeps the forecaster whose tests decided about it.

    With domains it keeps what forecasts all of them best: another one may decide in each.
    """
    if not fitted.is_auto or tests.whole is None or not any(tests.whole.decided_by):
        return fitted
    labels = [tests.whole.decided_by[variable] for variable in coding.of_column]
    return fitted.keeping(labels, tests.whole.products)


def read_relevance(
    forecaster: Forecaster,
    windows: Windows,
    tests: Tests,
    context: ReadingContext,
    parts: Sequence[Forecaster] = (),
) -> Statistics:
    """The relevance of every candidate beside its tests: over all windows, and in every domain.

    `parts` are forecasters fitted on disjoint time, for cross-fitted relevance. With domains, an
    effect in any of them counts: the smallest p-value over the domains times their number, so that
    effects that differ or even cancel between domains are found, and the error rate holds for all
    of them together.
    """
    read = _relevance(forecaster, windows, READ_WINDOWS, context, parts)
    if tests.whole is not None:
        whole = _statistics(read, windows, tests.whole, context)
        return Statistics(whole, tests.decided_by)
    most = max(LEAST_READ, READ_WINDOWS // max(len(windows.panel.domain_names), 1))
    domains = {}
    for name, (own, tested) in tests.domains.items():
        part = _relevance(forecaster, own, most, context, parts)
        domains[name] = _statistics(part, own, tested, context), tested.decided_by
    whole = _over_domains(read, [part for part, _ in domains.values()], windows)
    return Statistics(_with_score(whole, context), tests.decided_by, domains)


def reread(
    known: xr.Dataset, forecaster: Forecaster, windows: Windows, context: ReadingContext
) -> xr.Dataset:
    """The statistics of a finished run, with the relevance that another readout tells."""
    read = _relevance(forecaster, windows, READ_WINDOWS, context, ())
    tested = {name: known[name] for name in known if name not in read and name != "score"}
    return _with_score(read.assign(tested), context)


def _over_domains(whole: xr.Dataset, parts: Sequence[xr.Dataset], windows: Windows) -> xr.Dataset:
    """The statistics of all windows from those of the domains."""
    tested = ["p_value", "stability", "certainty"]
    each = xr.concat([part[tested] for part in parts], dim="domain")
    p_value = (each["p_value"].min("domain") * len(parts)).clip(max=1.0)
    whole = whole.assign(
        p_value=p_value,
        stability=each["stability"].max("domain"),
        q_value=_q_values(p_value, windows),
        certainty=each["certainty"].max("domain"),
    )
    judged = [
        part[["relevance", "least_share", "doubtful"]] for part in parts if "doubtful" in part
    ]
    if not judged:
        return whole
    learned = xr.concat(judged, dim="domain")
    return whole.assign(
        relevance=np.maximum(whole["relevance"], learned["relevance"].max("domain")),
        least_share=learned["least_share"].min("domain"),
        doubtful=learned["doubtful"].any("domain"),
    )


def _with_score(statistics: xr.Dataset, context: ReadingContext) -> xr.Dataset:
    """Where tests choose the edges, a `score` to rank candidates by beside their relevance."""
    if not context.options.tested:
        return statistics
    return statistics.assign(score=rules.discounted(statistics["relevance"], statistics["p_value"]))


def choose_edges(statistics: Statistics, context: ReadingContext) -> LaggedGraph:
    """The graph of all windows, those of the domains in it, and where each edge was found."""
    graph = _graph(statistics.whole, statistics.decided_by, context)
    if not statistics.domains:
        return graph
    parts = {name: _graph(*part, context) for name, part in statistics.domains.items()}
    return with_domains(graph, parts)


def usual_fdr(windows: int, inputs: int) -> tuple[float, float]:
    """The accepted share of false edges, and that where the links found are weak ones.

    Strict where rows are plenty; with few, strictness costs more true edges than false ones, most
    of all where links are weak (`python -m forecause_bench.weak_links`). A larger share for weak
    links makes up for the power that the test given all inputs loses to them: where it loses none,
    weak links are as likely a hidden driver's.
    """
    usual = thresholds().edges
    if windows >= usual.few_windows:
        return usual.usual_fdr, usual.usual_fdr
    enough = np.log(thresholds().tests.allowance_below)
    lost = float(np.clip(2 * (1 - np.log(max(windows / inputs, 1.0)) / enough), 0.0, 1.0))
    weak = (1 - lost) * usual.usual_fdr_few + lost * usual.usual_fdr_weak
    return usual.usual_fdr_few, round(weak, 2)


def with_final_fdr(context: ReadingContext, statistics: Statistics) -> ReadingContext:
    """The context with the accepted share of false edges that the tests ask for."""
    if not context.options.tested:
        return context
    q_values = statistics.whole["q_value"].values
    return replace(context, fdr=rules.accepted_share(q_values, context.fdr, context.fdr_if_weak))


def allowed_inputs(allowed: xr.DataArray, coding: Variables | None = None) -> Mask:
    """Allowed edges (target, source, lag) as a forecaster's inputs (target, step, source).

    With a coding, what is said of a variable holds for all its columns.
    """
    values = allowed.values
    if coding is not None:
        values = values[coding.of_column][:, coding.of_column]
    return by_step(values)


def _domains_with_enough(windows: Windows, context: ReadingContext) -> dict[str, Windows]:
    """The windows of every domain that is long enough for a graph of its own."""
    names = windows.panel.domain_names
    if len(names) < 2:
        return {}
    enough = thresholds().edges.windows_per_input * windows.inputs if context.options.tested else 1
    every = {name: windows.in_domain(d) for d, name in enumerate(names)}
    return {name: own for name, own in every.items() if len(own) >= enough}


def _suspects(windows: Windows, fitted: Fitted, context: ReadingContext) -> xr.DataArray:
    """Inputs (target, source, lag) that some candidate leans on."""
    allowed = context.candidates.allowed
    if fitted.fits is None:
        return xr.zeros_like(allowed)
    coding = windows.panel.coding
    shares = energy_shares(fitted.fits.simple_members, windows)  # (target, step, column)
    of_variable = np.eye(len(coding.variables))[coding.of_column]  # (column, variable)
    by_source = np.einsum("tsc,cv->tsv", shares, of_variable)[coding.first]
    values = by_source[:, ::-1].transpose(0, 2, 1) >= thresholds().tests.suspect_share
    return labelled(values, coding.variables)


def _relevance(
    forecaster: Forecaster,
    windows: Windows,
    most: int,
    context: ReadingContext,
    parts: Sequence[Forecaster],
) -> xr.Dataset:
    """Relevance averaged over at most `most` windows; of a forbidden edge it is 0."""
    most = max(1, int(min(most, forecaster.read_windows) * context.effort))
    sample = windows.sample(most, np.random.default_rng(context.seed))
    readout = context.options.readout
    read = relevance(forecaster, sample, readout, context.progress)
    if parts:
        read["relevance"] = cross_fitted(parts, sample, readout, context.progress)
    candidates = context.candidates
    return read.where(candidates.allowed, 0.0) if candidates.some_forbidden else read


def _tests(
    windows: Windows, fitted: Fitted, suspects: xr.DataArray, context: ReadingContext
) -> InputTests:
    """Tests of every candidate on some windows."""
    request = TestRequest(
        windows,
        context.candidates.allowed,
        suspects,
        context.fdr,
        context.fdr_if_weak,
        context.head,
        context.effort,
        context.progress,
        context.refits,
    )
    return kept_tests(fitted, request) if context.options.tested else untested_rule_tests(request)


def _statistics(
    read: xr.Dataset, windows: Windows, tests: InputTests, context: ReadingContext
) -> xr.Dataset:
    """Relevance and tests together, q-values and certainty among them."""
    tested = tests.dataset(windows.panel.coding.variables)
    if "relevance" in tested:
        gradients = read["relevance"]
        largest = gradients.max(["source", "lag"]).clip(min=1e-300)
        own = tested["relevance"] + TIE_BREAK_WEIGHT * gradients / largest
        tested["relevance"] = own.where(np.isfinite(own), gradients)
    tested["q_value"] = _q_values(tested["p_value"], windows)
    tested["certainty"] = certainty(windows, tested["q_value"])
    return _with_score(read.assign(tested), context)


def _graph(
    statistics: xr.Dataset, decided_by: tuple[str, ...], context: ReadingContext
) -> LaggedGraph:
    """Choose the edges by their statistics, and give each its details."""
    scores = statistics.get("score", statistics["relevance"])
    chosen = _chosen(statistics, context.options, context.fdr)
    chosen = chosen & context.candidates.allowed
    chosen = with_required(chosen, scores, context.candidates.required)
    details: dict[str, xr.DataArray] = {
        "effect": statistics["effect"],
        "sign": statistics["effect"].copy(data=_signs(statistics["effect"].values)),
        "share": rules.target_shares(statistics["relevance"]),
        "confidence": 1 - statistics["q_value"],
        **{name: statistics[name] for name in EDGE_DETAILS},
    }
    if "doubtful" in statistics:
        details["doubtful"] = statistics["doubtful"].astype(bool)
    graph = LaggedGraph.from_scores(scores, chosen, details)
    by = decided_by if context.options.tested else (context.options.select,) * len(decided_by)
    who = dict(zip(statistics["target"].values.tolist(), by, strict=True))
    return replace(graph, edges=graph.edges.assign(decided_by=graph.edges["target"].map(who)))


def _chosen(statistics: xr.Dataset, options: EdgeOptions, fdr: float) -> xr.DataArray:
    scores = statistics["relevance"]
    ranked = scores
    if options.by != "score":
        ranked = statistics["mean_rank"]
    if options.by == "rank/sd":  # a rank that hardly varies between windows counts more
        ranked = ranked / statistics["sd_rank"].clip(min=LEAST_SD)
    match options.select:
        case "top-k":
            return rules.top_k(ranked, options.k or 1)
        case "global-top-k":
            return rules.global_top_k(ranked, options.k or 1)
        case "uniform":
            return rules.uniform(scores)
        case "auto" | "fdr":
            least = statistics.get("least_share", thresholds().edges.least_share)
            return rules.false_discovery(scores, statistics["q_value"], fdr, least)


def _signs(effect: Array) -> Index:
    """1 raises, -1 lowers, 0 neither: the effect of a label of several levels is unknown (NaN)."""
    return np.sign(np.nan_to_num(effect)).astype(int)


def _q_values(p_values: xr.DataArray, windows: Windows) -> xr.DataArray:
    """With few windows a variable's own last value is favoured; with many it needs no favour."""
    few = len(windows) < thresholds().edges.few_windows
    weights = own_past_weights(p_values.shape) if few else None
    return p_values.copy(data=link_q_values(p_values.values, weights))
