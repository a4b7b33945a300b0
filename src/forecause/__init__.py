"""Forecause trains a forecaster on your time series and reads the lagged causal graph out of it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forecause.data.panel import Panel as Panel
    from forecause.discovery import Discovery as Discovery
    from forecause.errors import ForecauseError as ForecauseError
    from forecause.errors import InputError as InputError
    from forecause.graph.lagged import LaggedGraph as LaggedGraph
    from forecause.graph.metrics import score_graph as score_graph
    from forecause.method import discover as discover
    from forecause.store import load as load

__version__ = "0.1.0"

# Public names and where they live. They are imported when first used: torch and pandas take
# seconds, and `forecause --help` must not wait for them.
_HOMES = {
    "Discovery": "forecause.discovery",
    "ForecauseError": "forecause.errors",
    "InputError": "forecause.errors",
    "LaggedGraph": "forecause.graph.lagged",
    "Panel": "forecause.data.panel",
    "discover": "forecause.method",
    "load": "forecause.store",
    "score_graph": "forecause.graph.metrics",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'forecause' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
