"""Commands about a table: discover and evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal
from warnings import catch_warnings, simplefilter

import typer

from forecause.cli.configuring import configuration
from forecause.cli.options import (
    EDGES,
    MODEL,
    RUN,
    AskedSeed,
    ConfigFile,
    Data,
    Device,
    Forecaster,
    Quiet,
    Ray,
    Season,
    Setting,
    Verbose,
    asked_workers,
    one_or_all,
    power_workers,
)
from forecause.cli.writing import Force, Out, Output, write_table
from forecause.config import PresetName, ReadoutName, RuleName
from forecause.errors import ForecauseWarning


def discover(
    context: typer.Context,
    data: Data,
    season: Season = None,
    max_lag: Annotated[
        str | None,
        typer.Option(
            help="The longest delay to look for, in rows; auto proposes one.  [default: 5]",
            rich_help_panel=MODEL,
        ),
    ] = None,
    forecaster: Forecaster = None,
    preset: Annotated[
        PresetName | None,
        typer.Option(
            help="paper: the published model, readout and rule; paper-shallow: with one layer. "
            "quick: at most 1,000 steps. sparse: a penalty on gradients, for few rows.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="Weights to start from: for pretrained what forecause pretrain wrote instead of "
            "those that come with it, for chronos a folder or a hub id.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    regimes: Annotated[
        str | None,
        typer.Option(help="Find unknown regimes: auto, or how many.", rich_help_panel=MODEL),
    ] = None,
    readout: Annotated[
        ReadoutName | None,
        typer.Option(
            help="How relevance is read.  [default: gradient, or score with another head than mse]",
            rich_help_panel=EDGES,
        ),
    ] = None,
    select: Annotated[
        RuleName | None,
        typer.Option(help="How edges are chosen.  [default: auto]", rich_help_panel=EDGES),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(help="Edges of top-k and global-top-k.", rich_help_panel=EDGES),
    ] = None,
    fdr: Annotated[
        float | None,
        typer.Option(
            help="Accepted share of false edges.  [default: 0.02; with few rows 0.05, or 0.1 where "
            "links are weak]",
            rich_help_panel=EDGES,
        ),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(
            help="An edge that cannot be, like 'rain <- *' or 'a -> b @ 1-3'; repeatable.",
            rich_help_panel=EDGES,
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            help="An edge that must be, like 'a -> b @ 1'; repeatable.", rich_help_panel=EDGES
        ),
    ] = None,
    knowledge: Annotated[
        Path | None,
        typer.Option(
            help="File with lines 'forbid RULE' and 'require RULE'.", rich_help_panel=EDGES
        ),
    ] = None,
    out: Out = None,
    force: Force = False,
    json: Annotated[
        Path | None,
        typer.Option(
            help="Also write the graph as JSON to this file; - writes it to standard output.",
            rich_help_panel=RUN,
        ),
    ] = None,
    power: Annotated[
        bool,
        typer.Option(
            "--power",
            help="Also measure which edges can be found; takes longer.",
            rich_help_panel=RUN,
        ),
    ] = False,
    seed: AskedSeed = None,
    device: Device = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Time to keep to, like 90s or 10m: models, steps and windows are chosen to fit.",
            rich_help_panel=RUN,
        ),
    ] = None,
    ray: Ray = None,
    config: ConfigFile = None,
    setting: Setting = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Find which variable drives which, with which delay. Writes a report."""
    from forecause.common.files import examine_file
    from forecause.edges.knowledge import read_knowledge
    from forecause.method import discover as run
    from forecause.networks.distributed import joined
    from forecause.report import terminal

    forbidden, required = read_knowledge(knowledge) if knowledge else ((), ())
    asked = configuration(
        config,
        setting,
        {
            **context.obj,
            "season": season,
            "max_lag": _lags(max_lag),
            "forecaster": forecaster,
            "preset": preset,
            "weights": weights,
            "regimes": regimes,
            "readout": readout,
            "select": select,
            "k": k,
            "fdr": fdr,
            "forbid": (*forbidden, *(forbid or ())) or None,
            "require": (*required, *(require or ())) or None,
            "seed": seed,
            "device": device,
            "budget": budget,
        },
    )
    output = Output.examined(out, data, asked, force)
    to_stdout = str(json) == "-"
    if json and not to_stdout:
        examine_file(json)
    with joined() as ranks, terminal.progress(quiet or not ranks.first) as progress:
        workers = asked_workers(ray, None)
        with catch_warnings():  # doubts are printed first of all
            simplefilter("ignore", ForecauseWarning)
            found = run(one_or_all(data), workers=workers, progress=progress, config=asked)
        if power:
            found = found.with_power(progress=progress, workers=power_workers(found, ray))
        progress.step("writing the results", 0.0)
        if ranks.first:
            folder = output.save(found)
            if json and not to_stdout:
                found.graph.to_json(json)
    if ranks.first:
        terminal.show_discovery(found, folder, aside=to_stdout, verbose=verbose)
        if to_stdout:
            typer.echo(found.graph.to_json(), nl=False)


def evaluate(
    context: typer.Context,
    data: Data,
    season: Annotated[
        str, typer.Option(help="Rows of a season; auto finds it, none: no.", rich_help_panel="Data")
    ] = "auto",
    max_lag: Annotated[
        int | None,
        typer.Option(
            help="How many rows back the forecaster looks.  [default: 5]", rich_help_panel=MODEL
        ),
    ] = None,
    forecaster: Forecaster = None,
    preset: Annotated[
        PresetName | None, typer.Option(help="quick: shorter training.", rich_help_panel=MODEL)
    ] = None,
    refit: Annotated[
        Literal["auto", "first", "every"],
        typer.Option(
            help="Fit at every origin or the first alone.  auto: every, if it is quick.",
            rich_help_panel=MODEL,
        ),
    ] = "auto",
    steps: Annotated[
        int, typer.Option(help="Rows to forecast from each origin.", rich_help_panel=RUN)
    ] = 12,
    origins: Annotated[
        int, typer.Option(help="Places to forecast from, in every series.", rich_help_panel=RUN)
    ] = 5,
    seed: AskedSeed = None,
    device: Device = None,
    config: ConfigFile = None,
    setting: Setting = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Also write the errors by step to this CSV file.", rich_help_panel=RUN),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Forecast held-out rows, beside VARs, seasonal naive and drift."""
    from forecause.common.files import examine_file
    from forecause.data.panel import Panel
    from forecause.effects.evaluate import rolling_origin
    from forecause.method import run_on
    from forecause.networks.distributed import joined
    from forecause.report import terminal

    if out:
        examine_file(out)
    length = _season(season)
    asked = configuration(
        config,
        setting,
        {
            **context.obj,
            "season": None if length == "auto" else length or "none",
            "max_lag": max_lag,
            "forecaster": forecaster,
            "preset": preset,
            "seed": seed,
            "device": device,
        },
    )
    panel = Panel.of(one_or_all(data), **asked.data.reading)
    with joined() as ranks, terminal.progress(quiet or not ranks.first) as progress:
        found = rolling_origin(
            panel,
            discover=run_on,
            steps=steps,
            origins=origins,
            season=length,
            refit=refit,
            config=asked,
            progress=progress,
        )
        if out and ranks.first:
            write_table(found.table, out)
    if ranks.first:
        terminal.show_evaluation(found)


def _lags(text: str | None) -> int | Literal["auto"] | None:
    if text is None or text == "auto":
        return "auto" if text else None
    if not text.lstrip("-").isdecimal():
        raise typer.BadParameter(f"expected a whole number or auto, found {text!r}.")
    return int(text)


def _season(text: str) -> int | Literal["auto"] | None:
    if text in ("auto", "none"):
        return "auto" if text == "auto" else None
    if not text.isdecimal():
        raise typer.BadParameter(f"expected a whole number, auto or none, found {text!r}.")
    return int(text)
