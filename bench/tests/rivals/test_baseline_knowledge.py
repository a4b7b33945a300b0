"""Prior knowledge in the baselines: respected where a method can, refused where it cannot."""

import numpy as np
import pytest
import statsmodels.api as sm

from forecause.data import Panel
from forecause.edges.knowledge import Knowledge
from forecause.errors import InputError
from forecause_bench.rivals import BASELINES, run_baseline
from forecause_bench.rivals.autoregression import Design

ABLE = [name for name in BASELINES if BASELINES[name].respects_knowledge]
KNOWN = Knowledge.of(
    forbid=["a -> b", "c -> d @ 1", "d -> c @ 0"], require=["d -> a @ 2", "c -> b"]
)


def test_these_baselines_take_knowledge():
    assert ABLE == [
        "pcmci", "pcmci-fdr", "pcmci+", "pcmci+-now", "lpcmci", "dynotears", "granger", "var-fdr",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ABLE)
def test_forbidden_edges_never_appear_and_required_ones_always_do(name, easy_panel, edges_of):
    found = edges_of(run_baseline(name, easy_panel, 2, knowledge=KNOWN))
    assert not any(edge[:2] == ("a", "b") for edge in found)
    assert ("c", "d", 1) not in found
    assert ("d", "c", 0) not in found
    assert ("d", "a", 2) in found
    assert any(edge[:2] == ("c", "b") for edge in found)
    assert ("c", "d", 2) in found  # a true edge that nothing is said about


@pytest.mark.parametrize("name", [name for name in BASELINES if name not in ABLE])
def test_a_baseline_that_cannot_respect_knowledge_says_so(name, easy_panel):
    with pytest.raises(InputError, match=rf"'{name}' cannot respect .* choose one of pcmci, "):
        run_baseline(name, easy_panel, 2, knowledge=KNOWN)


@pytest.mark.parametrize("name", ["pcmci-fdr", "pcmci+", "dynotears", "granger", "var-fdr"])
def test_knowledge_of_what_is_true_changes_little(name, easy_panel, easy_truth, edges_of):
    known = Knowledge.of(require=["a -> b @ 2"])
    assert edges_of(easy_truth) <= edges_of(run_baseline(name, easy_panel, 2, knowledge=known))


def test_a_forbidden_column_is_left_out_of_the_regression(easy_panel):
    graph = run_baseline("var-fdr", easy_panel, 2, knowledge=Knowledge.of(forbid=["a -> b @ 2"]))
    made = Design.of(easy_panel, 2)
    inputs = np.delete(made.past.reshape(len(made.past), -1), 4, axis=1)  # lag 2 of a
    oracle = sm.OLS(made.target[:, 1], sm.add_constant(inputs)).fit().tvalues[1:]
    found = graph.scores.sel(target="b").transpose("lag", "source").values.ravel()
    np.testing.assert_allclose(found, np.insert(np.abs(oracle), 4, 0.0), rtol=1e-6)


def test_a_target_that_nothing_may_drive_has_no_edge(easy_panel):
    for name in ("var-fdr", "granger"):
        graph = run_baseline(name, easy_panel, 2, knowledge=Knowledge.of(forbid=["* -> b"]))
        assert "b" not in set(graph.edges["target"])


def test_required_edges_at_lag_0_must_not_form_a_circle(easy_panel):
    circle = Knowledge.of(require=["a -> b @ 0", "b -> c @ 0", "c -> a @ 0"])
    for name in ("pcmci+", "lpcmci", "dynotears"):
        with pytest.raises(InputError, match="in a circle"):
            run_baseline(name, easy_panel, 2, knowledge=circle)


def test_pcmci_plus_shows_its_links_at_lag_0(edges_of):
    x = np.random.default_rng(0).normal(size=(1000, 3))
    x[:, 2] += x[:, 0] + x[:, 1]  # a collider can be oriented
    panel = Panel.from_arrays([x], ("a", "b", "c"))
    graph = run_baseline("pcmci+-now", panel, 1)
    assert edges_of(graph) == {("a", "c", 0), ("b", "c", 0)}
    assert graph.edges["mark"].tolist() == ["-->", "-->"]
    assert len(run_baseline("pcmci+", panel, 1)) == 0
