"""Where a result came from: versions, machine and the command, to make it again."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forecause._version import __version__
from forecause.config import ForecasterSpec

if TYPE_CHECKING:
    from forecause.result import Result

PACKAGES = ("torch", "numpy", "pandas", "xarray", "scikit-learn")


def origin() -> dict[str, Any]:
    """Versions and machine of this process, and its command if that is `forecause`."""
    import torch

    return {
        "versions": {
            "forecause": __version__,
            "python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
        },
        "machine": f"{platform.system()} {platform.machine()}, {_threads(torch.get_num_threads())}",
        "command": _command(sys.argv),
    }


def commands(found: Result) -> dict[str, str]:
    """The command that made the run if known, else the one that would; and the same in Python."""
    known = found.evidence.get("origin", {}).get("command")
    changed = {name: v for name, v in found.config.changed().items() if name != "max_lag"}
    options = " ".join(
        _option(name.replace("_", "-"), value)
        for name, value in changed.items()
        if name != "held_out"  # a setting of the library alone
    )
    arguments = "".join(f", {name}={_python(value)}" for name, value in changed.items())
    lag = found.config.max_lag
    names = [Path(path).name for path in (found.data.source or {}).get("paths", ["DATA"])]
    given = json.dumps(names[0] if len(names) == 1 else names, ensure_ascii=False)
    return {
        "command": known
        or f"forecause discover {' '.join(map(shlex.quote, names))} "
        f"--max-lag {lag} {options}".rstrip(),
        "python": f"forecause.discover({given}, max_lag={lag}{arguments})",
    }


def _option(name: str, value: Any) -> str:
    """A setting as the command takes it: a flag, once per value, or with its value."""
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    if isinstance(value, ForecasterSpec):
        value = value.kind
    if name == "labels":
        value = ",".join(value)
    values = value if isinstance(value, tuple) else [value]
    return " ".join(f"--{name} {shlex.quote(str(one))}" for one in values)


def _python(value: Any) -> str:
    """A setting as Python takes it."""
    if isinstance(value, ForecasterSpec):
        return f"forecause.{type(value).__name__.removesuffix('Settings')}(...)"
    return repr(list(value)) if isinstance(value, tuple) else repr(value)


def _command(arguments: list[str]) -> str | None:
    """The command line, where `forecause` was started as a program."""
    program = Path(arguments[0]) if arguments else Path()
    as_module = program.name == "__main__.py" and program.parent.name == "forecause"
    if program.stem != "forecause" and not as_module:
        return None
    return shlex.join(["forecause", *arguments[1:]])


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
