"""What each process of the torchrun test does, given a folder: train in float64, fail on rank 1
alone, and call the command, first with a good file and then with a wrong one."""

import contextlib
import io
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from forecause import cli
from forecause.data import Panel, Windows
from forecause.errors import InputError
from forecause.forecast.forecaster import FitData
from forecause.networks import settings as network_settings
from forecause.networks.distributed import joined
from forecause.networks.mlp_and_cnn import MLPModel
from forecause.networks.settings import MLP, TrainingSettings, Transformer
from forecause.networks.training import train
from forecause.networks.transformer import TransformerModel
from systems import bent_chain

QUICK_STEPS = 100  # of the network that two processes train together, and one alone


def in_float64(kind):
    """A forecaster whose rounding errors are too small to grow into something."""

    class Double(kind):
        def forward(self, past, *rules, **domain):
            return super().forward(past.double(), *rules, **domain)

        def loss(self, window):
            return super().loss(doubled(window))

        def errors(self, window):
            return super().errors(doubled(window))

    return Double


def doubled(window):
    return replace(window, past=window.past.double(), target=window.target.double())


def trained(kind, settings, batch_size, raced=False):
    windows = Windows.of(Panel.from_arrays([bent_chain()], list("abc")), 2)
    early, late = windows.split(0.2)
    torch.manual_seed(0)
    model = in_float64(kind)(windows.shape, settings).double()
    quick = TrainingSettings(
        batch_size=batch_size, max_steps=60, look_every=20, patience=1, clip=0.5
    )
    rival = (lambda watched: np.full((len(watched), 3), 0.9)) if raced else None
    train(model, FitData(early, late, to_beat=rival), quick)
    return model.state_dict()


def all_trained():
    """Batches that do not divide by two, one of a single window, and a rival to beat."""
    return {
        "mlp": trained(MLPModel, MLP(), 33),
        "transformer": trained(TransformerModel, Transformer(width=8), 64, raced=True),
        "single": trained(MLPModel, MLP(hidden=4), 1),
    }


def main(folder):
    with joined() as ranks:
        assert ranks.same(f"measured by {ranks.rank}", "measuring") == "measured by 0"
        torch.save(all_trained(), folder / f"weights {ranks.rank}.pt")
    try:
        with joined() as ranks:
            if ranks.rank == 1:
                raise InputError("only rank 1 knows")
            trained(MLPModel, MLP(), 32)  # where rank 0 would wait for rank 1 for ever
    except InputError as error:
        (folder / f"error {ranks.rank}.txt").write_text(str(error))
    discover_well(folder, ranks.rank)
    call("discover", folder / "bad.csv")


def discover_well(folder, rank):
    """Leave the exit code and what was said as errors beside the run."""
    network_settings.QUICK_STEPS = QUICK_STEPS
    asked = ["--max-lag", "2", "--forecaster", "mlp", "--preset", "quick"]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            call("discover", folder / "good" / "d.csv", *asked, "--out", folder / "good" / "run")
        except SystemExit as ended:
            (folder / f"code {rank}.txt").write_text(f"{ended.code or 0}{said.getvalue()}")


def call(*words):
    sys.argv = ["forecause", *map(str, words), "--quiet"]
    cli.main()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
