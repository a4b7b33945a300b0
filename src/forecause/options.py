"""The names a user can choose from, kept apart so that the command can list them instantly."""

from typing import Literal

ForecasterName = Literal["auto", "transformer", "mlp", "cnn", "additive", "linear", "chronos"]
PresetName = Literal["default", "paper", "quick"]
HeadName = Literal["mse", "gaussian", "mixture"]
HeadChoice = Literal["mse", "gaussian", "mixture", "auto"]
ReadoutName = Literal[
    "gradient", "score", "input-gradient", "lrp", "cp-lrp", "attention", "rollout", "intervention"
]
RuleName = Literal["auto", "fdr", "top-k", "global-top-k", "uniform"]
ByName = Literal["score", "rank"]
InstantaneousName = Literal["pcmci+", "dynotears"]
