"""From a fitted forecaster to a graph: read the relevance, test the candidates, choose the edges.

The same is done for all windows together and for those of every domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr

from forecause.attribute import cross_fitted, relevance
from forecause.config import EdgeOptions
from forecause.data.variables import Variables
from forecause.data.windows import Windows
from forecause.edges import edge_tests, variance_p_values
from forecause.edges import select as rules
from forecause.edges.certainty import certainty
from forecause.edges.knowledge import Candidates, with_required
from forecause.edges.learner_tests import with_learner
from forecause.edges.own_tests import OwnTests
from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster
from forecause.graph.axes import by_step
from forecause.graph.lagged import LaggedGraph, with_domains
from forecause.progress import QUIET, Progress

READ_WINDOWS = 2000  # windows the relevance is averaged over
LEAST_READ = 500  # of every domain, if there are that many
LEAST_SHARE = 0.003  # of what moves a target, below which an input is not called a cause
SUSPECT_SHARE = 0.02  # from which an input's products are tested whatever it shows alone
FEW_WINDOWS = 1500  # below which more false edges are accepted, see usual_fdr
WINDOWS_PER_INPUT = 2  # a domain with fewer gets no graph of its own
LEAST_SD = 1e-9  # of a rank, one that never varies
EDGE_DETAILS = ("q_value", "certainty", "stability", "mean_rank", "sd_rank", "sign_consistency")


@dataclass(frozen=True, eq=False)
class Statistics:
    """What is known of every candidate edge, over (target, source, lag).

    `whole` is over all windows; `domains` holds those of every domain that has enough windows.
    """

    whole: xr.Dataset
    domains: Mapping[str, xr.Dataset] = field(default_factory=dict)
    domain_windows: Mapping[str, Windows] = field(default_factory=dict)


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
    learner: bool = False  # whether a learner may improve on the closed-form tests
    own_tests: OwnTests | None = None  # of the forecaster, if they decide


def read_relevance(
    forecaster: Forecaster,
    windows: Windows,
    context: ReadingContext,
    parts: Sequence[Forecaster] = (),
) -> Statistics:
    """The relevance of every candidate, over all windows and in every domain.

    `parts` are forecasters fitted on disjoint time, for cross-fitted relevance.
    """
    names = windows.panel.domain_names
    domains = _domains_with_enough(windows, context) if len(names) > 1 else {}
    most = max(LEAST_READ, READ_WINDOWS // max(len(names), 1))
    return Statistics(
        _relevance(forecaster, windows, READ_WINDOWS, context, parts),
        {name: _relevance(forecaster, own, most, context, parts) for name, own in domains.items()},
        domains,
    )


def test_candidates(windows: Windows, read: Statistics, context: ReadingContext) -> Statistics:
    """The p-value, q-value and stability of every candidate added to its relevance.

    With domains, an effect in any of them counts: the smallest p-value over the domains times
    their number, so that effects that differ or even cancel between domains are found, and the
    error rate holds for all of them together.
    """
    tested = {}
    for place, (name, own) in enumerate(read.domain_windows.items()):
        context.progress.step("testing the domains", place / len(read.domain_windows))
        part = read.domains[name]
        part = part.assign(_tests(own, part["relevance"], context))
        tested[name] = _with_score(part, context)
    whole = read.whole
    if not tested:
        whole = whole.assign(_tests(windows, whole["relevance"], context))
        return replace(read, whole=_with_score(whole, context))
    each = xr.concat([_without_learner(part) for part in tested.values()], dim="domain")
    whole["p_value"] = np.minimum(each["p_value"].min("domain") * len(tested), 1.0)
    whole["stability"] = each["stability"].max("domain")
    whole["q_value"] = _q_values(whole["p_value"], windows)
    whole["certainty"] = each["certainty"].max("domain")
    whole = _with_score(_with_learners(whole, list(tested.values())), context)
    return replace(read, whole=whole, domains=tested)


def _with_score(found: xr.Dataset, context: ReadingContext) -> xr.Dataset:
    """Where tests choose the edges, a `score` to rank candidates by beside their relevance."""
    if not context.options.tested:
        return found
    return found.assign(score=rules.discounted(found["relevance"], found["p_value"]))


def _without_learner(part: xr.Dataset) -> xr.Dataset:
    return part.drop_vars(
        ["relevance", "score", "least_share", "doubtful", "energy"], errors="ignore"
    )


def _with_learners(whole: xr.Dataset, parts: Sequence[xr.Dataset]) -> xr.Dataset:
    """What the learners of some domains say counts for all: the largest relevance, any doubt."""
    spoken = [part for part in parts if "doubtful" in part]
    if not spoken:
        return whole
    each = xr.concat([p[["relevance", "least_share", "doubtful"]] for p in spoken], dim="domain")
    return whole.assign(
        relevance=np.maximum(whole["relevance"], each["relevance"].max("domain")),
        least_share=each["least_share"].min("domain"),
        doubtful=each["doubtful"].any("domain"),
    )


def choose_edges(tested: Statistics, context: ReadingContext) -> LaggedGraph:
    """The graph of all windows, those of the domains in it, and where each edge was found."""
    graph = _graph(tested.whole, context)
    if not tested.domains:
        return graph
    parts = {name: _graph(part, context) for name, part in tested.domains.items()}
    return with_domains(graph, parts)


def usual_fdr(windows: int) -> tuple[float, float]:
    """The accepted share of false edges, and that where the links found are weak ones.

    Strict where rows are plenty; with few, strictness costs more true edges than false ones, most
    of all where links are weak (`python -m forecause_bench.weak_links`).
    """
    return (0.02, 0.02) if windows >= FEW_WINDOWS else (0.05, 0.1)


def settled(context: ReadingContext, tested: Statistics) -> ReadingContext:
    """The context with the accepted share of false edges that the tests ask for."""
    if not context.options.tested:
        return context
    q_values = tested.whole["q_value"].values
    return replace(context, fdr=rules.accepted_share(q_values, context.fdr, context.fdr_if_weak))


def allowed_inputs(allowed: xr.DataArray, coding: Variables | None = None) -> torch.Tensor:
    """Allowed edges (target, source, lag) as a forecaster's inputs (target, step, source).

    With a coding, what is said of a variable holds for all its columns.
    """
    values = allowed.values
    if coding is not None:
        values = values[coding.of_column][:, coding.of_column]
    return torch.from_numpy(by_step(values))


def _domains_with_enough(windows: Windows, context: ReadingContext) -> dict[str, Windows]:
    """The windows of every domain that is long enough for a graph of its own."""
    steps, variables = windows.shape
    enough = WINDOWS_PER_INPUT * steps * variables if context.options.tested else 1
    every = {name: windows.in_domain(d) for d, name in enumerate(windows.panel.domain_names)}
    return {name: own for name, own in every.items() if len(own) >= enough}


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
    found = relevance(forecaster, sample, readout, context.progress)
    if parts:
        found["relevance"] = cross_fitted(parts, sample, readout, context.progress)
    candidates = context.candidates
    return found.where(candidates.allowed, 0.0) if candidates.some_forbidden else found


def _tests(
    windows: Windows,
    scores: xr.DataArray,
    context: ReadingContext,
) -> xr.Dataset:
    """Tests of every candidate; unknown (nan) where there are too few rows and no need."""
    try:
        suspects = rules.target_shares(scores) >= SUSPECT_SHARE
        allowed = context.candidates.allowed
        if context.own_tests is not None:
            tests = context.own_tests.tests(windows, context.fdr, allowed, context.progress)
        else:
            tests = edge_tests(windows, suspects, context.fdr, allowed, context.effort)
        if context.head != "mse" and context.own_tests is None:  # on the mean or on the variance
            smaller = np.minimum(tests["p_value"], variance_p_values(windows))
            tests["p_value"] = np.minimum(2 * smaller, 1.0)
        elif context.learner and context.options.tested:
            context.progress.step("looking for what closed forms miss", 0.0)
            effort, seed, fdr = context.effort, context.seed, context.fdr_if_weak
            tests = with_learner(windows, tests, scores, allowed, fdr, seed, effort)
    except InputError:
        if context.options.tested:
            raise
        unknown = xr.full_like(scores, np.nan)
        tests = xr.Dataset({"p_value": unknown, "stability": unknown})
    tests["q_value"] = _q_values(tests["p_value"], windows)
    tests["certainty"] = certainty(windows, tests["q_value"])
    return tests


def _graph(found: xr.Dataset, context: ReadingContext) -> LaggedGraph:
    """Choose the edges by their statistics, and give each its details."""
    scores = found.get("score", found["relevance"])
    chosen = _chosen(found, context.options, context.fdr)
    chosen = chosen & context.candidates.allowed
    chosen = with_required(chosen, scores, context.candidates.required)
    details: dict[str, xr.DataArray] = {
        "effect": found["effect"],
        "sign": found["effect"].copy(data=_signs(found["effect"].values)),
        "share": rules.target_shares(found["relevance"]),
        "confidence": 1 - found["q_value"],
        **{name: found[name] for name in EDGE_DETAILS},
    }
    if "doubtful" in found:
        details["doubtful"] = found["doubtful"].astype(bool)
    return LaggedGraph.from_scores(scores, chosen, details)


def _chosen(found: xr.Dataset, options: EdgeOptions, fdr: float) -> xr.DataArray:
    scores = found["relevance"]
    ranked = scores
    if options.by != "score":
        ranked = found["mean_rank"]
    if options.by == "rank/sd":  # a rank that hardly varies between windows counts more
        ranked = ranked / found["sd_rank"].clip(min=LEAST_SD)
    match options.select:
        case "top-k":
            return rules.top_k(ranked, options.k or 1)
        case "global-top-k":
            return rules.global_top_k(ranked, options.k or 1)
        case "uniform":
            return rules.uniform(scores)
        case "auto" | "fdr":
            least = found.get("least_share", LEAST_SHARE)
            return rules.false_discovery(scores, found["q_value"], fdr, least)


def _signs(effect: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """1 raises, -1 lowers, 0 neither: the effect of a label of several levels is unknown (NaN)."""
    return np.sign(np.nan_to_num(effect)).astype(int)


def _q_values(p_values: xr.DataArray, windows: Windows) -> xr.DataArray:
    """With few windows a variable's own last value is favoured; with many it needs no favour."""
    few = len(windows) < FEW_WINDOWS
    weights = rules.own_past_weights(p_values.shape) if few else None
    return p_values.copy(data=rules.q_values(p_values.values, weights))
