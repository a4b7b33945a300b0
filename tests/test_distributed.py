"""torchrun with two processes: the graph of one, written once; a failure of one ends both."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch

import forecause as fc
import ranks_script
from forecause.forecast.distributed import Ranks

HERE = Path(__file__).parent


def torchrun(*command):
    """Two processes on the loopback interface; gives (exit code, stdout, stderr)."""
    together = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    ended = subprocess.run(
        [*together, "--nproc_per_node", "2", *map(str, command)],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_two_processes_find_the_graph_of_one_and_write_it_once(tmp_path):
    table = pd.DataFrame(ranks_script.bent_chain(), columns=list("abc"))
    table.to_csv(tmp_path / "d.csv", index=False)
    words = ["discover", tmp_path / "d.csv", "--max-lag", 2, "--forecaster", "mlp"]
    code, out, err = torchrun(
        "-m", "forecause", *words, "--preset", "quick", "--out", tmp_path / "run", "--quiet"
    )
    assert (code, err) == (0, "")
    assert out.count("report.html") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.csv", "run"]
    found = fc.load(tmp_path / "run")
    alone = fc.discover(table, 2, forecaster="mlp", preset="quick")
    keys = ["source", "target", "lag"]
    pd.testing.assert_frame_equal(found.graph.edges[keys], alone.graph.edges[keys])
    # float32: the rounding of a gradient grows from step to step, as it does in one process
    assert found.scores.values == pytest.approx(alone.scores.values, rel=0.01, abs=1e-3)
    losses = [run.losses["mlp"].to_numpy() for run in (found, alone)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_training_is_that_of_one_process_and_a_mistake_is_one_sentence_from_both(tmp_path):
    (tmp_path / "bad.csv").write_text("a,b\n" + "1,2\n" * 50)
    code, out, err = torchrun(HERE / "ranks_script.py", tmp_path)
    first, second = (torch.load(tmp_path / f"weights {rank}.pt") for rank in (0, 1))
    for kind, weights in ranks_script.all_trained().items():
        for name, values in weights.items():
            torch.testing.assert_close(first[kind][name], values, rtol=1e-7, atol=1e-9)
            assert torch.equal(first[kind][name], second[kind][name])
    for rank in (0, 1):
        assert (tmp_path / f"error {rank}.txt").read_text() == "only rank 1 knows"
    assert (code != 0, out) == (True, "")
    assert err.count("forecause: Column 'a' is constant") == 1
    assert "exitcode  : 2" in err


def test_the_shares_of_a_batch_are_the_batch():
    batch = torch.arange(7).numpy()
    shares = [Ranks(rank, 3).share(batch) for rank in range(3)]
    assert sorted(len(share) for share in shares) == [2, 2, 3]
    assert sorted(window for share in shares for window in share) == list(range(7))
