"""What drives what: measured on the system itself, with the noise held fixed."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from scipy.special import expit

from forecause.simulation import System, simulate
from forecause.simulation.mechanisms import Network

FORMS = ("linear", "piecewise-linear", "monotonic", "trigonometric", "mlp-add", "mlp-concat")
MIXTURES = ("piecewise-linear+monotonic", "linear+mlp-add+mlp-concat")


def driven_by(system: System, source: int, lag: int, rng: np.random.Generator) -> set[str]:
    """Variables whose next value changes when one past value moves and the noise does not."""
    past = rng.normal(size=(system.max_lag, len(system.variables)))
    noise = rng.normal(size=len(system.variables))
    following = []
    for value in np.linspace(-7, 7, 60):
        past[-lag, source] = value
        following.append(system.step(past, noise))
    changed = np.ptp(following, axis=0) > 0
    return {name for name, moves in zip(system.variables, changed, strict=True) if moves}


@pytest.mark.parametrize("mechanism", [*FORMS, *MIXTURES])
def test_parents_have_an_effect_and_nothing_else_has(mechanism):
    rng = np.random.default_rng(1)
    simulated = simulate(nodes=6, max_lag=3, rows=100, mechanism=mechanism, latents=1, seed=5)
    system = simulated.systems[0]
    for source, name in enumerate(system.variables):
        for lag in range(1, 4):
            children = system.edges.query(f"source == '{name}' and lag == {lag}")["target"]
            assert driven_by(system, source, lag, rng) == set(children)
    observed = system.edges["source"].isin(simulated.variables)
    assert len(simulated.graph) == observed.sum()


def by_hand(system: System, past: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """The next values from the written-out formulas, one edge at a time."""
    row: dict[int, float] = {}

    def value_of(target: int) -> float:
        if target not in row:
            inputs = np.array([at(parent) for parent in system.structure.parents[target]])
            row[target] = equation(system.mechanisms[target], inputs, noise[target])
        return row[target]

    def at(parent) -> float:
        return past[-parent.lag, parent.source] if parent.lag else value_of(parent.source)

    return np.array([value_of(target) for target in range(len(system.variables))])


def equation(mechanism, inputs, noise) -> float:
    if isinstance(mechanism, Network):
        hidden = mechanism.inner @ inputs + mechanism.shift
        if mechanism.noise_inner is not None:
            return float(mechanism.outer @ np.tanh(hidden + mechanism.noise_inner * noise))
        return float(mechanism.outer @ np.tanh(hidden) + noise)
    bend = {
        "linear": lambda z: z,
        "piecewise-linear": lambda z: np.maximum(0, z),
        "monotonic": expit,
        "trigonometric": np.sin,
    }
    total = noise
    for form, x in zip(mechanism, inputs, strict=True):
        total += form.bias + form.outer @ bend[form.kind](form.inner * x + form.shift)
    return float(total)


@pytest.mark.parametrize("mechanism", [*FORMS, *MIXTURES])
def test_a_step_follows_the_written_equations_also_with_instantaneous_effects(mechanism):
    rng = np.random.default_rng(0)
    simulated = simulate(rows=60, mechanism=mechanism, instantaneous=1.5, latents=2, seed=3)
    system = simulated.systems[0]
    for _ in range(5):
        past, noise = 2 * rng.normal(size=(5, 12)), rng.normal(size=12)
        np.testing.assert_allclose(
            system.step(past, noise), by_hand(system, past, noise), rtol=1e-10, atol=1e-12
        )


def test_a_run_is_its_steps_one_after_the_other():
    system = simulate(rows=60, mechanism="monotonic+trigonometric", seed=2).systems[0]
    noise = np.random.default_rng(0).normal(size=(4500, 10))
    series = np.concatenate([np.zeros((5, 10)), system.run(np.zeros((5, 10)), noise)])
    for t in [0, 1, 1999, 2000, 4499]:
        np.testing.assert_allclose(series[t + 5], system.step(series[t : t + 5], noise[t]), 1e-12)


def test_a_linear_system_has_the_covariance_of_its_vector_autoregression():
    simulated = simulate(nodes=4, max_lag=2, rows=60_000, noise_variance=(0.5, 3.0), seed=1)
    weights = np.zeros((4, 4, 2))
    for target, parents in enumerate(simulated.systems[0].structure.parents):
        for parent, form in zip(parents, simulated.systems[0].mechanisms[target], strict=True):
            weights[target, parent.source, parent.lag - 1] = form.outer[0]
    companion = np.block([[weights[:, :, 0], weights[:, :, 1]], [np.eye(4), np.zeros((4, 4))]])
    noise = np.zeros((8, 8))
    noise[:4, :4] = np.diag(simulated.noise_sd**2)
    expected = solve_discrete_lyapunov(companion, noise)[:4, :4]
    assert np.cov(simulated.values.T) == pytest.approx(expected, abs=0.08)


def test_linear_weights_keep_every_row_below_one_in_total():
    for seed in range(5):
        simulated = simulate(rows=60, seed=seed, instantaneous=1, latents=2, in_degree=6)
        edges = simulated.systems[0].edges
        per_target = edges.groupby("target")["score"].agg(["sum", "count"])
        assert (per_target["sum"] < 1).all()
        shares = edges["score"] * edges["target"].map(per_target["count"] + 1)
        assert shares.between(0.7, 0.99).all()


def test_monotonic_edges_only_rise_or_only_fall_by_their_strength():
    grid = np.linspace(-30, 30, 4001)
    for forms in simulate(rows=60, mechanism="monotonic").systems[0].mechanisms:
        for form in forms:
            moves = np.diff(form(grid))
            assert (moves >= 0).all() or (moves <= 0).all()
            assert np.ptp(form(grid)) == pytest.approx(form.strength, rel=1e-3)


def test_the_strength_of_a_piecewise_linear_edge_is_its_largest_slope():
    grid = np.linspace(-8, 8, 16_001)
    for forms in simulate(rows=60, mechanism="piecewise-linear").systems[0].mechanisms:
        for form in forms:
            slopes = np.abs(np.diff(form(grid))) / np.diff(grid)
            assert slopes.max() == pytest.approx(form.strength, rel=1e-6)


def test_a_mixture_draws_per_edge_and_one_with_a_network_per_target():
    edges = simulate(rows=60, mechanism="linear+monotonic").graph.edges
    assert set(edges["mechanism"]) == {"linear", "monotonic"}
    assert edges.groupby("target")["mechanism"].nunique().max() == 2
    edges = simulate(rows=60, mechanism="linear+mlp-add", nodes=20).graph.edges
    assert set(edges["mechanism"]) == {"linear", "mlp-add"}
    assert edges.groupby("target")["mechanism"].nunique().max() == 1


def test_networks_mix_their_parents_and_concat_lets_the_noise_interact():
    rng = np.random.default_rng(0)
    for mechanism, interacts in [("mlp-add", False), ("mlp-concat", True)]:
        simulated = simulate(rows=60, mechanism=mechanism, in_degree=3, max_in_degree=3)
        system = simulated.systems[0]
        past, other = rng.normal(size=(2, 5, 10))
        low, high = np.full(10, -1.0), np.full(10, 1.0)
        effect = system.step(past, high) - system.step(past, low)
        elsewhere = system.step(other, high) - system.step(other, low)
        assert (np.abs(effect - elsewhere) > 1e-3).all() == interacts
        if not interacts:
            np.testing.assert_allclose(effect, 2.0)


def test_a_variance_parent_drives_only_the_variance():
    simulated = simulate(rows=60_000, nodes=5, variance_edges=1, seed=4)
    system = simulated.systems[0]
    edge = simulated.graph.edges.query("mechanism == 'variance'").iloc[0]
    source, target = (simulated.variables.index(edge[end]) for end in ("source", "target"))
    rng = np.random.default_rng(0)
    assert edge["target"] in driven_by(system, source, edge["lag"], rng)
    # with no noise there is nothing to scale: the mean does not depend on the parent
    past = rng.normal(size=(2, 5, 5))
    past[1] = past[0]
    past[1, -edge["lag"], source] += 5
    silent = np.zeros(5)
    assert system.step(past[0], silent)[target] == system.step(past[1], silent)[target]
    # and in the data the residuals' spread follows the parent, their mean does not
    values, lag = simulated.values, system.max_lag
    design = np.column_stack([values[lag - k : -k] for k in range(1, lag + 1)])
    design = np.column_stack([design, np.ones(len(design))])
    y = values[lag:, target]
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    driver = values[lag - edge["lag"] : -edge["lag"], source]
    high, low = residual[driver > 0.5], residual[driver < -0.5]
    assert high.var() > 2 * low.var()
    assert abs(high.mean() - low.mean()) < 0.06
    assert residual.var() == pytest.approx(1, abs=0.1)
