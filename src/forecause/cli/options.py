"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forecause.cli.ending import under_torchrun
from forecause.config import ForecasterName
from forecause.config.advice import split_by_comma
from forecause.errors import InputError

if TYPE_CHECKING:
    from forecause.discovery import Discovery
    from forecause.resources.workers import Workers

DATA, MODEL, EDGES, RUN = "Data", "Model", "Edges", "Run"  # panels of the help

Data = Annotated[
    list[Path],
    typer.Argument(help="CSV, TSV, Excel, Parquet, Feather, NPY, NPZ or NetCDF; a series each."),
]
Season = Annotated[
    str | None,
    typer.Option(
        help="Cycles to take out: auto finds them, none, or periods in rows: 24,168.  "
        "[default: auto]",
        rich_help_panel=DATA,
    ),
]
Forecaster = Annotated[
    ForecasterName | None,
    typer.Option(
        help="What predicts.  [default: auto, the best for each variable]", rich_help_panel=MODEL
    ),
]
Device = Annotated[
    str | None, typer.Option(help="auto, cpu, cuda or mps.  [default: auto]", rich_help_panel=RUN)
]
AskedSeed = Annotated[
    int | None,
    typer.Option(help="The same seed gives the same result.  [default: 0]", rich_help_panel=RUN),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="Options from a run.json, or from a JSON file of its settings; flags replace them.",
        rich_help_panel=RUN,
    ),
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="GROUP.NAME=VALUE",
        help="Any other option, like data.gaps=drop, forecasting.held_out=0.3, forecaster.hidden=64"
        " or thresholds.edges.least_share=0.001; repeatable.",
        rich_help_panel=RUN,
    ),
]
Folder = Annotated[Path, typer.Argument(help="A folder written by discover.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Verbose = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        help="Show all links, notes and errors of forecasts.",
        rich_help_panel=RUN,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def one_or_all(data: list[Path]) -> Path | list[Path]:
    """The library takes a table, or a list of several series."""
    return data[0] if len(data) == 1 else list(data)


def names(text: str | None) -> list[str] | None:
    """`a,b` as a list; None stays None. A name with a comma is quoted, as in CSV: `"a,b",c`."""
    if text is None:
        return None
    found = split_by_comma(text)
    if not found:
        raise InputError(f"Expected names joined by commas, found {text!r}.")
    return found


def reading(
    time: Annotated[
        str | None, typer.Option(help="Column with the time.", rich_help_panel=DATA)
    ] = None,
    series: Annotated[
        str | None, typer.Option(help="Column that tells series apart.", rich_help_panel=DATA)
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            help="Column with known regimes; discover gives each a graph.", rich_help_panel=DATA
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            help="Columns that hold labels, not numbers; several by comma.", rich_help_panel=DATA
        ),
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(
            help="Cells that stand for a missing value, like -9999; several by comma.",
            rich_help_panel=DATA,
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            help="Put the rows on a regular grid of this step: 15min, 1h, 1d.",
            rich_help_panel=DATA,
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            help="Rows to explain: a column of truth values, or \"season == 'winter'\".",
            rich_help_panel=DATA,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Read these columns alone, by comma; of an array, their names.",
            rich_help_panel=DATA,
        ),
    ] = None,
    exclude: Annotated[
        str | None, typer.Option(help="Leave these columns out, by comma.", rich_help_panel=DATA)
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(help="Of a text file: cp1250, say.  [default: found]", rich_help_panel=DATA),
    ] = None,
    sheet: Annotated[
        str | None, typer.Option(help="Of an Excel file.", rich_help_panel=DATA)
    ] = None,
    counter: Annotated[
        str | None,
        typer.Option(
            help="Columns that count up, whose increase is read; none: no column.  "
            "[default: found]",
            rich_help_panel=DATA,
        ),
    ] = None,
) -> dict[str, Any]:
    """How a table is read, as the configuration takes it: options of every command that does."""
    return {
        "time": time,
        "series": series,
        "domain": domain,
        "labels": names(labels),
        "missing": names(missing),
        "every": every,
        "rows": rows,
        "columns": names(columns),
        "exclude": names(exclude),
        "encoding": encoding,
        "sheet": sheet,
        "counter": names(counter),
    }


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
