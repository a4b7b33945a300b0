from copy import deepcopy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure

import forecause as fc
from fitted import fit_forecaster
from forecause.data import Panel, Windows
from forecause.diagnostics.regimes import Regimes
from forecause.effects.answering import Models
from forecause.effects.attribution import attribution_of_run
from forecause.forecast.attribution import READOUTS, relevance
from forecause.forecast.attribution.over_time import attribution_over_time
from forecause.networks.mlp_and_cnn import MLPModel
from forecause.networks.network import Network
from forecause.networks.settings import MLP, Transformer
from forecause.networks.transformer import TransformerModel
from forecause.report.plots import attribution
from systems import chain


@pytest.fixture(scope="module")
def linear(chain_windows):
    return fit_forecaster("linear", chain_windows).forecaster


@pytest.fixture(scope="module")
def curved():
    torch.manual_seed(0)
    model = MLPModel((2, 3), MLP(hidden=8)).requires_grad_(False)
    for parameter in model.parameters():
        parameter += 0.3 * torch.randn_like(parameter)
    return Network(model)


def inputs(windows):
    """What the forecaster saw, (window, source, lag)."""
    past = windows.draw(np.arange(len(windows))).past.astype(np.float64)
    return past[:, ::-1].transpose(0, 2, 1)


def test_contributions_and_the_intercept_are_the_linear_forecast(linear, chain_windows):
    found = attribution_over_time(linear, chain_windows, "c")
    total = found["contribution"].sum(["source", "lag"]) + float(linear.intercept[2])
    np.testing.assert_allclose(total, found["forecast"], atol=1e-6)
    # in the data's units, from the coefficients alone
    weight = linear.weight[2].astype(float)[::-1].T  # (source, lag)
    np.testing.assert_allclose(found["contribution"], weight * inputs(chain_windows), atol=1e-6)
    values = found["actual"] * found.attrs["sd"] + found.attrs["mean"]
    np.testing.assert_allclose(values, chain_windows.panel.values[2:, 2], atol=1e-5)


def test_a_curved_forecasters_contributions_are_finite_differences(curved, chain_windows):
    some = chain_windows.at(np.arange(40))
    found = attribution_over_time(curved, some, "b")
    past = torch.tensor(some.draw(np.arange(40)).past).double()
    model, h = deepcopy(curved.module).double(), 1e-6
    for lag in (1, 2):
        for place, source in enumerate("abc"):
            shift = torch.zeros_like(past)
            shift[:, -lag, place] = h
            slope = (model(past + shift) - model(past - shift))[:, 1] / (2 * h)
            expected = slope * past[:, -lag, place]
            own = found["contribution"].sel(source=source, lag=lag)
            np.testing.assert_allclose(own, expected, atol=1e-5)


@pytest.mark.parametrize("readout", [r for r in READOUTS if r not in ("attention", "rollout")])
def test_every_readout_is_that_of_the_whole_run_spread_over_time(curved, chain_windows, readout):
    some = chain_windows.at(np.arange(600))  # more than one batch
    found = attribution_over_time(curved, some, "c", readout=readout)
    whole = relevance(curved, some, readout).sel(target="c")
    power = READOUTS[readout].power
    np.testing.assert_allclose(
        (found["magnitude"] ** power).mean("time"), whole["relevance"], rtol=1e-4, atol=1e-7
    )
    if readout != "score":  # whose effect is that of the gradient
        mean = found["contribution"].mean("time")
        np.testing.assert_allclose(mean, whole["effect"], atol=1e-6)


def test_attention_over_time_adds_up_to_one(chain_windows):
    torch.manual_seed(0)
    model = TransformerModel((2, 3), Transformer(width=8, heads=2))
    some = chain_windows.at(np.arange(30))
    found = attribution_over_time(Network(model), some, "a", readout="attention")
    np.testing.assert_allclose(found["contribution"].sum(["source", "lag"]), 1, atol=1e-5)


@pytest.mark.parametrize("bins", [1, 7, 600, 5000])
def test_bins_hold_the_means_of_their_windows(curved, chain_windows, bins):
    some = chain_windows.at(np.arange(1300))
    single = attribution_over_time(curved, some, "c")
    found = attribution_over_time(curved, some, "c", bins=bins)
    assert found.sizes["time"] <= bins
    assert int(found["windows"].sum()) == 1300
    edges = np.cumsum([0, *found["windows"].values])
    for name in ("contribution", "magnitude", "forecast", "actual"):
        parts = [single[name].values[a:b].mean(0) for a, b in pairwise(edges)]
        np.testing.assert_allclose(found[name], parts, atol=1e-9)
    np.testing.assert_array_equal(found["row"], some.rows[edges[:-1]])
    np.testing.assert_array_equal(found["last_row"], some.rows[edges[1:] - 1])


def test_bins_never_mix_series_and_are_named_by_time(linear):
    panel = Panel.from_arrays([chain(50), chain(30, 1)], list("abc"), ["north", "south"])
    days = np.datetime64("2020-01-01") + np.tile(np.arange(50), 2)[:80]
    windows = Windows.of(replace(panel, time=days), 2)
    found = attribution_over_time(linear, windows, "a", bins=4)
    assert found["series"].values.tolist() == ["north"] * 3 + ["south"] * 2
    assert found["windows"].values.tolist() == [19, 19, 10, 19, 9]
    assert found["time"].values[0] == np.datetime64("2020-01-03")
    assert found["row"].values.tolist() == [2, 21, 40, 52, 71]


def test_it_tells_when_an_input_mattered():
    """b follows a in the first half alone, and c in the second."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3))
    x[1:1500, 1] += 2 * x[:1499, 0]
    x[1501:, 1] += 2 * x[1500:-1, 2]
    domain = (np.arange(3000) >= 1500).astype(np.int64)
    panel = Panel.from_arrays([x], list("abc")).with_domain(domain, ("early", "late"))
    windows = Windows.of(panel, 1)
    forecaster = fit_forecaster("linear", windows).forecaster
    assert forecaster.domains == 2
    found = attribution_over_time(forecaster, windows, "b", bins=10)["magnitude"].sel(lag=1)
    assert (found.sel(source="a")[:4] > 0.5).all()
    assert (found.sel(source="a")[6:] < 0.1).all()
    assert (found.sel(source="c")[:4] < 0.1).all()
    assert (found.sel(source="c")[6:] > 0.5).all()


@pytest.fixture(scope="module")
def run():
    table = pd.DataFrame(chain(400), columns=list("abc"))
    return fc.discover(table, max_lag=2, forecaster="linear")


def test_a_run_is_read_on_its_own_scale_in_the_rows_asked_for(run):
    whole = attribution_of_run(run, "c")
    assert whole.sizes == {"time": 398, "source": 3, "lag": 2}
    part = attribution_of_run(run, "c", slice(-10, None))
    assert part["row"].values.tolist() == list(range(390, 400))
    np.testing.assert_allclose(part["contribution"], whole["contribution"][-10:], atol=1e-6)
    # new data keeps the scale that the forecaster was fitted with
    shifted = pd.DataFrame(chain(400) + 1, columns=list("abc"))
    new = attribution_of_run(run, "c", data=shifted)
    change = (new["forecast"] - whole["forecast"]).values
    causal = Models.of(run).causal  # a line of each cause
    weight = causal.jacobian(np.zeros((1, 2, 3)))[0, 2].sum(0)
    np.testing.assert_allclose(change, (weight / run.data.sd).sum(), atol=1e-5)


def test_a_run_whose_series_are_its_domains_is_read_with_them():
    runs = [pd.DataFrame(chain(300, seed), columns=list("abc")) for seed in (1, 2)]
    found = fc.discover(runs, max_lag=2, forecaster="linear", config=fc.Config(per_series=True))
    assert found.forecaster.domains == 2
    read = attribution_of_run(found, "b", bins=2)
    assert len(set(read["series"].values)) == 2
    with pytest.raises(fc.InputError, match="Expected data with the domains"):
        attribution_of_run(found, "b", data=runs[0])
    with pytest.raises(fc.InputError, match="give the data again"):
        attribution_of_run(replace(found, panel=None), "b")


def test_a_run_with_regimes_is_read_with_them():
    table, half = pd.DataFrame(chain(400), columns=list("abc")), np.arange(400) // 200
    known = fc.discover(table.assign(half=half), max_lag=2, forecaster="linear", domain="half")
    regimes = Regimes(("0", "1"), half, pd.DataFrame())
    found = replace(known, regimes=regimes, panel=Panel.of(table))
    expected = attribution_of_run(known, "b")["contribution"].values
    np.testing.assert_array_equal(attribution_of_run(found, "b")["contribution"], expected)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"target": "z"}, "Unknown variable 'z'; choose one of a, b, c"),
        ({"target": "a", "readout": "magic"}, "Unknown readout 'magic'"),
        ({"target": "a", "readout": "attention"}, "only be read from the transformer"),
        ({"target": "a", "bins": 0}, "bins must be at least 1, found 0"),
        ({"target": "a", "rows": slice(0, 2)}, "None of the rows 0 to 1 can be forecast"),
    ],
)
def test_mistakes_are_told(run, asked, message):
    with pytest.raises(fc.InputError, match=message):
        attribution_of_run(run, **asked)


def test_an_answer_too_large_to_hold_is_refused(linear, chain_windows, monkeypatch):
    monkeypatch.setattr("forecause.forecast.attribution.over_time.MOST_NUMBERS", 1000)
    with pytest.raises(fc.InputError, match="too many to hold; ask for fewer rows, or"):
        attribution_over_time(linear, chain_windows, "a")
    assert attribution_over_time(linear, chain_windows, "a", bins=100).sizes["time"] == 100


def test_the_plot_shows_the_strongest_inputs_first_signed_or_as_means(run, tmp_path):
    figure = Figure(figsize=(6, 3))
    single, means = figure.subplots(1, 2)
    found = attribution_of_run(run, "c", slice(100, 140))
    attribution(single, found, most=2)
    shown = single.images[0].get_array()
    names = [label.get_text() for label in single.get_yticklabels()]
    assert names == ["b, lag 2", "c, lag 1"]
    np.testing.assert_allclose(shown[0], found["contribution"].sel(source="b", lag=2))
    assert single.images[0].norm.vmin == -single.images[0].norm.vmax
    binned = attribution_of_run(run, "c", bins=20)
    attribution(means, binned)
    assert means.images[0].get_array().shape == (6, 20)
    np.testing.assert_allclose(
        means.images[0].get_array()[0], binned["magnitude"].sel(source="b", lag=2)
    )
    figure.savefig(tmp_path / "plot.png")


def test_the_plot_marks_where_series_meet_and_dates_without_hours(linear):
    panel = Panel.from_arrays([chain(40), chain(40, 1)], ["$x", "y" * 40, "שלום"])
    days = np.datetime64("2021-03-01T00:00", "m") + np.arange(80) * np.timedelta64(1, "D")
    windows = Windows.of(replace(panel, time=days), 2)
    axes = Figure().add_subplot()
    attribution(axes, attribution_over_time(linear, windows, "$x"))
    assert [line.get_xdata()[0] for line in axes.lines] == [37.5]
    assert axes.get_xticklabels()[0].get_text() == "2021-03-03"
    axes.figure.canvas.draw()
