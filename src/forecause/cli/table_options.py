"""Options about a table, shared by the commands that read one, and their help in four panels."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from forecause.cli.options import names
from forecause.config import GROUP_OF, GapsName, HowName, TrendName

PANELS = {"data": "Data", "forecasting": "Model", "edges": "Edges", "run": "Run"}
# Options of the command that are no options of the configuration; the others are of the run.
ELSEWHERE = {"max_lag": "forecasting", "knowledge": "edges", "refit": "forecasting"}


def table_options(
    time: Annotated[str | None, typer.Option(help="Column with the time.")] = None,
    series: Annotated[str | None, typer.Option(help="Column that tells series apart.")] = None,
    domain: Annotated[
        str | None, typer.Option(help="Column with known regimes; discover gives each a graph.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="Columns that hold labels, not numbers; several by comma.")
    ] = None,
    missing: Annotated[
        str | None,
        typer.Option(help="Cells that stand for a missing value, like -9999; by comma."),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(help="Put the rows on a regular grid of this step: 15min, 1h, 1d."),
    ] = None,
    every_how: Annotated[
        HowName, typer.Option(help="How rows of one step of --every are joined.")
    ] = "mean",
    rows: Annotated[
        str | None,
        typer.Option(help="Rows to explain: a column of truth values, or \"season == 'winter'\"."),
    ] = None,
    interpolate: Annotated[
        int, typer.Option(help="Fill gaps of at most this many missing values.")
    ] = 0,
    gaps: Annotated[
        GapsName, typer.Option(help="Short gaps: fill by what is expected, or drop such windows.")
    ] = "fill",
    trend: Annotated[
        TrendName | None,
        typer.Option(help="Slow trends and level shifts: auto takes them out, none does not."),
    ] = None,
    difference: Annotated[
        bool, typer.Option("--difference", help="Look at changes from row to row, not at levels.")
    ] = False,
) -> dict[str, Any]:
    """What was asked about the table, as the library takes it."""
    asked = dict(locals())
    several = {"labels": names(labels) or (), "missing": names(missing) or ()}
    return asked | several | {"difference": difference or None}


def with_table_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of `table_options`, which it gets as its argument `table`."""
    own = inspect.signature(command, eval_str=True).parameters
    shared = inspect.signature(table_options, eval_str=True).parameters

    @wraps(command)
    def called(**asked: Any) -> None:
        table = table_options(**{name: asked.pop(name) for name in shared})
        command(**asked, table=table)

    merged = {name: value for name, value in own.items() if name != "table"} | dict(shared)
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [value.replace(kind=keyword) for value in merged.values()]
    called.__annotations__ = {name: value.annotation for name, value in merged.items()}
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called


class InPanels(TyperCommand):
    """A command whose help shows its options in the groups of the configuration.

    Contexts and formatters are click's, whose classes move between versions of typer: hence Any.
    """

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments first, then a section for every panel."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        sections |= {panel: [] for panel in PANELS.values()}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                sections[panel_of(parameter)].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def panel_of(parameter: Any) -> str:
    """The section in which the help shows an argument or an option."""
    if parameter.param_type_name == "argument":
        return "Arguments"
    name = str(parameter.name)
    return PANELS[ELSEWHERE.get(name) or GROUP_OF.get(name, "run")]
