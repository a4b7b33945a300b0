"""A short form of `make soak`: malformed inputs and interruptions, drawn from fixed seeds."""

import signal
import warnings

import pytest

import soak.__main__
from soak.__main__ import Hung, interruptions, loads_beside_writers, malformed
from soak.inputs import Inputs


@pytest.fixture(autouse=True)
def _in_ten_minutes(monkeypatch):
    """The long form asks for one; here a busy machine is no failure."""
    monkeypatch.setattr(soak.__main__, "HANG", 600)

    def hung(*_):
        raise Hung

    before = signal.signal(signal.SIGALRM, hung)
    yield
    signal.signal(signal.SIGALRM, before)


def test_malformed_inputs_end_in_one_sentence(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pandas, about its guesses
        counts, wrong = malformed(Inputs(tmp_path, seed=1), 150)
    assert wrong == []
    assert sum(counts.values()) == 150


def test_an_interrupted_save_leaves_the_old_or_the_new_run(tmp_path):
    counts, wrong = interruptions(tmp_path, 15, step=20)
    assert wrong == []
    states = {state for _, state in counts}
    assert states == {"old", "new"}


def test_a_load_beside_writers_is_one_of_their_runs(tmp_path):
    counts, wrong = loads_beside_writers(tmp_path, 20)
    assert wrong == []
    assert counts["load", "whole"] > 0
