import numpy as np
import pandas as pd

from forecause.simulation import simulate
from forecause_bench import forecasts


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
