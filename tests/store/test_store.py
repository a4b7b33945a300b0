import hashlib
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.common import files
from forecause.graph.axes import labelled_together
from forecause.store import run_folder
from forecause.store.run_folder import held_by_other
from systems import chain


@pytest.fixture(scope="module")
def found():
    data = pd.DataFrame(chain(800), columns=["a", "b<script>", "ç"])
    return fc.discover(data, max_lag=2, preset="quick")


@pytest.fixture
def folder(found, tmp_path):
    return found.save(tmp_path / "runs" / "one")


def test_a_saved_run_loads_to_the_same_graph_and_forecast(found, folder):
    again = fc.load(folder)
    assert again.graph == found.graph
    assert again.relevance.equals(found.relevance)
    assert again.config == found.config
    pd.testing.assert_frame_equal(again.losses, found.losses)
    pd.testing.assert_frame_equal(again.forecast(5), found.forecast(5))
    assert again.data.fingerprint == found.data.fingerprint
    assert again.save(folder.parent / "two").name == "two"


def test_the_folder_holds_what_other_programs_read(found, folder):
    names = {"graph.json", "edges.csv", "report.html", "report.json", "run.json"}
    names.add("model.safetensors")
    assert {file.name for file in folder.iterdir()} == names
    graph = json.loads((folder / "graph.json").read_text())
    assert graph["format"] == "forecause.graph/1"
    assert graph["variables"] == ["a", "b<script>", "ç"]
    assert {"source", "target", "lag", "score"} <= set(graph["edges"][0])
    assert len(pd.read_csv(folder / "edges.csv")) == len(found.graph)
    lines = (folder / "run.json").read_text().splitlines()
    assert lines[1] == '  "format": "forecause.run/1",'
    assert (folder / "run.json").read_text().endswith("}\n")
    hashed = {"graph.json", "edges.csv", "report.json", "model.safetensors"}
    assert {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in hashed
    } == json.loads((folder / "run.json").read_text())["files"]


def test_saving_over_an_older_run_replaces_it(found, folder):
    (folder / "graph.json").write_text("{}")
    found.save(folder)
    assert fc.load(folder).graph == found.graph


def test_a_run_with_other_settings_or_data_is_replaced_only_on_demand(tmp_path):
    table = chain(150)
    old = fc.discover(table, max_lag=1, forecaster="linear", seed=1)
    folder = old.save(tmp_path / "run")
    again = fc.discover(table, max_lag=1, forecaster="linear", seed=1, device="cpu")
    again.save(folder)  # where it is computed makes no other run
    other = fc.discover(table, max_lag=1, forecaster="linear", seed=2)
    elsewhere = fc.discover(chain(150, seed=9), max_lag=1, forecaster="linear", seed=1)
    for run, held in (
        (other, r"a run with other settings \(seed 1, not 2\)"),
        (elsewhere, "a run on other data"),
    ):
        with pytest.raises(fc.InputError, match=f"holds {held}; give another folder or overwrite"):
            run.save(folder)
        assert fc.load(folder).data.fingerprint == old.data.fingerprint
        assert fc.load(folder).config.run.seed == 1
    other.save(folder, overwrite=True)
    assert fc.load(folder).config.run.seed == 2


def test_of_several_other_settings_one_is_told_and_the_others_are_counted(tmp_path):
    folder = fc.discover(chain(150), max_lag=1, forecaster="linear", seed=1).save(tmp_path / "run")
    asked = {"max_lag": 1, "forecaster": "linear", "seed": 1}

    def held(**changes):
        return held_by_other(folder, fc.Config(**asked | changes))

    assert held() is held(max_lag="auto") is held(device="cpu", budget="1h") is None
    assert held(max_lag=2) == "holds a run with other settings (max_lag 1, not 2)"
    several = held(max_lag=2, seed=2, readout="lrp")
    assert several == "holds a run with other settings (max_lag 1, not 2 and 2 more)"
    assert held(fdr=0.3) == "holds a run with other settings (fdr 0.05, not 0.3)"
    long = held(forbid=[f"x{i} -> x0" for i in range(9)])
    start = repr([f"x{i} -> x0" for i in range(9)])[:37]
    assert long == f"holds a run with other settings (forbid [], not {start}...)"
    assert held(exclude=["x" * 36]).endswith(f"not {['x' * 36]!r})")  # forty letters


def test_only_an_empty_folder_is_free(tmp_path):
    config = fc.Config(max_lag=1)
    assert held_by_other(tmp_path / "none", config) is None
    assert held_by_other(tmp_path, config) is None
    (tmp_path / "empty").mkdir()
    other = "holds files, but no forecause run that can be read"
    assert held_by_other(tmp_path, config) == other
    (tmp_path / "run.json").write_text("{}")
    assert held_by_other(tmp_path, config) == other


def test_a_file_in_the_way_is_not_overwritten(found, tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(fc.InputError, match="is a file; give a folder"):
        found.save(tmp_path / "notes")
    assert (tmp_path / "notes").read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("run.json", '{"format": "other"}', "is not a saved run of the format forecause.run/1"),
        ("run.json", "[]", "is not a saved run of the format forecause.run/1"),
        ("run.json", "{", "is damaged"),
        ("run.json", '{"format": "forecause.run/1"}', "is damaged"),
        ("model.safetensors", "garbage", "is damaged"),
        ("graph.json", '{"format": "forecause.graph/1"', "graph.json"),
    ],
)
def test_a_damaged_or_foreign_folder_is_a_clear_error(folder, name, content, sentence):
    (folder / name).write_text(content)
    with pytest.raises(fc.InputError, match=sentence):
        fc.load(folder)


@pytest.mark.parametrize("name", ["run.json", "graph.json", "model.safetensors"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(fc.InputError, match=name):
        fc.load(folder)


def test_a_truncated_model_is_a_clear_error(folder):
    model = folder / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-50])
    with pytest.raises(fc.InputError, match="is damaged"):
        fc.load(folder)


def test_weights_of_another_model_are_refused(folder, tmp_path):
    other = fc.discover(chain(300), max_lag=1, forecaster="linear").save(tmp_path / "other")
    shutil.copy(other / "model.safetensors", folder / "model.safetensors")
    with pytest.raises(fc.InputError, match="is damaged"):
        fc.load(folder)


@pytest.mark.parametrize(
    ("module", "asked"),
    [
        ("my.models", "import my.models before"),
        ("__main__", "import the module that defines it before"),
        ("", "import the module that defines it before"),
    ],
)
def test_a_forecaster_that_is_not_known_names_the_module_to_import(folder, module, asked):
    about = json.loads((folder / "run.json").read_text())
    about["forecaster"] |= {"kind": "mine", "module": module}
    (folder / "run.json").write_text(json.dumps(about))
    with pytest.raises(fc.InputError, match=f"'mine' of this run is not one of .*{asked}"):
        fc.load(folder)


def test_a_run_whose_last_row_is_not_whole_is_loaded(tmp_path):
    table = chain(300)
    table[-1, 1] = np.nan
    run = fc.discover(fc.read(table, gaps="drop"), max_lag=1, forecaster="linear")
    assert np.isnan(run.data.latest).tolist() == [[[False, True, False]]]
    assert fc.load(run.save(tmp_path / "run")).graph == run.graph


def test_no_folder_at_all(tmp_path):
    with pytest.raises(fc.InputError, match="is not a saved run"):
        fc.load(tmp_path / "nowhere")


def test_the_report_escapes_names_and_needs_no_network(folder):
    page = (folder / "report.html").read_text()
    assert "b<script>" not in page
    assert "b&lt;script&gt;" in page
    assert "src=" not in page
    assert "<link" not in page


def test_a_run_of_very_many_candidates_keeps_those_that_stand_out(found, tmp_path, monkeypatch):
    for module in ("store.run_folder", "graph.json_format", "report.content"):
        monkeypatch.setattr(f"forecause.{module}.MOST_SCORES", 10)
    monkeypatch.setattr("forecause.graph.json_format.KEPT_SCORES", 12)
    folder = found.save(tmp_path / "large")
    assert '"scores"' not in (folder / "graph.json").read_text()
    assert '"scores"' not in (folder / "report.html").read_text()
    again = fc.load(folder)
    pd.testing.assert_frame_equal(again.graph.edges, found.graph.edges)
    before, after = found.relevance, again.relevance
    kept = before["p_value"].values <= 0.05
    assert kept.sum() >= len(found.graph)
    for name in before.data_vars:
        values = before[name].values
        assert (after[name].values[kept] == values[kept]).all()
    left_out = after["relevance"].values == 0
    assert left_out.any()
    assert (after["p_value"].values[left_out] == 1).all()
    pd.testing.assert_frame_equal(again.forecast(3), found.forecast(3))


class TestStatistics:
    """Of very many candidates those are kept that stand out, in their places."""

    SHAPE = (2, 2, 3)

    def relevance(self, **more):
        values = np.arange(12.0).reshape(self.SHAPE) / 1000  # of the first target 0 to .005
        return labelled_together({"relevance": values, **more}, ("a", "b"))

    def kept(self, monkeypatch, most, **more):
        monkeypatch.setattr(run_folder, "MOST_SCORES", most)
        monkeypatch.setattr(run_folder, "LEAST_KEPT_SHARE", 4 / 15)  # of a target's own relevance
        return run_folder._statistics(self.relevance(**more))

    def test_few_are_kept_whole(self, monkeypatch):
        kept = self.kept(monkeypatch, 12)
        assert list(kept) == ["relevance.relevance"]
        np.testing.assert_array_equal(kept["relevance.relevance"].ravel(), np.arange(12) / 1000)

    def test_of_more_those_with_a_share_of_their_target_or_a_small_p_value(self, monkeypatch):
        kept = self.kept(monkeypatch, 11)
        assert kept["some.places"].tolist() == [4, 5]
        p_value = np.ones(self.SHAPE)
        p_value[1, 1, 0], p_value[0, 0, 1], p_value[0, 0, 2] = 0.05, 0.01, 0.051
        kept = self.kept(monkeypatch, 11, p_value=p_value)
        assert kept["some.places"].tolist() == [1, 4, 5, 9]
        assert kept["some.relevance"].tolist() == [0.001, 0.004, 0.005, 0.009]
        assert kept["some.p_value"].tolist() == [0.01, 1, 1, 0.05]
        names = ["relevance", "p_value"]
        again = run_folder._all_statistics(kept, names, self.SHAPE)
        found, p = (again[f"relevance.{name}"].ravel() for name in names)
        assert (1000 * found).tolist() == [0, 1, 0, 0, 4, 5, 0, 0, 0, 9, 0, 0]
        assert p.tolist() == [1, 0.01, *[1] * 7, 0.05, 1, 1]

    def test_a_target_without_relevance_has_no_share(self, monkeypatch):
        monkeypatch.setattr(run_folder, "MOST_SCORES", 1)
        nothing = self.relevance() * 0
        assert run_folder._statistics(nothing)["some.places"].tolist() == []

    @pytest.mark.parametrize(
        ("changed", "said"),
        [
            ({"some.places": np.array([-1, 4])}, "candidates that there are not"),
            ({"some.places": np.array([4, 12])}, "candidates that there are not"),
            ({"some.relevance": np.ones(3)}, "some.relevance is missing or has another shape"),
            ({"some.relevance": None}, "some.relevance is missing or has another shape"),
        ],
    )
    def test_what_cannot_be_is_refused(self, changed, said):
        arrays = {"some.places": np.array([0, 11]), "some.relevance": np.ones(2)}
        assert run_folder._all_statistics(arrays, ["relevance"], self.SHAPE)
        arrays = {k: v for k, v in (arrays | changed).items() if v is not None}
        with pytest.raises(fc.InputError, match=said):
            run_folder._all_statistics(arrays, ["relevance"], self.SHAPE)

    def test_more_candidates_than_can_be_held_are_refused(self):
        arrays = {"some.places": np.array([0]), "some.relevance": np.ones(1)}
        with pytest.raises(fc.InputError, match=r"20,000 variables and 5 lags is too large"):
            run_folder._all_statistics(arrays, ["relevance"], (20_000, 20_000, 5))


def test_what_is_told_of_a_long_name_or_a_long_error_is_short(tmp_path):
    short, long = tmp_path / ("x" * 20), Path("/tmp/" + "/".join(["y" * 40] * 4))
    for folder, said in ((short, str(short)), (long, f"{str(long)[:80]}...{str(long)[-70:]}")):
        with pytest.raises(fc.InputError) as caught:
            fc.load(folder)
        assert str(caught.value) == f"{said} is not a saved run: run.json is missing."
    at_border = Path("/" + "z" * 159)
    assert run_folder._named(at_border) == str(at_border)
    assert run_folder._first_line(ValueError("one.\ntwo")) == "one"
    assert run_folder._first_line(ValueError("")) == "ValueError('')"
    assert run_folder._first_line(ValueError("e" * 300)) == "e" * 300
    assert run_folder._first_line(ValueError("e" * 301)) == "e" * 297 + "..."


def test_a_graph_is_read_from_a_folder_a_page_or_a_file_whatever_its_name(found, folder, tmp_path):
    assert fc.load_graph(folder) == found.graph
    assert fc.load_graph(folder / "graph.json") == found.graph
    for name in ("page.html", "page.HTM"):
        page = tmp_path / name
        page.write_bytes((folder / "report.html").read_bytes())
        read = fc.load_graph(page)
        assert read.variables == found.graph.variables
        assert set(read.edges[["source", "target", "lag"]].itertuples(index=False)) == set(
            found.graph.edges[["source", "target", "lag"]].itertuples(index=False)
        )
    for name in ("n" * 5000, "nothing\0"):
        with pytest.raises(fc.InputError):
            fc.load_graph(name)


def test_losses_that_are_none_are_kept_as_none():
    table = pd.DataFrame({"loss": [1.0, np.nan, np.inf], "chosen": ["x", "y", "z"]})
    table.index = pd.Index(["a", "b", "c"], name="variable")
    columns = run_folder._columns(table)
    assert columns == {
        "variable": ["a", "b", "c"],
        "loss": [1.0, None, None],
        "chosen": ["x", "y", "z"],
    }
    pd.testing.assert_frame_equal(run_folder._table(columns), table.replace(np.inf, np.nan))


OPENED = []  # what is called with the path of every file that is opened, while a test wants it


def _tell(event, arguments):
    if event == "open" and OPENED:
        OPENED[0](str(arguments[0]))


sys.addaudithook(_tell)


@pytest.mark.parametrize("inside", [False, True], ids=["exchanged", "one by one"])
def test_a_run_that_is_replaced_while_it_is_read_is_never_a_mixture(tmp_path, inside, monkeypatch):
    """Another run takes the place of the folder before each opening of one of its files."""
    old, new = (
        fc.discover(chain(150, seed), max_lag=1, forecaster="linear", seed=seed) for seed in (1, 2)
    )
    target = tmp_path / "run"
    states = set()
    for at in range(1, 15):
        old.save(target, overwrite=True)
        opened = 0

        def replace_at(path, at=at):
            nonlocal opened
            if path.startswith(str(target)):
                opened += 1
                if opened == at:
                    OPENED.clear()
                    with monkeypatch.context() as patch:
                        if inside:
                            patch.setattr(files, "_can_exchange", lambda folder: False)
                        new.save(target, overwrite=True)

        OPENED.append(replace_at)
        try:
            again = fc.load(target)
        finally:
            OPENED.clear()
        whole = {1: old, 2: new}[again.config.run.seed]
        assert again.graph == whole.graph
        assert again.relevance.equals(whole.relevance)
        pd.testing.assert_frame_equal(again.forecast(2), whole.forecast(2))
        states.add(again.config.run.seed)
    assert states == {1, 2}
