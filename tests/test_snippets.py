"""The lines that people and their assistants copy first: each of them runs."""

import re
from pathlib import Path

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


def test_the_commands_and_flags_of_the_assistants_page_exist():
    text = (HERE / "llms.txt").read_text("utf-8")
    group = typer.main.get_command(app)
    known = group.list_commands(typer.Context(group))
    called = re.findall(r"`forecause (\w+)([^`]*)`", text)
    assert called
    for command, rest in called:
        assert command in known
        options = group.get_command(typer.Context(group), command).params
        flags = {flag for option in options for flag in option.opts} | {"--help"}
        assert set(re.findall(r"--[a-z-]+", rest)) <= flags


def test_the_files_that_are_named_exist():
    text = (HERE / "llms.txt").read_text("utf-8")
    for path in re.findall(r"\]\(([^)]+)\)", text):
        assert (HERE / path).exists(), path
