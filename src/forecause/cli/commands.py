"""The commands by name: where each lives, and its line in the help.

A command is a function with typer's annotations. Its module is imported when it is called, so
that `forecause --help` waits for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

OWN = {
    "discover": ("on_data", "Find which variable drives which, with which delay."),
    "evaluate": ("on_data", "Forecast held-out rows, beside VARs, seasonal naive and drift."),
    "report": ("on_runs", "Write the page of a saved run again."),
    "effect": ("on_runs", "How far one variable moves another directly, with a 90 % interval."),
    "response": ("on_questions", "The total effect of a variable on all others over time."),
    "explain": ("on_questions", "What caused an event: the likeliest variables first."),
    "changed": ("on_questions", "Which links vanished, appeared or changed between two periods."),
    "forecast": ("on_runs", "What comes next, with 80 and 95 % bands."),
    "refine": ("on_runs", "Look for hidden common causes, or effects within a row."),
    "power": ("on_runs", "Tell which edges can be found in such data."),
    "score": ("on_runs", "Compare a graph with the true one, by every metric."),
    "demo": ("on_systems", "Simulate a system with a known graph, discover it and compare."),
    "simulate": ("on_systems", "Simulate a random system and write its data and its true graph."),
}
OF_A_TABLE = ("discover", "evaluate")
STUDY = "forecause_bench"  # the package forecause-bench, which brings the commands below
OF_STUDY = {
    "bench": "Run a benchmark beside the paper's figures.",
    "pretrain": "Train a transformer on many simulated systems.",
}


class Commands(TyperGroup):
    """The product's own commands, then those of forecause-bench where it is installed.

    Contexts and commands are click's, whose classes move between versions of typer: hence Any.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        names: dict[str, Any] = dict.fromkeys(listed())
        self.commands = names  # typer suggests from them; the commands come from get_command

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name; None if there is none."""
        if cmd_name in OWN:
            return as_command(cmd_name, f"forecause.cli.{OWN[cmd_name][0]}")
        if cmd_name not in OF_STUDY:
            return None
        if find_spec(STUDY) is None:
            raise _not_installed(cmd_name)
        return as_command(cmd_name, f"{STUDY}.commands")

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, from their lines here."""
        with formatter.section("Commands"):
            formatter.write_dl(list(listed().items()))


class InPanels(TyperCommand):
    """A command whose help shows its options in their panels (`rich_help_panel`), as plain text."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """An option that is known to --set alone is refused by saying so."""
        flags = {flag for parameter in self.params for flag in parameter.opts}
        for word in args if "--set" in flags else ():
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag not in flags:
                _refuse_moved(flag)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments first, then a section for every panel."""
        sections: dict[str, list[tuple[str, str]]] = {}
        usual = "Options"
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if parameter.param_type_name == "argument":
                panel = "Arguments"
            else:
                panel = getattr(parameter, "rich_help_panel", None) or usual
                usual = panel  # an option without one joins those before it
            if record is not None:
                sections.setdefault(panel, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class OfATable(InPanels):
    """A command that reads a table: it has the options of `reading` too, in `context.obj`."""

    def __init__(self, **attributes: Any) -> None:
        from forecause.cli.options import reading

        super().__init__(**attributes)
        self.reading = reading
        shared = typer.Typer(add_completion=False, rich_markup_mode=None)
        shared.command(add_help_option=False)(reading)
        self.shared = typer.main.get_command(shared).params
        self.params[1:1] = self.shared  # behind the table

    def invoke(self, ctx: Any) -> Any:
        """Take the shared options away from those that the function itself has."""
        ctx.obj = self.reading(**{one.name: ctx.params.pop(one.name) for one in self.shared})
        return super().invoke(ctx)


def listed() -> dict[str, str]:
    """The commands that can be called here, with their lines in the help."""
    own = {name: line for name, (_, line) in OWN.items()}
    return own | (OF_STUDY if find_spec(STUDY) is not None else {})


def as_command(name: str, module: str) -> Any:
    """The function of this name in a module, as a command of click."""
    function: Callable[..., None] = getattr(import_module(module), name)
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name, cls=OfATable if name in OF_A_TABLE else InPanels)(function)
    return typer.main.get_command(app)


def _refuse_moved(flag: str) -> None:
    from forecause.config import GROUP_OF
    from forecause.errors import InputError

    name = flag.removeprefix("--").removeprefix("no-").replace("-", "_")
    if name in GROUP_OF:
        raise InputError(f"{flag} is written --set {GROUP_OF[name]}.{name}=VALUE.")


def _not_installed(name: str) -> Exception:
    from forecause.errors import InputError

    return InputError(
        f"The command {name!r} is part of the package 'forecause-bench', which is not installed; "
        "try in Forecause's own folder: pip install ./bench"
    )
