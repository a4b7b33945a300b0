"""Claims about the tables that something hidden moves."""

import numpy as np
import pandas as pd
import pytest

from forecause.graph.lagged import LaggedGraph
from forecause_bench import driven_elsewhere
from forecause_bench.driven import BROKEN, SOUND
from forecause_bench.drivers import driven, driven_table
from forecause_bench.prefixes import summarise
from forecause_bench.rivals import run_baseline
from forecause_bench.scoring import false_links


@pytest.mark.parametrize("family", [*BROKEN, *SOUND])
def test_a_table_is_finite_and_the_same_for_the_same_seed(family):
    first, second = (driven(200, 7, 3, family) for _ in range(2))
    assert np.isfinite(first[0].values).all()
    np.testing.assert_array_equal(first[0].values, second[0].values)
    assert first[1] == second[1]


@pytest.mark.parametrize("family", [*driven_elsewhere.HIDDEN, *driven_elsewhere.SOUND])
def test_a_table_from_elsewhere_has_its_size_and_is_the_same_for_the_same_seed(family):
    size = (driven_elsewhere.HIDDEN | driven_elsewhere.SOUND)[family]
    first, second = (driven_table(300, 9, size.max_lag, family) for _ in range(2))
    assert first[0].values.shape == (300, size.variables)
    np.testing.assert_array_equal(first[0].values, second[0].values)
    assert first[1] == second[1]
    assert np.isfinite(first[0].values).all() or family == "gaps"


def test_five_of_ten_seeds_in_a_row_have_links_between_variables():
    truths = [driven(200, seed, 3, "plain")[1] for seed in range(100, 110)]
    assert [len(truth) > 6 for truth in truths] == [False] * 5 + [True] * 5


def test_false_links_are_counted_without_those_to_the_own_past():
    names = ["a", "b"]
    truth = LaggedGraph.from_edges(names, 2, [("a", "b", 1, 1.0)])
    found = LaggedGraph.from_edges(
        names, 2, [("a", "b", 1, 1.0), ("a", "b", 2, 1.0), ("b", "a", 1, 1.0), ("a", "a", 1, 1.0)]
    )
    assert false_links(found, truth) == {"false_links": 2.0, "broken": 1.0, "true_links": 1.0}
    assert false_links(truth, truth) == {"false_links": 0.0, "broken": 0.0, "true_links": 1.0}


def test_least_squares_given_all_finds_the_links_of_a_plain_system():
    panel, truth = driven(2_000, 108, 3, "plain")
    found = run_baseline("ols-all", panel, 3)
    true = {tuple(e) for e in truth.edges[["source", "target", "lag"]].itertuples(index=False)}
    seen = {tuple(e) for e in found.edges[["source", "target", "lag"]].itertuples(index=False)}
    assert true <= seen
    assert len(seen) <= len(true) + 2


def test_a_jump_is_a_large_change_between_neighbouring_cuts():
    links = {1: (4, 5, 12), 2: (10, 14, 18)}  # 7 more of 12; 4 more and 4 more
    lines = [
        {"family": "a", "seed": seed, "rows": rows, "links": count}
        for seed, counts in links.items()
        for rows, count in zip((100, 200, 300), counts, strict=True)
    ]
    found = summarise(pd.DataFrame(lines)).loc["a"]
    assert found[[100, 200, 300]].tolist() == [7.0, 9.5, 15.0]
    assert found["largest change"] == 7
    assert found["jumps"] == 1
