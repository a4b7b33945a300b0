"""Does an input help at all? Closed-form tests of every (target, source, lag).

Three models of growing richness are fitted to every target: straight lines, splines, and splines
with products of pairs of the plausible inputs. The one that predicts held-out windows best is the
one in which the target's inputs are tested.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import xarray as xr
from torch import Tensor

from forecause.data.windows import Windows
from forecause.forecast.additive import place_knots, spline_terms
from forecause.forecast.choice import clearly_better
from forecause.forecast.regression import Moments
from forecause.forecast.robust import robust_p_values
from forecause.graph.fdr import adjusted_p_values
from forecause.graph.lagged import AXES

KNOTS = 5
MOST_WINDOWS, MOST_FOR_PAIRS = 100_000, 20_000  # tested; more add time, hardly edges
WINDOWS_PER_FEATURE = 5  # below this a richer model is not tried
REFITS, BLOCKS, BLOCK_NUMBERS = 20, 40, 64_000_000  # of the bootstrap; numbers held at once
PLAUSIBLE, MOST_PLAUSIBLE = 0.05, 14  # p-value and number of the inputs whose products are tried

Array = npt.NDArray[np.float64]


def edge_tests(
    windows: Windows,
    suspects: xr.DataArray | None = None,
    fdr: float = 0.05,
    allowed: xr.DataArray | None = None,
) -> xr.Dataset:
    """Is there an effect given all other inputs? Statistics over (target, source, lag).

    p_value: of no effect; stability: share of block-bootstrap refits in which it stays below the
    level that Benjamini-Hochberg at `fdr` amounts to.
    `suspects` marks inputs that a forecaster found strong: their products are tried even if they
    show nothing on their own. An input that is not `allowed` is left out of its target's models and
    not tested (NaN).
    """
    ladder = _Ladder(windows.sample(MOST_WINDOWS, np.random.default_rng(0)))
    if allowed is not None:
        ladder.allowed = ladder.by_input(allowed.values)
    ladder.try_all_targets(ladder.straight)
    ladder.try_all_targets(ladder.curved)
    flat = None if suspects is None else ladder.by_input(suspects.values)
    for target in range(ladder.variables):
        ladder.try_pairs(target, None if flat is None else flat[target])
    ladder.p_values[~ladder.allowed] = np.nan
    passed = int((adjusted_p_values(ladder.p_values) <= fdr).sum())
    level = fdr * passed / max(ladder.allowed.sum(), 1)  # where Benjamini-Hochberg drew the line
    names = list(windows.panel.variables)
    found = {"p_value": ladder.p_values, "stability": ladder.stability(level)}
    return xr.Dataset(
        {name: (AXES, ladder.by_lag(values)) for name, values in found.items()},
        coords={"target": names, "source": names, "lag": np.arange(1, ladder.steps + 1)},
    )


@dataclass(frozen=True)
class _Design:
    """Features of the past, and which of them belong to which input."""

    features: Callable[[Tensor], Tensor]  # (batch, step, variable) -> (batch, feature)
    groups: list[npt.NDArray[np.int64]]  # of feature indices
    inputs: npt.NDArray[np.int64]  # (group,) index into step * variable

    @property
    def width(self) -> int:
        return 1 + int(max(group.max() for group in self.groups))


class _Ladder:
    """The best model so far for every target, and its p-values (target, step * variable)."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.steps, self.variables = windows.shape
        self.early, self.late = windows.split(0.2)
        self.knots = place_knots(windows, KNOTS).double()
        self.mean, self.sd, self.slope = _term_moments(windows, self.knots)
        self.designs: dict[int, _Design] = {}  # the best model of each target
        self.errors: dict[int, Tensor] = {}  # and its held-out squared errors
        self.p_values = np.ones((self.variables, self.steps * self.variables))
        self.allowed = np.ones(self.p_values.shape, dtype=bool)
        self.smallest = np.ones_like(self.p_values)  # over straight and curved, for plausibility

    def straight(self, inputs: npt.NDArray[np.int64]) -> _Design:
        """A line for each of some inputs."""
        groups = list(np.arange(len(inputs))[:, None])
        return _Design(lambda past: past.flatten(1)[:, inputs], groups, inputs)

    def curved(self, inputs: npt.NDArray[np.int64]) -> _Design:
        """A spline for each of some inputs."""
        groups = np.arange(len(inputs) * (KNOTS - 1)).reshape(len(inputs), -1)
        return _Design(lambda past: self._terms(past, inputs).flatten(1), list(groups), inputs)

    def pairs(self, inputs: npt.NDArray[np.int64]) -> _Design:
        """Splines of some inputs, and products of a line and a bend of each two of them."""
        count, terms = len(inputs), KNOTS - 1
        first, second = np.triu_indices(count, 1)

        def features(past: Tensor) -> Tensor:
            own = self._terms(past, inputs)
            line = own[..., 0]
            bend = own[..., 1] - self.slope[inputs % self.variables] * line
            two = torch.stack([line, bend], dim=2)
            products = two[:, first, :, None] * two[:, second, None, :]
            return torch.cat([own.flatten(1), products.flatten(1)], dim=1)

        own_columns = np.arange(count * terms).reshape(count, terms)
        pair_columns = count * terms + np.arange(len(first) * 4).reshape(-1, 4)
        groups = [
            np.concatenate([own_columns[i], pair_columns[(first == i) | (second == i)].ravel()])
            for i in range(count)
        ]
        return _Design(features, groups, inputs)

    def try_all_targets(self, design_of: Callable[[npt.NDArray[np.int64]], _Design]) -> None:
        """Fit one design to all targets with the same inputs; keep it where it is the best."""
        kinds, kind_of = np.unique(self.allowed, axis=0, return_inverse=True)
        for kind, allowed in enumerate(kinds):
            inputs = np.flatnonzero(allowed)
            if len(inputs):
                self._try(design_of(inputs), np.flatnonzero(kind_of == kind))

    def _try(self, design: _Design, targets: npt.NDArray[np.int64]) -> None:
        started = int(targets[0]) in self.errors
        if started and len(self.early) < WINDOWS_PER_FEATURE * design.width:
            return
        found = robust_p_values(self.windows, design.features, design.groups, targets.tolist())
        errors = self._held_out_errors(design)
        for place, target in enumerate(targets.tolist()):
            p_values = np.ones(self.p_values.shape[1])
            p_values[design.inputs] = found[place]
            self.smallest[target] = np.minimum(self.smallest[target], p_values)
            self._keep_if_better(target, errors[:, target], p_values, design)

    def try_pairs(self, target: int, suspects: npt.NDArray[np.bool_] | None) -> None:
        """Fit the products of the plausible inputs to one target, if there is data enough."""
        rank = self.smallest[target].copy()
        if suspects is not None:
            believed = suspects & self.allowed[target]
            rank[believed] = np.minimum(rank[believed], PLAUSIBLE / 2)
        inputs = np.argsort(rank, kind="stable")[:MOST_PLAUSIBLE]
        inputs = np.sort(inputs[rank[inputs] < PLAUSIBLE])
        if len(inputs) < 2:
            return
        design = self.pairs(inputs)
        if len(self.early) < WINDOWS_PER_FEATURE * design.width:
            return
        errors = self._held_out_errors(design, MOST_FOR_PAIRS)[:, target]
        if clearly_better(self.errors[target], errors):
            p_values = np.ones(self.p_values.shape[1])
            tested = self.windows.sample(MOST_FOR_PAIRS, np.random.default_rng(0))
            p_values[inputs] = robust_p_values(tested, design.features, design.groups, [target])
            self._keep_if_better(target, errors, p_values, design)

    def stability(self, level: float) -> Array:
        """Share of block-bootstrap refits of each target's model with p <= level."""
        rng = np.random.default_rng(0)
        found = np.zeros_like(self.p_values)
        tested = self.windows.sample(MOST_FOR_PAIRS, rng)
        for design in {id(d): d for d in self.designs.values()}.values():
            targets = np.array([t for t, d in self.designs.items() if d is design])
            blocks = max(2, min(BLOCKS, BLOCK_NUMBERS // design.width**2))
            pieces = np.array_split(np.arange(len(tested)), blocks)
            parts = [Moments.of(tested.at(piece), design.features) for piece in pieces]
            weights = rng.multinomial(blocks, np.full(blocks, 1 / blocks), size=REFITS)
            for refit in Moments.resampled(parts, weights):
                p_values = refit.group_p_values(design.groups)
                found[np.ix_(targets, design.inputs)] += p_values[targets] <= level
        return found / REFITS

    def by_lag(self, values: Array) -> Array:
        """(target, step * variable) -> (target, source, lag)."""
        by_step = values.reshape(self.variables, self.steps, self.variables)
        return np.ascontiguousarray(by_step[:, ::-1].transpose(0, 2, 1))

    def by_input(self, values: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """(target, source, lag) -> (target, step * variable)."""
        return values.transpose(0, 2, 1)[:, ::-1].reshape(len(values), -1)

    def _keep_if_better(
        self, target: int, errors: Tensor, p_values: Array, design: _Design
    ) -> None:
        if target not in self.errors or clearly_better(self.errors[target], errors):
            self.errors[target], self.p_values[target] = errors, p_values
            self.designs[target] = design

    def _held_out_errors(self, design: _Design, most: int = MOST_WINDOWS) -> Tensor:
        """Squared errors (window, target) on the late windows of a fit to the early ones."""
        early = self.early.sample(most, np.random.default_rng(0))
        coefficients = Moments.of(early, design.features).solve(1e-4)
        parts = []
        for batch in self.late.batches(4096):
            window = batch.double()
            fitted = design.features(window[:, :-1]) @ coefficients[1:] + coefficients[0]
            parts.append((fitted - window[:, -1]).square())
        return torch.cat(parts)

    def _terms(self, past: Tensor, inputs: npt.NDArray[np.int64]) -> Tensor:
        """Standardised spline terms of some inputs, (batch, input, term)."""
        variable = inputs % self.variables
        terms = spline_terms(past.flatten(1)[:, inputs], self.knots[variable])
        return (terms - self.mean[variable]) / self.sd[variable]


def _term_moments(windows: Windows, knots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and sd of every spline term (variable, term), and the bend's slope on the line."""
    sample = windows.sample(10_000, np.random.default_rng(0))
    latest = torch.cat([batch[:, -1] for batch in sample.batches(4096)]).double()
    terms = spline_terms(latest, knots)
    mean, sd = terms.mean(0), terms.std(0)
    sd = torch.where(sd > 1e-9, sd, 1.0)  # a term that never varies stays zero
    scaled = (terms - mean) / sd
    return mean, sd, (scaled[..., 0] * scaled[..., 1]).mean(0)
