"""Reading a graph: relevance and tests of some windows, and the edges chosen from them.

The same for all windows and for those of one domain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr

from forecause.attribute import cross_fitted, relevance
from forecause.data.variables import Variables
from forecause.data.windows import Windows
from forecause.edges import edge_tests, variance_p_values
from forecause.edges import select as rules
from forecause.edges.knowledge import Knowledge, with_required
from forecause.errors import InputError
from forecause.forecast.forecaster import Forecaster
from forecause.graph.axes import by_step
from forecause.graph.domains import with_domains
from forecause.graph.lagged import LaggedGraph
from forecause.progress import QUIET, Progress
from forecause.regression.fdr import adjusted_p_values

if TYPE_CHECKING:
    from forecause.method import DiscoverSettings

READ_WINDOWS = 2000  # windows the relevance is averaged over
LEAST_READ = 500  # of every domain, if there are that many
LEAST_SHARE = 0.003  # of what moves a target, below which an input is not called a cause
SUSPECT_SHARE = (
    0.02  # above which an input's products with others are tested whatever it shows alone
)
FEW_WINDOWS = 1500  # below which 5 % false edges are accepted instead of 2 %
WINDOWS_PER_INPUT = 2  # a domain with fewer gets no graph of its own
EDGE_DETAILS = ("q_value", "stability", "mean_rank", "sd_rank", "sign_consistency")


@dataclass(frozen=True)
class Reader:
    """A fitted forecaster, and how graphs are read from it."""

    forecaster: Forecaster
    settings: DiscoverSettings
    parts: Sequence[Forecaster] = ()  # fitted on disjoint time, for cross-fitted relevance
    knowledge: Knowledge = field(default_factory=Knowledge)
    progress: Progress = QUIET
    effort: float = 1.0  # share of the windows that are read and tested

    @property
    def tests_needed(self) -> bool:
        """Whether the rule that chooses edges goes by tests."""
        return self.settings.select in ("auto", "fdr")

    def statistics(self, windows: Windows) -> xr.Dataset:
        """Relevance and tests of every (target, source, lag), from these windows alone."""
        found = self.relevance(windows, READ_WINDOWS)
        return found.merge(self._tests(windows, found["relevance"]))

    def by_domain(self, windows: Windows) -> dict[str, xr.Dataset]:
        """The statistics of every domain with enough windows, under its name."""
        names = windows.panel.domain_names
        if len(names) < 2:
            return {}
        steps, variables = windows.shape
        enough = WINDOWS_PER_INPUT * steps * variables if self.tests_needed else 1
        found = {}
        for domain, name in enumerate(names):
            own = windows.in_domain(domain)
            if len(own) >= enough:
                self.progress.step("testing the domains", domain / len(names))
                part = self.relevance(own, max(LEAST_READ, READ_WINDOWS // len(names)))
                found[name] = part.merge(self._tests(own, part["relevance"]))
        return found

    def together(self, windows: Windows, domains: Mapping[str, xr.Dataset]) -> xr.Dataset:
        """Relevance over all windows; tests of an effect in any domain.

        The smallest p-value over the domains times their number: effects that differ or even
        cancel between domains count, and the error rate holds for all of them together.
        """
        if not domains:
            return self.statistics(windows)
        found = self.relevance(windows, READ_WINDOWS)
        each = xr.concat(list(domains.values()), dim="domain")
        found["p_value"] = np.minimum(each["p_value"].min("domain") * len(domains), 1.0)
        found["stability"] = each["stability"].max("domain")
        found["q_value"] = _q_values(found["p_value"])
        return found

    def relevance(self, windows: Windows, most: int) -> xr.Dataset:
        """Relevance averaged over at most `most` windows; of a forbidden edge it is 0."""
        most = max(1, int(min(most, self.forecaster.read_windows) * self.effort))
        sample = windows.sample(most, np.random.default_rng(self.settings.seed))
        readout = self.settings.readout
        found = relevance(self.forecaster, sample, readout, self.progress)
        if self.parts:
            found["relevance"] = cross_fitted(self.parts, sample, readout, self.progress)
        return found.where(self.allowed(windows), 0.0) if self.knowledge.forbid else found

    def allowed(self, windows: Windows) -> xr.DataArray:
        """False where an edge is forbidden, over (target, source, lag)."""
        return self.knowledge.allowed(windows.panel.coding.variables, windows.max_lag)

    def graph(self, found: xr.Dataset, windows: int) -> LaggedGraph:
        """Choose the edges from statistics of this many windows, and give each its details."""
        scores = found["relevance"]
        variables, max_lag = [str(v) for v in scores["target"].values], int(scores["lag"].max())
        chosen = self._chosen(found, self.fdr(windows))
        chosen = chosen & self.knowledge.allowed(variables, max_lag)
        chosen = with_required(chosen, scores, self.knowledge.required(variables, max_lag))
        details: dict[str, xr.DataArray] = {
            "effect": found["effect"],
            "sign": found["effect"].copy(data=_signs(found["effect"].values)),
            "share": rules.target_shares(scores),
            "confidence": 1 - found["q_value"],
            **{name: found[name] for name in EDGE_DETAILS},
        }
        return LaggedGraph.from_scores(scores, chosen, details)

    def graph_with_domains(
        self, found: xr.Dataset, domains: Mapping[str, xr.Dataset], windows: Windows
    ) -> LaggedGraph:
        """The graph of all windows, those of the domains in it, and where each edge was found."""
        graph = self.graph(found, len(windows))
        if not domains:
            return graph
        names = windows.panel.domain_names
        parts = {
            name: self.graph(part, len(windows.in_domain(names.index(name))))
            for name, part in domains.items()
        }
        return with_domains(graph, parts)

    def fdr(self, windows: int) -> float:
        """The accepted share of false edges: as asked, or the usual one."""
        return self.settings.fdr or usual_fdr(windows)

    def _chosen(self, found: xr.Dataset, fdr: float) -> xr.DataArray:
        settings, scores = self.settings, found["relevance"]
        ranked = scores if settings.by == "score" else found["mean_rank"]
        match settings.select:
            case "top-k":
                return rules.top_k(ranked, settings.k)
            case "global-top-k":
                return rules.global_top_k(ranked, settings.k)
            case "uniform":
                return rules.uniform(scores)
            case "auto" | "fdr":
                return rules.false_discovery(scores, found["p_value"], fdr, LEAST_SHARE)

    def _tests(self, windows: Windows, scores: xr.DataArray) -> xr.Dataset:
        """Tests of every candidate; unknown (nan) where there are too few rows and no need."""
        try:
            suspects = rules.target_shares(scores) >= SUSPECT_SHARE
            allowed = self.allowed(windows)
            tests = edge_tests(windows, suspects, self.fdr(len(windows)), allowed, self.effort)
            if self.settings.head != "mse":  # an effect on the mean or on the variance counts
                smaller = np.minimum(tests["p_value"], variance_p_values(windows))
                tests["p_value"] = np.minimum(2 * smaller, 1.0)
        except InputError:
            if self.tests_needed:
                raise
            unknown = xr.full_like(scores, np.nan)
            tests = xr.Dataset({"p_value": unknown, "stability": unknown})
        tests["q_value"] = _q_values(tests["p_value"])
        return tests


def usual_fdr(windows: int) -> float:
    """Strict where rows are plenty; with few, strictness costs more true edges than false ones."""
    return 0.02 if windows >= FEW_WINDOWS else 0.05


def allowed_inputs(allowed: xr.DataArray, coding: Variables | None = None) -> torch.Tensor:
    """Allowed edges (target, source, lag) as a forecaster's inputs (target, step, source).

    With a coding, what is said of a variable holds for all its columns.
    """
    values = allowed.values
    if coding is not None:
        values = values[coding.of_column][:, coding.of_column]
    return torch.from_numpy(by_step(values))


def _signs(effect: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """1 raises, -1 lowers, 0 neither: the effect of a label of several levels is unknown (NaN)."""
    return np.sign(np.nan_to_num(effect)).astype(int)


def _q_values(p_values: xr.DataArray) -> xr.DataArray:
    return p_values.copy(data=adjusted_p_values(p_values.values))
