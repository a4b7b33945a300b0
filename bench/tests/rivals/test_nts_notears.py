"""NTS-NOTEARS: its gradient, nonlinear effects and effects at lag 0."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from forecause.data import Panel
from forecause_bench.rivals import nts_notears as module
from forecause_bench.rivals.nts_notears import Networks, nts_notears


@pytest.mark.parametrize("chunk", [7, 1024])
def test_the_gradient_is_that_of_finite_differences(chunk, monkeypatch):
    monkeypatch.setattr(module, "CHUNK", chunk)
    rng = np.random.default_rng(0)
    networks = Networks(rng.normal(size=(30, 2, 3)), rng.normal(size=(30, 3)))
    start = networks.start(rng)
    value, slope = networks.objective(start, 2.0, 0.3)
    numeric = approx_fprime(start, lambda v: networks.objective(v, 2.0, 0.3)[0], 1e-6)
    assert value > 0
    np.testing.assert_allclose(slope, numeric, atol=1e-5)


def test_a_variable_never_explains_itself_at_lag_zero():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(100, 2, 3))
    kernels = Networks(values, values[:, 0]).fit(rng)
    assert (kernels[0, range(3), :, range(3)] == 0).all()


def test_it_finds_a_saturating_effect(edges_of):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(1000, 2))
    values[2:, 1] += 2 * np.tanh(3 * values[:-2, 0])
    assert edges_of(nts_notears(Panel.from_arrays([values], ["a", "b"]), 2, 0)) == {("a", "b", 2)}


def test_an_effect_at_lag_zero_is_not_reported_as_a_lagged_one(make_panel, edges_of):
    panel = make_panel({("a", "a", 1): 0.8}, "ab", rows=(1000,))
    panel.values[:, 1] += panel.values[:, 0]
    assert not any(target == "b" for _, target, _ in edges_of(nts_notears(panel, 2, 0)))
