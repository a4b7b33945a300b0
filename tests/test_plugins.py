"""Commands of other packages: found by their entry points, and missed with a helpful sentence."""

import sys
from importlib.metadata import EntryPoint

import pytest

from forecause.cli import main, plugins


@pytest.fixture
def call(monkeypatch, capsys):
    """Call the command with these entry points installed; gives (exit code, stdout, stderr)."""

    def run(*words, installed=()):
        monkeypatch.setattr(plugins, "entry_points", lambda group: installed)
        monkeypatch.setattr(sys, "argv", ["forecause", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0, *capsys.readouterr()

    return run


@pytest.mark.parametrize("words", [("bench", "quick"), ("bench", "--help"), ("pretrain", "out")])
def test_without_its_package_a_command_says_what_to_install(call, words):
    code, out, err = call(*words)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert f"The command '{words[0]}' is part of the package 'forecause-bench'" in err
    assert "pip install forecause-bench" in err


def test_a_command_of_a_package_is_listed_and_run(call):
    count = EntryPoint("count", "errands:count", plugins.GROUP)
    code, out, _ = call("--help", installed=[count])
    assert code == 0
    assert "count     Count from one." in out
    assert call("count", "--to", "3", installed=[count]) == (0, "1\n2\n3\n", "")


def test_a_command_that_nobody_has_is_refused(call):
    code, _, err = call("nothing")
    assert code == 2
    assert "No such command 'nothing'" in err


def test_help_without_the_package_shows_the_product_alone(call):
    code, out, _ = call("--help")
    assert code == 0
    assert "discover" in out
    assert "bench" not in out
