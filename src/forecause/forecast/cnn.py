"""A 1-D convolutional network over the whole window, variables as channels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from forecause.data.windows import Windows
from forecause.forecast.base import Forecaster, Report, Settings, silent
from forecause.forecast.rules import PLAIN, Rules, activation
from forecause.forecast.training import TrainingSettings, train
from forecause.options import HeadName


class CNNSettings(Settings):
    """Two convolutions along time, then one linear layer from all positions to all targets."""

    channels: int = 64
    kernel: int = 3
    head: HeadName = "mse"
    training: TrainingSettings = TrainingSettings(learning_rate=1e-3, batch_size=128)


class CNN(Forecaster):
    """X_t = linear(conv(conv(past))), the full window at once."""

    kind = "cnn"
    settings: CNNSettings

    def __init__(self, shape: tuple[int, int], settings: CNNSettings) -> None:
        super().__init__(shape, settings, settings.head)
        channels = settings.channels
        self.first = nn.Conv1d(self.n_variables, channels, settings.kernel, padding="same")
        self.second = nn.Conv1d(channels, channels, settings.kernel, padding="same")
        self.last = nn.Linear(channels * self.max_lag, self.n_variables * self.likelihood.outputs)

    def forward(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        return self.likelihood.mean(self.outputs(past, rules))

    def outputs(self, past: Tensor, rules: Rules = PLAIN) -> Tensor:
        hidden = activation(torch.relu, self.first(past.transpose(1, 2)), rules)
        hidden = activation(torch.relu, self.second(hidden), rules)
        return self.last(hidden.flatten(1)).unflatten(1, (self.n_variables, -1))

    def fit(
        self,
        windows: Windows,
        held_out: Windows,
        seed: int,
        report: Report = silent,
        to_beat: Tensor | None = None,
    ) -> None:
        train(self, windows, held_out, self.settings.training, seed, report, to_beat)
