"""The study of the causal forecaster: its truths, and that a line of it holds what it says."""

import numpy as np
import pandas as pd
import pytest

from forecause.simulation import simulate
from forecause_bench import causal


@pytest.fixture(scope="module")
def made():
    return simulate(nodes=4, max_lag=2, rows=400, seed=1)


def test_the_true_effect_of_holding_is_zero_before_the_first_lag_and_off_the_paths(made):
    place = causal.held_variables(made)[0]
    moved = causal.true_effect(made, 300, place, 5.0)
    edges = made.graph.edges
    others = np.arange(4) != place
    assert moved[:, place].std() < moved[:, place].mean()
    assert (moved[0, others] == 0).all()
    driven = set(edges.loc[edges["source"] == made.variables[place], "target"])
    first = edges.loc[edges["source"] == made.variables[place], "lag"].min()
    assert any(moved[first, made.variables.index(name)] != 0 for name in driven)


def test_a_system_of_the_study(made):
    line = causal.of_system(made, 300, 2, 0)
    assert line["causal"] < 10
    assert line["least squares on the edges"] == pytest.approx(line["causal"], abs=2)
    assert line["what-if oracle"] < 1
    results = pd.DataFrame([{"mechanism": "linear", "rows": 300, "seed": 1, **line}])
    page = causal.page(results, "command")
    assert "| linear | 300 |" in page
    assert "| all | 300 |" in page
