"""The memory benchmark: the same system in both formats, and figures from a process of its own."""

from pathlib import Path

import numpy as np
import pytest

from forecause.data import Panel
from forecause_bench.memory import Watch, edges_of, measure, write_system


def test_both_formats_hold_the_same_system(tmp_path, monkeypatch):
    monkeypatch.setattr("forecause_bench.memory.PIECE", 70)
    files = [tmp_path / "system.npy", tmp_path / "system.parquet"]
    graphs = [write_system(path, rows=300, variables=4, max_lag=2) for path in files]
    one, other = (Panel.of(path) for path in files)
    assert one.values.shape == (300, 4)
    assert one.values.dtype == np.float32
    np.testing.assert_array_equal(one.values, other.values)
    assert edges_of(graphs[0]) == edges_of(graphs[1])
    assert other.variables == graphs[1].variables


def test_a_stage_lasts_until_another_begins_and_may_come_again(monkeypatch):
    monkeypatch.setattr("forecause_bench.memory.status", lambda _: 5)
    clock = iter([0.0, 1.0, 4.0, 6.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    watch = Watch()
    for stage in ("fitting", "fitting", "tests", "fitting"):
        watch.step(stage, 0.0)
    assert watch.seconds == {"starting": 1.0, "fitting": 3.0, "tests": 2.0}
    assert watch.anonymous == {"starting": 5, "fitting": 5, "tests": 5}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_discovery_is_watched_in_its_own_process(tmp_path):
    path = tmp_path / "system.npy"
    truth = write_system(path, rows=2000, variables=3, max_lag=2)
    figures = measure(path, "linear", 2)
    assert {tuple(edge) for edge in figures["edges"]} >= {tuple(edge) for edge in edges_of(truth)}
    assert {"starting", "fitting the linear model", "saving"} <= set(figures["seconds"])
    assert figures["seconds"].keys() == figures["anonymous"].keys()
    assert max(figures["anonymous"].values()) <= figures["resident"]
    assert [file.name for file in tmp_path.iterdir()] == ["system.npy"]
