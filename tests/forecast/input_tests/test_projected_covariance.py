"""Claims about the test harness and its learners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy import stats

from forecause.forecast.input_tests.learned_evidence import cauchy_combination, learned_evidence
from forecause.forecast.input_tests.projected_covariance import (
    Predictor,
    candidate_evidence,
    time_folds,
)
from forecause.regression.scan import InputGroups
from systems import single_inputs

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


def noise(rows: int, columns: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((rows, columns))


@dataclass
class Network(Predictor):
    """A torch network that reads every input."""

    module: torch.nn.Module
    reads: Index

    def predict(self, inputs: Array) -> Array:
        with torch.no_grad():
            found = self.module(torch.from_numpy(inputs).float())
        return np.asarray(found.numpy()[:, 0], dtype=np.float64)


def trained_network(inputs: Array, target: Array) -> Network:
    torch.manual_seed(0)
    layers = [torch.nn.Linear(inputs.shape[1], 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)]
    module = torch.nn.Sequential(*layers)
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
    x, y = torch.from_numpy(inputs).float(), torch.from_numpy(target).float()[:, None]
    for _ in range(200):
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(module(x), y).backward()
        optimiser.step()
    return Network(module, np.arange(inputs.shape[1]))


def test_a_network_finds_a_product_and_nothing_else() -> None:
    inputs = noise(2000, 6)
    target = inputs[:, 0] * inputs[:, 1] + 0.5 * noise(2000, 1, seed=1)[:, 0]
    folds = time_folds(np.arange(2000), 2)
    fitted = [[trained_network(inputs[f.train], target[f.train])] for f in folds]
    found = candidate_evidence(inputs, target[:, None], folds, fitted, single_inputs(6))
    assert (found.p_values[0, :2] < 1e-6).all()
    assert (found.p_values[0, 2:] > 0.01).all()
    assert found.relevance[0, :2].min() > 5 * found.relevance[0, 2:].max()


def test_p_values_of_inputs_without_effect_are_not_too_small() -> None:
    p_values = []
    for seed in range(6):
        inputs = noise(800, 8, seed)
        target = np.prod(inputs[:, :2], axis=1) + noise(800, 1, seed + 100)[:, 0]
        own = [np.zeros(0, dtype=np.int64)]
        found = learned_evidence(
            inputs, target[:, None], single_inputs(8), own, np.arange(len(inputs)), 1
        )
        assert (found.evidence.p_values[0, :2] < 1e-3).all()
        p_values.append(found.evidence.p_values[0, 2:])
    assert (np.concatenate(p_values) < 0.05).mean() < 0.15


def test_terms_that_are_always_there_are_used_but_not_tested() -> None:
    rows, own = 1000, [np.zeros(0, dtype=np.int64)]
    season = np.sin(np.arange(rows) / 5)
    candidates = InputGroups(
        tuple(np.array([i]) for i in range(3)), np.array([True, True, True, False])
    )
    of_follower = []
    for seed in range(3):
        inputs = np.column_stack([noise(rows, 3, seed), season])
        inputs[:, 0] += season  # follows the season, does not drive the target
        target = 2 * season + inputs[:, 1] * inputs[:, 2] + noise(rows, 1, seed + 50)[:, 0]
        found = learned_evidence(
            inputs, target[:, None], candidates, own, np.arange(len(inputs)), 2
        )
        assert found.evidence.p_values.shape == (1, 3)
        assert (found.evidence.p_values[0, 1:] < 1e-6).all()
        of_follower.append(found.evidence.p_values[0, 0])
    assert np.median(of_follower) > 0.05


def test_levels_of_a_label_are_tested_together() -> None:
    rng = np.random.default_rng(5)
    level = rng.integers(0, 3, 1200)
    levels = np.eye(3)[level][:, 1:]
    inputs = np.column_stack([levels, noise(1200, 3, seed=6)])
    pull = np.array([0.0, 1.0, -1.0])[level]
    target = pull + inputs[:, 2] * inputs[:, 3] + 0.5 * noise(1200, 1, seed=7)[:, 0]
    groups = (np.array([0, 1]), np.array([2]), np.array([3]), np.array([4]))
    candidates = InputGroups(groups, np.array([False, False, True, True, True]))
    own = [np.zeros(0, dtype=np.int64)]
    found = learned_evidence(inputs, target[:, None], candidates, own, np.arange(len(inputs)), 1)
    assert (found.evidence.p_values[0, :3] < 1e-6).all()
    assert found.evidence.p_values[0, 3] > 0.01


def test_copies_of_a_missed_function_do_not_hide_it() -> None:
    rows = 2000
    drives = noise(rows, 2)
    wave = np.sin(2 * drives[:, 0] + 2 * drives[:, 1])
    copies = wave[:, None] + 0.3 * noise(rows, 2, seed=1)
    inputs = np.column_stack([drives, copies / copies.std(0)])
    target = wave + 0.3 * noise(rows, 1, seed=2)[:, 0]
    own = [np.zeros(0, dtype=np.int64)]
    found = learned_evidence(
        inputs, target[:, None], single_inputs(4), own, np.arange(len(inputs)), 1
    )
    assert (found.evidence.p_values[0, :2] < 1e-6).all()
    assert (found.evidence.p_values[0, 2:] > 0.001).all()


def test_cauchy_combination_keeps_the_level() -> None:
    draws = stats.norm.cdf(noise(2, 20_000))
    rate = (cauchy_combination(draws) < 0.05).mean()
    assert 0.03 < rate < 0.06
    tiny = cauchy_combination(np.array([[1e-30], [0.5]]))[0]
    np.testing.assert_allclose(tiny, 2e-30, rtol=1e-6)


def test_no_row_is_learned_from_and_tested_on() -> None:
    for fold in time_folds(np.arange(503), 5):
        assert not set(fold.train) & set(fold.test)
    tested = np.concatenate([fold.test for fold in time_folds(np.arange(503), 5)])
    assert sorted(tested) == list(range(503))
