"""Commands about systems with a known graph: demo and simulate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forecause.cli.options import Quiet, Seed, Verbose
from forecause.cli.writing import Force, Output


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("forecause-demo"),
    force: Force = False,
    seed: Seed = 0,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a system with a known graph, discover it and compare."""
    from forecause.common.files import examine_output
    from forecause.errors import InputError
    from forecause.graph.metrics import score_graph
    from forecause.method import discover as run
    from forecause.report import terminal
    from forecause.simulation import simulate

    examine_output(out)
    demo_before = (out / "truth" / "graph.json").is_file()
    if out.is_dir() and any(out.iterdir()) and not (demo_before or force):
        raise InputError(f"{str(out)!r} is not empty, and no demo; give another --out, or --force.")
    system = simulate(nodes=6, max_lag=3, rows=5000, mechanism="mlp-add", seed=seed)
    system.save(out / "truth")
    with terminal.progress(quiet) as progress:
        found = run(out / "truth" / "data.csv", 3, seed=seed, progress=progress)
        folder = Output(out, force=True).save(found)
        found.report(folder / "report.html", truth=system.graph)
    terminal.show_discovery(found, folder, verbose=verbose)
    metrics = score_graph(found.graph, system.graph)
    terminal.show_agreement(metrics["lagged_no_self"])
    if verbose:
        terminal.show_scores(metrics)
    terminal.show_next(folder)


def simulate(
    out: Annotated[Path, typer.Option(help="Folder for data.csv and graph.json.")],
    nodes: Annotated[int, typer.Option(help="Number of variables.")] = 10,
    max_lag: Annotated[int, typer.Option(help="The longest delay.")] = 5,
    rows: Annotated[int, typer.Option(help="Length of the series.")] = 10_000,
    mechanism: Annotated[
        str,
        typer.Option(
            help="linear, piecewise-linear, monotonic, trigonometric, mlp-add, mlp-concat; "
            "several joined by +."
        ),
    ] = "linear",
    in_degree: Annotated[float, typer.Option(help="Mean number of causes per variable.")] = 3.0,
    max_in_degree: Annotated[
        int | None, typer.Option(help="Most causes a variable may have.")
    ] = None,
    noise: Annotated[
        str, typer.Option(help="gaussian, laplace, student-t, uniform or mixed.")
    ] = "gaussian",
    latents: Annotated[int, typer.Option(help="Hidden common causes.")] = 0,
    instantaneous: Annotated[
        float, typer.Option(help="Mean number of causes within a step.")
    ] = 0.0,
    segments: Annotated[int, typer.Option(help="Stretches with a graph each.")] = 1,
    drift: Annotated[
        float | None, typer.Option(help="Share of edges rewired between segments.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Simulate a random system and write its data and its true graph."""
    from forecause.common.files import examine_output
    from forecause.simulation import simulate as run

    examine_output(out)
    run(
        nodes=nodes,
        max_lag=max_lag,
        rows=rows,
        mechanism=mechanism,
        seed=seed,
        in_degree=in_degree,
        max_in_degree=max_in_degree,
        noise=noise,
        latents=latents,
        instantaneous=instantaneous,
        segments=segments,
        drift=drift,
    ).save(out)
    typer.echo(f"{out / 'data.csv'}\n{out / 'graph.json'}")
