"""Forecause trains a forecaster on your time series and reads the lagged causal graph out of it.

>>> import forecause as fc
>>> system = fc.simulate(nodes=4, max_lag=2, rows=400, seed=0)
>>> run = fc.discover(system.frame(), max_lag=2, forecaster="linear")
>>> run.graph.variables
('X1', 'X2', 'X3')

The names listed in `forecause.__all__` and in `forecause.forecasters` are the public ones; every
other module is private.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forecause import forecasters
from forecause.common.public import looked_up
from forecause.common.version import __version__

if TYPE_CHECKING:
    from forecause.config import Config as Config
    from forecause.config import TopK as TopK
    from forecause.data.panel import Panel as Panel
    from forecause.data.tables import read as read
    from forecause.discovery import Discovery as Discovery
    from forecause.effects.actions import Push as Push
    from forecause.errors import ForecauseError as ForecauseError
    from forecause.errors import ForecauseWarning as ForecauseWarning
    from forecause.errors import InputError as InputError
    from forecause.estimator import CausalDiscovery as CausalDiscovery
    from forecause.foreign_drivers import drivers as drivers
    from forecause.graph.lagged import LaggedGraph as LaggedGraph
    from forecause.graph.metrics import score_graph as score_graph
    from forecause.method import discover as discover
    from forecause.progress import Progress as Progress
    from forecause.resources.workers import Workers as Workers
    from forecause.simulation import datasets as datasets
    from forecause.simulation import simulate as simulate
    from forecause.store.run_folder import load as load
    from forecause.store.run_folder import load_graph as load_graph

_HOMES = {
    "CausalDiscovery": "forecause.estimator",
    "Config": "forecause.config",
    "Discovery": "forecause.discovery",
    "ForecauseError": "forecause.errors",
    "ForecauseWarning": "forecause.errors",
    "InputError": "forecause.errors",
    "LaggedGraph": "forecause.graph.lagged",
    "Panel": "forecause.data.panel",
    "Progress": "forecause.progress",
    "Push": "forecause.effects.actions",
    "TopK": "forecause.config",
    "Workers": "forecause.resources.workers",
    "datasets": "forecause.simulation",
    "discover": "forecause.method",
    "drivers": "forecause.foreign_drivers",
    "load": "forecause.store.run_folder",
    "load_graph": "forecause.store.run_folder",
    "read": "forecause.data.tables",
    "score_graph": "forecause.graph.metrics",
    "simulate": "forecause.simulation",
}
# What stood here in version 0.2, and still is understood.
_MOVED = {
    **dict.fromkeys(forecasters.__all__, "forecause.forecasters"),
    "GlobalTopK": "forecause.config.options",
    "LoggedProgress": "forecause.progress",
}

__all__ = ["__version__", "forecasters", *_HOMES]


def __getattr__(name: str) -> Any:
    return looked_up(__name__, name, _HOMES | _MOVED)


def __dir__() -> list[str]:
    return sorted(__all__)
