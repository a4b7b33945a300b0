"""Claims about forecasters that are tested on rows which they did not learn from."""

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from asked import request_of
from fitted import fit_forecaster
from forecause.forecast.forecaster import PLAIN, Forecaster
from forecause.forecast.input_tests.refits import Refits, refit_folds
from forecause.method import Config
from forecause.progress import QUIET
from forecause.resources.fitting import is_tested_by_refits
from heard import Heard
from systems import CHAIN_EDGES, chain, edge_set, windows_of


def product_of_three(rows=1500, seed=0):
    x = np.random.default_rng(seed).normal(size=(rows, 4))
    x[1:, 3] = np.clip(x[:-1, :3], -2, 2).prod(1) + 0.5 * x[1:, 3]
    return pd.DataFrame(x, columns=list("abcd"))


def fitted_by(windows, fit):
    """The refits to both parts of time."""
    folds = refit_folds(windows)
    return Refits.of(windows, folds, [fit(windows.at(fold.train)) for fold in folds])


def found_by(windows, kind):
    own = fitted_by(windows, lambda part: fit_forecaster(kind, part).forecaster)
    return answers_of(own, windows)


def answers_of(own, windows, progress=QUIET):
    tests = own.tests(request_of(windows, progress=progress))
    return tests.dataset(windows.panel.coding.variables)


def edges_below(found, level):
    """The edges (source, target, lag) with smaller p-values."""
    names = found["target"].values.tolist()
    places = np.argwhere(found["p_value"].values < level)
    return {(names[s], names[t], int(lag) + 1) for t, s, lag in places}


def test_a_linear_forecaster_finds_the_chain_and_keeps_its_lags_in_order(chain_windows):
    found = found_by(chain_windows, "linear")
    assert edges_below(found, 1e-6) == CHAIN_EDGES


def test_p_values_of_inputs_without_effect_are_about_uniform():
    p_values = []
    for seed in range(4):
        windows = windows_of(np.random.default_rng(seed).normal(size=(600, 5)), 2)
        p_values.append(found_by(windows, "linear")["p_value"].values.ravel())
    assert (np.concatenate(p_values) < 0.1).mean() < 0.16


def test_the_dictionary_chooses_by_its_own_tests():
    run = fc.discover(product_of_three(), max_lag=1, forecaster="dictionary")
    assert edge_set(run.graph) == {("a", "d", 1), ("b", "d", 1), ("c", "d", 1)}
    assert (run.graph.edges["stability"] > 0.9).all()


def test_in_domains_every_domain_is_tested_on_its_own_rows():
    table = product_of_three(2400)
    table.loc[1200:, "d"] = np.random.default_rng(3).normal(size=1200)
    table["season"] = np.where(np.arange(2400) < 1200, "wet", "dry")
    run = fc.discover(table, max_lag=1, forecaster="dictionary", domain="season")
    assert edge_set(run.graph.domains["wet"]) == {("a", "d", 1), ("b", "d", 1), ("c", "d", 1)}
    assert len(run.graph.domains["dry"]) == 0


@pytest.mark.parametrize(
    ("forecaster", "select", "expected"),
    [
        ("mlp", "fdr", True),
        ("transformer", "fdr", True),
        ("pretrained", "fdr", True),
        ("pretrained", "auto", True),
        ("mlp", "auto", True),
        ("dictionary", "auto", True),
        ("linear", "fdr", False),
        ("additive", "fdr", False),
        ("auto", "fdr", False),
        ("mlp", "top-k", False),
    ],
)
def test_who_is_tested_by_refits(forecaster, select, expected):
    assert is_tested_by_refits(Config.of(forecaster=forecaster, select=select)) is expected


def test_chronos_is_tested_by_refits_where_tests_choose():
    for select, expected in (("fdr", True), ("auto", True), ("top-k", False)):
        config = Config.of(forecaster="chronos", weights="a/folder", select=select)
        assert is_tested_by_refits(config) is expected


class Biased(Forecaster):
    """Forecasts a third more than a fitted line does, plus a tenth, and learns nothing."""

    def __init__(self, line: Forecaster) -> None:
        super().__init__((line.max_lag, line.n_variables), line.settings)
        self.line = line

    def forward(self, past, rules=PLAIN, domain=None):
        return 4 * self.line(past) / 3 + 0.1

    def fit(self, fit_data):
        raise AssertionError("it is used as it is")


def test_a_forecaster_used_as_it_is_may_be_biased_and_on_a_wrong_scale(chain_windows):
    """One fit on other rows of the system, used for both parts of time."""
    line = fit_forecaster("linear", windows_of(chain(2000, seed=7), 2)).forecaster
    right = answers_of(fitted_by(chain_windows, lambda part: line), chain_windows)
    wrong = answers_of(fitted_by(chain_windows, lambda part: Biased(line)), chain_windows)
    assert edges_below(right, 1e-6) == CHAIN_EDGES
    assert edges_below(wrong, 1e-6) == CHAIN_EDGES
    false = [float(p) for p in wrong["p_value"].values.ravel() if p > 1e-6]
    assert min(false) > 0.01


def test_a_slow_forecaster_is_asked_about_fewer_windows(chain_windows):
    asked = []

    class Slow(Biased):
        asked_inputs = 300 * 6

        def forward(self, past, rules=PLAIN, domain=None):
            asked.append(len(past))
            return self.line(past)

    slow = Slow(fit_forecaster("linear", chain_windows).forecaster)
    heard = Heard()
    found = answers_of(fitted_by(chain_windows, lambda part: slow), chain_windows, heard)
    assert sum(asked) == 300 * (1 + 3 * 6)
    assert edges_below(found, 1e-4) == CHAIN_EDGES
    assert heard.shares[0] == 0
    assert heard.shares[-1] == 5 / 6


def test_too_few_rows_for_two_fits_are_refused():
    with pytest.raises(fc.InputError, match="6 for every input"):
        fc.discover(product_of_three(60), max_lag=3, forecaster="dictionary")


def test_a_forbidden_input_is_no_edge():
    run = fc.discover(product_of_three(), max_lag=1, forecaster="dictionary", forbid="a -> d")
    assert ("a", "d", 1) not in edge_set(run.graph)
    assert np.isnan(float(run.relevance["p_value"].sel(target="d", source="a", lag=1)))


def test_a_head_for_the_variance_is_tested_on_squared_errors():
    """v1 follows v0 in its mean and v2 in its spread; a forecaster of means finds the first."""
    x = np.random.default_rng(0).normal(size=(3000, 3))
    x[1:, 1] = 0.8 * x[:-1, 0] + np.exp(0.7 * x[:-1, 2]) * x[1:, 1]
    table = pd.DataFrame(x, columns=["v0", "v1", "v2"])
    options = {"max_lag": 1, "forecaster": "mlp", "preset": "quick", "select": "fdr", "fdr": 0.01}
    both = fc.discover(table, **options, config=fc.Config(head="gaussian"))
    assert edge_set(both.graph) == {("v0", "v1", 1), ("v2", "v1", 1)}
    mean = fc.discover(table, **options)
    assert edge_set(mean.graph) == {("v0", "v1", 1)}
