"""The study behind Forecause: suites of systems, the rivals, and the tables made of them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forecause_bench.run import Finished as Finished
    from forecause_bench.run import run_suite as run_suite
    from forecause_bench.suite import Suite as Suite
    from forecause_bench.suites import SUITES as SUITES

__version__ = "0.1.0"

# Imported when first used: a list of the suites must not wait for torch.
_HOMES = {"Finished": "run", "run_suite": "run", "SUITES": "suites", "Suite": "suite"}

__all__ = ["SUITES", "Finished", "Suite", "run_suite"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
