"""PCMCI, PCMCI+ and LPCMCI: axes, levels, several series and hidden causes."""

import numpy as np
import pytest
from tigramite.data_processing import DataFrame
from tigramite.independence_tests.parcorr import ParCorr
from tigramite.pcmci import PCMCI

from forecause.data import Panel
from forecause.errors import InputError
from forecause_bench.rivals.pcmci import lpcmci, pcmci, pcmci_fdr, pcmci_plus


@pytest.mark.parametrize("method", [pcmci_fdr, pcmci_plus, lpcmci])
def test_the_arrow_points_from_source_to_target(method, make_panel, edges_of):
    panel = make_panel({("a", "b", 2): 0.9}, "ab", rows=(500,))
    assert edges_of(method(panel, 3, 0)) == {("a", "b", 2)}


def test_the_fdr_is_that_of_tigramite(make_panel):
    panel = make_panel(rows=(300,))
    searcher = PCMCI(DataFrame(panel.values), ParCorr(), verbosity=0)
    results = searcher.run_pcmci(tau_max=2, fdr_method="fdr_bh")
    q = results["p_matrix"].transpose(1, 0, 2)[:, :, 1:]
    graph = pcmci_fdr(panel, 2, 0)
    assert (graph.adjacency.values == (q <= 0.05)).all()
    strength = np.abs(results["val_matrix"].transpose(1, 0, 2)[:, :, 1:])
    np.testing.assert_allclose(graph.scores.values, strength)


def test_the_default_level_reports_many_false_edges_and_the_fdr_few():
    noise = np.random.default_rng(0).normal(size=(500, 8))
    panel = Panel.from_arrays([noise], list("abcdefgh"))
    assert len(pcmci(panel, 3, 0)) > 4  # 5 % of 192 candidates
    assert len(pcmci_fdr(panel, 3, 0)) <= 1


def test_a_hidden_cause_gives_pcmci_a_false_edge_that_lpcmci_does_not_draw(make_panel, edges_of):
    weights = {
        ("h", "b", 1): 1.0,
        ("h", "c", 2): 1.0,
        ("d", "b", 1): 0.8,
        ("e", "c", 1): 0.8,
    }
    full = make_panel(weights, "hbcde", rows=(2000,))
    panel = Panel.from_arrays([full.values[:, 1:]], list("bcde"))
    assert ("b", "c", 1) in edges_of(pcmci_fdr(panel, 2, 0))
    graph = lpcmci(panel, 2, 0)
    assert ("b", "c", 1) not in edges_of(graph)
    assert {("d", "b", 1), ("e", "c", 1)} <= edges_of(graph)
    assert set(graph.edges["mark"]) <= {"-->", "o->"}


def test_series_too_short_for_the_lag_are_refused(make_panel):
    with pytest.raises(InputError, match="more than 8 rows"):
        pcmci(make_panel(rows=(8,) * 5), 4, 0)
