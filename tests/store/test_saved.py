"""What is saved has a schema: a damaged value is named on load, not met later."""

import json
import shutil

import pandas as pd
import pytest
from safetensors.torch import load_file, save_file

import forecause as fc
from systems import chain


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    table = pd.DataFrame(chain(300), columns=list("abc"))
    run = fc.discover(table, max_lag=2, forecaster="linear").with_power(repeats=1)
    return run.save(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture
def change(whole, tmp_path):
    """A copy of the run with one value changed, and its hashes taken out unless asked for."""
    folder = tmp_path / "run"
    folder.mkdir()
    for file in whole.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())

    def changed(name, edit, hashes=False):
        for file, apply in ((name, edit), ("run.json", lambda c: hashes or c.update(files={}))):
            content = json.loads((folder / file).read_text())
            apply(content)
            (folder / file).write_text(json.dumps(content))
        return folder

    return changed


@pytest.mark.parametrize(
    ("name", "edit", "sentence"),
    [
        ("run.json", lambda c: c["losses"]["chosen"].__setitem__(0, "x"), "losses.chosen is 'x'"),
        ("run.json", lambda c: c["losses"].pop("naive"), "losses has no column 'naive'"),
        ("run.json", lambda c: c["losses"]["naive"].pop(), "one row per variable"),
        ("run.json", lambda c: c["data"].update(rows=-1), "data.rows"),
        ("run.json", lambda c: c["data"]["series_names"].append("z"), "data.latest must have"),
        ("run.json", lambda c: c["data"]["variables"].reverse(), "one row per variable"),
        ("run.json", lambda c: c["relevance"].update(names=[]), "'relevance' is missing"),
        ("report.json", lambda c: c["edges"][0].pop("response"), "edges.0.response"),
        ("report.json", lambda c: c["edges"][0].update(lost="x"), "edges.0.lost"),
        ("report.json", lambda c: c["edges"][0].update(lost=float("nan")), "NaN is no JSON number"),
        ("report.json", lambda c: c["edges"][0].update(edge=[0, 9, 1]), "there is no edge"),
        ("report.json", lambda c: c["stretch"]["forecast"].pop(), "a curve per variable"),
        ("power.json", lambda c: c.update(clipped="x"), "clipped"),
        ("power.json", lambda c: c.update(strengths=[]), "strengths"),
        ("graph.json", lambda c: c.update(variables=["a", "b", "d"]), "graph.json"),
        ("graph.json", lambda c: c["edges"][0].update(sign_consistency="x"), "sign_consistency of"),
        ("graph.json", lambda c: c["edges"][0].update(change_high="x"), "change_high of an edge"),
        ("graph.json", lambda c: c["edges"][0].update(mark=3), "mark of an edge must be text"),
        ("run.json", lambda c: c["data"].update(source={"paths": [3]}), "source.paths"),
        ("run.json", lambda c: c["data"].update(source={"paths": ["x"], "y": 1}), "setting y=1"),
        ("run.json", lambda c: c["data"].update(source=[float("nan")]), "NaN is no JSON number"),
        ("run.json", lambda c: c["data"].update(domain_windows={"x": 9}), "latest_domain names"),
        ("run.json", lambda c: c["forecaster"]["settings"].update(domains=2), "is damaged"),
        ("report.json", lambda c: c["time"].update(kind="moons"), "time.kind"),
        ("report.json", lambda c: c["edges"][0]["response"]["y"].append("9"), "edges.0.response.y"),
        ("run.json", lambda c: c["data"].update(rows="300"), "data.rows"),
        ("run.json", lambda c: c["data"].update(windows=True), "data.windows"),
        ("power.json", lambda c: c["strengths"][1].update(found=10**60), "strengths.1.found"),
        ("run.json", lambda c: c["data"].update(windows=10**400), "data.windows"),
        ("report.json", lambda c: c["time"].update(kind="dates", step=1e308), "time.step"),
        ("report.json", lambda c: c["time"].update(kind="numbers", ends=["x"]), "no numbers"),
        ("report.json", lambda c: c["time"].update(kind="numbers", ends=[1, 2]), "per series"),
    ],
)
def test_a_damaged_value_is_named_on_load(change, name, edit, sentence):
    with pytest.raises(fc.InputError, match=sentence) as caught:
        fc.load(change(name, edit))
    assert f"written by forecause {fc.__version__}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_tensor_of_another_shape_is_named_on_load(change):
    folder = change("run.json", lambda _: None)
    tensors = load_file(folder / "model.safetensors")
    tensors["data.latest"] = tensors["data.latest"][:, :1].contiguous()
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(fc.InputError, match=r"data.latest must have the shape \(1, 2, 3\)"):
        fc.load(folder)


@pytest.mark.parametrize(
    ("name", "edit", "sentence"),
    [
        ("spread", lambda values: values.reshape(-1), "outlook.spread must have the shape"),
        ("origins", lambda values: values[:-1], "outlook.origins must have the shape"),
        ("origins", lambda values: -values, "outlook.origins must not be negative"),
        ("paths", lambda values: values[:, :0], "outlook.paths is no forecast"),
        ("paths", lambda values: values[:, :, :2], "outlook.paths must have the shape"),
        ("share", lambda values: values * 0 + 7, "is no forecast"),
        ("share", lambda values: None, "the outlook is not whole"),
    ],
)
def test_a_damaged_outlook_is_named_on_load(change, name, edit, sentence):
    folder = change("run.json", lambda _: None)
    tensors = load_file(folder / "model.safetensors")
    edited = edit(tensors.pop(f"outlook.{name}"))
    if edited is not None:
        tensors[f"outlook.{name}"] = edited.contiguous()
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(fc.InputError, match=sentence):
        fc.load(folder)


@pytest.mark.parametrize("name", ["graph.json", "report.json", "power.json"])
def test_a_file_of_another_run_is_refused(change, name):
    folder = change(name, lambda content: content.update(note="from elsewhere"), hashes=True)
    with pytest.raises(fc.InputError, match=f"{name} does not belong to this run.json"):
        fc.load(folder)


def test_a_run_without_evidence_has_a_shorter_page(change, tmp_path):
    folder = change("run.json", lambda _: None)
    (folder / "report.json").unlink()
    (folder / "power.json").unlink()
    assert fc.load(folder).report(tmp_path / "page.html").exists()


@pytest.fixture(scope="module")
def with_regimes(tmp_path_factory):
    hours = pd.date_range("2024-01-01", periods=300, freq="h")
    table = pd.DataFrame(chain(300), columns=list("abc"), index=hours)
    table["mood"] = ["good", "bad", "none"] * 100
    read = fc.read(table, labels=["mood"])
    found = fc.discover(read, max_lag=1, forecaster="linear", regimes=2)
    return found.save(tmp_path_factory.mktemp("runs") / "run")


def _set(*path, value):
    def edit(content):
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value

    return edit


@pytest.mark.parametrize(
    "edit",
    [
        _set("regimes", "changes", "row", value=[None]),
        _set("regimes", "changes", "row", value=[{"a": float("nan")}]),
        _set("regimes", "changes", "row", value=[1, 2, 3]),
        _set("regimes", "changes", "certainty", value=["x"]),
        _set("regimes", "changes", value={}),
        _set("data", "rows", value=10**12),
        _set("data", "labels", 0, "first", value=1),
        _set("data", "labels", 0, "name", value="z"),
        _set("data", "sample_domain", value=[]),
        _set("data", "latest_domain", value=[]),
        _set("forecaster", "settings", "labels", 0, "shares", value=[2.0, -1.0, 0.0]),
        _set("forecaster", "settings", "labels", 0, "shares", value=[float("nan"), 0.5, 0.5]),
        _set("forecaster", "settings", "labels", 0, "shares", value=[]),
        _set("forecaster", "settings", "labels", 0, "first", value=0),
        _set("forecaster", "settings", "domains", value=7),
    ],
)
def test_inner_fields_of_regimes_labels_and_domains_are_checked(with_regimes, tmp_path, edit):
    folder = tmp_path / "run"
    shutil.copytree(with_regimes, folder)
    content = json.loads((folder / "run.json").read_text())
    edit(content)
    (folder / "run.json").write_text(json.dumps(content))
    with pytest.raises(fc.InputError, match="is damaged"):
        fc.load(folder)


def test_a_summary_without_a_p_value_can_be_saved_again(change, tmp_path):
    folder = change("graph.json", lambda c: c["summary"][0].update(p=None, q="Infinity"))
    fc.load(folder).save(tmp_path / "again")
    assert fc.load(tmp_path / "again").summary["p"].isna()[0]


@pytest.mark.parametrize(
    "edit",
    [
        lambda c: c["causal"]["losses"]["dense"].__setitem__(0, "Infinity"),
        lambda c: c["causal"]["outlook"]["errors"]["model"].__setitem__(0, "Infinity"),
        lambda c: c["settings"]["thresholds"]["grades"].update(intercept="Infinity"),
    ],
)
def test_a_number_that_is_spelled_is_refused(change, edit):
    with pytest.raises(fc.InputError, match=r"finite|must hold numbers"):
        fc.load(change("run.json", edit))
