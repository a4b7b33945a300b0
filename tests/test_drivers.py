"""The tested drivers of somebody else's forecaster."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forecause as fc
from forecause.forecast.foreign import Foreign
from systems import chain

LINKS = {("a", "b", 1), ("b", "c", 2)}
TREES = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=8, random_state=0)


def stairs(rows, seed):
    """Steps and signs of pairs: what lines and curves cannot learn and trees can."""
    x = np.random.default_rng(seed).normal(size=(rows, 5))
    for t in range(2, rows):
        x[t, 1] += 1.5 * np.sign(x[t - 1, 0]) * np.sign(x[t - 2, 2])
        x[t, 3] += 1.5 * np.sign(np.sin(4 * x[t - 1, 1]))
        x[t, 4] += 2.0 * ((x[t - 2, 0] > 0) & (x[t - 1, 3] > 0.5))
    truth = {("a", "b", 1), ("c", "b", 2), ("b", "d", 1), ("a", "e", 2), ("d", "e", 1)}
    return pd.DataFrame(x, columns=list("abcde")), truth


def edges_of(table):
    return set(zip(table["source"], table["target"], table["lag"], strict=True))


def f1(found, truth):
    return 2 * len(found & truth) / (len(found) + len(truth))


def test_what_only_trees_can_learn_is_tested_through_a_foreign_model():
    scores = []
    for seed in (60, 61):
        table, truth = stairs(1200, seed)
        scores.append(f1(edges_of(fc.drivers(TREES, table, max_lag=2).drivers), truth))
    assert np.mean(scores) >= 0.9
    lines = edges_of(fc.drivers(Ridge(), table, max_lag=2).drivers)
    assert f1(lines, truth) < 0.8  # it is the model that is tested, not the data


def test_importances_stand_beside_the_tests():
    table = pd.DataFrame(chain(600), columns=list("abc"))
    forest = make_pipeline(StandardScaler(), RandomForestRegressor(20, max_depth=4, random_state=0))
    found = fc.drivers(forest, table, max_lag=2)
    assert {("a", "b", 1), ("b", "c", 2)} <= edges_of(found.drivers)
    totals = found.table.groupby("target")["importance"].sum()
    np.testing.assert_allclose(totals, 1)
    of_b = found.table.query("target == 'b'").set_index(["source", "lag"])["importance"]
    assert of_b.idxmax() == ("a", 1)
    assert "b: driven by a (lag 1" in " ".join(found.sentences)


def test_a_model_that_has_learned_nothing_has_no_drivers():
    table = pd.DataFrame(chain(500), columns=list("abc"))
    found = fc.drivers(DummyRegressor(), table, max_lag=2)
    assert not found.table["is_driver"].any()
    assert found.table["importance"].isna().all()
    assert found.sentences[0] == "a: no driver found."


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = torch.nn.Linear(6, 16), torch.nn.Linear(16, 3)

    def forward(self, past):
        return self.out(torch.tanh(self.hidden(past.flatten(1))))


def test_a_torch_module_of_six_lines_is_trained_anew_and_tested():
    table = pd.DataFrame(chain(600), columns=list("abc"))
    net = Net()
    before = net.hidden.weight.detach().clone()
    found = fc.drivers(net, table, max_lag=2)
    assert {("a", "b", 1), ("b", "c", 2)} <= edges_of(found.drivers)
    assert torch.equal(net.hidden.weight, before)  # the user's own is left alone


def test_two_functions_are_a_forecaster():
    shapes = []

    def fit(past, target):
        shapes.append((past.shape[1:], target.shape[1:]))
        return np.linalg.lstsq(past.reshape(len(past), -1), target)[0]

    def predict(weights, past):
        return past.reshape(len(past), -1) @ weights

    table = pd.DataFrame(chain(600), columns=list("abc"))
    found = fc.drivers(None, table, max_lag=2, fit=fit, predict=predict)
    assert {("a", "b", 1), ("b", "c", 2)} <= edges_of(found.drivers)
    assert set(shapes) == {((2, 3), (3,))}
    assert len(shapes) == 3  # once for all, once for each part of time


def test_what_cannot_be_refitted_has_relevance_and_no_promise():
    values = 10 + 3 * chain(600)
    seen = []

    def predict(past):  # in the data's units
        seen.append(past.mean())
        return np.stack([past[:, -1, 1], 0.5 * past[:, -1, 0] + 5, past[:, 0, 2]], axis=1)

    table = pd.DataFrame(values, columns=list("abc"))
    found = fc.drivers(None, table, max_lag=2, predict=predict)
    assert np.mean(seen) == pytest.approx(10, abs=1)
    assert found.table["q_value"].isna().all()
    assert not found.table["is_driver"].any()
    assert "no error rate is promised" in found.sentences[0]
    first = found.table.groupby("target").first()
    assert [tuple(first.loc[name, ["source", "lag"]]) for name in "abc"] == [
        ("b", 1),
        ("a", 1),
        ("c", 2),
    ]


def test_discover_takes_one_and_a_saved_run_does_without_it(tmp_path):
    table = pd.DataFrame(chain(600), columns=list("abc"))
    run = fc.discover(table, 2, forecaster=fc.forecasters.Foreign(TREES))
    assert set(run.graph.edges["decided_by"]) == {"foreign"}
    run.report(tmp_path / "page.html")
    again = fc.load(run.save(tmp_path / "run"))
    pd.testing.assert_frame_equal(again.forecast(3), run.forecast(3))
    assert again.forecaster.settings.name == "HistGradientBoostingRegressor"
    with pytest.raises(fc.InputError, match="not kept with a saved run"):
        again.forecaster(np.zeros((1, 2, 3)))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"model": "ridge"}, "found str"),
        ({"model": Ridge(), "forbid": "a -> b"}, "forbid does not go with it"),
        ({"fit": None, "predict": lambda past: past, "select": "fdr"}, "cannot be fitted again"),
        ({"fit": lambda p, t: 0, "predict": lambda m, past: past}, "shape .window, variable."),
        (
            {"fit": lambda p, t: 0, "predict": lambda m, past: past[:, 0] * np.nan},
            "no finite number",
        ),
        ({"fit": lambda p, t: p["a"], "predict": lambda m, past: past}, "failed on windows"),
        ({"fit": lambda p, t: 0}, "functions in its place"),
        ({"model": Ridge(), "fit": lambda p, t: 0}, "functions in its place"),
        ({"model": LogisticRegression()}, "LogisticRegression is a classifier"),
        ({"model": Ridge}, "such as Ridge.., not its class"),
    ],
)
def test_mistakes_are_told(asked, message):
    table = pd.DataFrame(chain(300), columns=list("abc"))
    model = asked.pop("model", None)
    with pytest.raises(fc.InputError, match=message):
        fc.drivers(model, table, max_lag=2, **asked)


@pytest.mark.parametrize(
    "model",
    [
        MultiOutputRegressor(Ridge()),
        make_pipeline(StandardScaler(), MultiOutputRegressor(Ridge())),
        GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}),
        TransformedTargetRegressor(Ridge()),
    ],
    ids=["multi", "pipeline", "search", "transformed"],
)
def test_what_wraps_a_regressor_is_a_regressor(model):
    table = pd.DataFrame(chain(300), columns=list("abc"))
    assert edges_of(fc.drivers(model, table, max_lag=2).drivers) >= LINKS


def test_one_model_of_all_targets_has_the_importances_of_one_for_each():
    table = pd.DataFrame(chain(300), columns=list("abc"))
    one, each = (fc.drivers(m, table, 2) for m in (MultiOutputRegressor(Ridge()), Ridge()))
    pd.testing.assert_frame_equal(one.table, each.table)


def darts_models(kind):
    from darts.models import LinearRegressionModel

    lags = {"lags": 2} if kind == "all in one series" else {"lags": 2, "lags_past_covariates": 2}
    return LinearRegressionModel(**lags)


@pytest.mark.parametrize("kind", ["all in one series", "past covariates"])
def test_a_darts_model_forecasts_what_darts_forecasts(kind):
    darts = pytest.importorskip("darts", reason="darts is not installed")
    past, target = windows(chain(200), 2)
    ours = Foreign(darts_models(kind)).adapter()
    told = ours.predict(ours.fit(past, target, 0), past[-1:])[0]
    values = chain(200).astype(np.float32)
    for place in range(3):
        model = darts_models(kind)
        own = values if kind == "all in one series" else values[:, [place]]
        more = {}
        if kind == "past covariates":
            others = np.delete(values, place, axis=1)
            more = {"past_covariates": darts.TimeSeries.from_values(others)}
        series = darts.TimeSeries.from_values(own)
        model.fit(series, **more)
        expected = model.predict(1, series[:-1], **more).values()[0]
        assert told[place] == pytest.approx(expected[place % len(expected)], abs=1e-4)


def test_a_darts_model_has_drivers():
    pytest.importorskip("darts", reason="darts is not installed")
    table = pd.DataFrame(chain(200), columns=list("abc"))
    assert edges_of(fc.drivers(darts_models("all in one series"), table, 2).drivers) >= LINKS


@pytest.mark.filterwarnings("ignore")  # those of lightning about workers and checkpoints
def test_a_neuralforecast_model_has_drivers():
    pytest.importorskip("neuralforecast", reason="neuralforecast is not installed")
    from neuralforecast.models import MLP, TSMixer

    quiet = {"enable_progress_bar": False, "logger": False, "enable_model_summary": False}
    table = pd.DataFrame(chain(300), columns=list("abc"))
    asked = {"h": 1, "input_size": 2, "max_steps": 60, **quiet}
    net = MLP(learning_rate=0.01, num_layers=1, hidden_size=16, **asked)
    assert edges_of(fc.drivers(net, table, max_lag=2).drivers) >= LINKS
    with pytest.raises(fc.InputError, match="input_size=3"):
        fc.drivers(net, table, max_lag=3)
    with pytest.raises(fc.InputError, match="with hist_exog_list, such as NHITS"):
        fc.drivers(TSMixer(n_series=3, **asked), table, max_lag=2)


@pytest.mark.filterwarnings("ignore:The default of config:FutureWarning")
def test_a_reduction_of_sktime_forecasts_what_sktime_forecasts():
    pytest.importorskip("sktime", reason="sktime 1.2 does not install beside pandas 3.1")
    from sktime.forecasting.compose import make_reduction
    from sktime.forecasting.naive import NaiveForecaster

    model = make_reduction(Ridge(), window_length=2, strategy="recursive")
    table = pd.DataFrame(chain(300), columns=list("abc"))
    past, target = windows(table.to_numpy(), 2)
    ours = Foreign(model).adapter()
    told = ours.predict(ours.fit(past, target, 0), np.stack([table.to_numpy()[-2:]]))[0]
    for place, name in enumerate(table):
        others = table.drop(columns=name)
        theirs = model.clone().fit(table[[name]], X=others, fh=[1])
        ahead = theirs.predict(X=others.iloc[-1:].set_index(pd.Index([len(table)])))
        assert told[place] == pytest.approx(ahead.to_numpy()[0, 0], abs=1e-5)
    assert edges_of(fc.drivers(model, table, max_lag=2).drivers) >= LINKS
    with pytest.raises(fc.InputError, match="window_length=3, not 2"):
        fc.drivers(model, table, max_lag=3)
    with pytest.raises(fc.InputError, match="found NaiveForecaster"):
        fc.drivers(NaiveForecaster(), table, max_lag=2)


def windows(values, lag):
    """Pasts (window, lag, variable) and what followed each."""
    past = np.stack([values[row - lag : row] for row in range(lag, len(values))])
    return past.astype(np.float32), values[lag:].astype(np.float32)
