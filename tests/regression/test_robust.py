"""Robust tests: their resampling, and that the number of threads changes nothing."""

import numpy as np
import pytest
from scipy import stats

from forecause.regression import moments
from forecause.regression.moments import Moments, cross_validated
from forecause.regression.robust import BLOCKS, Wald, f_p_values, f_statistic
from forecause.regression.sample import Design, Sample

WINDOWS, INPUTS, TARGETS = 600, 4, 3


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    past = rng.normal(size=(WINDOWS, INPUTS))
    ahead = 0.2 * past[:, :TARGETS] + rng.normal(size=(WINDOWS, TARGETS))
    rows = np.concatenate([past, ahead], axis=1, dtype=np.float32)
    return Sample((rows,), TARGETS)


def design(groups):
    every = np.arange(INPUTS)
    return Design(every, lambda values: values, [np.array(g) for g in groups], every[: len(groups)])


@pytest.mark.parametrize("groups", [[[0], [1], [2], [3]], [[0, 1], [2, 3]], [[0], [1, 2, 3]]])
def test_stability_is_the_share_of_resamples_whose_p_value_is_small(sample, groups):
    tests = Wald.of(sample, design(groups), range(TARGETS))
    levels = np.array([0.001, 0.02, 0.2])
    rng = np.random.default_rng(1)
    expected = np.zeros(tests.shape)
    for one in tests.classes:
        counts = rng.multinomial(BLOCKS, np.full(BLOCKS, 1 / BLOCKS), size=50) - 1.0
        for extra in counts:
            beta = one.beta + one.influence.astype(float) @ extra
            for target, group in np.ndindex(beta.shape[:2]):
                b, covariance = beta[target, group], one.covariance[target, group]
                f = b @ np.linalg.inv(covariance) @ b / len(b)
                p_value = stats.f.sf(f, len(b), tests.freedom)
                expected[target, one.groups[group]] += p_value <= levels[target]
    found = tests.stability(levels, 50, np.random.default_rng(1))
    np.testing.assert_allclose(found, expected / 50, atol=1e-12)
    assert 0 < found.mean() < 1


@pytest.mark.parametrize("size", [1, 4])
def test_statistics_and_p_values_of_f_are_inverse_to_each_other(size):
    levels = np.array([0.9, 0.05, 1e-6, 1e-14])
    statistic = f_statistic(levels, size, 500)
    np.testing.assert_allclose(stats.f.sf(statistic, size, 500), levels, rtol=1e-6)
    np.testing.assert_allclose(f_p_values(statistic, size, 500), levels, rtol=1e-6)
    assert f_statistic(np.zeros(1), size, 500)[0] == np.inf


def fits(sample):
    """Everything that threads may share, as plain numbers."""
    parts = [part.astype(float) for part in sample.batches(100)]
    batches = [(part[:, :INPUTS], part[:, INPUTS:]) for part in parts]
    blocks = [Moments.summed(batches[i : i + 2]) for i in range(0, len(batches), 2)]
    everything = np.ones((INPUTS, TARGETS), dtype=bool)
    tests = Wald.of(sample, design([[0], [1, 2], [3]]), range(TARGETS))
    return [
        Moments.summed(batches).gram,
        cross_validated(blocks, (0.0, 0.1, 1.0), everything),
        tests.p_values,
        tests.stability(np.full(TARGETS, 0.05), 20, np.random.default_rng(0)),
    ]


def test_the_number_of_threads_changes_no_bit(sample, monkeypatch):
    alone = fits(sample)
    monkeypatch.setattr("forecause.work_sharing.LARGE", 0.0)
    monkeypatch.setattr("forecause.work_sharing._Allowed.threads", 3)
    together = fits(sample)
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


def test_of_very_many_targets_some_choose_the_penalty_for_all(monkeypatch):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(4, 50, 30))
    y = 0.3 * x[..., :20] + rng.normal(size=(4, 50, 20))
    blocks = [Moments.summed([(a, b)]) for a, b in zip(x, y, strict=True)]
    everything = np.ones((30, 20), dtype=bool)
    ridges = (0.0, 0.1, 1.0, 10.0)
    every = cross_validated(blocks, ridges, everything)
    monkeypatch.setattr(moments, "MOST_JUDGED", 5)
    some = cross_validated(blocks, ridges, everything)
    assert some.shape == every.shape
    solutions = [Moments.added(blocks).solve(ridge) for ridge in ridges]
    assert any(np.array_equal(some, solution) for solution in solutions)
