"""How much of the machine a training step and the readout use.

Run as python -m forecause_bench.training_step.

Peak is a product of two 1024 x 1024 float32 matrices on as many threads. A step's operations are
those of its matrix products, counted by torch; what else it does is what keeps it below the peak.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from rich.console import Console
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from forecause.config import ForecasterSpec
from forecause.networks.network import NetworkModule, TensorWindow, seeded
from forecause.networks.settings import TrainedSettings
from forecause.networks.training import backward
from forecause.resources.cost import best_of, matmul_speed

SHOWN = 5  # of the costliest kinds of operation
CASES = (("transformer", "default"), ("mlp", "default"), ("deep-transformer", "paper"))


@dataclass(frozen=True)
class Speed:
    """Of one model: seconds of a step and of reading 2,000 windows, and what a step consists of."""

    name: str
    step: float
    operations: int  # of the matrix products of a step
    read: float
    steps: int  # of a training, at most
    shares: dict[str, float]  # of a step's time by operation

    def sentences(self, peak: float) -> list[str]:
        """The figures as lines of Markdown."""
        share = self.operations / self.step / peak
        shown = ", ".join(f"{name} {part:.0%}" for name, part in self.shares.items())
        training = self.step * self.steps
        return [
            f"- **{self.name}**: a step takes {1e3 * self.step:.1f} ms, {share:.0%} of the peak; "
            f"reading 2,000 windows takes {self.read:.2f} s, {self.read / training:.1%} of "
            f"{self.steps:,} steps. Time by operation: {shown}.",
        ]


def measure(kind: str, preset: str, shape: tuple[int, int]) -> Speed:
    """Time a model of this shape (max_lag, variables) on random windows."""
    settings = ForecasterSpec.named(kind).of_preset(preset).sized(shape[0] * shape[1])
    assert isinstance(settings, TrainedSettings)
    model = _module(settings, shape)
    training = settings.training
    batch = TensorWindow.of(torch.randn(training.batch_size, shape[0] + 1, shape[1]))
    step = training_step(model, batch)
    with FlopCounterMode(display=False) as counter:
        step()
    read = best_of(lambda: _read(model, batch), 3) * 2000 / len(batch)
    operations = counter.get_total_flops()
    return Speed(
        f"{kind}, {preset}", best_of(step, 30), operations, read, training.max_steps, _shares(step)
    )


def compiled(kind: str, preset: str, shape: tuple[int, int]) -> str:
    """What torch.compile costs once and makes of a step."""
    settings = ForecasterSpec.named(kind).of_preset(preset).sized(shape[0] * shape[1])
    assert isinstance(settings, TrainedSettings)
    model = _module(settings, shape)
    batch = TensorWindow.of(torch.randn(settings.training.batch_size, shape[0] + 1, shape[1]))
    plain = best_of(training_step(model, batch), 30)
    model.loss = torch.compile(model.loss)  # type: ignore[method-assign]
    step = training_step(model, batch)
    once = best_of(step, 1)
    after = best_of(step, 30)
    return (
        f"- {kind}, {preset}: {once:.0f} s to compile, then {1e3 * after:.1f} ms a step "
        f"instead of {1e3 * plain:.1f} ms"
    )


def training_step(model: NetworkModule, batch: TensorWindow) -> Callable[[], None]:
    """One step of training on this batch of windows."""
    optimiser = torch.optim.Adam(model.parameters(), fused=True)

    def step() -> None:
        optimiser.zero_grad()
        backward(model, batch)
        optimiser.step()

    return step


def _module(settings: TrainedSettings, shape: tuple[int, int]) -> NetworkModule:
    with seeded(0):
        return settings.module(shape)


def _read(model: NetworkModule, batch: TensorWindow) -> object:
    return model.jacobian(batch.past)


def _shares(step: Callable[[], object]) -> dict[str, float]:
    """Share of a step's time by operation, the costliest first."""
    with profile(activities=[ProfilerActivity.CPU]) as found:
        for _ in range(5):
            step()
    times = {event.key: event.self_cpu_time_total for event in found.key_averages()}
    total = sum(times.values())
    order = sorted(times, key=lambda name: times[name], reverse=True)[:SHOWN]
    return {name.removeprefix("aten::"): times[name] / total for name in order}


def main() -> None:
    """Print the figures as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variables", type=int, default=10)
    parser.add_argument("--max-lag", type=int, default=5)
    parser.add_argument("--compile", action="store_true", help="only try torch.compile")
    asked = parser.parse_args()
    peak = matmul_speed(1024, np.float32)
    show = Console(width=10_000).print
    show(f"{torch.get_num_threads()} threads, peak {peak / 1e9:.0f} GFLOP/s", markup=False)
    for kind, preset in CASES:
        if asked.compile:
            show(compiled(kind, preset, (asked.max_lag, asked.variables)), highlight=False)
            continue
        for line in measure(kind, preset, (asked.max_lag, asked.variables)).sentences(peak):
            show(line, markup=False, highlight=False)


if __name__ == "__main__":
    main()
