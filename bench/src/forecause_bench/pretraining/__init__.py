"""Pretraining: one transformer learns from many simulated systems to forecast a new one."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from forecause.common.files import write_whole
from forecause.config import Settings
from forecause.errors import InputError
from forecause.networks.pretrained.context import MOST_WINDOWS_TOLD, Context
from forecause.networks.pretrained.network import (
    WEIGHTS,
    ContextNetwork,
    Equations,
    read_whole,
    save_network,
    save_whole,
)
from forecause.networks.settings import ContextSettings
from forecause.progress import QUIET, Progress
from forecause_bench.pretraining.systems import (
    FIRST_SEED,
    SEEDS,
    draw_shape,
    draw_systems,
    windows_of,
)

CHECKPOINT, RECORD = "checkpoint.safetensors", "pretraining.json"
CHECKPOINT_FORMAT = "forecause.pretraining/1"
SAVE_EVERY = 60.0  # seconds
LEAST_CONTEXT = 40  # windows
LEAST_ASKED = 400  # windows to be forecast of each system
WARMUP = 50  # steps
NAMELESS = 0.25  # share of the systems whose variables are not told apart by node vectors
CHECKED = (100, 200, 500, 1500)  # windows of context in the final check
CHECKED_SHAPES = ((3, 5), (5, 5), (4, 3), (5, 10))  # (max_lag, variables); see `check`
CHECKED_SYSTEMS = 8  # of each shape
CHECK_SEED = 900_000  # neither of pretraining nor of a benchmark


class PretrainSettings(Settings):
    """What decides the weights, besides how long it is trained."""

    variables: int = Field(default=10, ge=2)  # of the largest system
    max_lag: int = Field(default=5, ge=1)
    seed: int = Field(default=0, ge=0)
    systems: int = Field(default=16, ge=1)  # simulated for a round, all of one shape
    repeats: int = Field(default=8, ge=1)  # steps of a round, each with other contexts
    learning_rate: float = Field(default=3e-3, gt=0)
    network: ContextSettings = ContextSettings()


@dataclass
class Pretraining:
    """How far a pretraining has come."""

    rounds: int = 0
    seconds: float = 0.0


def pretrain(
    out: str | Path,
    *,
    minutes: float = 30.0,
    rounds: int | None = None,
    progress: Progress = QUIET,
    **settings: Any,
) -> dict[str, Any]:
    """Train a network for so many minutes and write it into the folder `out`; its record.

    A run that was stopped continues where it was. With `rounds` their number decides when to end,
    not the time, and the same seed gives the same weights. Further settings are the fields of
    PretrainSettings, by name.
    """
    chosen = PretrainSettings.checked(**settings)
    if minutes <= 0 or (rounds is not None and rounds < 1):
        raise InputError("Pretraining needs more than 0 minutes, or at least 1 round.")
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; give a folder to write the weights in.")
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(chosen, folder)
    saved = time.monotonic()
    while (share := _share(run.done, minutes, rounds)) < 1:
        progress.step("pretraining on simulated systems", share)
        start = time.monotonic()
        run.round(share)
        run.done.rounds += 1
        run.done.seconds += time.monotonic() - start
        if time.monotonic() - saved > SAVE_EVERY:
            run.save()
            saved = time.monotonic()
    run.save()
    progress.step("checking on other systems", 0.0)
    record = run.record() | {"check": check(run.network)}
    write_whole(folder / RECORD, (json.dumps(record, indent=2) + "\n").encode())
    return record


class Run:
    """The network, its optimiser and how far they are; everything else follows from the round."""

    def __init__(self, settings: PretrainSettings, folder: Path) -> None:
        self.settings, self.folder, self.done = settings, folder, Pretraining()
        self.network = _seeded_network(settings.network, settings.seed)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=settings.learning_rate)
        if (folder / CHECKPOINT).exists():
            self._resume()

    def round(self, share: float) -> None:
        """Simulate some systems of one shape and learn from them, `share` of the way through."""
        asked, place = self.settings, self.done.rounds
        rng = np.random.default_rng([asked.seed, place])
        shape = draw_shape(asked.max_lag, asked.variables, rng)
        first = FIRST_SEED + asked.seed * SEEDS + place * asked.systems
        window = windows_of(draw_systems(asked.systems, shape, first, rng), shape[0])
        for step in range(place * asked.repeats, (place + 1) * asked.repeats):
            rate = asked.learning_rate * min(1.0, (step + 1) / WARMUP)
            self.optimiser.param_groups[0]["lr"] = rate * (0.51 + 0.49 * math.cos(math.pi * share))
            self.optimiser.zero_grad()
            self._loss(window, rng).backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            self.optimiser.step()

    def _loss(self, window: Tensor, rng: np.random.Generator) -> Tensor:
        """Mean log of the forecast error, the same stretch of every system being the context.

        The windows that share rows with the context are not forecast.
        """
        systems, windows, steps, variables = window.shape
        most = min(MOST_WINDOWS_TOLD, windows - LEAST_ASKED)
        count = round(math.exp(rng.uniform(math.log(LEAST_CONTEXT), math.log(most))))
        start = int(rng.integers(0, windows - LEAST_ASKED - count + 1))
        asked = torch.cat(
            [window[:, : max(0, start - steps)], window[:, start + count + steps :]], 1
        )
        node = _node_vectors(systems, variables, self.settings.network, rng)
        node *= torch.from_numpy(rng.random((systems, 1, 1)) >= NAMELESS)
        equations = self.network(Context.of(window[:, start : start + count]), node)
        return _errors(equations.forecast(asked[:, :, :-1]), asked).log().mean()

    def save(self) -> None:
        """Write the weights, and what is needed to continue."""
        save_network(self.network, self.folder / WEIGHTS, self.record())
        tensors = {f"network.{k}": v for k, v in self.network.state_dict().items()}
        for place, state in self.optimiser.state_dict()["state"].items():
            tensors |= {f"optimiser.{place}.{name}": value for name, value in state.items()}
        about = {"format": CHECKPOINT_FORMAT, "record": json.dumps(self.record())}
        save_whole(tensors, self.folder / CHECKPOINT, about)

    def record(self) -> dict[str, Any]:
        """Settings, how many systems were seen and how long it took."""
        return {
            "settings": self.settings.model_dump(mode="json"),
            "rounds": self.done.rounds,
            "systems": self.done.rounds * self.settings.systems,
            "steps": self.done.rounds * self.settings.repeats,
            "seconds": round(self.done.seconds, 1),
        }

    def _resume(self) -> None:
        path = self.folder / CHECKPOINT
        tensors, about = read_whole(path, CHECKPOINT_FORMAT, "a checkpoint of forecause pretrain")
        record = json.loads(about["record"])
        if record["settings"] != self.settings.model_dump(mode="json"):
            raise InputError(
                f"{self.folder} holds a pretraining with other settings; give another folder, or "
                "the same settings to continue it."
            )
        weights = {k.removeprefix("network."): v for k, v in tensors.items() if k[:8] == "network."}
        self.network.load_state_dict(weights)
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("optimiser."):
                _, place, what = name.split(".")
                state.setdefault(int(place), {})[what] = value
        groups = self.optimiser.state_dict()["param_groups"]
        self.optimiser.load_state_dict({"state": state, "param_groups": groups})
        self.done = Pretraining(record["rounds"], record["seconds"])


@torch.no_grad()
def check(network: ContextNetwork) -> dict[str, dict[str, float]]:
    """Forecast error on systems it never saw, as a share of the variance, by windows of context.

    Beside it, that of a VAR by least squares, and of the most shrunken linear solution that the
    network gets to see, both of the same windows.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for place, shape in enumerate(CHECKED_SHAPES):
        rng = np.random.default_rng([CHECK_SEED, place])
        series = draw_systems(CHECKED_SYSTEMS, shape, CHECK_SEED + place * CHECKED_SYSTEMS, rng)
        window = windows_of(series, shape[0])
        node = _node_vectors(CHECKED_SYSTEMS, shape[1], network.settings, rng)
        asked = window[:, MOST_WINDOWS_TOLD + shape[0] :]
        for count in CHECKED:
            context = Context.of(window[:, :count])
            rivals = {
                "network": network(context, node).forecast(asked[:, :, :-1]),
                "ridge": _ridge(context).forecast(asked[:, :, :-1]),
                "var": _var(window[:, :count], asked),
            }
            unit = asked[:, :, -1].var(1)
            for name, forecast in rivals.items():
                share = float((_errors(forecast, asked) / unit).mean())
                found.setdefault(str(count), {}).setdefault(name, []).append(share)
    return {
        count: {name: round(float(np.mean(shares)), 4) for name, shares in rivals.items()}
        for count, rivals in found.items()
    }


def _seeded_network(settings: ContextSettings, seed: int) -> ContextNetwork:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ContextNetwork(settings)


def _node_vectors(
    systems: int, variables: int, settings: ContextSettings, rng: np.random.Generator
) -> Tensor:
    """Drawn anew for every system, (system, variable, node_width)."""
    drawn = rng.normal(size=(systems, variables, settings.node_width))
    return torch.from_numpy(drawn.astype(np.float32))


def _errors(forecast: Tensor, window: Tensor) -> Tensor:
    """Mean squared error (system, target) of forecasts (system, window, target)."""
    return (forecast - window[:, :, -1]).square().mean(1)


def _ridge(context: Context) -> Equations:
    """The most shrunken linear solution."""
    return Equations.of(context.read().solutions[:, :, :, -1], context)


def _var(window: Tensor, asked: Tensor) -> Tensor:
    """Forecasts of the asked windows by ordinary least squares on the others."""

    def design(part: Tensor) -> Tensor:
        past = part[:, :, :-1].flatten(2).double()
        return torch.cat([past, torch.ones_like(past[..., :1])], dim=-1)

    known = torch.linalg.lstsq(design(window), window[:, :, -1].double()).solution
    return (design(asked) @ known).float()


def _share(progress: Pretraining, minutes: float, rounds: int | None) -> float:
    return progress.seconds / (60 * minutes) if rounds is None else progress.rounds / rounds
