"""The same advice as arguments and as flags."""

import pandas as pd
import pytest
from typer.testing import CliRunner

import forecause as fc
from forecause.cli import app
from forecause.voice import speaking_flags, spoken


@pytest.mark.parametrize(
    ("flags", "arguments"),
    [
        ("try --max-lag 12.", "try max_lag=12."),
        ("let --trend auto take it out", 'let trend="auto" take it out'),
        ("say --missing -9999.", "say missing=[-9999]."),
        ("say --missing bad.", 'say missing=["bad"].'),
        ("--labels weather makes it a variable.", 'labels=["weather"] makes it a variable.'),
        ("if it is the time, say --time date.", 'if it is the time, say time="date".'),
        ("name it with --time.", "name it with time=."),
        ("try --difference, more rows", "try difference=True, more rows"),
        ("find regimes with --regimes auto or name them with --domain.",
         'find regimes with regimes="auto" or name them with domain=.'),
        ("series apart with --series, or give one", "series apart with series=, or give one"),
        ("Look closer with forecause refine --instantaneous or --latent, or add",
         "Look closer with run.refine(instantaneous=True) or run.refine(latent=True), or add"),
    ],
)  # fmt: skip
def test_advice_is_given_in_the_readers_language(flags, arguments):
    assert spoken(flags) == arguments
    with speaking_flags():
        assert spoken(flags) == flags


def test_python_errors_speak_python_and_the_commands_speak_flags(tmp_path):
    table = pd.DataFrame({"x": [*map(str, range(60)), "bad"], "y": range(61)})
    with pytest.raises(fc.InputError) as caught:
        fc.discover(table, 1, forecaster="linear")
    assert 'missing=["bad"]' in str(caught.value)
    table.to_csv(tmp_path / "t.csv", index=False)
    done = CliRunner().invoke(app, ["discover", str(tmp_path / "t.csv"), "--max-lag", "1", "-q"])
    assert "--missing bad" in str(done.exception)
