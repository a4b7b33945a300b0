"""The command `forecause`: parses, calls the library, prints.

Only typer is imported at the top; everything else when a command runs, so that --help is instant.
"""

from __future__ import annotations

import os
from typing import Annotated

import typer

from forecause import __version__
from forecause.cli.commands import Commands
from forecause.cli.ending import (
    Interrupted,
    any_letter_can_be_shown,
    fail,
    output_arrives,
    stopped,
    under_torchrun,
    watch_signals,
)

__all__ = ["app", "main"]

app = typer.Typer(
    name="forecause",
    cls=Commands,
    help="Train a forecaster on your time series and read the lagged causal graph out of it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        typer.echo(f"forecause {__version__}")
        raise typer.Exit
    from forecause.config.advice import advising_flags

    context.with_resource(advising_flags())
    shared = context.invoked_subcommand in ("discover", "evaluate")
    if under_torchrun() and os.environ.get("RANK") != "0" and not shared:
        raise typer.Exit  # rank 0 does it alone


def main() -> None:
    """Run the command; 0 done, 2 the input or the call is wrong, 1 our fault, 128 + n a signal."""
    from forecause.errors import InputError

    watch_signals()
    any_letter_can_be_shown()
    try:
        with output_arrives():
            app()
    except InputError as error:
        fail(str(error), 2)
    except Interrupted as signal:
        fail(stopped(), signal.code)
    except BrokenPipeError:  # nobody reads on, as with `| head`
        raise SystemExit(1) from None
    except OSError as error:
        if os.environ.get("FORECAUSE_DEBUG"):
            raise
        fail(f"the system refuses to read or to write: {error.strerror or error}.", 2)
    except MemoryError:
        fail("the memory is used up; use fewer columns, rows or lags.", 2)
    except Exception as error:
        if os.environ.get("FORECAUSE_DEBUG"):
            raise
        fail(f"{type(error).__name__}: {error} (set FORECAUSE_DEBUG=1 for the details)", 1)
