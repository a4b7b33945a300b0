"""Commands about models that are used again: pretrain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forecause.cli.ending import Interrupted, fail
from forecause.cli.options import Quiet, Seed, app


@app.command()
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
    """Train a transformer on many simulated systems, for discover --forecaster pretrained.

    A stopped run continues where it was.
    """
    from forecause.pretraining import pretrain as run
    from forecause.report import terminal

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
