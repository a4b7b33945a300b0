"""Every advice is what the reader can type: parsed again as a command line and as Python."""

import ast
import inspect
import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import forecause as fc
from forecause.cli.configuring import configuration
from forecause.config import Config
from forecause.config.advice import Advice, advising_flags, hint, sentence
from forecause.data import Panel, Windows
from forecause.diagnostics.diagnose import diagnose
from forecause.forecast.selection import fit_best
from forecause.graph.lagged import LaggedGraph
from forecause.report.reproduction import commands
from report_runs import three_variables

NASTY = ["day type", "a,b", 'the "sun"', "it's", "-x", "{}"]
GIVEN = [
    Advice("max_lag", 12),
    Advice("season", (24.0, 48.0)),
    Advice("season", "auto"),
    Advice("trend", "auto"),
    Advice("difference", True),
    Advice("regimes", "auto"),
    Advice("gaps", "drop"),
    Advice("forecaster", "linear"),
    Advice("select", "top-k"),
    Advice("fdr", 0.05),
    Advice("missing", (-9999.0, 999.5)),
    Advice("missing", tuple(NASTY)),
    Advice("labels", tuple(NASTY)),
    *(Advice("time", name) for name in NASTY),
]


def from_flags(words: str, monkeypatch) -> Config:
    """What the command makes of a line, split as a shell does."""
    from forecause.cli import on_data
    from forecause.cli.commands import as_command

    heard = []

    def hear(*asked):
        heard.append(configuration(*asked))
        raise InterruptedError

    monkeypatch.setattr(on_data, "configuration", hear)
    with pytest.raises(InterruptedError):
        as_command("discover", "forecause.cli.on_data")(["data.csv", *shlex.split(words)])
    return heard[0]


class Heard:
    """Stands for the package where Python is evaluated, with its signatures; keeps the options."""

    forecasters, TopK, Config = fc.forecasters, fc.TopK, fc.Config

    @staticmethod
    def read(data, **options):
        inspect.signature(fc.read).bind(data, **options)
        return {"data": data} | options

    @staticmethod
    def discover(data, *, config=None, **options):
        inspect.signature(fc.discover).bind(data, config=config, **options)
        read = dict(data) if isinstance(data, dict) else {}
        read.pop("data", None)
        return Config.of(config, **options, **read)


def from_python(advice: str) -> Config:
    """What Python makes of an argument, or of a call of `fc.read` in place of the data."""
    call = (
        f"fc.discover({advice})"
        if advice.startswith("fc.read(")
        else f"fc.discover(data, {advice})"
    )
    return eval(call, {"fc": Heard, "data": "data.csv"})


def as_text(value):
    """The command knows cells as text, which mean the same number."""
    if isinstance(value, tuple):
        return tuple(map(as_text, value))
    return f"{value:g}" if isinstance(value, float) else value


@pytest.mark.parametrize("advice", GIVEN, ids=lambda advice: advice.flag)
def test_an_advice_means_the_same_as_a_flag_and_as_an_argument(advice, monkeypatch):
    wanted = Config(**{advice.option: advice.value})
    assert from_python(advice.argument) == wanted
    heard = from_flags(advice.flag, monkeypatch).flat()[advice.option]
    assert as_text(heard) == as_text(wanted.flat()[advice.option])


@pytest.mark.parametrize(
    "option", ["max_lag", "time", "series", "domain", "every", "rows", "season"]
)
def test_an_option_whose_value_the_reader_finds_is_python_and_a_flag(option):
    assert ast.parse(f"f({Advice(option).argument})")
    assert Advice(option).flag == f"--{option.replace('_', '-')}"


def test_a_later_look_at_a_run_is_advised_as_a_call_and_as_a_command():
    advice = Advice("latent", True, call="refine")
    assert advice.argument == "run.refine(latent=True)"
    assert advice.flag == "forecause refine RUN --latent"


def test_a_sentence_speaks_flags_while_the_command_is_at_work():
    advice = (Advice("max_lag", 8, "try {} or more"), hint("use more rows"))
    assert sentence("Too short", advice) == "Too short; try max_lag=8 or more or use more rows."
    with advising_flags():
        assert (
            sentence("Too short", advice) == "Too short; try --max-lag 8 or more or use more rows."
        )
    assert sentence("Too short", ()) == "Too short."


def test_a_name_with_braces_is_left_alone():
    advice = Advice("labels", ("{}",), "{} makes it a variable")
    assert sentence("Column '{}' holds text", (advice,)) == (
        "Column '{}' holds text; fc.read(data, labels=[\"{}\"]) makes it a variable."
    )


def test_saved_advice_comes_back():
    for advice in GIVEN:
        assert Advice.from_json(advice.to_json()) == advice


@pytest.mark.parametrize("name", NASTY)
def test_what_the_reader_of_a_table_advises_can_be_typed(name, monkeypatch):
    rng = np.random.default_rng(0)
    values = rng.normal(size=200)
    values[[20, 90]] = -9999
    weather = rng.choice(["wet", "dry"], 200)
    table = pd.DataFrame({name: weather, "v": values, "w": rng.normal(size=200)})
    changes = [change for change in Panel.of(table).changes if change.advice]
    advised = {one.option: one for change in changes for one in change.advice}
    assert advised["labels"].value == (name,)
    assert advised["missing"].value == (-9999.0,)
    for one in advised.values():
        assert from_python(one.argument) == Config(**{one.option: one.value})
        heard = from_flags(one.flag, monkeypatch).flat()[one.option]
        assert as_text(heard) == as_text(one.value)


@pytest.mark.parametrize("cell", ["bad, worse", "it's", "n. a."])
def test_an_error_advises_what_then_works(cell, monkeypatch):
    table = pd.DataFrame({"x": [*map(str, range(60)), cell], "y": range(61)})
    with pytest.raises(fc.InputError) as caught:
        Panel.of(table)
    said = str(caught.value).partition(", or say ")[2].removesuffix(".")
    assert from_python(said).data.missing == (cell,)
    with advising_flags(), pytest.raises(fc.InputError) as caught:
        Panel.of(table)
    said = str(caught.value).partition(", or say ")[2].removesuffix(".")
    missing = from_flags(said, monkeypatch).data.missing
    assert missing == (cell,)
    assert len(Panel.of(table, missing=missing).variables) == 2


def test_every_advice_of_a_diagnosis_can_be_typed(monkeypatch):
    """A table in which much is wrong at once."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(400, 6))
    values[:, 1] = values[:, 0] + 0.01 * values[:, 1]
    values[9:, 2] += 0.9 * values[:-9, 3]
    values[:, 4] = np.cumsum(values[:, 4])
    values[1:200, 5] += 0.9 * values[:199, 3]
    values[200:, 5] -= 0.9 * values[199:-1, 3]
    config = Config(max_lag=2, forecaster="linear", season="none", trend="none")
    windows = Windows.of(Panel.from_arrays([values], list("abcdef")), 2)
    graph = LaggedGraph.from_edges(list("abcdef"), 2, [])
    findings = diagnose(windows, fit_best(windows, config.forecasting), graph, config)
    kinds = {finding.kind for finding in findings}
    assert kinds >= {"near-duplicates", "short-window", "changing-effects", "wandering"}
    advised = [one for finding in findings for one in finding.advice if one.option]
    assert len(advised) > 5
    for one in advised:
        if one.call == "discover" and one.value is not None:
            assert from_python(one.argument) == Config(**{one.option: one.value})
            heard = from_flags(one.flag, monkeypatch).flat()[one.option]
            assert as_text(heard) == as_text(Config(**{one.option: one.value}).flat()[one.option])


@pytest.mark.parametrize(
    "options",
    [
        {"season": [24, 48]},
        {"labels": NASTY, "missing": [-9999.0, 999.0], "time": "the time"},
        {"forecaster": fc.forecasters.MLP(hidden=8), "fdr": 0.1},
        {"forbid": ["a b -> c", "x <- *"], "select": fc.TopK(2)},
    ],
)
def test_the_lines_of_the_page_make_the_run_again(options, monkeypatch):
    config = Config(max_lag=4, **options)
    run = replace(three_variables(), config=config, evidence={})
    lines = commands(run)
    assert eval(lines["python"], {"fc": Heard}) == config
    words = lines["command"].removeprefix("forecause discover DATA ")
    heard, wanted = from_flags(words, monkeypatch).flat(), config.flat()
    assert {name: as_text(v) for name, v in heard.items()} == {
        name: as_text(v) for name, v in wanted.items()
    }
