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

from forecause._version import __version__

if TYPE_CHECKING:
    from forecause.config import Config as Config
    from forecause.config import GlobalTopK as GlobalTopK
    from forecause.config import TopK as TopK
    from forecause.data.panel import Panel as Panel
    from forecause.data.tables import read as read
    from forecause.discovery import Discovery as Discovery
    from forecause.effects.actions import Push as Push
    from forecause.errors import ForecauseError as ForecauseError
    from forecause.errors import ForecauseWarning as ForecauseWarning
    from forecause.errors import InputError as InputError
    from forecause.estimator import CausalDiscovery as CausalDiscovery
    from forecause.forecast.additive import Additive as Additive
    from forecause.forecast.dictionary import Dictionary as Dictionary
    from forecause.forecast.forecaster import Forecaster as Forecaster
    from forecause.forecast.forecaster import ForecasterSettings as ForecasterSettings
    from forecause.forecast.foreign import Foreign as Foreign
    from forecause.forecast.linear import Linear as Linear
    from forecause.forecast.trees import Trees as Trees
    from forecause.foreign_drivers import drivers as drivers
    from forecause.graph.lagged import LaggedGraph as LaggedGraph
    from forecause.graph.metrics import score_graph as score_graph
    from forecause.method import discover as discover
    from forecause.networks.settings import CNN as CNN
    from forecause.networks.settings import MLP as MLP
    from forecause.networks.settings import Chronos as Chronos
    from forecause.networks.settings import Pretrained as Pretrained
    from forecause.networks.settings import Transformer as Transformer
    from forecause.networks.settings import VectorTransformer as VectorTransformer
    from forecause.progress import LoggedProgress as LoggedProgress
    from forecause.progress import Progress as Progress
    from forecause.resources.workers import Workers as Workers
    from forecause.simulation import datasets as datasets
    from forecause.simulation import simulate as simulate
    from forecause.store import load as load
    from forecause.store import load_graph as load_graph

_FORECASTERS = "forecause.forecast.selection"
_NETWORKS = "forecause.networks.settings"
# Public names and where they live. They are imported when first used: torch and pandas take
# seconds, and `forecause --help` must not wait for them.
_HOMES = {
    "Additive": _FORECASTERS,
    "CNN": _NETWORKS,
    "CausalDiscovery": "forecause.estimator",
    "Chronos": _NETWORKS,
    "Config": "forecause.config",
    "Dictionary": _FORECASTERS,
    "Discovery": "forecause.discovery",
    "Foreign": "forecause.forecast.foreign",
    "ForecauseError": "forecause.errors",
    "ForecauseWarning": "forecause.errors",
    "Forecaster": "forecause.forecast.forecaster",
    "ForecasterSettings": "forecause.forecast.forecaster",
    "GlobalTopK": "forecause.config",
    "InputError": "forecause.errors",
    "LaggedGraph": "forecause.graph.lagged",
    "Linear": _FORECASTERS,
    "LoggedProgress": "forecause.progress",
    "MLP": _NETWORKS,
    "Panel": "forecause.data.panel",
    "Pretrained": _NETWORKS,
    "Progress": "forecause.progress",
    "Push": "forecause.effects.actions",
    "TopK": "forecause.config",
    "Transformer": _NETWORKS,
    "Trees": _FORECASTERS,
    "VectorTransformer": _NETWORKS,
    "Workers": "forecause.resources.workers",
    "datasets": "forecause.simulation",
    "discover": "forecause.method",
    "drivers": "forecause.foreign_drivers",
    "load": "forecause.store",
    "load_graph": "forecause.store",
    "read": "forecause.data.tables",
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
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
