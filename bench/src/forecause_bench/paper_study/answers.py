"""The rows of the tables: a readout of a fit under a rule, or a rival's graph, with its metrics."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause_bench.paper_study.queue import DEEP, ROWS, TRANSFORMER
from forecause_bench.paper_study.scores import (
    Mask,
    Rule,
    best_f1,
    mean_metrics,
    top_k,
)
from forecause_bench.paper_study.store import RIVALS, WHOLE, StoredFit, stored_fits

Metrics = Mapping[str, float]


@dataclass(frozen=True)
class Kind:
    """Which fits a figure is about."""

    system: str
    rows: int = ROWS
    layers: int = DEEP
    told_segment: bool = False
    network: str = TRANSFORMER


@dataclass(frozen=True)
class Summary:
    """A mean over seeds; the standard deviation is that between systems (n - 1)."""

    mean: float
    sd: float
    seeds: int

    @classmethod
    def of(cls, values: list[float]) -> Summary | None:
        """None where there is nothing."""
        known = [value for value in values if not np.isnan(value)]
        if not known:
            return None
        spread = float(np.std(known, ddof=1)) if len(known) > 1 else float("nan")
        return cls(float(np.mean(known)), spread, len(known))

    def __str__(self) -> str:
        spread = f" ± {self.sd:.2f}" if self.seeds > 1 else ""
        return f"{self.mean:.2f}{spread}"


@dataclass(frozen=True, eq=False)
class Rivals:
    """The graphs of other methods on one system."""

    content: Mapping[str, Any]

    def chosen(self, method: str, segment: str) -> Mask:
        """A method's graph for a segment; one graph for all rows counts for every segment."""
        edges = self.content["methods"][method]["edges"]
        return self._mask(edges.get(segment, edges.get(WHOLE, [])))

    def metrics(self, method: str, change: Callable[[Mask], Mask] | None = None) -> Metrics | None:
        """Means over segments; None where the method was not run to the end."""
        if "edges" not in self.content.get("methods", {}).get(method, {}):
            return None
        change = change or np.asarray
        truth = {name: self._mask(edges) for name, edges in self.content["truth"].items()}
        return mean_metrics((change(self.chosen(method, name)), truth[name]) for name in truth)

    def stopped_after(self, method: str) -> float:
        """The limit in seconds that stopped a method here; 0 if none did."""
        return float(self.content.get("methods", {}).get(method, {}).get("stopped_after", 0))

    def _mask(self, edges: list[list[int]]) -> Mask:
        mask: npt.NDArray[np.bool_] = np.zeros(self.content["shape"], dtype=bool)
        for target, source, lag in edges:
            if lag:  # an edge at lag 0 is no part of these tables
                mask[target, source, lag - 1] = True
        return mask


class Study:
    """Everything that the store holds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def fits(self) -> dict[Kind, dict[int, StoredFit]]:
        """Fits by kind, then by seed."""
        found: dict[Kind, dict[int, StoredFit]] = defaultdict(dict)
        for fit in stored_fits(self.folder):
            kind = Kind(fit.system, fit.rows, fit.layers, fit.told_segment, fit.network)
            found[kind][fit.seed] = fit
        return dict(found)

    @cached_property
    def rivals(self) -> dict[tuple[str, int], dict[int, Rivals]]:
        """Rivals by system and rows, then by seed."""
        found: dict[tuple[str, int], dict[int, Rivals]] = defaultdict(dict)
        for path in sorted((self.folder / RIVALS).glob("*.json")):
            content = json.loads(path.read_text(encoding="utf-8"))
            found[content["system"], content["rows"]][content["seed"]] = Rivals(content)
        return dict(found)

    def seeds(self, kind: Kind) -> list[int]:
        """The seeds that were fitted."""
        return sorted(self.fits.get(kind, {}))

    def knows(self, kind: Kind) -> bool:
        """Whether there is anything to show, if only rivals."""
        return bool(self.seeds(kind)) or (kind.system, kind.rows) in self.rivals

    def of_fits(self, kind: Kind, measure: Callable[[StoredFit], float]) -> Summary | None:
        """Any measure of fits of one kind, over seeds."""
        return Summary.of([measure(fit) for fit in self.fits.get(kind, {}).values()])

    def read(
        self, kind: Kind, readout: str, metric: str = "f1", rule: Rule = top_k
    ) -> Summary | None:
        """A metric of a readout under a rule, over the seeds that were fitted."""
        return self.of_fits(kind, lambda fit: fit_metrics(fit, readout, rule)[metric])

    def rival(
        self,
        kind: Kind,
        method: str,
        metric: str = "f1",
        change: Callable[[Mask], Mask] | None = None,
    ) -> Summary | None:
        """The same for a rival: on the seeds that were fitted, so that rows can be compared."""
        runs = self.rivals.get((kind.system, kind.rows), {})
        fitted = self.seeds(kind) or sorted(runs)
        each = [runs[seed].metrics(method, change) for seed in fitted if seed in runs]
        return Summary.of([one[metric] for one in each if one is not None])

    def stopped_after(self, kind: Kind, method: str) -> float:
        """The limit in seconds that stopped a rival on any system of this kind; 0 if none did."""
        runs = self.rivals.get((kind.system, kind.rows), {})
        return max((run.stopped_after(method) for run in runs.values()), default=0.0)


def fit_metrics(fit: StoredFit, readout: str, rule: Rule = top_k) -> dict[str, float]:
    """Means over segments, each read from its own windows; NaN where it was not stored."""
    if not fit.has(readout):
        return dict.fromkeys(("precision", "recall", "f1", "shd"), float("nan"))
    return mean_metrics(
        (rule(fit.relevance(readout, segment)), true) for segment, true in fit.truths.items()
    )


def ceiling(fit: StoredFit) -> float:
    """The most that three edges for every target can have, mean over segments."""
    return float(np.mean([best_f1(true) for true in fit.truths.values()]))
