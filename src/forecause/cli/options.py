"""Options that several commands share, and the app they belong to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forecause.cli.ending import under_torchrun
from forecause.cli.plugins import Commands
from forecause.config import ForecasterName
from forecause.errors import InputError

if TYPE_CHECKING:
    from forecause.discovery import Discovery
    from forecause.resources.workers import Workers

app = typer.Typer(
    name="forecause",
    cls=Commands,
    help="Train a forecaster on your time series and read the lagged causal graph out of it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Data = Annotated[
    list[Path],
    typer.Argument(help="CSV, TSV, Parquet, Feather, NPY, NPZ or NetCDF; a series each."),
]
Forecaster = Annotated[
    ForecasterName, typer.Option(help="What predicts; auto takes the best per variable.")
]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
Folder = Annotated[Path, typer.Argument(help="A folder written by discover.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def one_or_all(data: list[Path]) -> Path | list[Path]:
    """The library takes a table, or a list of several series."""
    return data[0] if len(data) == 1 else list(data)


def names(text: str | None) -> list[str] | None:
    """`a,b` as a list; None stays None."""
    if text is None:
        return None
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise InputError(f"Expected names joined by commas, found {text!r}.")
    return found


def numbers(text: str | None) -> list[int] | None:
    """`1000,50_000` as a list of whole numbers; None stays None."""
    found = names(text)
    try:
        return None if found is None else [int(part) for part in found]
    except ValueError:
        raise InputError(f"Expected whole numbers joined by commas, found {text!r}.") from None


Ray = Annotated[
    str | None,
    typer.Option(
        help="Spread the work over Ray: local starts it here, auto finds one that runs, or give "
        "a cluster's address."
    ),
]
Jobs = Annotated[
    int | None, typer.Option(help="Processes.  [default: one per core]", show_default=False)
]


def asked_workers(ray: str | None, jobs: int | None) -> Workers:
    """Those asked for, or one process per core; under torchrun all is done together instead."""
    from forecause.resources.workers import LOCAL, Workers

    if under_torchrun():
        return LOCAL
    return Workers(jobs if jobs is not None else os.cpu_count() or 1, ray)


def power_workers(found: Discovery, ray: str | None, jobs: int | None = None) -> Workers:
    """Those asked for; starting processes takes longer than repeating a run that is quick."""
    return asked_workers(ray, 1 if jobs is None and found.is_quick else jobs)
