"""Commands about what was found: report, effect, forecast, refine, power and score."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Annotated, Any

import typer

from forecause.cli.options import (
    AsJson,
    Folder,
    Quiet,
    Ray,
    Seed,
    Verbose,
    one_or_all,
    power_workers,
)
from forecause.cli.writing import Force, Output, write_table
from forecause.config import InstantaneousName


def report(
    folder: Folder,
    compare: Annotated[
        Path | None, typer.Option(help="Another such folder, to show what differs.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option(help="The true graph.json, where it is known.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The page to write.  [default: FOLDER/report.html]")
    ] = None,
) -> None:
    """Write the page of a saved run again. Another run or the truth may stand beside it."""
    from forecause.common.files import examine_file
    from forecause.errors import InputError
    from forecause.graph.lagged import LaggedGraph
    from forecause.store.run_folder import PAGE, load_run

    if out:
        examine_file(out)
    if out is None and (folder / PAGE).is_symlink():  # a folder of others may point anywhere
        raise InputError(f"{str(folder / PAGE)!r} is a link; name the page to write with --out.")
    found = load_run(folder)
    page = found.report(
        out or folder / PAGE,
        compare=load_run(compare) if compare else None,
        truth=LaggedGraph.from_json(truth) if truth else None,
    )
    typer.echo(str(page))


def effect(
    folder: Folder,
    source: Annotated[
        str, typer.Argument(help="The variable that is raised, or a level of a label (name=level).")
    ],
    target: Annotated[str, typer.Argument(help="The variable or level that is watched.")],
    lag: Annotated[
        int | None,
        typer.Option(help="After how many rows.  [default: those of the edges, else all]"),
    ] = None,
    total: Annotated[
        bool, typer.Option("--total", help="By every path, not the direct effect alone.")
    ] = False,
    json: AsJson = False,
) -> None:
    """How far one variable moves another directly, with a 90 % interval. Per standard deviation.

    What goes through other variables is left out, unless --total.
    """
    from forecause.effects.answering import columns_of
    from forecause.report import terminal
    from forecause.store.run_folder import load_run

    found = load_run(folder)
    edges = found.graph.edges
    (cause, sources), (outcome, targets) = (columns_of(found, name) for name in (source, target))
    own = edges[(edges["source"] == cause) & (edges["target"] == outcome) & (edges["lag"] > 0)]
    lags = [lag] if lag is not None else sorted(own["lag"]) or range(1, found.graph.max_lag + 1)
    asked = product(sources, targets, lags)
    told = [found.effect(one, other, int(lag), total=total) for one, other, lag in asked]
    terminal.show_effects(found, told, json)


def forecast(
    folder: Folder,
    steps: Annotated[int, typer.Option(help="How many rows ahead.")] = 12,
    series: Annotated[
        str | None, typer.Option(help="Of which series.  [default: the last]")
    ] = None,
    hold: Annotated[
        list[str] | None,
        typer.Option(help="A variable held at a value, like 'rain=0'; repeatable."),
    ] = None,
    push: Annotated[
        list[str] | None,
        typer.Option(help="A variable raised once by an amount, like 'rain=5'; repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also write the forecasts to this CSV file.")
    ] = None,
    json: AsJson = False,
) -> None:
    """What comes next, with 80 and 95 % bands. With --hold or --push, what would come."""
    from forecause.common.files import examine_file
    from forecause.effects.actions import Push
    from forecause.effects.futures import bands
    from forecause.errors import InputError
    from forecause.report import terminal
    from forecause.store.run_folder import load_run

    if out:
        examine_file(out)
    do: dict[str, Any] = dict(_held(one) for one in hold or [])
    for name, amount in (_held(one, "--push") for one in push or []):
        if isinstance(amount, str) or name in do:
            raise InputError(f"{name!r} can be pushed by one number, or held; found {amount!r}.")
        do[name] = Push(amount)
    table = bands(load_run(folder), steps, series, do)
    if out:
        write_table(table, out)
    terminal.show_forecast(table, json)
    for name in table.attrs["outside"]:
        typer.echo(f"note: {name} is set beyond the values of the data: a guess.", err=True)


def _held(text: str, option: str = "--hold") -> tuple[str, float | str]:
    """`rain=0` as a variable and its value: a number, or a label."""
    from forecause.errors import InputError

    name, equals, value = text.rpartition("=")
    if not equals or not name:
        raise InputError(f"Expected {option} NAME=VALUE, such as 'rain=0', found {text!r}.")
    try:
        return name, float(value)
    except ValueError:
        return name, value


def refine(
    folder: Folder,
    latent: Annotated[
        bool, typer.Option("--latent", help="Tell causes from hidden common causes (LPCMCI).")
    ] = False,
    instantaneous: Annotated[
        bool, typer.Option("--instantaneous", help="Look for effects within a row.")
    ] = False,
    method: Annotated[
        InstantaneousName, typer.Option(help="How effects within a row are looked for.")
    ] = "pcmci+",
    data: Annotated[
        list[Path] | None,
        typer.Option(help="The run's data, if it is not where it was; repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the refined run.  [default: FOLDER-refined]")
    ] = None,
    force: Force = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Look for hidden common causes, or effects within a row."""
    from forecause.common.files import examine_output
    from forecause.errors import InputError
    from forecause.report import terminal
    from forecause.store.run_folder import load_run, occupant

    run = load_run(folder)
    target = out or folder.with_name(f"{folder.name}-refined")
    examine_output(target)
    held = None if force else occupant(target, run)
    if held:
        raise InputError(f"{str(target)!r} {held}; give another folder with --out, or --force.")
    with terminal.progress(quiet) as progress:
        found = run.refine(
            latent=latent,
            instantaneous=instantaneous,
            method=method,
            data=one_or_all(data) if data else None,
            progress=progress,
        )
        written = Output(target, force).save(found)
    terminal.show_discovery(found, written, verbose=verbose)


def power(
    folder: Folder,
    repeats: Annotated[
        int | None,
        typer.Option(help="Simulations.  [default: 5 for linear or additive, otherwise 1]"),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(help="Processes.  [default: 1 for linear or additive, otherwise all cores]"),
    ] = None,
    ray: Ray = None,
    seed: Seed = 0,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Tell which edges can be found in such data. Simulates from a run, and discovers again."""
    from forecause.common.files import examine_output
    from forecause.report import terminal
    from forecause.store.run_folder import load_run

    found = load_run(folder)
    examine_output(folder)
    with terminal.progress(quiet) as progress:
        found = found.with_power(seed, repeats, progress, power_workers(found, ray, jobs))
        Output(folder).save(found)
    terminal.show_power(found, as_json=json)


def score(
    predicted: Annotated[Path, typer.Argument(help="A run's folder, graph.json or report.html.")],
    truth: Annotated[Path, typer.Argument(help="Another one to compare it with: the truth.")],
    json: AsJson = False,
) -> None:
    """Compare a graph with the true one, by every metric."""
    from forecause.graph.metrics import score_graph
    from forecause.report import terminal
    from forecause.store.run_folder import load_graph

    metrics = score_graph(load_graph(predicted), load_graph(truth))
    if json:
        terminal.show_json(metrics)
    else:
        terminal.show_scores(metrics)
