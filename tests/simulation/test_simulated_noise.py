import numpy as np
import pytest
from scipy import stats

from forecause.simulation import Simulated, simulate

PURE_NOISE = {"autoregression": 0.0, "in_degree": 0.0, "nodes": 4, "rows": 40_000}
UNIT_LAWS = {
    "gaussian": stats.norm(),
    "laplace": stats.laplace(scale=np.sqrt(0.5)),
    "student-t": stats.t(5, scale=np.sqrt(3 / 5)),
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)),
}


def noise_of(simulated: Simulated) -> np.ndarray:
    """Recover the noise of an additive system: what is left beyond a step without noise."""
    system, values = simulated.systems[0], simulated.values
    silent = np.zeros(len(system.variables))
    lag = system.max_lag
    steps = range(lag, len(values))
    return np.array([values[t] - system.step(values[t - lag : t], silent) for t in steps])


@pytest.mark.parametrize("kind", UNIT_LAWS)
def test_each_kind_has_its_law_and_the_requested_variance(kind):
    values = simulate(noise=kind, noise_variance=2.5, **PURE_NOISE).values
    assert values.var(0) == pytest.approx(np.full(4, 2.5), rel=0.08)
    for column in values.T:
        assert stats.kstest(column[:5000] / np.sqrt(2.5), UNIT_LAWS[kind].cdf).pvalue > 1e-4


def test_noise_enters_with_weight_one():
    simulated = simulate(rows=4000, noise="laplace", noise_variance=(0.5, 5.0), seed=2)
    noise = noise_of(simulated)
    assert noise.std(0) == pytest.approx(simulated.noise_sd, rel=0.1)
    assert np.abs(np.corrcoef(noise.T) - np.eye(10)).max() < 0.1


def test_mixed_noise_draws_one_kind_per_variable():
    simulated = simulate(noise="mixed", **{**PURE_NOISE, "nodes": 12, "rows": 4000})
    assert len(set(simulated.noise_kinds)) > 1
    for kind, column in zip(simulated.noise_kinds, simulated.values.T, strict=True):
        assert stats.kstest(column, UNIT_LAWS[kind].cdf).pvalue > 1e-4


def test_unequal_variances_are_drawn_from_the_range_one_per_variable():
    simulated = simulate(noise_variance=(0.0, 10.0), **{**PURE_NOISE, "nodes": 60, "rows": 4000})
    variances = simulated.noise_sd**2
    assert ((variances > 0) & (variances <= 10)).all()
    assert variances.min() < 1.5
    assert variances.max() > 8.5
    assert simulated.values.std(0) == pytest.approx(simulated.noise_sd, rel=0.1)


def test_more_rows_continue_the_same_series():
    short, long = simulate(rows=300, noise="mixed"), simulate(rows=900, noise="mixed")
    np.testing.assert_array_equal(short.values, long.values[:300])
