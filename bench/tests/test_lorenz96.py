import numpy as np
import pytest
from scipy.integrate import solve_ivp

from forecause.errors import InputError
from forecause_bench.lorenz96 import lorenz96


def derivative(_, x, forcing):
    n = len(x)
    return [(x[(i + 1) % n] - x[i - 2]) * x[i - 1] - x[i] + forcing for i in range(n)]


def test_every_row_solves_the_equation_from_the_row_before():
    simulated = lorenz96(nodes=6, rows=40, forcing=8.0, dt=0.1, noise_sd=0.0)
    for row in range(39):
        start = simulated.values[row]
        solved = solve_ivp(derivative, (0, 0.1), start, args=(8.0,), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(simulated.values[row + 1], solved.y[:, -1], atol=1e-4)


def test_the_noise_disturbs_each_row_with_its_standard_deviation():
    simulated = lorenz96(nodes=6, rows=300, dt=0.02, noise_sd=0.5, seed=1)
    left_over = []
    for row in range(299):
        start = simulated.values[row]
        solved = solve_ivp(derivative, (0, 0.02), start, args=(10.0,), rtol=1e-8, atol=1e-8)
        left_over.append(simulated.values[row + 1] - solved.y[:, -1])
    assert np.std(left_over) == pytest.approx(0.5, rel=0.08)


def test_the_graph_is_the_one_of_the_equation():
    graph = lorenz96(nodes=5, rows=20).graph
    state = np.random.default_rng(0).normal(size=5)
    moved = state + 1e-3 * np.eye(5)  # (source, variable)
    effect = np.array([derivative(0, x, 8.0) for x in moved]) - derivative(0, state, 8.0)
    assert (graph.adjacency.values[:, :, 0] == (np.abs(effect.T) > 1e-9)).all()
    assert graph.max_lag == 1


def test_the_same_seed_gives_the_same_data():
    np.testing.assert_array_equal(
        lorenz96(rows=30, seed=1).values, lorenz96(rows=30, seed=1).values
    )
    assert not np.allclose(lorenz96(rows=30, seed=1).values, lorenz96(rows=30, seed=2).values)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"nodes": 3}, "at least 4 nodes"),
        ({"rows": 0}, "rows must be at least 1"),
        ({"dt": 0.0}, "must be positive"),
        ({"noise_sd": -1.0}, "noise_sd must be 0 or more"),
        ({"forcing": 1e6, "rows": 10}, "left the range"),
    ],
)
def test_impossible_requests_are_refused(options, reason):
    with pytest.raises(InputError, match=reason):
        lorenz96(**options)
