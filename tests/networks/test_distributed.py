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
from forecause.networks import settings as network_settings
from forecause.networks.distributed import Ranks
from systems import bent_chain

LOCAL = Path(ranks_script.__file__).parent


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """Two processes on the loopback interface, their output and the folder they wrote to."""
    folder = tmp_path_factory.mktemp("together")
    (folder / "good").mkdir()
    table().to_csv(folder / "good" / "d.csv", index=False)
    (folder / "bad.csv").write_text("a,a\n" + "1,2\n" * 50)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    process = subprocess.run(
        [*torchrun, "--nproc_per_node", "2", LOCAL / "ranks_script.py", folder],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    return process, folder


def table():
    return pd.DataFrame(bent_chain(), columns=list("abc"))


def test_two_processes_find_the_graph_of_one_and_write_it_once(ended, monkeypatch):
    process, folder = ended
    monkeypatch.setattr(network_settings, "QUICK_STEPS", ranks_script.QUICK_STEPS)
    assert process.stdout.count("report.html") == 1
    assert [(folder / f"code {rank}.txt").read_text() for rank in (0, 1)] == ["0", "0"]
    assert sorted(path.name for path in (folder / "good").iterdir()) == ["d.csv", "run"]
    found = fc.load(folder / "good" / "run")
    alone = fc.discover(table(), 2, forecaster="mlp", preset="quick")
    keys = ["source", "target", "lag"]
    pd.testing.assert_frame_equal(found.graph.edges[keys], alone.graph.edges[keys])
    # float32: the rounding of a gradient grows from step to step, as it does in one process
    assert found.scores.values == pytest.approx(alone.scores.values, rel=0.01, abs=1e-3)
    losses = [run.losses["mlp"].to_numpy() for run in (found, alone)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_training_is_that_of_one_process(ended):
    _, folder = ended
    first, second = (torch.load(folder / f"weights {rank}.pt") for rank in (0, 1))
    for kind, weights in ranks_script.all_trained().items():
        for name, values in weights.items():
            torch.testing.assert_close(first[kind][name], values, rtol=1e-7, atol=1e-9)
            assert torch.equal(first[kind][name], second[kind][name])


def test_a_mistake_is_one_sentence_from_both(ended):
    process, folder = ended
    for rank in (0, 1):
        assert (folder / f"error {rank}.txt").read_text() == "only rank 1 knows"
    assert process.returncode != 0
    assert process.stderr.count("forecause: ") == 1
    assert "'a'" in process.stderr
    assert "exitcode  : 2" in process.stderr


def test_the_shares_of_a_batch_are_the_batch():
    batch = torch.arange(7).numpy()
    shares = [Ranks(rank, 3).share(batch) for rank in range(3)]
    assert sorted(len(share) for share in shares) == [2, 2, 3]
    assert sorted(window for share in shares for window in share) == list(range(7))
