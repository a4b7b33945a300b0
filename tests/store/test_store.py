import json
import shutil
import sys

import pandas as pd
import pytest

import forecause as fc
from forecause.common import files
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
