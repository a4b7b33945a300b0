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
from forecause.forecast.inputs import Inputs, groups_of
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
    not tested (NaN). All levels of a label are tested together as a source; as a target, the most
    striking of its levels counts, its p-value times their number.
    """
    ladder = _Ladder(windows.sample(MOST_WINDOWS, np.random.default_rng(0)))
    inputs = ladder.inputs
    if allowed is not None:
        ladder.allowed = inputs.by_input(allowed.values)
    ladder.try_all_targets(ladder.straight)
    ladder.try_all_targets(ladder.curved)
    flat = None if suspects is None else inputs.by_input(suspects.values)
    for target in range(ladder.columns):
        ladder.try_pairs(target, None if flat is None else flat[target])
    ladder.p_values[~ladder.allowed] = np.nan
    p_values = inputs.p_values_of_targets(ladder.p_values)
    passed = int((adjusted_p_values(p_values) <= fdr).sum())
    # where Benjamini-Hochberg drew the line
    level = fdr * passed / max(np.isfinite(p_values).sum(), 1)
    names = list(inputs.coding.variables)
    stability = inputs.largest_of_targets(ladder.stability(level))
    found = {"p_value": p_values, "stability": stability}
    return xr.Dataset(
        {name: (AXES, inputs.by_lag(values)) for name, values in found.items()},
        coords={"target": names, "source": names, "lag": np.arange(1, inputs.steps + 1)},
    )


@dataclass(frozen=True)
class _Design:
    """Features of the past, and which of them belong to which input."""

    features: Callable[[Tensor], Tensor]  # (batch, step, variable) -> (batch, feature)
    groups: list[npt.NDArray[np.int64]]  # of feature indices
    inputs: npt.NDArray[np.int64]  # (group,) the input that each is; see Inputs

    @property
    def width(self) -> int:
        return 1 + int(max(group.max(initial=0) for group in self.groups))


class _Ladder:
    """The best model so far for every target column, and its p-values (target, input)."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.inputs = Inputs.of(windows)
        self.columns = windows.shape[1]
        self.early, self.late = windows.split(0.2)
        self.knots = place_knots(windows, KNOTS).double()
        self.mean, self.sd, self.slope = _term_moments(windows, self.knots)
        self.designs: dict[int, _Design] = {}  # the best model of each target
        self.errors: dict[int, Tensor] = {}  # and its held-out squared errors
        self.p_values = np.ones((self.columns, self.inputs.steps * self.inputs.variables))
        self.allowed = np.ones(self.p_values.shape, dtype=bool)
        self.smallest = np.ones_like(self.p_values)  # over straight and curved, for plausibility

    def straight(self, inputs: npt.NDArray[np.int64]) -> _Design:
        """A line for each of some inputs."""
        places, owner = self.inputs.places(inputs)
        groups = groups_of(owner, len(inputs))
        return _Design(lambda past: past.flatten(1)[:, places], groups, inputs)

    def curved(self, inputs: npt.NDArray[np.int64]) -> _Design:
        """A spline for each of some inputs."""
        places, owner = self.inputs.places(inputs)
        kept, of_place = self._kept_terms(places, KNOTS - 1)
        groups = groups_of(owner[of_place], len(inputs))
        return _Design(lambda past: self._terms(past, places).flatten(1)[:, kept], groups, inputs)

    def pairs(self, inputs: npt.NDArray[np.int64]) -> _Design:
        """Splines of some inputs, and products of a line and a bend of each two of them."""
        places, owner = self.inputs.places(inputs)
        kept, of_place = self._kept_terms(places, KNOTS - 1)
        multiplied, of_factor = self._kept_terms(places, 2)
        factors = groups_of(owner[of_factor], len(inputs))
        pairs = list(zip(*np.triu_indices(len(inputs), 1), strict=True))
        left = np.concatenate([np.repeat(factors[i], len(factors[j])) for i, j in pairs])
        right = np.concatenate([np.tile(factors[j], len(factors[i])) for i, j in pairs])

        def features(past: Tensor) -> Tensor:
            own = self._terms(past, places)
            line = own[..., 0]
            bend = own[..., 1] - self.slope[places % self.columns] * line
            two = torch.stack([line, bend], dim=2).flatten(1)[:, multiplied]
            return torch.cat([own.flatten(1)[:, kept], two[:, left] * two[:, right]], dim=1)

        own_columns = groups_of(owner[of_place], len(inputs))
        one, other = owner[of_factor][left], owner[of_factor][right]
        groups = [
            np.concatenate([own_columns[i], len(kept) + np.flatnonzero((one == i) | (other == i))])
            for i in range(len(inputs))
        ]
        return _Design(features, groups, inputs)

    def _kept_terms(
        self, places: npt.NDArray[np.int64], terms: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Of `terms` per place those that say something, a label's level having but one; and the
        place that each belongs to."""
        counts = np.where(self.inputs.is_label(places), 1, terms)
        of_place = np.repeat(np.arange(len(places)), counts)
        within = np.arange(len(of_place)) - np.repeat(np.cumsum(counts) - counts, counts)
        return of_place * terms + within, of_place

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
        """Share of block-bootstrap refits of each target column's model with p <= level, which the
        columns of a label share."""
        rng = np.random.default_rng(0)
        levels = level / np.array([self.inputs.tests(v) for v in self.inputs.coding.of_column])
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
                passed = p_values[targets] <= levels[targets, None]
                found[np.ix_(targets, design.inputs)] += passed
        return found / REFITS

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

    def _terms(self, past: Tensor, places: npt.NDArray[np.int64]) -> Tensor:
        """Standardised spline terms of some places, (batch, place, term)."""
        column = places % self.columns
        terms = spline_terms(past.flatten(1)[:, places], self.knots[column])
        return (terms - self.mean[column]) / self.sd[column]


def _term_moments(windows: Windows, knots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and sd of every spline term (variable, term), and the bend's slope on the line."""
    sample = windows.sample(10_000, np.random.default_rng(0))
    latest = torch.cat([batch[:, -1] for batch in sample.batches(4096)]).double()
    terms = spline_terms(latest, knots)
    mean, sd = terms.mean(0), terms.std(0)
    sd = torch.where(sd > 1e-9, sd, 1.0)  # a term that never varies stays zero
    scaled = (terms - mean) / sd
    return mean, sd, (scaled[..., 0] * scaled[..., 1]).mean(0)
