"""Commands that other packages bring, by the entry points `forecause.commands`.

An entry point is the name of a command and a function with typer's annotations. Its package is
imported when the command is called or listed, so it should import little at its top.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperGroup

GROUP = "forecause.commands"
ELSEWHERE = {"bench": "forecause-bench", "pretrain": "forecause-bench"}  # command: its package


def plugged_in() -> dict[str, EntryPoint]:
    """The commands that installed packages bring, by name."""
    return {point.name: point for point in entry_points(group=GROUP)}


class Commands(TyperGroup):
    """The product's own commands, then those of other packages.

    Contexts and commands are click's, whose classes move between versions of typer: hence Any.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order in which the help shows them."""
        own = super().list_commands(ctx)
        return own + sorted(set(plugged_in()) - set(own))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name; None if there is none."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        point = plugged_in().get(cmd_name)
        if point is not None:
            return _as_command(point)
        if cmd_name in ELSEWHERE:
            raise _not_installed(cmd_name)
        return None


def _as_command(point: EntryPoint) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(point.name)(point.load())
    return typer.main.get_command(app)


def _not_installed(name: str) -> Exception:
    from forecause.errors import InputError

    package = ELSEWHERE[name]
    return InputError(
        f"The command {name!r} is part of the package {package!r}, which is not installed; "
        f"try: pip install {package}"
    )
