"""VAR-LiNGAM taken step by step equals the package's own."""

import lingam
import numpy as np
import pytest

from forecause_bench.rivals.var_lingam import var_lingam


@pytest.mark.parametrize("seed", [0, 1])
def test_edges_and_scores_are_those_of_the_package(seed, make_panel):
    panel = make_panel(rows=(400,), seed=seed, noise="uniform")
    scaled = (panel.values - panel.values.mean(0)) / panel.values.std(0)
    pruned = lingam.VARLiNGAM(lags=3, criterion=None).fit(scaled).adjacency_matrices_[1:]
    free = lingam.VARLiNGAM(lags=3, criterion=None, prune=False).fit(scaled)
    graph = var_lingam(panel, 3, seed=0)
    assert (graph.adjacency.values == (pruned.transpose(1, 2, 0) != 0)).all()
    expected = np.abs(free.adjacency_matrices_[1:].transpose(1, 2, 0))
    np.testing.assert_allclose(graph.scores.values, expected, atol=1e-10)


def test_an_effect_at_lag_zero_is_not_mistaken_for_a_lagged_one(make_panel, edges_of):
    panel = make_panel({("a", "a", 1): 0.8}, "ab", rows=(1500,), noise="uniform")
    panel.values[:, 1] += panel.values[:, 0]  # a drives b at once
    assert edges_of(var_lingam(panel, 2, 0)) == {("a", "a", 1)}
