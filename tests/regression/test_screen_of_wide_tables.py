"""Claims about the screen for very many inputs."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import forecause as fc
from forecause.config.thresholds import THRESHOLDS
from forecause.regression import screen
from forecause.regression.screen import (
    SCREENED,
    Screened,
    chosen_moments,
    inputs_at_once,
    is_wide,
    residual_of_chosen,
    screened_inputs,
)

WINDOWS, INPUTS = 600, 300


@pytest.fixture(scope="module")
def past():
    return np.random.default_rng(0).normal(size=(WINDOWS, INPUTS)).astype(np.float32)


def taken(screened):
    """The inputs taken of every target."""
    return [set(np.flatnonzero(row).tolist()) for row in screened.mask(INPUTS)]


def noise(targets, seed=1):
    return np.random.default_rng(seed).normal(size=(WINDOWS, targets)).astype(np.float32)


def test_true_causes_and_what_is_always_taken_are_among_the_screened(past):
    targets = 0.3 * past[:, [7, 70]] - 0.3 * past[:, [8, 80]] + noise(2)
    found = taken(screened_inputs(past, targets, np.array([250, 251])))
    assert {7, 8, 250} <= found[0]
    assert {70, 80, 251} <= found[1]
    assert all(len(own) < 8 for own in found)  # next to nothing by chance


def test_a_cause_that_others_hide_gets_a_second_chance(past):
    # the two causes nearly cancel: the second goes with the target only once the first is known
    copy = past.copy()
    copy[:, 1] = 0.95 * past[:, 0] + np.sqrt(1 - 0.95**2) * past[:, 1]
    target = copy[:, :1] - copy[:, 1:2] / 0.95 + 0.1 * noise(1)
    alone = np.abs((copy * target).sum(0)) / np.linalg.norm(copy, axis=0)
    assert int((alone > alone[0]).sum()) > SCREENED  # by its own score it would be lost
    (found,) = taken(screened_inputs(copy, target, np.array([299])))
    assert {0, 1} <= found


def test_what_is_not_allowed_is_left_out(past):
    allowed = np.ones((1, INPUTS), dtype=bool)
    allowed[0, 7] = False
    allowed[0, 0] = False
    (found,) = taken(screened_inputs(past, past[:, [7]] + noise(1), np.array([0]), allowed))
    assert not found & {0, 7}


def test_moments_of_the_chosen_are_those_of_each_regression_alone(past):
    targets, inputs = noise(3), np.array([[0, 5], [1, 6], [2, 7]])
    chosen = Screened(inputs, np.ones((3, 2), dtype=bool))
    found = chosen_moments(past, targets, chosen).solve()[..., 0]
    for target, own in enumerate(inputs.tolist()):
        design = np.column_stack([np.ones(WINDOWS), past[:, own].astype(float)])
        expected, *_ = np.linalg.lstsq(design, targets[:, target].astype(float), rcond=None)
        np.testing.assert_allclose(found[target], expected, atol=1e-6)


def test_a_wide_table_gives_the_graph_of_a_narrow_one(monkeypatch):
    system = fc.simulate(nodes=30, max_lag=2, rows=800, seed=3, in_degree=1.5)
    narrow = fc.discover(system.panel, max_lag=2, forecaster="linear").graph
    monkeypatch.setattr(screen, "WIDE", 50)
    wide = fc.discover(system.panel, max_lag=2, forecaster="linear").graph
    assert fc.score_graph(wide, system.graph)["lagged"]["f1"] >= 0.95
    assert fc.score_graph(wide, narrow)["lagged"]["f1"] >= 0.95


def test_more_inputs_than_windows_are_no_longer_refused():
    values = np.random.default_rng(5).normal(size=(220, 150))
    values[1:, 3] += 0.6 * values[:-1, 9]
    run = fc.discover(
        fc.Panel.from_arrays([values], [f"v{i}" for i in range(150)]),
        max_lag=2,
        forecaster="linear",
        config=fc.Config(thresholds={"search": {"short_and_wide": 200}}),
    )
    edges = set(zip(run.graph.edges["source"], run.graph.edges["target"], strict=True))
    assert ("v9", "v3") in edges
    assert len(edges) <= 5


def test_a_table_is_wide_if_it_is_too_large_or_too_short_for_its_inputs():
    bounds = THRESHOLDS.search
    assert not is_wide(screen.WIDE, 10**9)
    assert is_wide(screen.WIDE + 1, 10**9)
    few, enough = bounds.short_and_wide, int(bounds.windows_per_input * (bounds.short_and_wide + 1))
    assert not is_wide(few, 1)
    assert is_wide(few + 1, enough - 1)
    assert not is_wide(few + 1, enough + 1)
    assert inputs_at_once(few + 1, enough - 1) == min(few + 1, SCREENED)
    assert inputs_at_once(5, 10) == 5


def test_an_input_is_taken_from_a_score_on_that_chance_seldom_reaches(past):
    margin = THRESHOLDS.search.screen_margin
    least = (np.sqrt(2 * np.log(INPUTS)) - margin) / np.sqrt(WINDOWS)
    own = past[:, 50].astype(float)
    rest = noise(1).astype(float)[:, 0]
    rest -= rest.mean()
    design = np.column_stack([np.ones(WINDOWS), past[:, [50, 0]]])
    rest -= design @ np.linalg.lstsq(design, rest, rcond=None)[0]
    own /= np.linalg.norm(own)
    rest /= np.linalg.norm(rest)
    for factor, is_taken in ((1.1, True), (0.9, False)):
        correlation = factor * least
        target = correlation * own + np.sqrt(1 - correlation**2) * rest
        (found,) = taken(screened_inputs(past, 1000 * target[:, None], np.array([0])))
        assert (50 in found) == is_taken


def test_the_inputs_that_are_not_taken_count_as_zeros(past):
    inputs = np.array([[3, 5], [4, 6]])
    chosen = Screened(inputs, np.array([[True, False], [True, True]]))
    values = chosen.values(past, np.array([0, 1]))
    np.testing.assert_array_equal(values[0, :, 0], past[:, 3])
    assert not values[0, :, 1].any()
    np.testing.assert_array_equal(values[1, :, 1], past[:, 6])
    assert np.argwhere(chosen.mask(8)).tolist() == [[0, 3], [1, 4], [1, 6]]


@pytest.mark.parametrize("numbers", [8_000_000, 1])
def test_what_the_chosen_leave_is_what_ridge_leaves(past, monkeypatch, numbers):
    monkeypatch.setattr(screen, "NUMBERS", numbers)
    inputs = np.array([[3, 5], [4, 6], [7, 8]])
    chosen = Screened(inputs, np.array([[True, True], [True, True], [True, False]]))
    targets = past[:, [3, 4, 7]] + noise(3)
    targets -= targets.mean(0)
    found = residual_of_chosen(past, targets, chosen)
    alone = chosen_moments(past, targets, chosen)
    np.testing.assert_array_equal(alone.count, WINDOWS)
    for target, own in enumerate(([3, 5], [4, 6], [7])):
        features = past[:, own].astype(float)
        fit = Ridge(alpha=screen.RIDGE * WINDOWS).fit(features, targets[:, target])
        expected = targets[:, target] - fit.predict(features)
        np.testing.assert_allclose(found[:, target], expected, atol=1e-4)
        np.testing.assert_allclose(alone.square[target], np.square(targets[:, target]).sum())


def test_each_round_takes_the_inputs_with_the_largest_scores_once(past):
    scores = np.array([[0.1, 0.9, 0.5, 0.7], [0.8, 0.2, 0.3, 0.6]], dtype=np.float32)
    assert screen._largest(scores, 2).tolist() == [[1, 3], [0, 3]]
    found = screened_inputs(past, past[:, :1] + noise(1), np.array([5]))
    assert found.inputs.shape == (1, SCREENED)
    assert len(set(found.inputs[0].tolist())) == SCREENED
    assert found.inputs[0, 0] == 5
    assert found.taken[0, 0]
    assert found.inputs[0, 1] == 0


def test_what_is_screened_is_the_same_in_any_unit(past):
    targets = 0.3 * past[:, [7, 70]] + noise(2)
    allowed = np.ones((2, INPUTS), dtype=bool)
    allowed[0, 8] = False
    usual = screened_inputs(past, targets, np.array([1, 2]), allowed)
    tiny = screened_inputs(past * 1e-4, targets * 1e-4, np.array([1, 2]), allowed)
    np.testing.assert_array_equal(tiny.mask(INPUTS), usual.mask(INPUTS))
    assert {7, 70} <= taken(usual)[0] | taken(usual)[1]
