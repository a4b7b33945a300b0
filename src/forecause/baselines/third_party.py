"""Optional packages: loaded when used, and kept quiet."""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from forecause.errors import MissingExtra


def load(module: str) -> Any:
    """Import a module of the `baselines` extra, or say how to install it."""
    package = module.partition(".")[0]
    with quiet():
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise MissingExtra((error.name or package).partition(".")[0], "baselines") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the warnings and the printing of foreign code."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
