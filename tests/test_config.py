"""Everything that can be asked for is whole and consistent, or refused before any work."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import forecause as fc
from forecause.config import GROUP_OF, Config, ForecasterSpec


def test_options_come_by_their_plain_names_and_are_held_in_groups():
    config = fc.Config.of(max_lag=3, time="day", forecaster="mlp", fdr=0.1, seed=7)
    assert config.max_lag == 3
    assert config.data.time == "day"
    assert config.forecasting.forecaster == "mlp"
    assert config.edges.fdr == 0.1
    assert config.run.seed == 7


def test_objects_stand_for_options():
    config = fc.Config.of(forecaster=fc.MLP(hidden=64), select=fc.TopK(2, by="rank"))
    assert config.forecasting.forecaster.hidden == 64
    assert (config.edges.select, config.edges.k, config.edges.by) == ("top-k", 2, "rank")
    assert fc.Config.of(select=fc.FalseDiscovery(0.1)).edges.fdr == 0.1


def test_a_configuration_can_be_changed_by_name():
    config = fc.Config.of(fc.Config.of(max_lag=4, fdr=0.1), fdr=0.2, seed=3)
    assert (config.max_lag, config.edges.fdr, config.run.seed) == (4, 0.2, 3)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"readout": "attention"}, "needs a forecaster with attention"),
        ({"readout": "attention", "forecaster": "mlp"}, "cannot be read from the forecaster 'mlp'"),
        ({"readout": "lrp", "forecaster": "chronos", "weights": "w"}, "'lrp' cannot be read"),
        ({"cross_fit": 1}, "at least 2 parts"),
        ({"k": 2}, "k belongs to the rules top-k"),
        ({"by": "rank", "select": "fdr"}, "by belongs to the rules top-k"),
        ({"fdr": 0.1, "select": "top-k"}, "fdr belongs to the rule fdr"),
        ({"preset": "sparse", "forecaster": "linear"}, "'linear' has none"),
        ({"head": "gaussian", "forecaster": "additive"}, "'additive' has no head 'gaussian'"),
        ({"weights": "w", "forecaster": "mlp"}, "Only chronos and pretrained start from weights"),
        ({"weights": "w"}, "found 'auto'"),
        ({"forecaster": "chronos"}, "'chronos' needs weights"),
        ({"forecaster": "deep"}, "Unknown forecaster 'deep'; choose one of auto, transformer"),
        ({"regimes": 2, "per_series": True}, "not for both"),
        ({"regimes": 2, "domain": "place"}, "domains are known"),
        ({"regimes": "some"}, "regimes must be 'auto' or a whole number"),
        ({"preset": "best"}, "Unknown preset 'best'"),
        ({"max_lag": 0}, "max_lag=0"),
        ({"max_lag": 10**11}, "max_lag"),
        ({"seed": 2**70}, "seed"),
        ({"held_out": 1e-9}, "held_out"),
        ({"budget": "soon"}, "time budget"),
        ({"labels": 3}, "labels must be names"),
        ({"forbid": 3}, "Expected rules"),
        ({"forcaster": "mlp"}, "no option 'forcaster'; did you mean 'forecaster'"),
    ],
)
def test_contradictions_and_mistakes_are_one_sentence(asked, sentence):
    with pytest.raises(fc.InputError) as error:
        fc.Config.of(**asked)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_no_error_recommends_a_forecaster_that_cannot_be_chosen():
    with pytest.raises(fc.InputError) as error:
        fc.Config.of(head="gaussian", forecaster="linear")
    assert "deep-transformer" not in str(error.value)


def test_too_large_a_k_is_refused_before_anything_is_fitted(monkeypatch):
    monkeypatch.setattr("forecause.resources.fitting.fit_best", lambda *_: pytest.fail("fitted"))
    table = [[float(i % 7), float(i % 5 + i % 3)] for i in range(100)]
    import numpy as np

    with pytest.raises(fc.InputError, match="k must lie between 1 and 4"):
        fc.discover(np.array(table), 2, select=fc.TopK(5))


def test_a_misspelt_argument_of_discover_is_suggested():
    with pytest.raises(fc.InputError, match="no option 'max_lags'; did you mean 'max_lag'"):
        fc.discover([[1.0]], max_lags=3)


@given(
    asked=st.fixed_dictionaries(
        {},
        optional={
            "max_lag": st.one_of(st.integers(1, 50), st.just("auto")),
            "seed": st.integers(0, 1000),
            "fdr": st.floats(0.001, 0.5),
            "forecaster": st.sampled_from(["auto", "linear", "mlp", "transformer"]),
            "preset": st.sampled_from(["default", "quick"]),
            "labels": st.lists(st.sampled_from(["a", "b"]), unique=True),
            "cross_fit": st.sampled_from([0, 2, 5]),
            "forbid": st.lists(st.sampled_from(["a -> b", "b -> a @ 1"])),
        },
    )
)
def test_what_is_saved_comes_back(asked):
    config = Config.of(**asked)
    saved = json.loads(json.dumps(config.to_json()))
    assert Config.from_json(saved) == config
    assert set(saved) == {"max_lag", *GROUP_OF}


def test_settings_of_version_0_1_are_understood():
    flat = {"max_lag": 3, "select": "auto", "k": 3, "by": "score", "fdr": 0.02, "forecaster": "mlp"}
    config = Config.from_json(flat)
    assert (config.max_lag, config.edges.k, config.edges.fdr) == (3, None, 0.02)
    top = Config.from_json(flat | {"select": "top-k"})
    assert (top.edges.k, top.edges.fdr) == (3, None)


def test_a_forecaster_says_of_itself_what_it_can_do():
    fc.Config.of()
    known = ForecasterSpec.known
    assert known["linear"].closed_form
    assert known["linear"].instant
    assert not known["mlp"].instant
    assert "attention" in known["transformer"].readouts
    assert known["mlp"].head_names == ("mse", "gaussian", "mixture")
    assert known["chronos"].weights_use == "required"
    assert type(known["transformer"].of_preset("paper")).kind == "deep-transformer"
