"""Claims about the trees as a forecaster."""

import numpy as np
import pytest

import forecause as fc
from fitted import fit_forecaster
from forecause.forecast import trees as trees_of_targets
from forecause.forecast.trees import grown, held_out_rows
from systems import edge_set, windows_of


def gated(rows=2000, seed=0):
    """v0 passes to v2 where v1 is above zero."""
    x = np.random.default_rng(seed).normal(size=(rows, 3))
    x[1:, 2] = 2 * x[:-1, 0] * (x[:-1, 1] > 0) + 0.5 * x[1:, 2]
    return x


@pytest.mark.parametrize("rows", [150, 1500], ids=["few leaves", "all leaves"])
def test_its_forecast_is_that_of_scikit_learn(rows):
    from sklearn.ensemble import HistGradientBoostingRegressor

    windows = windows_of(gated(rows), 2)
    model = fit_forecaster("trees", windows).forecaster.member_of(2)
    early = windows.split(0.2)[0]
    batch = early.draw(np.arange(len(early)))
    inputs = batch.past.reshape(len(batch), -1).astype(np.float64)
    target, late = batch.target[:, 2].astype(np.float64), held_out_rows(len(inputs))
    expected = HistGradientBoostingRegressor(
        learning_rate=trees_of_targets.RATE,
        max_leaf_nodes=trees_of_targets.LEAVES,
        max_iter=trees_of_targets.MOST_TREES,
        max_bins=trees_of_targets.BINS,
        min_samples_leaf=trees_of_targets.LEAST_LEAF,
        early_stopping=True,
        n_iter_no_change=trees_of_targets.PATIENCE,
        validation_fraction=None,
    ).fit(inputs[~late], target[~late], X_val=inputs[late], y_val=target[late])
    own = grown(inputs, target, np.arange(inputs.shape[1]), late)
    np.testing.assert_allclose(own.predict(inputs), expected.predict(inputs), atol=1e-6)
    forecast = model.forecast(batch)[:, 2]
    np.testing.assert_allclose(forecast, expected.predict(inputs), atol=1e-4)
    assert np.corrcoef(forecast, target)[0, 1] > 0.8


def test_it_finds_a_gate_by_its_own_tests_and_is_loaded_with_the_same_forecast(tmp_path):
    run = fc.discover(gated(), max_lag=1, forecaster=fc.forecasters.Trees())
    assert edge_set(run.graph) == {("x0", "x2", 1), ("x1", "x2", 1)}
    assert run.graph.edges.set_index("source").loc["x0", "sign"] == 1
    loaded = fc.load(run.save(tmp_path / "run"))
    np.testing.assert_array_equal(loaded.forecast(3).values, run.forecast(3).values)


def test_what_is_forbidden_is_not_read():
    allowed = np.ones((3, 1, 3), dtype=bool)
    allowed[2, 0, 0] = False
    windows = windows_of(gated(), 1)
    model = fit_forecaster("trees", windows, allowed=allowed).forecaster
    past = windows.draw(np.arange(200)).past
    moved = past.copy()
    moved[:, 0, 0] += 3
    np.testing.assert_array_equal(model(moved)[:, 2], model(past)[:, 2])


def test_what_an_input_does_is_read_from_the_trees_that_split_by_it():
    rng = np.random.default_rng(4)
    inputs = rng.normal(size=(600, 6))
    target = inputs[:, 1] * inputs[:, 4] + 0.3 * rng.normal(size=600)
    reads = np.array([1, 2, 4])
    trees = grown(inputs, target, reads, held_out_rows(600))
    moved = inputs.copy()
    moved[:, 4] += rng.normal(size=600)
    own = trees.part(inputs, np.array([4])) - trees.part(moved, np.array([4]))
    np.testing.assert_allclose(own, trees.predict(inputs) - trees.predict(moved), atol=1e-12)
    assert not trees.part(inputs, np.array([0, 5])).any()
