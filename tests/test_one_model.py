"""Claims about the one model: who is kept decides, and who has learned nothing draws nothing."""

import subprocess
import sys
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.forecast.forecaster import PLAIN
from systems import edge_set


def line_and_product(rows=2000, seed=0):
    """a drives b by a line; a and c drive d by their product, of which a line sees nothing."""
    x = np.random.default_rng(seed).normal(size=(rows, 4))
    x[1:, 1] += x[:-1, 0]
    x[1:, 3] = x[:-1, 0] * x[:-1, 2] + 0.5 * x[1:, 3]
    return pd.DataFrame(x, columns=list("abcd"))


LINE = {("a", "b", 1)}
PRODUCT = {("a", "d", 1), ("c", "d", 1)}


class NothingSettings(fc.forecasters.ForecasterSettings):
    """Forecasts the mean, whatever it is fitted to."""

    kind: ClassVar[str] = "nothing"

    def build(self, shape):
        return Nothing(shape, self)


class Nothing(fc.forecasters.Forecaster):
    def forward(self, past, rules=PLAIN, domain=None):
        return np.zeros((len(past), self.n_variables), dtype=past.dtype)

    def fit(self, fit_data):
        self.estimate_noise(fit_data.held_out)


def test_a_forecaster_that_has_learned_nothing_yields_an_empty_graph():
    run = fc.discover(line_and_product(), max_lag=2, forecaster=NothingSettings())
    assert len(run.graph) == 0
    assert (run.relevance["p_value"] == 1).all()
    forecast = run.causal.forecaster(np.random.default_rng(0).normal(size=(5, 2, 4)))
    np.testing.assert_array_equal(forecast, np.repeat(forecast[:1], 5, axis=0))  # the mean


@pytest.mark.parametrize(
    ("forecaster", "expected"),
    [("linear", LINE), ("dictionary", LINE | PRODUCT), ("auto", LINE | PRODUCT)],
)
def test_forecasters_that_know_different_things_draw_different_graphs(forecaster, expected):
    run = fc.discover(line_and_product(), max_lag=1, forecaster=forecaster)
    assert edge_set(run.graph) == expected
    kept = run.losses["chosen"]
    assert set(kept["b"].split(" + ")) <= {"linear", "additive", "dictionary"}
    if forecaster != "auto":
        assert (kept == forecaster).all()
    edges = run.graph.edges
    assert (edges["decided_by"] == edges["target"].map(kept)).all()


def test_a_network_by_name_decides_by_its_own_tests():
    run = fc.discover(line_and_product(), max_lag=1, forecaster="mlp", preset="quick")
    assert edge_set(run.graph) >= LINE | PRODUCT
    assert set(run.graph.edges["decided_by"]) == {"mlp"}


IDLE = {"max_steps": 1, "learning_rate": 1e-9}


def test_a_network_that_was_not_trained_draws_nothing():
    """Its random weights lean on a, and a test given the others would notice."""
    run = fc.discover(
        line_and_product(), max_lag=1, forecaster=fc.forecasters.Transformer(training=IDLE)
    )
    assert len(run.graph) == 0


def test_a_network_that_starts_from_lines_knows_lines_until_it_is_trained():
    run = fc.discover(line_and_product(), max_lag=1, forecaster=fc.forecasters.MLP(training=IDLE))
    assert edge_set(run.graph) == LINE


@pytest.mark.parametrize("kind", ["products", "stack", "causal"])
def test_what_follows_from_a_run_cannot_be_asked_for(kind):
    with pytest.raises(fc.InputError, match="forecaster='auto'"):
        fc.discover(line_and_product(100), max_lag=1, forecaster=kind)


def test_a_rule_by_relevance_says_that_it_decided():
    run = fc.discover(line_and_product(), max_lag=1, forecaster="linear", select=fc.TopK(1))
    assert set(run.graph.edges["decided_by"]) == {"top-k"}


def test_links_into_what_its_own_past_forecasts_best_are_at_most_tentative():
    """A link that must be there and is not: nothing forecasts its target."""
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(600, 3)), columns=list("abc"))
    run = fc.discover(table, max_lag=1, require=["a -> b"])
    assert edge_set(run.graph) == {("a", "b", 1)}
    assert not run.causal.is_forecast[1]
    assert set(run.graph.edges["grade"]) == {"tentative"}
    assert "own-past-wins" in [finding.kind for finding in run.findings]


def test_dense_and_causal_losses_stand_side_by_side():
    run = fc.discover(line_and_product(), max_lag=1)
    losses = run.causal.losses
    assert {"dense", "causal", "own past", "mean", "forecast_by"} <= set(losses.columns)
    assert losses["causal"]["d"] < 0.5 * losses["own past"]["d"]


def test_a_run_that_trains_no_network_does_not_import_torch():
    script = (
        "import sys, numpy as np, forecause as fc\n"
        "x = np.random.default_rng(0).normal(size=(300, 4)); x[1:, 1] += x[:-1, 0]\n"
        "run = fc.discover(x, max_lag=3)\n"
        "run.forecast(3); run.simulate_do({'x0': 1.0}, 3)\n"
        "print('torch' in sys.modules, 'sklearn' in sys.modules, 'scipy.stats' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False", "False"]
