"""The lines that people and their assistants copy first: each of them runs."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

import forecause as fc
from forecause.cli import app

HERE = Path(__file__).parent.parent


def python_of(name: str) -> str:
    (found,) = re.findall(r"```python\n(.*?)```", (HERE / name).read_text("utf-8"), re.DOTALL)
    return found


@pytest.mark.parametrize("name", ["README.md", "llms.txt"])
def test_the_lines_run_as_they_stand(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rename = {"X1": "X1"} if name == "README.md" else {"X1": "x0", "X2": "x1"}
    table = fc.simulate(nodes=4, max_lag=2, rows=400, seed=1).frame().rename(columns=rename)
    table.assign(comment="-").to_csv("data.csv", index=False)
    lines = python_of(name).replace("max_lag=5)", 'max_lag=2, forecaster="linear")')  # in seconds
    exec(compile(lines, name, "exec"), {})
    assert Path("report.html").is_file()


PAGES = sorted(
    str(page.relative_to(HERE))
    for page in [*HERE.glob("*.md"), *HERE.glob("docs/*/*.md"), HERE / "docs/index.md"]
)
BLOCKS = {
    f"{page}:{place}": block
    for page in PAGES
    if page != "README.md"
    for place, block in enumerate(
        re.findall(r"```python\n(.*?)```", (HERE / page).read_text("utf-8"), re.DOTALL), 1
    )
}


def hourly(rows=600):
    """Three metrics of every hour, one of which follows another; the first has a daily cycle."""
    x = np.random.default_rng(0).normal(size=(rows, 3))
    x[1:, 1] += 0.8 * x[:-1, 0]
    x[:, 0] += 2 * np.sin(2 * np.pi * np.arange(rows) / 24)
    hours = pd.date_range("2024-01-01", periods=rows, freq="h")
    return pd.DataFrame(x, columns=["load", "latency", "errors"]).assign(time=hours)


@pytest.mark.filterwarnings("ignore::forecause.ForecauseWarning")
@pytest.mark.parametrize("name", BLOCKS)
def test_lines_on_a_page_that_the_site_does_not_run_do_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = hourly()
    table.to_csv("hourly.csv", index=False)
    for folder in ("RUN", "OTHER"):
        fc.discover(table, max_lag=2, forecaster="linear").save(folder)
    deploy = np.random.default_rng(1).integers(0, 2, len(table)).astype(float)
    exec(compile(BLOCKS[name], name, "exec"), {"fc": fc, "table": table.assign(deploy=deploy)})


@pytest.mark.parametrize("page", ["llms.txt", *PAGES])
def test_commands_that_a_page_names_exist_with_their_flags(page):
    text = (HERE / page).read_text("utf-8")
    called = re.findall(r"`forecause (\w+)([^`]*)`", text)
    called += re.findall(r"^(?:\.venv/bin/)?forecause (\w+)([^#\n]*)", text, re.MULTILINE)
    group = typer.main.get_command(app)
    known = group.list_commands(typer.Context(group))
    for command, rest in called:
        assert command in known
        options = group.get_command(typer.Context(group), command).params
        flags = {flag for option in options for flag in option.opts} | {"--help"}
        assert set(re.findall(r"(?<![\w-])--[a-z-]+", rest)) <= flags, (command, rest)


def test_the_files_that_are_named_exist():
    text = (HERE / "llms.txt").read_text("utf-8")
    for path in re.findall(r"\]\(([^)]+)\)", text):
        assert (HERE / path).exists(), path
