"""Claims about the screen for very many inputs."""

import numpy as np
import pytest

import forecause as fc
from forecause.regression import screen
from forecause.regression.screen import SCREENED, Screened, chosen_moments, screened_inputs

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
