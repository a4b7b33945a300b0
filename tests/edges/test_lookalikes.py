"""What imitates a link is told from a link, where the data can tell."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import forecause as fc
from forecause.config.thresholds import THRESHOLDS
from forecause.data import Panel, Windows
from forecause.edges import lookalikes
from forecause.edges.lookalikes import echoes, only_surprises

ROWS = 1_500


def noise(seed: int, variables: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(ROWS, variables))


def with_memory(shocks: np.ndarray, coefficient: float = 0.5, links=()) -> np.ndarray:
    """Each variable remembers itself; links are (source, target, lag, size)."""
    values = shocks.copy()
    for row in range(3, len(values)):
        values[row] += coefficient * values[row - 1]
        for source, target, lag, size in links:
            values[row, target] += size * values[row - lag, source]
    return values


def asked(*links: tuple[int, int, int]) -> np.ndarray:
    """Links (source, target, lag) as a mask (target, source, lag)."""
    mask = np.zeros((3, 3, 3), dtype=bool)
    for source, target, lag in links:
        mask[target, source, lag - 1] = True
    return mask


def windows_of(values: np.ndarray) -> Windows:
    return Windows.of(Panel.of(values), 3)


def test_a_shock_that_reaches_one_first_and_another_later_is_told_from_a_cause():
    both = asked((0, 1, 1), (0, 1, 2))
    told = 0
    for seed in range(6):
        shared = np.random.default_rng([seed, 1]).normal(size=ROWS)
        shocks = noise(seed)
        shocks[:, 0] += shared
        shocks[1:, 1] += shared[:-1]
        told += only_surprises(windows_of(with_memory(shocks)), both, 0.005, 0.05)[1, 0, 0]
        cause = with_memory(noise(seed), links=[(0, 1, 1, 0.4)])
        assert not only_surprises(windows_of(cause), both, 0.005, 0.05).any()
    assert told >= 4


def test_without_a_memory_of_the_source_shock_and_cause_cannot_be_told_apart():
    shared = np.random.default_rng(1).normal(size=ROWS)
    shocks = noise(0)
    shocks[:, 0] += shared
    shocks[1:, 1] += shared[:-1]
    assert not only_surprises(windows_of(shocks), asked((0, 1, 1)), 0.005, 0.05).any()


def test_an_older_lag_beside_noise_that_lingers_is_an_echo_and_two_lags_of_a_cause_are_not():
    both, found, true = asked((0, 1, 1), (0, 1, 2)), 0, 0
    for seed in range(4):
        shocks = noise(seed)
        lingering = shocks.copy()
        lingering[2:] += 0.6 * shocks[1:-1] + 0.3 * shocks[:-2]
        one = windows_of(with_memory(lingering, links=[(0, 1, 1, 0.4)]))
        two = windows_of(with_memory(shocks, links=[(0, 1, 1, 0.4), (0, 1, 2, -0.2)]))
        found += int(echoes(one, both, 0.05)[1, 0, 1])
        true += int(echoes(two, both, 0.05).any())
        assert not echoes(one, both, 0.05)[1, 0, 0]
    assert found >= 3
    assert true <= 1


def test_nothing_is_said_of_what_was_not_asked_or_of_few_rows():
    windows = windows_of(with_memory(noise(0)))
    nothing = np.zeros((3, 3, 3), dtype=bool)
    assert not only_surprises(windows, nothing, 0.5, 0.05).any()
    assert not echoes(windows, nothing, 0.5).any()
    few = Windows.of(Panel.of(noise(0)[:25]), 3)
    assert not only_surprises(few, asked((0, 1, 1)), 0.999, 0.05).any()


class TestByHand:
    """Both questions against regressions by statsmodels, on two series with a memory."""

    LAGS = 3

    @pytest.fixture
    def series(self) -> list[np.ndarray]:
        links = [(0, 1, 1, 0.3), (1, 2, 2, -0.3)]
        return [with_memory(noise(seed)[:300], links=links) for seed in (0, 1)]

    @pytest.fixture
    def windows(self, series) -> Windows:
        return Windows.of(Panel.from_arrays(series, list("abc")), self.LAGS)

    def rows(self, values: np.ndarray, lags: int) -> tuple[np.ndarray, np.ndarray]:
        """The past (row, lag, column), the latest first, and the rows that follow."""
        past = [values[lags - lag : len(values) - lag] for lag in range(1, lags + 1)]
        return np.stack(past, axis=1), values[lags:]

    def surprise_test(self, series, source: int, lag: int) -> np.ndarray:
        """HC3 p-values (target, 2) of a source's value and surprise; lag counts from 0."""
        parts = [self.rows(values, self.LAGS) for values in series]
        past, target = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        design = sm.add_constant(past.reshape(len(past), -1))
        surprise = target - design @ np.linalg.lstsq(design, target, rcond=None)[0]
        rows = []
        for part in np.split(np.arange(len(past)), [len(parts[0][0])]):
            for now, then in zip(part[lag + 1 :], part, strict=False):  # lag + 1 rows earlier
                others = np.delete(past[now], source, axis=1).ravel()
                rows.append([past[now, lag, source], surprise[then, source], 1.0, *others, now])
        table = np.array(rows)
        found = []
        for column in range(3):
            fit = sm.OLS(target[table[:, -1].astype(int), column], table[:, :-1])
            found.append(fit.fit(cov_type="HC3", use_t=True).pvalues[:2])
        return np.array(found)

    @pytest.mark.parametrize(("source", "lag"), [(0, 0), (2, 1), (1, 2)])
    def test_value_and_surprise_stand_side_by_side(self, series, windows, source, lag):
        beside = lookalikes._Beside(windows)
        found = np.stack(beside.p_values(source, lag, 0), axis=1)
        expected = self.surprise_test(series, source, lag)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-12)
        everything = np.ones((3, 3, self.LAGS), dtype=bool)
        for level, value_tells in ((0.3, 0.3), (0.05, 0.6)):
            said = only_surprises(windows, everything, level, value_tells)
            imitates = (expected[:, 0] > value_tells) & (expected[:, 1] < level)
            imitates[source] = False
            np.testing.assert_array_equal(said[:, source, lag], imitates)

    def test_with_too_few_rows_neither_tells(self, windows):
        beside = lookalikes._Beside(windows)
        rows = 2 * (300 - self.LAGS - 1)
        assert np.ones(3).tolist() != beside.p_values(0, 0, rows)[0].tolist()
        beside = lookalikes._Beside(windows)
        for p_values in beside.p_values(0, 0, rows + 1):
            assert p_values.tolist() == [1, 1, 1]

    def test_an_echo_is_the_smaller_one_of_another_sign(self, series, windows):
        parts = [self.rows(values, self.LAGS) for values in series]
        past, target = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        design = sm.add_constant(past.reshape(len(past), -1))
        beta = np.linalg.lstsq(design, target, rcond=None)[0][1:].reshape(self.LAGS, 3, 3)
        rng, some = np.random.default_rng(3), 0
        for _ in range(20):
            ask = rng.random((3, 3, self.LAGS)) < 0.6
            expected = np.zeros_like(ask)
            for i, j, lag in np.argwhere(ask).tolist():
                for smaller in range(lag if i != j else 0):
                    one, other = beta[smaller, j, i], beta[lag, j, i]
                    swing = np.sign(beta[0, i, i])
                    opposite = np.sign(one) * np.sign(other) * swing < 0
                    expected[i, j, lag] |= ask[i, j, smaller] and opposite and abs(one) > abs(other)
            np.testing.assert_array_equal(echoes(windows, ask, 1.1), expected)
            some += expected.any()
        assert some > 5

    def test_an_echo_needs_a_target_that_its_older_past_tells_of(self, series, windows):
        parts = [self.rows(values, self.LAGS + 3) for values in series]
        past, target = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        inside = past[:, : self.LAGS].reshape(len(past), -1)
        for column in range(3):
            older = past[:, self.LAGS :, column]
            fit = sm.OLS(target[:, column], np.column_stack([older, np.ones(len(past)), inside]))
            tested = fit.fit(cov_type="HC3", use_t=True).f_test(np.eye(3, 13))
            found = lookalikes._own_older_p_value(windows, column)
            assert found == pytest.approx(float(tested.pvalue), rel=1e-3)
        everything = np.ones((3, 3, self.LAGS), dtype=bool)
        p_values = np.array([lookalikes._own_older_p_value(windows, i) for i in range(3)])
        for level in (0.5 * p_values.min(), np.median(p_values) * 1.01, 1.1):
            kept = echoes(windows, everything, 1.1) & (p_values < level)[:, None, None]
            np.testing.assert_array_equal(echoes(windows, everything, level), kept)


@pytest.mark.parametrize(("rows", "is_asked"), [(29, False), (30, True)])
def test_three_windows_for_each_input_are_looked_at_or_none(rows, is_asked):
    assert THRESHOLDS.grades.windows_per_input == 3
    windows = Windows.of(Panel.of(noise(0)[:rows]), 3)  # of 9 inputs
    assert (lookalikes._looked_at(windows) is not None) == is_asked


def test_of_very_many_inputs_or_windows_nothing_or_a_part_is_looked_at(monkeypatch):
    windows = windows_of(noise(0))
    monkeypatch.setattr(lookalikes, "MOST_LOOKED_AT", 100)
    assert len(lookalikes._looked_at(windows)) <= 100
    monkeypatch.setattr(lookalikes, "MOST_INPUTS", 9)
    assert lookalikes._looked_at(windows) is not None
    monkeypatch.setattr(lookalikes, "MOST_INPUTS", 8)
    assert lookalikes._looked_at(windows) is None


@pytest.mark.parametrize(("rows", "p_value"), [(41, 1.0), (42, None)])
def test_older_lags_are_tested_where_three_windows_stand_for_each_input(rows, p_value):
    windows = Windows.of(Panel.of(noise(0)[:rows]), 3)  # 9 inputs and 3 older lags; 6 rows less
    found = lookalikes._own_older_p_value(windows, 0)
    assert (found == 1.0) == (p_value == 1.0)


def test_only_links_between_two_numbers_are_asked_about():
    table = pd.DataFrame(noise(0), columns=list("abc"))
    table.insert(1, "kind", np.where(table["b"] > 0.5, "high", np.where(table["c"] > 0, "x", "y")))
    windows = Windows.of(fc.read(table, labels=["kind"]), 2)
    everything = np.ones((4, 4, 2), dtype=bool)
    kept = lookalikes._of_numbers(windows, everything)
    numbers = np.array([True, False, True, True])
    expected = numbers[:, None] & numbers & ~np.eye(4, dtype=bool)
    np.testing.assert_array_equal(kept, np.repeat(expected[:, :, None], 2, axis=2))
    assert not only_surprises(windows, everything, 0.9, 0.0)[:, 1].any()
