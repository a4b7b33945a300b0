"""Change points are found where the mechanism changes, and nowhere else."""

import numpy as np
import pytest

import forecause as fc
from forecause.data import Panel, Windows
from forecause.diagnostics.regimes import Regimes, find_regimes
from forecause.simulation import simulate


def regimes_of(values, max_lag=2, count=None):
    names = [f"x{i}" for i in range(values.shape[1])]
    return find_regimes(Windows.of(Panel.from_arrays([values], names), max_lag), count)


def switching(pattern, length=600, seed=0):
    """Two variables; in stretches marked 1 the first drives the second, in 0 the reverse."""
    rng = np.random.default_rng(seed)
    kind = np.repeat(pattern, length)
    x = rng.normal(size=(len(kind), 2))
    for t in range(1, len(x)):
        cause, effect = (0, 1) if kind[t] else (1, 0)
        x[t, effect] += 0.8 * x[t - 1, cause]
    return x


@pytest.mark.parametrize("segments", [2, 5])
def test_change_points_of_a_linear_system(segments):
    rows = 5000
    system = simulate(nodes=6, max_lag=2, rows=rows, segments=segments, seed=11)
    found = find_regimes(Windows.of(system.panel, 2))
    true = np.flatnonzero(np.diff(system.domain)) + 1
    assert len(found.changes) == len(true)
    np.testing.assert_allclose(found.changes["row"], true, atol=0.02 * rows)
    inside = (found.changes["earliest"] <= true) & (true <= found.changes["latest"])
    assert inside.sum() >= len(true) - 1  # a range that is right nine times in ten
    assert (found.changes["certainty"] > 3).all()


@pytest.mark.parametrize("mechanism", ["linear", "monotonic", "mlp-concat"])
@pytest.mark.parametrize("seed", range(5))
def test_none_are_invented_where_nothing_changes(mechanism, seed):
    system = simulate(nodes=4, max_lag=2, rows=1500, mechanism=mechanism, seed=seed, noise="mixed")
    found = find_regimes(Windows.of(system.panel, 2))
    assert found.changes.empty
    assert found.names == ("regime 1",)
    assert "No change" in found.sentence


def test_a_regime_that_returns_is_the_same_regime():
    found = regimes_of(switching([1, 0, 1]))
    assert found.names == ("regime 1", "regime 2")
    assert found.of_row[100] == found.of_row[-100] == 0
    assert found.of_row[900] == 1
    assert found.changes["after"].tolist() == ["regime 2", "regime 1"]


def test_as_many_regimes_as_asked_for():
    values = switching([1, 0, 1])
    assert len(regimes_of(values, count=1).names) == 1
    assert len(regimes_of(values, count=2).names) == 2
    assert len(regimes_of(np.random.default_rng(0).normal(size=(900, 2)), count=3).names) == 3


def test_shifting_and_scaling_the_variables_moves_nothing():
    values = switching([1, 0])
    straight, moved = regimes_of(values), regimes_of(values * [3.0, 0.01] + [100.0, -5.0])
    assert moved.changes["row"].tolist() == straight.changes["row"].tolist()


def test_few_rows_or_no_regimes_are_refused():
    with pytest.raises(fc.InputError, match="Too few rows"):
        regimes_of(np.random.default_rng(0).normal(size=(60, 2)))
    with pytest.raises(fc.InputError, match="at least 1"):
        regimes_of(switching([1]), count=0)


def test_they_survive_a_round_trip():
    found = regimes_of(switching([1, 0, 1]))
    back = Regimes.from_dict(found.to_dict(), len(found.of_row))
    assert back.names == found.names
    np.testing.assert_array_equal(back.of_row, found.of_row)
