"""Commands about a table: discover and evaluate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal
from warnings import catch_warnings, simplefilter

import typer

from forecause.cli.options import (
    Data,
    Device,
    Forecaster,
    Quiet,
    Ray,
    Seed,
    app,
    asked_workers,
    one_or_all,
    power_workers,
)
from forecause.cli.table_options import InPanels, with_table_options
from forecause.cli.writing import Force, Out, Output, write_table
from forecause.config import ByName, HeadChoice, PresetName, ReadoutName, RuleName
from forecause.errors import ForecauseWarning


@app.command(cls=InPanels)
@with_table_options
def discover(
    data: Data,
    table: dict[str, Any],
    max_lag: Annotated[
        str,
        typer.Option(help="The longest delay to look for, in rows; auto proposes one."),
    ] = "5",
    out: Out = None,
    force: Force = False,
    forecaster: Forecaster = "auto",
    preset: Annotated[
        PresetName,
        typer.Option(
            help="paper: the published model, readout and rule; paper-shallow: with one layer. "
            "quick: at most 1,000 steps. sparse: a penalty on gradients, for few rows."
        ),
    ] = "default",
    weights: Annotated[
        str | None,
        typer.Option(
            help="Weights to start from: for pretrained what forecause pretrain wrote instead of "
            "those that come with it, for chronos a folder or a hub id."
        ),
    ] = None,
    head: Annotated[
        HeadChoice,
        typer.Option(
            help="What is learned of the distribution: mse the mean, gaussian the variance too, "
            "mixture any shape, auto whichever predicts better."
        ),
    ] = "mse",
    readout: Annotated[
        ReadoutName | None,
        typer.Option(
            help="How relevance is read.  [default: gradient, or score with another head than mse]"
        ),
    ] = None,
    cross_fit: Annotated[
        int, typer.Option(help="Read from this many models fitted on disjoint time; 0: one.")
    ] = 0,
    select: Annotated[
        RuleName | None, typer.Option(help="How edges are chosen.  [default: auto]")
    ] = None,
    k: Annotated[int | None, typer.Option(help="Edges of top-k and global-top-k.")] = None,
    by: Annotated[
        ByName | None,
        typer.Option(
            help="What top-k and global-top-k compare: scores, mean ranks over windows, or ranks "
            "over their standard deviation.  [default: score]"
        ),
    ] = None,
    fdr: Annotated[
        float | None,
        typer.Option(
            help="Accepted share of false edges.  [default: 0.02; with few rows 0.05, or 0.1 where "
            "links are weak]"
        ),
    ] = None,
    per_series: Annotated[
        bool, typer.Option("--per-series", help="Also a graph for every series.")
    ] = False,
    domain_input: Annotated[
        bool | None,
        typer.Option(
            help="Tell the forecaster which domain a row is in.  [default: yes, but not with "
            "--preset paper]"
        ),
    ] = None,
    regimes: Annotated[
        str | None, typer.Option(help="Find unknown regimes: auto, or how many.")
    ] = None,
    forbid: Annotated[
        list[str] | None,
        typer.Option(
            help="An edge that cannot be, like 'rain <- *' or 'a -> b @ 1-3'; repeatable."
        ),
    ] = None,
    require: Annotated[
        list[str] | None, typer.Option(help="An edge that must be, like 'a -> b @ 1'; repeatable.")
    ] = None,
    knowledge: Annotated[
        Path | None, typer.Option(help="File with lines 'forbid RULE' and 'require RULE'.")
    ] = None,
    season: Annotated[
        str,
        typer.Option(help="Cycles to take out: auto finds them, none, or periods in rows: 24,168."),
    ] = "auto",
    seed: Seed = 0,
    device: Device = "auto",
    json: Annotated[
        Path | None,
        typer.Option(
            help="Also write the graph as JSON to this file; - writes it to standard output."
        ),
    ] = None,
    power: Annotated[
        bool, typer.Option("--power", help="Also measure which edges can be found; takes longer.")
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Time to keep to, like 90s or 10m: models, steps and windows are chosen to fit."
        ),
    ] = None,
    ray: Ray = None,
    quiet: Quiet = False,
) -> None:
    """Find which variable drives which, with which delay. Writes a report."""
    from forecause.edges.knowledge import read_knowledge
    from forecause.files import examine_file
    from forecause.forecast.training.distributed import joined
    from forecause.method import discover as run
    from forecause.report import terminal

    forbidden, required = read_knowledge(knowledge) if knowledge else ((), ())
    options: dict[str, Any] = dict(
        max_lag=_lags(max_lag),
        forecaster=None if forecaster == "auto" else forecaster,  # a preset may name one
        preset=preset,
        weights=weights,
        head=head,
        readout=readout,
        cross_fit=cross_fit,
        domain_input=domain_input,
        select=select,
        k=k,
        by=by,
        fdr=fdr,
        per_series=per_series or None,
        regimes=regimes,
        forbid=(*forbidden, *(forbid or ())),
        require=(*required, *(require or ())),
        **table,
        season=None if season == "auto" else season,
        seed=seed,
        device=device,
        budget=budget,
    )
    output = Output.examined(out, data, options, force)
    to_stdout = str(json) == "-"
    if json and not to_stdout:
        examine_file(json)
    with joined() as ranks, terminal.progress(quiet or not ranks.first) as progress:
        workers = asked_workers(ray, None)
        with catch_warnings():  # doubts are printed first of all
            simplefilter("ignore", ForecauseWarning)
            found = run(one_or_all(data), **options, workers=workers, progress=progress)
        if power:
            found = found.with_power(progress=progress, workers=power_workers(found, ray))
        progress.step("writing the results", 0.0)
        if ranks.first:
            folder = output.save(found)
            if json and not to_stdout:
                found.graph.to_json(json)
    if ranks.first:
        terminal.show_discovery(found, folder, aside=to_stdout)
        if to_stdout:
            typer.echo(found.graph.to_json(), nl=False)


@app.command(cls=InPanels)
@with_table_options
def evaluate(
    data: Data,
    table: dict[str, Any],
    max_lag: Annotated[int, typer.Option(help="How many rows back the forecaster looks.")] = 5,
    steps: Annotated[int, typer.Option(help="Rows to forecast from each origin.")] = 12,
    origins: Annotated[int, typer.Option(help="Places to forecast from, in every series.")] = 5,
    season: Annotated[
        str, typer.Option(help="Rows of a season; auto finds it, none: no.")
    ] = "auto",
    refit: Annotated[
        Literal["auto", "first", "every"],
        typer.Option(help="Fit at every origin or the first alone.  auto: every, if it is quick."),
    ] = "auto",
    forecaster: Forecaster = "auto",
    preset: Annotated[PresetName, typer.Option(help="quick: shorter training.")] = "default",
    seed: Seed = 0,
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Also write the errors by step to this CSV file.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Forecast held-out rows, beside seasonal naive and a VAR."""
    from forecause import Panel
    from forecause.evaluate import rolling_origin
    from forecause.files import examine_file
    from forecause.forecast.training.distributed import joined
    from forecause.report import terminal

    if out:
        examine_file(out)
    left = {name: table.pop(name) for name in ("trend", "difference")}
    panel = Panel.of(one_or_all(data), **table)
    with joined() as ranks, terminal.progress(quiet or not ranks.first) as progress:
        found = rolling_origin(
            panel,
            max_lag,
            steps=steps,
            origins=origins,
            season=_season(season),
            refit=refit,
            forecaster=forecaster,
            preset=preset,
            **left,
            seed=seed,
            device=device,
            progress=progress,
        )
        if out and ranks.first:
            write_table(found.table, out)
    if ranks.first:
        terminal.show_evaluation(found)


def _lags(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.lstrip("-").isdecimal():
        raise typer.BadParameter(f"expected a whole number or auto, found {text!r}.")
    return int(text)


def _season(text: str) -> int | Literal["auto"] | None:
    if text in ("auto", "none"):
        return "auto" if text == "auto" else None
    if not text.isdecimal():
        raise typer.BadParameter(f"expected a whole number, auto or none, found {text!r}.")
    return int(text)
