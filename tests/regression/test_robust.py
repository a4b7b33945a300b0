"""Robust tests: their resampling, and that the number of threads changes nothing."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats

from forecause.regression import moments
from forecause.regression.moments import Moments, cross_validated
from forecause.regression.robust import (
    BLOCKS,
    Wald,
    f_p_values,
    f_statistic,
    hc3_terms,
    wald_p_values,
)
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
    monkeypatch.setattr("forecause.common.work_sharing.LARGE", 0.0)
    monkeypatch.setattr("forecause.common.work_sharing._Allowed.threads", 3)
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


def noisy_sample(pieces=1, seed=2, windows=WINDOWS):
    """Noise whose size goes with an input; one input more never varies."""
    rng = np.random.default_rng(seed)
    past = rng.normal(size=(windows, INPUTS))
    past[:, 3] = 0.0
    noise = rng.normal(size=(windows, TARGETS)) * (0.3 + np.abs(past[:, [0]]))
    rows = np.concatenate([past, 0.1 * past[:, :TARGETS] + noise], axis=1, dtype=np.float32)
    return Sample(tuple(np.array_split(rows, pieces)), TARGETS)


def by_statsmodels(sample):
    """Robust fits of every target to an intercept and the inputs that vary."""
    rows = np.concatenate(sample.rows).astype(float)
    varying = sm.add_constant(rows[:, : INPUTS - 1])
    targets = rows[:, -TARGETS:].T
    return [sm.OLS(target, varying).fit(cov_type="HC3", use_t=True) for target in targets]


@pytest.mark.parametrize("numbers", [8_000_000, 4 * 5 * 7])  # few: many small batches
@pytest.mark.parametrize("pieces", [1, 3])
def test_tests_of_groups_are_those_of_statsmodels(monkeypatch, numbers, pieces):
    monkeypatch.setattr("forecause.regression.robust.NUMBERS", numbers)
    sample = noisy_sample(pieces)
    groups = [[0], [1, 2], [2, 3], [3]]  # the last input never varies
    found = Wald.of(sample, design(groups), range(TARGETS)).p_values
    for target, fit in enumerate(by_statsmodels(sample)):
        one, two, three = (np.eye(4)[rows] for rows in ([1], [2, 3], [3]))
        for group, restriction in enumerate((one, two, three)):
            expected = float(fit.f_test(restriction).pvalue)
            assert found[target, group] == pytest.approx(expected, rel=1e-4)
    assert (found[:, 3] == 1).all()


def test_a_test_of_one_target_is_that_among_several():
    sample = noisy_sample()
    several = Wald.of(sample, design([[0], [1, 2]]), range(TARGETS)).p_values
    alone = Wald.of(sample, design([[0], [1, 2]]), [1]).p_values
    np.testing.assert_allclose(alone[0], several[1], rtol=1e-9)


@pytest.mark.parametrize("windows", [600, 610])  # blocks of 15, and of 16 with a shorter last one
def test_the_influence_of_a_block_is_the_sum_of_its_robust_terms(windows):
    sample = noisy_sample(windows=windows)
    (one,) = Wald.of(sample, design([[0], [1], [2]]), range(TARGETS)).classes
    length = -(-windows // BLOCKS)
    fits = by_statsmodels(sample)
    assert one.influence.shape == (TARGETS, 3, 1, -(-windows // length))
    for target, fit in enumerate(fits):
        z = fit.model.exog
        inverse = np.linalg.inv(z.T @ z)
        leverage = np.einsum("wf,fg,wg->w", z, inverse, z)
        each = (z @ inverse) * (fit.resid / (1 - leverage))[:, None]
        starts = np.arange(0, windows, length)
        expected = np.add.reduceat(each, starts)[:, 1:].T
        np.testing.assert_allclose(one.influence[target, :, 0], expected, rtol=1e-3, atol=1e-6)


def test_stability_is_the_same_however_many_targets_are_worked_out_at_once(sample, monkeypatch):
    tests = Wald.of(sample, design([[0], [1, 2]]), range(TARGETS))
    levels = np.array([0.01, 0.05, 0.2])
    whole = tests.stability(levels, 30, np.random.default_rng(0))
    monkeypatch.setattr("forecause.regression.robust.NUMBERS", 1)
    np.testing.assert_array_equal(tests.stability(levels, 30, np.random.default_rng(0)), whole)


def test_a_window_that_a_fit_goes_through_counts_a_hundredfold():
    z = np.column_stack([np.ones(50), np.eye(50)[0]])  # the second feature is that of one window
    targets = np.random.default_rng(0).normal(size=(50, 1))
    inverse = np.linalg.inv(z.T @ z)
    h, errors = hc3_terms(z, targets, inverse, np.zeros((2, 1)))
    np.testing.assert_allclose(errors[0], targets[0] * 100)
    np.testing.assert_allclose(errors[1:], targets[1:] / (1 - 1 / 49))
    np.testing.assert_allclose(h, z @ inverse)


def test_a_statistic_below_nothing_is_none():
    assert f_p_values(np.array([-1.0, 0.0]), 2, 100).tolist() == [1.0, 1.0]


def test_columns_that_never_vary_or_repeat_leave_finite_tests():
    rng = np.random.default_rng(4)
    features = np.column_stack([rng.normal(size=80), np.zeros(80), np.ones(80)])
    found = wald_p_values(features, features[:, :1] + rng.normal(size=(80, 1)), 2, 1)[0]
    assert found[0] < 0.001
    assert found[1] == pytest.approx(1.0)
    few = rng.normal(size=(6, 7))  # more columns than windows
    assert np.isfinite(wald_p_values(few, rng.normal(size=(6, 1)), 7, 1)).all()
