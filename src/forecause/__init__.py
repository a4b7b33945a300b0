"""Forecause trains a forecaster on your time series and reads the lagged causal graph out of it.

>>> import forecause as fc
>>> system = fc.simulate(nodes=4, max_lag=2, rows=400, seed=0)
>>> run = fc.discover(system.frame(), max_lag=2, forecaster="linear")
>>> run.graph.variables
('X1', 'X2', 'X3')

The names listed in `forecause.__all__` are the public ones; every module is private.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forecause.config import Config as Config
    from forecause.config import FalseDiscovery as FalseDiscovery
    from forecause.config import GlobalTopK as GlobalTopK
    from forecause.config import TopK as TopK
    from forecause.data.panel import Panel as Panel
    from forecause.discovery import Discovery as Discovery
    from forecause.errors import ForecauseError as ForecauseError
    from forecause.errors import InputError as InputError
    from forecause.forecast.forecaster import Forecaster as Forecaster
    from forecause.forecast.forecaster import ForecasterSettings as ForecasterSettings
    from forecause.forecast.models.additive import AdditiveSettings as Additive
    from forecause.forecast.models.chronos import ChronosSettings as Chronos
    from forecause.forecast.models.cnn import CNNSettings as CNN
    from forecause.forecast.models.linear import LinearSettings as Linear
    from forecause.forecast.models.mlp import MLPSettings as MLP
    from forecause.forecast.models.pretrained import PretrainedSettings as Pretrained
    from forecause.forecast.models.transformer import TransformerSettings as Transformer
    from forecause.forecast.models.vector_transformer import VectorTransformerSettings as Vector
    from forecause.graph.lagged import LaggedGraph as LaggedGraph
    from forecause.graph.metrics import score_graph as score_graph
    from forecause.method import discover as discover
    from forecause.progress import LoggedProgress as LoggedProgress
    from forecause.progress import Progress as Progress
    from forecause.resources.workers import Workers as Workers
    from forecause.simulation import simulate as simulate
    from forecause.store import load as load

__version__ = "0.2.0"

_MODELS = "forecause.forecast.models"
# Public names, where they live and what they are called there if it differs. They are imported
# when first used: torch and pandas take seconds, and `forecause --help` must not wait for them.
_HOMES = {
    "Additive": f"{_MODELS}:AdditiveSettings",
    "CNN": f"{_MODELS}:CNNSettings",
    "Chronos": f"{_MODELS}:ChronosSettings",
    "Config": "forecause.method",  # which knows all forecasters
    "Discovery": "forecause.discovery",
    "FalseDiscovery": "forecause.config",
    "ForecauseError": "forecause.errors",
    "Forecaster": "forecause.forecast.forecaster",
    "ForecasterSettings": "forecause.forecast.forecaster",
    "GlobalTopK": "forecause.config",
    "InputError": "forecause.errors",
    "LaggedGraph": "forecause.graph.lagged",
    "Linear": f"{_MODELS}:LinearSettings",
    "LoggedProgress": "forecause.progress",
    "MLP": f"{_MODELS}:MLPSettings",
    "Panel": "forecause.data.panel",
    "Pretrained": f"{_MODELS}:PretrainedSettings",
    "Progress": "forecause.progress",
    "TopK": "forecause.config",
    "Transformer": f"{_MODELS}:TransformerSettings",
    "Vector": f"{_MODELS}:VectorTransformerSettings",
    "Workers": "forecause.resources.workers",
    "discover": "forecause.method",
    "load": "forecause.store",
    "score_graph": "forecause.graph.metrics",
    "simulate": "forecause.simulation",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        import difflib

        close = difflib.get_close_matches(name, _HOMES, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"module 'forecause' has no attribute {name!r}{meant}")
    module, _, there = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), there or name)


def __dir__() -> list[str]:
    return sorted(__all__)
