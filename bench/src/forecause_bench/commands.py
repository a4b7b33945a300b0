"""The commands of this package: `forecause bench` and `forecause pretrain`.

The product's command calls them where this package is installed, see forecause.cli.commands. Only
typer is imported at the top; everything else when a command runs, so that --help is instant.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forecause.cli.ending import Interrupted, fail
from forecause.cli.options import Jobs, Quiet, Ray, Seed, names, numbers


def bench(
    suite: Annotated[str, typer.Argument(help="Name of the suite; --list shows them.")] = "quick",
    rows: Annotated[str | None, typer.Option(help="Rows per system, several by comma.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Systems per column.")] = None,
    methods: Annotated[str | None, typer.Option(help="Methods, by comma.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns, by comma.")] = None,
    limit: Annotated[float | None, typer.Option(help="Most seconds per job.")] = None,
    half: Annotated[
        bool, typer.Option("--half", help="Half the variables, lags and hidden causes.")
    ] = False,
    jobs: Jobs = None,
    ray: Ray = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of recorded data, for the suites that need it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results.  [default: bench-SUITE]")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="Folder of finished jobs, which suites may share.  [default: in --out]"),
    ] = None,
    finished: Annotated[
        bool, typer.Option("--finished", help="Run nothing; write the page of what is finished.")
    ] = False,
    quiet: Quiet = False,
    show: Annotated[bool, typer.Option("--list", help="Show the suites and end.")] = False,
) -> None:
    """Run a benchmark beside the paper's figures. A stopped run continues where it was."""
    from forecause_bench.suites import describe_suites, find_suite

    if show:
        typer.echo("\n".join(describe_suites()))
        return
    if suite == "forecasts":  # a study of forecasts, which are no graphs
        from forecause_bench import forecasts

        folder = Path("bench-forecasts") if out is None else out
        typer.echo(forecasts.run(folder, seeds or 1, numbers(rows) or forecasts.ROWS, data))
        return
    from forecause.report import terminal
    from forecause_bench.questions import STUDIES, run_study

    if suite in STUDIES:
        with terminal.progress(quiet) as progress:
            page = run_study(
                suite, seeds=seeds, rows=numbers(rows), data=data, out=out, progress=progress
            )
        typer.echo(f"table: {page}")
        return
    chosen = find_suite(suite)
    from forecause_bench.run import run_suite

    try:
        with terminal.progress(quiet) as progress:
            done = run_suite(
                chosen,
                rows=numbers(rows),
                seeds=seeds,
                methods=names(methods),
                columns=names(columns),
                limit=limit,
                half=half,
                jobs=jobs,
                ray=ray,
                data=data,
                out=out,
                results=results,
                finished=finished,
                progress=progress,
            )
    except Interrupted:
        fail("stopped; finished jobs are kept, the same command continues.", 130)
    typer.echo("\n".join([*done.verdict, f"table: {done.table}"]))


def pretrain(
    out: Annotated[Path, typer.Argument(help="Folder for the weights and their record.")],
    minutes: Annotated[float, typer.Option(help="How long to train.")] = 30.0,
    rounds: Annotated[
        int | None,
        typer.Option(help="Train so many rounds instead: the same weights on every run."),
    ] = None,
    variables: Annotated[int, typer.Option(help="Variables of the largest system.")] = 10,
    max_lag: Annotated[int, typer.Option(help="The longest delay.")] = 5,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Train a transformer on many simulated systems.

    For discover --forecaster pretrained. A stopped run continues where it was.
    """
    from forecause.report import terminal
    from forecause_bench.pretraining import pretrain as run

    try:
        with terminal.progress(quiet) as progress:
            record = run(
                out,
                minutes=minutes,
                rounds=rounds,
                variables=variables,
                max_lag=max_lag,
                seed=seed,
                progress=progress,
            )
    except Interrupted:
        fail("stopped; the last checkpoint is kept, the same command continues.", 130)
    typer.echo("forecast error of new systems, as a share of the variance:")
    for count, errors in record["check"].items():
        rivals = ", ".join(f"{name} {error:.3f}" for name, error in errors.items())
        typer.echo(f"{count:>6} rows: {rivals}")
    typer.echo(f"weights: {out}")
