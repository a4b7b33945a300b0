import numpy as np
import pandas as pd

from forecause.simulation import simulate
from forecause_bench import forecasts
from forecause_bench.product_systems import products


def test_driven_variables_leave_the_system_and_their_effects_stay_in_it():
    made = simulate(nodes=6, max_lag=2, rows=700, seed=1, in_degree=2)
    values, chosen = forecasts.driven(made, 400, 1)
    np.testing.assert_array_equal(values[:400], made.values[:400])
    later = np.abs(values[400:] - made.values[:400].mean(0)).mean(0) / made.values[:400].std(0)
    assert len(chosen) == forecasts.DRIVEN
    assert (later[chosen] > 1).all()  # a course of its own is 2.3 sd wide


def test_a_page_has_every_table_and_the_means_over_them():
    lines = [
        {"table": name, "rows": 9, "columns": 2, "forecaster, 1": one, "var, 1": 1.0,
         "forecaster, all": one, "var, all": 2.0, "80 % bands, all": 0.8, "80 % bands, last": 0.7,
         "seconds": 1.0}
        for name, one in (("a", 0.5), ("b", 2.0))
    ]  # fmt: skip
    text = forecasts.page(pd.DataFrame(), pd.DataFrame(lines), 1, False, 3.0)
    assert "| a | 0.50 | 1.00 |" in text
    assert "| all | 1.00 | 1.00 |" in text  # a geometric mean
    assert "| all | 0.80 | 0.70 |" in text


def test_a_product_system_reads_the_parents_of_its_graph_alone():
    made = products(200, seed=3, nodes=6, max_lag=3)
    (system,) = made.systems
    past, still = made.values[:3], np.zeros(6)
    before, names = system.step(past, still), list(made.variables)
    edges = made.graph.edges
    truth = set(zip(edges["source"], edges["target"], edges["lag"], strict=True))
    moved = set()
    for source in range(6):
        for lag in (1, 2, 3):
            other = past.copy()
            other[-lag, source] += 1.0
            for target in np.flatnonzero(system.step(other, still) != before):
                moved.add((names[source], names[target], lag))
    assert moved == truth
    assert np.abs(made.values).max() < 50


def test_a_second_call_measures_only_what_is_missing(tmp_path):
    asked = []

    def cells(names):
        for name in names:
            yield (
                {"system": name, "rows": 3},
                lambda name=name: asked.append(name) or [{"system": name, "rows": 3, "x": 1.0}],
            )

    forecasts._kept(cells("ab"), tmp_path / "kept.csv")
    found = forecasts._kept(cells("abc"), tmp_path / "kept.csv")
    assert asked == ["a", "b", "c"]
    assert found["system"].tolist() == ["a", "b", "c"]
