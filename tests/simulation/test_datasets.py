import warnings

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.errors import InputError

NAMES = ("river_basin", "power_grid", "monthly_economy", "service_metrics", "brain_regions")


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_table_and_another_seed_another(name):
    make = getattr(fc.datasets, name)
    first, again, other = make(rows=60), make(rows=60), make(rows=60, seed=1)
    pd.testing.assert_frame_equal(first.table, again.table)
    assert not first.table.equals(other.table)
    assert set(first.graph.variables) < set(first.table.columns)
    assert np.isfinite(first.table[list(first.graph.variables)].to_numpy()).all()


@pytest.mark.parametrize("name", NAMES)
def test_rows_below_one_are_refused(name):
    with pytest.raises(InputError, match="rows"):
        getattr(fc.datasets, name)(rows=0)


@pytest.mark.parametrize("name", ["river_basin", "power_grid"])
def test_values_are_possible_in_their_units(name):
    table = getattr(fc.datasets, name)(seed=3).table
    for column in table.columns[1:]:
        if not column.startswith("temperature"):
            assert table[column].min() >= 0, column


def regressed(values: pd.DataFrame, terms: list[tuple[str, int]], target: str) -> np.ndarray:
    """Coefficients of `target` on lagged columns by numpy's least squares, an intercept aside."""
    lagged = pd.concat([values[name].shift(lag) for name, lag in terms], axis=1).iloc[5:]
    design = np.column_stack([lagged, np.ones(len(lagged))])
    return np.linalg.lstsq(design, values[target].iloc[5:], rcond=None)[0][:-1]


def test_the_changes_of_the_economy_follow_its_links():
    economy = fc.datasets.monthly_economy(rows=20_000)
    changes = economy.table.drop(columns="month").diff().dropna().reset_index(drop=True)
    terms = [("policy_rate_pct", 3), ("policy_rate_pct", 1), ("oil_usd", 1)]
    np.testing.assert_allclose(regressed(changes, terms, "output_index"), [-2, 0, 0], atol=0.1)
    terms = [("output_index", 1), ("output_index", 2), ("inflation_pct", 1)]
    found = regressed(changes, terms, "unemployment_pct")
    np.testing.assert_allclose(found, [-0.15, 0, 0], atol=0.02)


def test_only_the_disk_is_disturbed_in_the_incident():
    """What the true parents do not explain stays small everywhere but at the disk."""
    shop = fc.datasets.service_metrics()
    table, start = shop.table, int(shop.table["incident"].to_numpy().argmax())
    for target in shop.graph.variables[1:]:
        parents = [(s, lag) for s, t, lag in sorted(shop.edges) if t == target]
        calm = table.iloc[:start]
        weights = regressed(calm, parents, target)

        def left(part, target=target, parents=parents, weights=weights):
            known = [w * part[s].shift(lag) for w, (s, lag) in zip(weights, parents, strict=True)]
            return (part[target] - sum(known)).dropna()

        during = left(table.iloc[start : start + 36])
        moved = (during.mean() - left(calm).mean()) / left(calm).std()
        assert (moved > 5) == (target == "disk_wait_ms"), (target, moved)


def test_each_state_of_the_brain_has_its_own_graph():
    brain = fc.datasets.brain_regions(rows=4000, subjects=1)
    assert set(brain.graph.domains) == {"rest", "task"}
    for state, weight in (("rest", 0.0), ("task", 0.5)):
        part = brain.table[brain.table["state"] == state].reset_index(drop=True)
        found = regressed(part, [("V4", 1), ("IT", 1), ("PFC", 2)], "IT")
        assert found[0] == pytest.approx(weight, abs=0.1)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("river_basin", {"max_lag": 3}),
        ("power_grid", {"max_lag": 3}),
        ("monthly_economy", {"max_lag": 3, "difference": True}),
    ],
)
def test_the_links_can_be_found_again(name, options, edges_of):
    data = getattr(fc.datasets, name)(seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fc.ForecauseWarning)
        run = fc.discover(data.table, forecaster="linear", config=fc.Config(**options))
    found = edges_of(run.graph)
    assert 2 * len(found & data.edges) / (len(found) + len(data.edges)) > 0.9
