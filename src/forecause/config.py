"""The names a user can choose from, kept apart so that the command can list them instantly."""

from typing import Literal

ForecasterName = Literal[
    "auto", "transformer", "vector", "mlp", "cnn", "additive", "linear", "chronos", "pretrained"
]
PresetName = Literal["default", "paper", "quick", "sparse"]
HeadName = Literal["mse", "gaussian", "mixture"]
HeadChoice = Literal["mse", "gaussian", "mixture", "auto"]
ReadoutName = Literal[
    "gradient", "score", "input-gradient", "lrp", "cp-lrp", "attention", "rollout", "intervention"
]
RuleName = Literal["auto", "fdr", "top-k", "global-top-k", "uniform"]
ByName = Literal["score", "rank"]
InstantaneousName = Literal["pcmci+", "dynotears"]
GapsName = Literal["fill", "drop"]
HowName = Literal["mean", "sum", "last"]
