"""Everything that can be asked for is whole and consistent, or refused before any work."""

import inspect
import json
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forecause as fc
from forecause.cli.configuring import configuration, parse_settings
from forecause.common import work_sharing
from forecause.config import OPTION_NAMES, Config, ForecasterSpec, Thresholds
from forecause.config.advice import (
    MOVED,
    as_flag,
    as_python,
    call,
    command,
    joined_by_comma,
    split_by_comma,
)
from forecause.config.thresholds import THRESHOLDS, thresholds, using
from forecause.resources.workers import Workers, gather


def test_options_come_by_their_plain_names_and_are_held_in_groups():
    config = fc.Config.of(max_lag=3, time="day", forecaster="mlp", fdr=0.1, seed=7)
    assert config.max_lag == 3
    assert config.data.time == "day"
    assert config.forecasting.forecaster == "mlp"
    assert config.edges.fdr == 0.1
    assert config.run.seed == 7


def test_objects_stand_for_options():
    config = fc.Config.of(forecaster=fc.forecasters.MLP(hidden=64), select=fc.TopK(2, by="rank"))
    assert config.forecasting.forecaster.hidden == 64
    assert (config.edges.select, config.edges.k, config.edges.by) == ("top-k", 2, "rank")


def test_a_head_is_an_option_of_a_network_or_of_all():
    own = fc.Config(forecaster=fc.forecasters.MLP(head="gaussian"))
    assert (own.forecasting.head, own.edges.readout) == ("gaussian", "score")
    assert fc.Config(head="gaussian").forecasting.head == "gaussian"
    assert (
        fc.Config.of(own, forecaster=fc.forecasters.MLP(head="mixture")).forecasting.head
        == "mixture"
    )
    with pytest.raises(fc.InputError, match="asks for the head 'gaussian'"):
        fc.Config(forecaster=fc.forecasters.MLP(head="gaussian"), head="mixture")


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
    with pytest.raises(fc.InputError, match="k must lie between 1 and 4"):
        fc.discover(np.array(table), 2, select=fc.TopK(5))


def test_a_misspelt_argument_of_discover_is_suggested():
    with pytest.raises(fc.InputError, match="no option 'max_lags'; did you mean 'max_lag'"):
        fc.discover([[1.0]], max_lags=3)


@pytest.mark.parametrize("name", MOVED)
def test_an_argument_that_moved_says_where_it_went(name):
    with pytest.raises(fc.InputError, match=f"^{name} is an option of ") as error:
        fc.discover([[1.0]], **{name: 1})
    assert "\n" not in str(error.value)
    assert name not in inspect.signature(fc.discover).parameters


def test_what_read_is_told_is_kept_with_the_run(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "table.csv"
    lines = [
        f"{a:.4f},{b:.4f},{'xyz'[n % 3]}" for n, (a, b) in enumerate(rng.normal(size=(300, 2)))
    ]
    path.write_text("\n".join(["a,b,w", *lines, "-9999,1,x"]), encoding="utf-8")
    panel = fc.read(path, labels="w", missing=-9999, gaps="drop")
    assert np.isnan(panel.values[-1, 0])
    run = fc.discover(panel, max_lag=1, forecaster="linear")
    assert run.config.data.labels == ("w",)
    assert run.config.data.gaps == "drop"
    assert run.panel_of(path).fingerprint() == panel.fingerprint()
    assert run.panel_of(panel) is panel
    again = fc.load(run.save(tmp_path / "run"))
    assert again.config == run.config
    assert again.data.read_again().fingerprint() == panel.fingerprint()
    with pytest.raises(fc.InputError, match="A Panel has its time"):
        fc.discover(panel, time="a")


def test_thresholds_are_set_by_name_saved_and_reach_the_work():
    config = fc.Config(thresholds={"edges": {"least_share": 0.25}})
    assert config.thresholds.edges.least_share == 0.25
    assert config.thresholds.changed() == {"edges": {"least_share": 0.25}}
    assert Config.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert thresholds() is THRESHOLDS
    with using(config.thresholds):
        assert thresholds().edges.least_share == 0.25
    assert thresholds() is THRESHOLDS


def _least_share(_item):
    return thresholds().edges.least_share


def test_threads_and_processes_that_help_have_the_thresholds_of_the_run(monkeypatch):
    monkeypatch.setattr(work_sharing, "_granted", lambda: 2)
    with using(Thresholds.of({"edges": {"least_share": 0.25}})):
        assert list(work_sharing.shared(_least_share, range(3), 1e12)) == [0.25] * 3
        assert gather(_least_share, range(2), Workers(2)) == [0.25] * 2


def test_a_threshold_decides_the_result():
    table = np.random.default_rng(0).normal(size=(600, 2))
    table[1:, 1] += table[:-1, 0]
    usual = fc.discover(table, max_lag=1, forecaster="linear")
    assert len(usual.graph) == 1
    asked = fc.Config(thresholds={"edges": {"least_share": 1.0}})
    assert len(fc.discover(table, max_lag=1, forecaster="linear", config=asked).graph) == 0


def test_a_threshold_of_reading_holds_for_every_table_that_the_run_reads(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"time": np.delete(np.arange(301), 100), "a": rng.normal(size=300)})
    table = table.assign(b=rng.normal(size=300))
    table.to_csv(tmp_path / "data.csv", index=False)
    far = fc.Config(thresholds={"reading": {"gap_in_time": 3.0}})
    usual, run = (
        fc.discover(tmp_path / "data.csv", max_lag=1, forecaster="linear", config=config)
        for config in (None, far)
    )
    assert (usual.data.windows, run.data.windows) == (298, 299)
    again = fc.load(run.save(tmp_path / "run"))
    assert len(again.panel_of().starts) == 1  # read again from the file, as the run read it


def test_a_saved_threshold_that_no_longer_exists_is_left_out():
    saved = THRESHOLDS.model_dump(mode="json") | {"old": {"one": 1}}
    saved["edges"] |= {"gone": 3, "least_share": 0.25}
    assert Thresholds.from_json(saved).changed() == {"edges": {"least_share": 0.25}}


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"edge": {}}, "no group of thresholds 'edge'; did you mean 'edges'"),
        ({"edges": {"lest_share": 1}}, "'lest_share'; did you mean 'least_share'"),
        ({"edges": {"least_share": 7}}, "least_share=7"),
        ({"edges": 3}, "thresholds.edges must be numbers by name"),
        (3, "thresholds must be numbers by group and name"),
    ],
)
def test_a_wrong_threshold_is_one_sentence(asked, sentence):
    with pytest.raises(fc.InputError, match=sentence):
        fc.Config(thresholds=asked)


def test_every_threshold_says_what_it_bounds_and_what_measures_it():
    for group, numbers in THRESHOLDS:
        assert type(numbers).__doc__, group
        for name, field in type(numbers).model_fields.items():
            assert field.description, f"{group}.{name}"
            assert field.json_schema_extra["measured_by"], f"{group}.{name}"


CONFIGURATIONS = [
    fc.Config(max_lag=3, season=[24, 48]),
    fc.Config(labels=["day type", "a,b", 'with "quotes"'], missing=[-9999.0, "bad, worse", "it's"]),
    fc.Config(time="the time", series="s,t", rows="season == 'winter'", every="1h", gaps="drop"),
    fc.Config(forecaster=fc.forecasters.MLP(hidden=8, head="gaussian").trained_with(max_steps=50)),
    fc.Config(forecaster="pretrained", weights="a folder/w.safetensors"),
    fc.Config(select=fc.TopK(2, by="rank/sd"), forbid=["a b -> c", "x <- *"], trend="none"),
    fc.Config(preset="paper", domain_input=True, held_out=0.3, difference=True, regimes=2),
    fc.Config(thresholds={"edges": {"least_share": 0.001, "few_windows": 10}}, budget="90s"),
]


@pytest.mark.parametrize("config", CONFIGURATIONS)
def test_the_command_that_is_written_asks_for_the_same(config, monkeypatch):
    """The line is split as a shell does, parsed by the command, and gives the configuration."""
    from forecause.cli import on_data
    from forecause.cli.commands import as_command

    heard = []

    def hear(*asked):
        heard.append(configuration(*asked))
        raise InterruptedError

    monkeypatch.setattr(on_data, "configuration", hear)
    line = command(["my table.csv"], config.changed())
    assert shlex.split(line)[:3] == ["forecause", "discover", "my table.csv"]
    with pytest.raises(InterruptedError):
        as_command("discover", "forecause.cli.on_data")(shlex.split(line)[2:])
    (found,) = heard
    as_texts = config.with_options(missing=tuple(_text(cell) for cell in config.data.missing))
    assert found == as_texts


@pytest.mark.parametrize("config", CONFIGURATIONS)
def test_the_call_that_is_written_asks_for_the_same(config, monkeypatch):
    heard = {}

    class Written:
        """Stands for the package; remembers what is asked."""

        forecasters, TopK = fc.forecasters, fc.TopK
        Config = fc.Config

        @staticmethod
        def read(data, **options):
            heard.update(options)
            return data

        @staticmethod
        def discover(data, config=None, **options):
            assert data == "my table.csv"
            assert set(options) <= set(inspect.signature(fc.discover).parameters)
            return Config.of(config, **options, **heard)

    assert eval(call('"my table.csv"', config.changed()), {"fc": Written}) == config


def _text(cell):
    return str(int(cell)) if isinstance(cell, float) else cell


def test_one_option_is_advised_as_it_is_written():
    assert as_python("season", "none") == 'season="none"'
    assert as_python("labels", ["day type"]) == 'fc.read(data, labels=["day type"])'
    assert as_python("trend", "none") == 'config=fc.Config(trend="none")'
    assert as_python("k", 3) == "select=fc.TopK(k=3)"
    assert as_flag("labels", ["day type"]) == "--labels 'day type'"
    assert as_flag("difference", True) == "--set data.difference=true"
    assert as_flag("gaps", "drop") == "--set data.gaps=drop"


@given(st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Z"]), min_size=1)))
def test_several_values_in_one_text_are_read_back(values):
    assert split_by_comma(joined_by_comma(values)) == values


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("held_out=0.3", "Expected --set GROUP.NAME=VALUE"),
        ("data.gaps", "Expected --set GROUP.NAME=VALUE"),
        ("date.gaps=drop", "no group of options 'date'; did you mean 'data'"),
        ("data.gap=drop", "no option of data: 'gap'; did you mean 'gaps'"),
        ("data.held_out=0.3", "held_out is an option of forecasting, not of data"),
        ("thresholds.edges=1", "Expected --set thresholds.GROUP.NAME=VALUE"),
    ],
)
def test_a_wrong_setting_of_the_command_is_one_sentence(text, sentence):
    with pytest.raises(fc.InputError, match=sentence):
        parse_settings([text])


def test_settings_of_the_command_come_after_a_file_and_not_twice(tmp_path):
    path = tmp_path / "options.json"
    path.write_text(json.dumps({"max_lag": 4, "held_out": 0.3, "seed": 5}), encoding="utf-8")
    found = configuration(path, ["forecasting.held_out=0.4"], {"seed": 6, "time": None})
    assert (found.max_lag, found.forecasting.held_out, found.run.seed) == (4, 0.4, 6)
    with pytest.raises(fc.InputError, match=r"fdr is given twice, by --fdr 0\.1 and by --set"):
        configuration(None, ["edges.fdr=0.2"], {"fdr": 0.1})
    with pytest.raises(fc.InputError, match="need one by name"):
        configuration(None, ["forecaster.hidden=3"], {})
    with pytest.raises(fc.InputError, match=r"Cannot read .nowhere\.json"):
        configuration(Path("nowhere.json"), None, {})
    path.write_text("[1", encoding="utf-8")
    with pytest.raises(fc.InputError, match="no JSON file with options"):
        configuration(path, None, {})


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
    assert set(saved) == set(OPTION_NAMES)


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
