"""Where a result came from: versions, machine, and the lines that make it again."""

from __future__ import annotations

import platform
import shlex
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forecause.common.version import __version__
from forecause.common.work_sharing import granted_threads
from forecause.config.advice import call, command, python_value

if TYPE_CHECKING:
    from forecause.result import Result

PACKAGES = ("torch", "numpy", "pandas", "xarray", "scikit-learn")


def origin() -> dict[str, Any]:
    """Versions and machine of this process, and its command if that is `forecause`."""
    count = granted_threads()
    return {
        "versions": {
            "forecause": __version__,
            "python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
        },
        "machine": f"{platform.system()} {platform.machine()}, {count} thread{'s' * (count > 1)}",
        "command": _command(sys.argv),
    }


def commands(run: Result) -> dict[str, str]:
    """The command that made the run if known, else the one that would; and the same in Python."""
    known = run.evidence.get("origin", {}).get("command")
    options = {"max_lag": run.config.max_lag} | run.config.changed()
    files = [Path(path).name for path in (run.data.source or {}).get("paths", ["DATA"])]
    return {
        "command": known or command(files, options),
        "python": call(python_value(files[0] if len(files) == 1 else files), options),
    }


def _command(arguments: list[str]) -> str | None:
    """The command line, where `forecause` was started as a program."""
    program = Path(arguments[0]) if arguments else Path()
    as_module = program.name == "__main__.py" and program.parent.name == "forecause"
    if program.stem != "forecause" and not as_module:
        return None
    return shlex.join(["forecause", *arguments[1:]])


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
