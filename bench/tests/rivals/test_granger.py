"""Granger tests against statsmodels, and where the pairwise kind goes wrong."""

import warnings

import numpy as np
import pytest
from statsmodels.tsa.api import VAR
from statsmodels.tsa.stattools import grangercausalitytests

from forecause_bench.rivals.granger import granger, granger_pairwise


@pytest.mark.parametrize(("i", "j"), [(0, 1), (1, 0), (2, 1), (3, 0)])
def test_pairwise_edges_agree_with_statsmodels(i, j, make_panel):
    panel = make_panel(rows=(300,), seed=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests, models = grangercausalitytests(panel.values[:, [i, j]], [2])[2]
    full_model = models[1]  # target's lags 1, 2, then the source's, then the intercept
    graph = granger_pairwise(panel, 2, seed=0)
    np.testing.assert_allclose(
        graph.scores.values[i, j], np.abs(full_model.tvalues[2:4]), rtol=1e-6
    )
    assert graph.adjacency.values[i, j].any() == (tests["ssr_ftest"][1] <= 0.05)


def test_multivariate_pairs_agree_with_statsmodels(make_panel):
    panel = make_panel(rows=(300,), seed=3)
    fit = VAR(panel.values).fit(2)
    linked = granger(panel, 2, seed=0).adjacency.any("lag")
    for i in range(4):
        for j in range(4):
            expected = fit.test_causality(i, [j], kind="f").pvalue
            # statsmodels counts the degrees of freedom of all equations together.
            if not 0.04 < expected < 0.06:
                assert linked.values[i, j] == (expected <= 0.05)


def test_a_common_cause_fools_only_the_pairwise_test(make_panel, edges_of):
    panel = make_panel({("a", "b", 1): 0.9, ("a", "c", 2): 0.9}, "abc", rows=(2000,))
    assert ("b", "c", 1) in edges_of(granger_pairwise(panel, 2, 0))
    assert ("b", "c", 1) not in edges_of(granger(panel, 2, 0))


def test_a_pair_whose_lags_are_only_significant_together_gets_its_strongest_lag(make_panel):
    weights = {("a", "a", 1): 0.98, ("a", "b", 1): 0.1, ("a", "b", 2): 0.1}
    graph = granger(make_panel(weights, "ab", rows=(150,), seed=1), 2, 0)
    found = graph.edges.query("source == 'a' and target == 'b'")
    assert len(found) == 1
    assert found["p_value"].item() > 0.05
    assert found["score"].item() == graph.scores.sel(target="b", source="a").max()
