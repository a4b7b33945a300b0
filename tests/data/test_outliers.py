import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.data.gaps import additive_outliers

START = np.array([0])


def system(shocks=0.0, rows=1500, seed=0, slope=None):
    """b follows a after two rows; both remember. Some of the noise may be shocks."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(rows, 2))
    noise += np.where(rng.uniform(size=noise.shape) < shocks, rng.choice([-8.0, 8.0], (rows, 2)), 0)
    values = np.zeros((rows, 2))
    for row in range(2, rows):
        cause = values[row - 2, 0] if slope is None else slope(values[row - 2, 0])
        values[row] = 0.5 * values[row - 1] + noise[row]
        values[row, 1] += 0.4 * cause
    return values


def with_errors(values, share=0.03, seed=1):
    """Single cells that are off by eight standard deviations of the noise; which ones."""
    rng = np.random.default_rng(seed)
    wrong = rng.uniform(size=values.shape) < share
    return values + np.where(wrong, rng.choice([-8.0, 8.0], values.shape), 0.0), wrong


def test_errors_that_nothing_feels_are_found_and_little_else():
    values, wrong = with_errors(system())
    found = additive_outliers(values, START, [0, 1])
    assert (found & wrong).sum() > 0.9 * wrong.sum()
    assert (found & ~wrong).sum() < 0.02 * wrong.sum() + 3


@pytest.mark.parametrize("seed", range(5))
def test_shocks_that_the_system_feels_stay(seed):
    assert additive_outliers(system(0.03, seed=seed), START, [0, 1]) is None


@pytest.mark.parametrize("lag", [1, 4, 9, 30])
def test_shocks_that_another_variable_alone_feels_stay_and_so_do_its_answers(lag):
    rng = np.random.default_rng(lag)
    values, shocks = rng.normal(size=(700, 2)), np.where(rng.uniform(size=700) < 0.03, 6.0, 0.0)
    values[:, 0] += shocks
    values[lag:, 1] += shocks[:-lag]
    assert additive_outliers(values, START, [0, 1]) is None


@pytest.mark.parametrize("seed", range(5))
def test_heavy_tails_stay(seed):
    rng = np.random.default_rng(seed)
    assert additive_outliers(rng.standard_t(3, (1500, 3)), START, [0, 1, 2]) is None
    assert additive_outliers(np.exp(system(seed=seed)), START, [0, 1]) is None


def test_an_event_of_many_rows_stays():
    values = system()
    values[700:730] += 9.0
    found = additive_outliers(values, START, [0, 1])
    assert found is None or not found[702:728].any()


def test_columns_that_are_not_asked_for_and_first_rows_of_series_are_left_alone():
    values, wrong = with_errors(system())
    found = additive_outliers(values, np.array([0, 700]), [1])
    assert not found[:, 0].any()
    assert not found[[0, 1, 2, 700, 701, 702]].any()
    assert (found[:, 1] & wrong[:, 1]).sum() > 0.85 * wrong[:, 1].sum()


def test_a_table_with_errors_is_read_without_them_and_says_so():
    values, wrong = with_errors(system())
    wrong[:5] = False  # too early to be expected
    panel = fc.read(pd.DataFrame(values, columns=["a", "b"]))
    said = [change.sentence for change in panel.changes if change.kind == "missing"]
    assert any("far off for a row or two" in sentence and "a, b" in sentence for sentence in said)
    assert np.abs(panel.values[wrong]).max() < np.abs(values[wrong]).min()
    kept = fc.read(pd.DataFrame(values, columns=["a", "b"]), gaps="drop")
    np.testing.assert_array_equal(kept.values, values)


def test_a_link_that_errors_hide_is_found():
    values, _ = with_errors(system(rows=400), 0.06)
    table = pd.DataFrame(values, columns=["a", "b"])
    edges = fc.discover(table, max_lag=3, forecaster="linear").graph.edges
    assert ("a", "b", 2) in set(zip(edges["source"], edges["target"], edges["lag"], strict=True))


def test_series_too_short_to_judge_are_left_alone():
    values, _ = with_errors(system())
    assert additive_outliers(values, np.arange(0, len(values), 4), [0, 1]) is None
