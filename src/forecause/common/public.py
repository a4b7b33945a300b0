"""How public names are found: in the module that holds them, imported when first asked for.

torch and pandas take long to import, and `forecause --help` must not wait for them.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any


def looked_up(module: str, name: str, homes: Mapping[str, str]) -> Any:
    """A public name of a module, from its home; an AttributeError that helps if there is none."""
    if name not in homes:
        import difflib

        close = difflib.get_close_matches(name, homes, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{meant}")
    return getattr(importlib.import_module(homes[name]), name)
