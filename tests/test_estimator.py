"""CausalDiscovery beside `discover`, and scikit-learn's own checks of an estimator."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

import forecause as fc
from systems import chain

TABLE = pd.DataFrame(chain(600), columns=list("abc"))
# Checks that need nothing of the data: it is too short there, and its rows are no series.
SENSIBLE = (
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimator_cloneable",
    "check_do_not_raise_errors_in_init_or_set_param",
    "check_estimators_unfitted",
    "check_estimators_overwrite_params",
    "check_estimators_fit_returns_self",
    "check_estimators_pickle",
    "check_fit1d",
    "check_readonly_memmap_input",
    "check_estimator_repr",
    "check_positive_only_tag_during_fit",
)


@pytest.fixture(scope="module")
def fitted():
    return fc.CausalDiscovery(max_lag=2, forecaster="linear").fit(TABLE)


def test_it_is_discover_and_nothing_else(fitted):
    run = fc.discover(TABLE, 2, forecaster="linear")
    assert fitted.graph_ == run.graph
    assert fitted.scores_.equals(run.scores)
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    assert fitted.n_features_in_ == 3


def test_predictions_are_one_step_forecasts(fitted):
    ahead = fitted.predict(TABLE)
    assert ahead.shape == TABLE.shape
    assert np.isnan(ahead[:2]).all()
    assert np.isfinite(ahead[2:]).all()
    longer = pd.concat([TABLE, TABLE.iloc[:1]], ignore_index=True)  # whatever comes next
    np.testing.assert_allclose(
        fitted.predict(longer)[-1], fitted.run_.forecast(1).to_numpy()[0], rtol=1e-5
    )


def test_predictions_of_seasons_trends_and_differences_are_in_the_datas_units():
    hours = np.arange(800)
    rng = np.random.default_rng(0)
    values = TABLE.iloc[:1].to_numpy() * 0 + rng.normal(size=(800, 3))
    values[:, 0] += 50 + 10 * np.sin(2 * np.pi * hours / 24)
    values[:, 1] += np.cumsum(rng.normal(size=800))
    table = pd.DataFrame(values, columns=list("abc"))
    for options in ({"season": [24]}, {"config": fc.Config(difference=True)}):
        found = fc.CausalDiscovery(1, forecaster="linear", options=options).fit(table)
        errors = table.to_numpy() - found.predict(table)
        assert np.nanstd(errors[:, 0]) < 5
        assert abs(np.nanmean(errors[:, 0])) < 1
        assert abs(np.nanmean(errors[:, 1])) < 1


def test_parameters_are_set_cloned_and_used_in_a_pipeline():
    first = fc.CausalDiscovery(max_lag=2, forecaster=fc.forecasters.Linear(), select=fc.TopK(1))
    again = clone(first).set_params(max_lag=1, random_state=3)
    assert again.get_params()["max_lag"] == 1
    assert again.get_params()["select"] == fc.TopK(1)
    steps = make_pipeline(FunctionTransformer(lambda table: table * 2), again).fit(TABLE)
    assert steps[-1].graph_.max_lag == 1
    assert steps.predict(TABLE).shape == TABLE.shape


def test_without_a_fit_there_is_nothing_to_ask():
    with pytest.raises(NotFittedError):
        fc.CausalDiscovery().predict(TABLE)
    with pytest.raises(NotFittedError):
        _ = fc.CausalDiscovery().graph_
    with pytest.raises(fc.InputError, match="forecster"):
        fc.CausalDiscovery(options={"forecster": "linear"}).fit(TABLE)


def test_scikit_learns_checks_that_make_sense_for_series():
    options = {"season": "none", "config": fc.Config(trend="none")}
    quick = fc.CausalDiscovery(1, forecaster="linear", options=options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks = {
            check.func.__name__ if hasattr(check, "func") else check.__name__: (estimator, check)
            for estimator, check in estimator_checks.estimator_checks_generator(quick)
        }
        run = [name for name in SENSIBLE if name in checks]
        for name in run:
            estimator, check = checks[name]
            check(estimator)
    assert len(run) >= 10


def test_a_grid_search_compares_forecasters_by_their_forecasts():
    rng = np.random.default_rng(0)
    x = rng.normal(size=600)
    y = np.r_[0, x[:-1] ** 2] + 0.3 * rng.normal(size=600)  # a line sees nothing of it
    table = pd.DataFrame({"x": x, "y": y})
    search = GridSearchCV(
        fc.CausalDiscovery(max_lag=1),
        {"forecaster": ["linear", "additive"]},
        cv=TimeSeriesSplit(2),
    ).fit(table)
    assert search.best_params_ == {"forecaster": "additive"}
    assert search.best_score_ > 0.2


def test_the_score_is_the_mean_r2_of_the_forecasts():
    table = fc.simulate(nodes=4, max_lag=2, rows=300, seed=3).frame()
    found = fc.CausalDiscovery(max_lag=2, forecaster="linear").fit(table)
    ahead = found.predict(table)[2:]
    assert found.score(table) == pytest.approx(r2_score(table.to_numpy()[2:], ahead))
