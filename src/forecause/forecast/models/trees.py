"""Gradient-boosted trees, one ensemble per target, on the inputs that matter.

scikit-learn grows them; what is kept are the nodes as tables of numbers, followed by a few lines of
our own, so a saved run holds no foreign objects.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from forecause.config import PLAIN_READOUTS
from forecause.forecast.backward import PLAIN, Rules
from forecause.forecast.boosted_trees import LEAVES, MOST_TREES, grown, held_out_rows
from forecause.forecast.forecaster import FitData, Forecaster, ForecasterSettings
from forecause.forecast.models.by_domain import by_domain
from forecause.work_sharing import spread

NODES = 2 * LEAVES - 1  # of one tree
DEPTH = LEAVES - 1  # steps from its root to its farthest leaf
MOST_READ = 20  # inputs of a target
MOST_FIRST_TREES = 30  # that tell which inputs these are
MOST_LEARNED_WINDOWS = 20_000  # that are learned from
STEP = 0.5  # standard deviations by which an input is moved either way to tell its slope

Array = npt.NDArray[np.float64]


class Trees(ForecasterSettings):
    """Histogram trees on the inputs of each target that first trees of all inputs use most.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.Trees().kind
    'trees'
    """

    kind: ClassVar[str] = "trees"
    instant: ClassVar[bool] = True
    own_tests: ClassVar[bool] = True
    has_gradient: ClassVar[bool] = False
    readouts: ClassVar[tuple[str, ...]] = PLAIN_READOUTS

    def build(self, shape: tuple[int, int]) -> Forecaster:
        return by_domain(self, lambda plain: TreesModel(shape, plain), shape)


class TreesModel(Forecaster):
    """X_i,t = intercept + the sum of its trees' leaves; nodes are numbered from each root on."""

    settings: Trees
    read_windows = 500  # a slope takes two forecasts for every input

    def __init__(self, shape: tuple[int, int], settings: Trees) -> None:
        super().__init__(shape, settings)
        size = (self.n_variables, MOST_TREES, NODES)
        self.register_buffer("intercept", torch.zeros(self.n_variables))
        self.register_buffer("inputs", torch.zeros(size, dtype=torch.long))  # step * variable
        self.register_buffer("thresholds", torch.full(size, torch.inf))  # left if not above
        self.register_buffer("branches", torch.zeros((*size, 2), dtype=torch.long))
        self.register_buffer("values", torch.zeros(size))  # of leaves

    def forward(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        x = past.detach().flatten(1)
        return torch.stack([self._sum(x, target) for target in range(self.n_variables)], dim=1)

    def _sum(self, x: Tensor, target: int) -> Tensor:
        """Forecast (batch,) of one target from inputs (batch, input)."""
        intercept = self.get_buffer("intercept")[target]
        count = int(self.get_buffer("branches")[target].flatten(1).any(1).sum())  # trees that split
        inputs, thresholds, children, values = (
            self.get_buffer(name)[target, :count].flatten(0, 1)
            for name in ("inputs", "thresholds", "branches", "values")
        )
        root = NODES * torch.arange(count, device=x.device)  # nodes of all trees in one table
        children = children + root.repeat_interleave(NODES)[:, None]
        node = root.expand(len(x), -1)
        for _ in range(DEPTH):
            is_above = x.gather(1, inputs[node]) > thresholds[node]
            after = torch.where(is_above, children[node, 1], children[node, 0])
            if torch.equal(after, node):  # a leaf is its own child
                break
            node = after
        return intercept + values[node].sum(1)

    def jacobian(self, past: Tensor, rules: Rules = PLAIN, domain: Tensor | None = None) -> Tensor:
        """Mean slope within half a standard deviation of each input: trees have no other."""
        found = past.new_zeros(len(past), self.n_variables, *past.shape[1:])
        for target in range(self.n_variables):
            is_inner = self.get_buffer("branches")[target].any(-1)
            for place in self.get_buffer("inputs")[target][is_inner].unique().tolist():
                step, source = divmod(place, self.n_variables)
                moved = past.flatten(1).clone()
                moved[:, place] += STEP
                above = self._sum(moved, target)
                moved[:, place] -= 2 * STEP
                found[:, target, step, source] = (above - self._sum(moved, target)) / (2 * STEP)
        return found

    def score(self, window: Any) -> Tensor:
        pull = (window.target - self.forecast(window)) / self.get_buffer("noise_variance")
        return pull[:, :, None, None] * self.jacobian(window.past, domain=window.domain)

    def offers(self, column: int) -> bool:
        return bool(self.get_buffer("branches")[column].any())

    def keep_only(self, columns: Collection[int]) -> None:
        gone = [c for c in range(self.n_variables) if c not in columns]
        for name, empty in (("inputs", 0), ("thresholds", torch.inf), ("branches", 0)):
            self.get_buffer(name)[gone] = empty
        self.get_buffer("values")[gone] = 0.0

    def fit(self, fit_data: FitData) -> None:
        windows = fit_data.windows.spread(MOST_LEARNED_WINDOWS)
        batch = windows.draw(np.arange(len(windows)))
        inputs, targets = batch.past.flatten(1).double().numpy(), batch.target.double().numpy()
        late = held_out_rows(len(inputs))
        allowed = self.get_buffer("allowed").flatten(1).cpu().numpy()
        columns = fit_data.columns or range(self.n_variables)
        common = inputs, targets, late, allowed, fit_data.seed
        for target, (model, reads) in zip(
            columns, spread(_grown_for, common, columns), strict=True
        ):
            fit_data.progress.step("growing trees", target / self.n_variables)
            if len(reads):
                self._set(target, model, reads)
            else:
                self.get_buffer("intercept")[target] = float(targets[:, target].mean())
        self.estimate_noise(fit_data.held_out)

    def _set(self, target: int, model: Any, reads: npt.NDArray[np.int64]) -> None:
        """Take over the nodes of a target's trees, which read some of the inputs."""
        self.get_buffer("intercept")[target] = float(np.ravel(model._baseline_prediction)[0])
        for tree, nodes in enumerate(_nodes(model)):
            is_leaf, count = nodes["is_leaf"].astype(bool), len(nodes)
            own = np.arange(count)
            children = np.stack([nodes["left"], nodes["right"]], axis=1).astype(np.int64)
            children[is_leaf] = own[is_leaf, None]
            put = {
                "inputs": np.where(is_leaf, 0, reads[nodes["feature_idx"].clip(0, len(reads) - 1)]),
                "thresholds": np.where(is_leaf, np.inf, nodes["num_threshold"]),
                "branches": children,
                "values": np.where(is_leaf, nodes["value"], 0.0),
            }
            for name, values in put.items():
                buffer = self.get_buffer(name)
                buffer[target, tree, :count] = torch.from_numpy(values).to(buffer.dtype)


def _grown_for(
    common: tuple[Array, Array, npt.NDArray[np.bool_], npt.NDArray[np.bool_], int], target: int
) -> tuple[Any, npt.NDArray[np.int64]]:
    """The trees of one target and the inputs that they read, which may be none."""
    inputs, targets, late, allowed, seed = common
    reads = np.flatnonzero(allowed[target])
    if len(reads) > MOST_READ:
        first = grown(inputs[:, reads], targets[:, target], late, seed, MOST_FIRST_TREES)
        reads = np.sort(reads[np.argsort(-_gains(first, len(reads)))[:MOST_READ]])
    return (grown(inputs[:, reads], targets[:, target], late, seed) if len(reads) else None), reads


def _nodes(model: Any) -> list[npt.NDArray[Any]]:
    """The table of nodes of every tree."""
    return [predictors[0].nodes for predictors in model._predictors]


def _gains(model: Any, inputs: int) -> Array:
    """What splits by each input gained, (input,)."""
    found = np.zeros(inputs)
    for nodes in _nodes(model):
        inner = nodes[~nodes["is_leaf"].astype(bool)]
        np.add.at(found, inner["feature_idx"].astype(np.int64), inner["gain"])
    return found
