"""The causal forecaster: what is no cause moves nothing, and its fit against least squares."""

import numpy as np
import pytest
from scipy.optimize import minimize

from forecause.config import ForecastOptions
from forecause.data import Panel
from forecause.data.variables import Label
from forecause.data.windows import Windows
from forecause.forecast.additive import Additive
from forecause.forecast.causal import Causal
from forecause.forecast.causal_fit import Refit
from forecause.forecast.forecaster import FitData
from forecause.forecast.guard import fit_causal, guard
from forecause.forecast.lasso import Lasso
from forecause.forecast.linear import Linear
from forecause.forecast.means import best_shares
from forecause.forecast.refit import Causes, Rows
from forecause.forecast.selection import FitContext, Fitted
from forecause.graph.lagged import LaggedGraph
from systems import chain

NAMES = ["a", "b", "c"]
EDGES = [("a", "b", 1), ("b", "c", 2), ("c", "c", 1)]


def graph_of(edges, names=NAMES, max_lag=2):
    return LaggedGraph.from_edges(names, max_lag, edges)


def windows_of(values, names=NAMES, max_lag=2, **about):
    return Windows.of(Panel.from_arrays([np.asarray(values, dtype=float)], names, **about), max_lag)


def dense(windows, settings=None, joint=None, **changes):
    early, late = windows.split(0.2)
    settings = (settings or Linear()).model_copy(update=changes)
    model = settings.build(windows.shape)
    model.fit(FitData(early, late))
    return Fitted(model, None, early, late, None, joint)


def causal_of(values, edges, options=None, joint=None, context=None, names=NAMES, max_lag=2):
    windows = windows_of(values, names, max_lag)
    fitted = dense(windows, joint=joint)
    return fit_causal(windows, graph_of(edges, names, max_lag), fitted, options, context)


def moved_by(model, column, shape, lags=None, domain=None):
    """Which targets' forecasts change, (target,), when a column's past does."""
    past = np.random.default_rng(0).normal(size=(50, *shape)).astype(np.float32)
    other = past.copy()
    steps = slice(None) if lags is None else [-lag for lag in lags]
    other[:, steps, column] += 3.0
    domain = None if domain is None else np.full(len(past), domain)
    return (model(past, domain=domain) != model(other, domain=domain)).any(0)


def curved(rows=1500, seed=0):
    """b follows |a|, c the product of a and b."""
    x = np.random.default_rng(seed).normal(size=(rows, 3))
    x[1:, 1] = np.abs(x[:-1, 0]) + 0.3 * x[1:, 1]
    x[1:, 2] = x[:-1, 0] * x[:-1, 1] + 0.3 * x[1:, 2]
    return x


def test_lines_are_least_squares_on_the_causes_of_all_rows():
    values = chain(600)
    causal = causal_of(values, EDGES)
    weight = causal.forecaster.member_of(2).weight[2]  # (step, source), oldest first
    z = (values - values.mean(0)) / values.std(0)
    design = np.column_stack([np.ones(len(z) - 2), z[:-2, 1], z[1:-1, 2]])
    expected = np.linalg.lstsq(design, z[2:, 2], rcond=None)[0]
    np.testing.assert_allclose([weight[0, 1], weight[1, 2]], expected[1:], atol=0.01)
    assert np.count_nonzero(weight) == 2


def test_one_step_errors_on_later_rows_are_those_of_least_squares_on_the_edges():
    excess = []
    for seed in range(4):
        values = chain(3000, seed)
        known, later = values[:500], values[500:]
        causal = causal_of(known, EDGES)
        mean, sd = known.mean(0), known.std(0)
        z = (later - mean) / sd
        past = np.stack([z[:-2], z[1:-1]], axis=1).astype(np.float32)
        ours = ((causal.forecaster(past) - z[2:]) ** 2).mean(0)
        own = (known - mean) / sd
        for target, causes in ((1, [(0, 1)]), (2, [(1, 2), (2, 1)])):
            one, two = (
                np.column_stack(
                    [np.ones(len(x) - 2)] + [x[2 - g : len(x) - g, s] for s, g in causes]
                )
                for x in (own, z)
            )
            beta = np.linalg.lstsq(one, own[2:, target], rcond=None)[0]
            excess.append(ours[target] / ((two @ beta - z[2:, target]) ** 2).mean())
    assert max(excess) < 1.01


@pytest.mark.parametrize("kind", ["linear", "additive", "products", "dictionary", "trees"])
def test_what_is_no_cause_moves_nothing(kind):
    edges = [("a", "b", 1), ("a", "c", 1), ("b", "c", 1)]
    windows = windows_of(curved(), max_lag=2)
    fitted = dense(windows, joint=frozenset({2}))
    refit = Refit.asked(
        windows,
        fitted.early,
        fitted.late,
        Causes.of(graph_of(edges), windows),
        fitted.forecaster,
        ForecastOptions(),
        fitted.joint,
    )
    if kind in ("linear", "additive"):
        members, _ = refit._closed(refit.rows, refit.closed_forms)
        model = members[kind].model
    else:
        settings = {one.kind: one for one in refit._learners()}[kind]
        model = refit._learned(settings, windows, fitted.late, refit.joint)
        assert model.has_model_for(2)
    np.testing.assert_array_equal(moved_by(model, 2, windows.shape), False)
    assert not moved_by(model, 0, windows.shape)[0]
    assert moved_by(model, 0, windows.shape)[2]
    np.testing.assert_array_equal(moved_by(model, 0, windows.shape, lags=[2]), False)


def test_a_product_is_forecast_by_more_than_curves():
    edges = [("a", "b", 1), ("a", "c", 1), ("b", "c", 1)]
    causal = causal_of(curved(), edges, joint=frozenset({2}))
    kinds = causal.forecaster.settings.kinds
    assert kinds[0] == "linear"  # nothing drives it: its mean
    assert kinds[1] == "additive"
    assert kinds[2] in ("products", "dictionary", "trees")
    assert causal.losses.loc["c", "causal"] < 0.3 * causal.losses.loc["c", "mean"]
    scale = causal.forecaster.residuals[:, 2].std() ** 2
    assert scale == pytest.approx(causal.losses.loc["c", "causal"], rel=0.5)


def test_a_network_that_was_asked_for_reads_the_causes_alone():
    pytest.importorskip("torch")
    from forecause.networks.settings import MLP

    edges = [("a", "b", 1), ("a", "c", 1), ("b", "c", 1)]
    windows = windows_of(curved(500))
    fitted = dense(windows, Additive())
    small = MLP(hidden=4).trained_with(max_steps=60, look_every=20, warmup_steps=5)
    refit = Refit.asked(
        windows,
        fitted.early,
        fitted.late,
        Causes.of(graph_of(edges), windows),
        fitted.forecaster,
        ForecastOptions(forecaster=small),
        frozenset({0, 1, 2}),
    )
    assert refit.network is not None
    model = refit._refitted(refit.network, [1, 2])
    np.testing.assert_array_equal(moved_by(model, 2, windows.shape), False)
    assert moved_by(model, 0, windows.shape).tolist() == [False, True, True]


def test_a_target_without_causes_is_its_mean():
    values = chain(400) + np.array([5.0, 0.0, 0.0])
    causal = causal_of(values, EDGES).forecaster
    past = np.random.default_rng(1).normal(size=(20, 2, 3)).astype(np.float32)
    assert np.ptp(causal(past)[:, 0]) == 0
    assert causal(past)[0, 0] == pytest.approx(0.0, abs=0.05)


def test_a_forbidden_edge_is_never_read_even_if_the_graph_has_it():
    allowed = np.ones((3, 2, 3), dtype=bool)
    allowed[1, -1, 0] = False
    values = chain(400)
    causal = causal_of(values, EDGES, context=FitContext(allowed=allowed))
    assert not moved_by(causal.forecaster, 0, (2, 3))[1]
    assert moved_by(causal_of(values, EDGES).forecaster, 0, (2, 3))[1]


def test_a_required_edge_is_read_however_weak():
    causal = causal_of(chain(400), [*EDGES, ("c", "a", 2)])
    assert moved_by(causal.forecaster, 2, (2, 3), lags=[2])[0]
    assert not moved_by(causal.forecaster, 2, (2, 3), lags=[1])[0]


def test_a_missing_cause_is_told_and_rivals_forecast_in_its_place():
    causal = causal_of(chain(1000), [("a", "b", 1), ("c", "c", 1)])
    assert causal.missing_causes == ("c",)
    assert causal.forecast_by[2] in ("dense linear", "lasso and dense linear", "lasso")
    assert all("causal" in by for by in causal.forecast_by[:2])
    assert moved_by(causal.guarded, 1, (2, 3))[2]
    assert not moved_by(causal.forecaster, 1, (2, 3))[2]
    better = causal.losses.loc["c", ["dense", "lasso"]].min()
    assert causal.guarded.residuals[:, 2].std() ** 2 == pytest.approx(better, rel=0.05)


def test_where_evidence_is_weak_a_lasso_and_the_causes_forecast_a_half_each():
    causal = causal_of(chain(1000), EDGES)
    assert causal.missing_causes == ()
    past = np.random.default_rng(3).normal(size=(50, 2, 3)).astype(np.float32)
    both = causal.guarded.members["blend"]
    lasso, own = both.members["lasso"](past), causal.forecaster(past)
    shares = both.shares[list(both.members).index("causal")]
    np.testing.assert_allclose(shares, 0.5, atol=0.15)
    if set(both.members) == {"causal", "lasso"}:
        np.testing.assert_allclose(both(past), shares * own + (1 - shares) * lasso, atol=1e-5)
    assert causal.losses.loc["c", "causal"] == pytest.approx(
        causal.losses.loc["c", "dense"], rel=0.02
    )


def test_the_shares_are_those_of_least_penalised_squared_error():
    rng = np.random.default_rng(0)
    for rows in (20, 400):
        left = rng.normal(size=(rows, 1)) + rng.normal(size=(rows, 4)) * [0.2, 0.8, 0.5, 2.0]
        prior, sd = np.array([0.5, 0.5, 0.0, 0.0]), 0.25
        noise = (left**2).mean(0).min()

        def loss(shares, left=left, noise=noise, prior=prior, sd=sd):
            return ((left @ shares) ** 2).sum() / noise + ((shares - prior) ** 2).sum() / sd**2

        found = best_shares(left.T @ left, rows, prior, sd)
        expected = minimize(
            loss,
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1},
        ).x
        np.testing.assert_allclose(found, expected, atol=2e-3)
        assert found.sum() == pytest.approx(1)


def test_the_own_past_is_an_autoregression():
    windows = windows_of(chain(800))
    fitted = dense(windows)
    causal = fit_causal(windows, graph_of(EDGES), fitted)
    early, late = fitted.early.whole(), fitted.late.whole()
    for place, loss in enumerate(causal.losses["own past"]):
        designs = [
            np.column_stack([part.past[:, :, place], np.ones(len(part))]) for part in (early, late)
        ]
        weights = np.linalg.lstsq(designs[0], early.target[:, place], rcond=None)[0]
        left = late.target[:, place] - designs[1] @ weights
        assert loss == pytest.approx(np.mean(left**2), rel=0.01)
    assert causal.is_forecast[1:].all()
    own_alone = causal_of(chain(800), [])
    np.testing.assert_allclose(own_alone.losses["causal"], own_alone.losses["mean"])


def test_it_is_kept_and_read_again():
    values = chain(600)
    for edges in (EDGES, EDGES[:1]):
        causal = causal_of(values, edges)
        again = Causal.restored(causal.describe(), causal.arrays(), (2, 3))
        past = np.random.default_rng(2).normal(size=(9, 2, 3)).astype(np.float32)
        for one, other in (
            (causal.forecaster, again.forecaster),
            (causal.guarded, again.guarded),
        ):
            np.testing.assert_array_equal(one(past), other(past))
            np.testing.assert_array_equal(one.residuals, other.residuals)
        assert (causal.guarded is causal.forecaster) == (again.guarded is again.forecaster)
        assert again.forecast_by == causal.forecast_by


def test_filled_cells_are_not_learned_from():
    values = chain(600)
    filled = np.zeros(values.shape, dtype=bool)
    filled[100:400, 1] = True
    spoilt = values.copy()
    spoilt[100:400, 1] = 0.0
    panel = Panel.from_arrays([spoilt], NAMES)
    panel = type(panel)(**{**_fields(panel), "filled": filled})
    windows = Windows.of(panel, 2)
    weights = []
    for one in (windows, windows_of(values)):
        causal = fit_causal(one, graph_of(EDGES), dense(one))
        sd = one.scale.sd
        weights.append(causal.forecaster.member_of(1).weight[1, -1, 0] * sd[1] / sd[0])
        assert np.isfinite(causal.forecaster.residuals).all()
        assert np.isfinite(causal.losses.drop(columns="forecast_by").to_numpy()).all()
    assert weights[0] == pytest.approx(weights[1], abs=0.1)


def _fields(panel):
    from dataclasses import fields

    return {field.name: getattr(panel, field.name) for field in fields(panel) if field.init}


def test_every_domain_has_its_own_causes():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(1200, 3))
    domain = np.repeat([0, 1], 600)
    values[1:600, 1] += 0.9 * values[:599, 0]
    values[601:, 1] += 0.9 * values[600:-1, 2]
    panel = Panel.from_arrays([values], NAMES).with_domain(domain, ("one", "two"))
    windows = Windows.of(panel, 2)
    parts = {"one": graph_of([("a", "b", 1)]), "two": graph_of([("c", "b", 1)])}
    whole = graph_of([("a", "b", 1), ("c", "b", 1)])
    graph = type(whole)(**{**_fields(whole), "domains": parts})
    causal = fit_causal(windows, graph, dense(windows, domains=2))
    model = causal.forecaster
    assert model.settings.kinds[1] == "linear-by-domain"
    assert moved_by(model, 0, (2, 3), domain=0)[1]
    assert not moved_by(model, 0, (2, 3), domain=1)[1]
    assert moved_by(model, 2, (2, 3), domain=1)[1]
    assert not moved_by(model, 2, (2, 3), domain=0)[1]
    assert model.residual_domain is not None
    again = Causal.restored(causal.describe(), causal.arrays(), (2, 3)).forecaster
    np.testing.assert_array_equal(again.residual_domain, model.residual_domain)


def test_several_series_are_learned_from_together():
    one, other = chain(300), chain(300, seed=1)
    windows = Windows.of(Panel.from_arrays([one, other], NAMES), 2)
    assert len(windows) == 2 * 298
    lines = ForecastOptions(forecaster="linear")

    def slope(causal):
        return causal.forecaster.member_of(1).weight[1, -1, 0]

    causal = fit_causal(windows, graph_of(EDGES), dense(windows), lines)
    alone = [slope(causal_of(values, EDGES, lines)) for values in (one, other)]
    assert min(alone) < slope(causal) < max(alone)
    assert len(causal.forecaster.residuals) == len(windows)


def test_a_label_is_one_cause_and_one_target():
    rng = np.random.default_rng(4)
    level = rng.integers(3, size=900)
    y = np.concatenate([[0.0], (level[:-1] == 2) * 2.0]) + 0.5 * rng.normal(size=900)
    values = np.column_stack([np.eye(3)[level], y, rng.normal(size=900)])
    names = ["w=x", "w=y", "w=z", "y", "n"]
    labels = (Label("w", ("x", "y", "z"), 0),)
    panel = Panel.from_arrays([values], names)
    panel = type(panel)(**{**_fields(panel), "labels": labels})
    windows = Windows.of(panel, 1)
    graph = LaggedGraph.from_edges(["w", "y", "n"], 1, [("w", "y", 1)])
    coding = panel.coding
    settings = Linear(labels=coding.label_columns(windows.scale.mean))
    causal = fit_causal(windows, graph, dense(windows, settings))
    assert list(causal.losses.index) == ["w", "y", "n"]
    model = causal.forecaster
    assert moved_by(model, 2, (1, 5)).tolist() == [False, False, False, True, False]
    assert not moved_by(model, 3, (1, 5)).any()
    assert causal.losses.loc["y", "causal"] < 0.5


def test_the_lasso_is_that_of_scikit_learn():
    linear_model = pytest.importorskip("sklearn.linear_model")
    windows = windows_of(chain(500))
    rows = Rows.of(windows)
    lasso = Lasso.of(rows, np.ones((3, 2, 3), dtype=bool))
    shares = np.array([0.3, 0.1, 0.02])
    ours = lasso.solve(shares)
    x, y = rows.inputs.astype(float), rows.targets.astype(float)
    for target, share in enumerate(shares):
        centred = y[:, target] - y[:, target].mean()
        penalty = share * np.abs((x - x.mean(0)).T @ centred / len(x)).max()
        theirs = linear_model.Lasso(penalty, tol=1e-9).fit(x, y[:, target])
        np.testing.assert_allclose(ours[1:, target], theirs.coef_, atol=1e-4)
        assert ours[0, target] == pytest.approx(theirs.intercept_, abs=1e-4)


def test_lines_alone_where_lines_were_asked_for():
    values = curved(800)
    edges = [("a", "b", 1)]
    for asked, kind in (("linear", "linear"), ("additive", "additive"), ("auto", "additive")):
        causal = causal_of(values, edges, ForecastOptions(forecaster=asked))
        assert causal.forecaster.settings.kinds[1] == kind


def test_the_guard_compares_what_it_has_not_learned_from():
    windows = windows_of(chain(300))
    fitted = dense(windows)
    causes = Causes.of(graph_of(EDGES), windows)
    refit = Refit(windows, fitted.early, fitted.late, causes)
    early_only, _ = refit.trial()
    final = guard(refit, fitted.forecaster).forecaster
    past = np.ones((1, 2, 3), dtype=np.float32)
    assert (early_only(past) != final(past)).any()  # the last fifth is learned from in the end


def test_it_cannot_be_asked_for_by_name():
    from forecause.errors import InputError
    from forecause.forecast.causal import CausalSettings

    with pytest.raises(InputError, match="'causal' is fitted by every run"):
        CausalSettings.of_preset("default")


def test_of_the_learners_that_beat_curves_the_one_of_the_least_error_is_kept():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2500, 3))
    for t in range(1, len(x)):  # smooth in each cause, a product and a jump besides
        a, b = x[t - 1, :2]
        x[t, 2] += 1.2 * np.tanh(2 * a) + 0.9 * a * b + 1.5 * (b > 0.3)
    windows = windows_of(x, max_lag=1)
    early, late = windows.split(0.2)
    causes = Causes.of(graph_of([("a", "c", 1), ("b", "c", 1)], max_lag=1), windows)
    refit = Refit(windows, early, late, causes, frozenset([2]))
    trial, won = refit.trial()
    learned = [refit._learned(settings, early, late, {2}) for settings in refit._learners()]
    forecasts = {one.label: one(late.whole().past)[:, 2] for one in learned}
    forecasts["dictionary + trees"] = (forecasts["dictionary"] + forecasts["trees"]) / 2
    errors = {
        name: float(np.mean((late.targets()[:, 2] - forecast) ** 2))
        for name, forecast in forecasts.items()
    }
    assert won == {2: min(errors, key=errors.__getitem__)}
    assert trial.settings.kinds[2] == won[2]
    final = refit.final(trial, won, np.array([1.0, 1.0, errors[won[2]]]))
    assert final.settings.kinds[2] == won[2]
    assert moved_by(final, 0, windows.shape).tolist() == [False, False, True]
    assert not moved_by(final, 2, windows.shape).any()
