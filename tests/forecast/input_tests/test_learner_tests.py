"""Claims about the default's tests: closed forms first, a learner where it earns that."""

import numpy as np
import pandas as pd

import forecause as fc
from asked import request_of
from forecause.data.panel import Panel
from forecause.data.windows import Windows
from forecause.forecast.input_tests.closed_form import closed_form_tests
from forecause.forecast.input_tests.learner_tests import with_learners
from forecause.forecast.input_tests.projected_covariance import time_folds
from systems import chain, edge_set, windows_of


def product_of_three(rows=1500, seed=0):
    x = np.random.default_rng(seed).normal(size=(rows, 5))
    x[1:, 3] = np.clip(x[:-1, :3], -2, 2).prod(1) + 0.5 * x[1:, 3]
    return x


def both(windows, allowed=None):
    """The tests of closed forms, and with learners."""
    request = request_of(windows, allowed=allowed)
    closed = closed_form_tests(request)
    return closed, with_learners(request, closed)


def datasets(windows, allowed=None):
    return [one.dataset(windows.panel.coding.variables) for one in both(windows, allowed)]


def test_a_product_of_three_is_found_only_with_the_learner():
    closed, found = datasets(windows_of(product_of_three()))
    before, after = (one.sel(target="v3", lag=1) for one in (closed, found))
    parents = ["v0", "v1", "v2"]
    assert (after["p_value"].sel(source=parents) < 1e-6).all()
    assert (before["p_value"].sel(source=parents) > 1e-3).any()
    assert (after["p_value"].sel(source=["v3", "v4"]) > 0.01).all()
    assert (after["stability"].sel(source=parents) > 0.9).all()
    assert not found["doubtful"].any()


def test_what_is_no_edge_is_seldom_one_in_a_resample():
    _, found = datasets(windows_of(product_of_three(seed=2)))
    others = found["stability"].sel(target="v3", lag=1, source=["v3", "v4"])
    assert (others < 0.25).all()  # the level of a resample is that of the false discovery rate


def test_where_closed_forms_hold_everything_their_tests_stay():
    closed, found = both(windows_of(chain(), 2))
    assert found is closed


def test_random_walks_are_left_to_the_closed_forms():
    walks = np.random.default_rng(4).normal(size=(500, 5)).cumsum(0)
    closed, found = both(windows_of(walks, 2))
    assert found is closed


def test_a_forbidden_input_is_not_tested_and_not_used():
    windows = windows_of(product_of_three())
    allowed = request_of(windows).allowed.copy()
    allowed.loc[{"target": "v3", "source": "v0"}] = False
    _, found = datasets(windows, allowed)
    assert np.isnan(found["p_value"].sel(target="v3", source="v0")).all()
    assert (found["p_value"].sel(target="v3", source=["v1", "v2"]) > 1e-3).all()


def test_no_fold_learns_from_a_past_that_is_tested_on_in_any_series():
    parts = [product_of_three(rows, seed) for seed, rows in enumerate((301, 77, 450))]
    windows = Windows.of(Panel.from_arrays(parts, list("abcde")), 3)
    for fold in time_folds(windows.rows, 3):
        tested = set(windows.rows[fold.test].tolist())
        for row in windows.rows[fold.train].tolist():
            assert not tested & set(range(row - 3, row + 1))


WITHOUT_NETWORKS = fc.Config(thresholds={"choice": {"neural_from": 10**9}})


def test_the_default_finds_the_product_among_labels_domains_and_gaps():
    table = pd.DataFrame(product_of_three(2400), columns=list("abcde"))
    table["kind"] = np.random.default_rng(5).choice(["x", "y", "z"], len(table))
    table.loc[table.index[900:905], "e"] = np.nan
    run = fc.discover(fc.read(table, gaps="drop"), max_lag=1, config=WITHOUT_NETWORKS)
    assert {("a", "d", 1), ("b", "d", 1), ("c", "d", 1)} <= edge_set(run.graph)
    table["season"] = np.where(np.arange(len(table)) < 1200, "wet", "dry")
    panel = fc.read(table, domain="season", gaps="drop")
    by_domain = fc.discover(panel, max_lag=1, config=WITHOUT_NETWORKS)
    assert {("a", "d", 1), ("b", "d", 1), ("c", "d", 1)} <= edge_set(by_domain.graph)


def test_an_edge_that_may_be_a_misfit_is_marked_and_said(tmp_path):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2300, 6)) * [1, 0.5, 0.5, 1, 1, 1]
    for t in range(3, len(x)):  # v1 and v2 follow one function of v0 and v3, one row apart
        for target, delay in ((1, 1), (2, 2)):
            a, b = x[t - delay, 0], x[t - delay, 3]
            x[t, target] += np.sign(np.sin(np.pi * a) * np.sin(np.pi * b))
    run = fc.discover(x[300:], max_lag=3, config=WITHOUT_NETWORKS)
    doubtful = run.graph.edges.query("doubtful")
    assert set(zip(doubtful["source"], doubtful["target"], strict=True)) == {("x1", "x2")}
    assert "misfit" in [alert.code for alert in run.alerts]
    assert (doubtful["grade"] == "tentative").all()
    assert fc.load(run.save(tmp_path / "run")).graph == run.graph


def test_with_few_rows_closed_forms_decide_alone():
    run = fc.discover(product_of_three(200), max_lag=1)
    assert set(run.losses["chosen"]) <= {"linear", "additive", "products"}


def test_a_target_keeps_the_learner_whose_tests_decide():
    run = fc.discover(product_of_three(), max_lag=1)
    kept = run.losses["chosen"]["x3"]
    assert "dictionary" in kept
    assert run.forecaster.member_of(3).label == kept
    assert set(run.graph.edges.query("target == 'x3'")["decided_by"]) == {kept}
