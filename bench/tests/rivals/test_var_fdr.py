"""VAR with FDR: the edges of statsmodels' p-values and scipy's Benjamini-Hochberg."""

import numpy as np
from scipy.stats import false_discovery_control
from statsmodels.tsa.api import VAR

from forecause.data import Panel
from forecause_bench.rivals.var_fdr import var_fdr


def test_edges_are_those_of_statsmodels_and_scipy(easy_panel):
    graph = var_fdr(easy_panel, 3, seed=0)
    oracle = VAR(easy_panel.values).fit(3)
    p, t = (np.asarray(table)[1:].reshape(3, 4, 4) for table in (oracle.pvalues, oracle.tvalues))
    q = false_discovery_control(p.ravel()).reshape(p.shape).transpose(2, 1, 0)
    assert (graph.adjacency.values == (q <= 0.05)).all()
    np.testing.assert_allclose(graph.scores.values, np.abs(t).transpose(2, 1, 0), rtol=1e-6)


def test_noise_alone_gives_no_edges():
    noise = np.random.default_rng(0).normal(size=(2000, 10))
    assert len(var_fdr(Panel.from_arrays([noise], [f"v{i}" for i in range(10)]), 5, 0)) == 0


def test_the_one_link_among_a_hundred_variables_is_the_strongest():
    noise = np.random.default_rng(0).normal(size=(4000, 100))
    noise[1:, 1] += noise[:-1, 0]
    panel = Panel.from_arrays([noise], [f"v{i}" for i in range(100)])
    graph = var_fdr(panel, 5, 0)
    assert tuple(graph.edges.loc[0, ["source", "target", "lag"]]) == ("v0", "v1", 1)
