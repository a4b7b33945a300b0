"""The command `forecause`: parses, calls the library, prints.

Only typer is imported at the top; everything else when a command runs, so that --help is instant.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from forecause import __version__
from forecause.options import (
    ByName,
    ForecasterName,
    HeadChoice,
    InstantaneousName,
    PresetName,
    ReadoutName,
    RuleName,
)

app = typer.Typer(
    name="forecause",
    help="Train a forecaster on your time series and read the lagged causal graph out of it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Seed = Annotated[int, typer.Option(help="The same seed gives the same result.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        typer.echo(f"forecause {__version__}")
        raise typer.Exit


@app.command()
def discover(
    data: Annotated[
        list[Path],
        typer.Argument(help="CSV, TSV, Parquet, Feather, NPY, NPZ or NetCDF; a series each."),
    ],
    max_lag: Annotated[
        str,
        typer.Option(help="The longest delay to look for, in rows; auto proposes one."),
    ] = "5",
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results.  [default: DATA-forecause]")
    ] = None,
    forecaster: Annotated[
        ForecasterName, typer.Option(help="What predicts; auto takes the best per variable.")
    ] = "auto",
    preset: Annotated[
        PresetName, typer.Option(help="paper: the published model, readout and rule.")
    ] = "default",
    weights: Annotated[
        str | None,
        typer.Option(help="Chronos-2 weights for --forecaster chronos: a folder or a hub id."),
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
    by: Annotated[ByName, typer.Option(help="What top-k and global-top-k compare.")] = "score",
    fdr: Annotated[
        float | None,
        typer.Option(help="Accepted share of false edges.  [default: 0.02, 0.05 with few rows]"),
    ] = None,
    time: Annotated[str | None, typer.Option(help="Column with the time.")] = None,
    series: Annotated[str | None, typer.Option(help="Column that tells series apart.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="Columns that hold labels, not numbers; several by comma.")
    ] = None,
    per_series: Annotated[
        bool, typer.Option("--per-series", help="Also a graph for every series.")
    ] = False,
    domain: Annotated[
        str | None, typer.Option(help="Column with known regimes; each gets a graph.")
    ] = None,
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
    interpolate: Annotated[
        int, typer.Option(help="Fill gaps of at most this many missing values.")
    ] = 0,
    seed: Seed = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    json: Annotated[
        Path | None, typer.Option(help="Also write the graph as JSON to this file.")
    ] = None,
    power: Annotated[
        bool, typer.Option("--power", help="Also measure which edges can be found; takes longer.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Find which variable drives which, with which delay, and write a report."""
    from forecause import terminal
    from forecause.knowledge import read_knowledge
    from forecause.pipeline import discover as run

    asked: dict[str, Any] = {"readout": readout, "select": select, "k": k, "fdr": fdr}
    asked |= {"domain_input": domain_input, "weights": weights}
    asked["labels"] = [name.strip() for name in labels.split(",")] if labels else None
    forbidden, required = read_knowledge(knowledge) if knowledge else ((), ())
    if preset != "paper" or forecaster != "auto":
        asked["forecaster"] = forecaster
    with terminal.progress(quiet) as report:
        found = run(
            data[0] if len(data) == 1 else list(data),
            _lags(max_lag),
            preset=preset,
            head=head,
            by=by,
            cross_fit=cross_fit,
            time=time,
            series=series,
            domain=domain,
            per_series=per_series,
            regimes=regimes,
            forbid=(*forbidden, *(forbid or ())),
            require=(*required, *(require or ())),
            interpolate=interpolate,
            seed=seed,
            device=device,
            report=report,
            **{name: value for name, value in asked.items() if value is not None},
        )
        if power:
            found = found.with_power(report=report)
        report("writing the results", 0.0)
        folder = found.save(out or Path(f"{data[0].stem}-forecause"))
    if json:
        found.graph.to_json(json)
    terminal.show_discovery(found, folder)


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("forecause-demo"),
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Simulate a system with a known graph, discover it and compare."""
    from forecause import terminal
    from forecause.graph.metrics import score_graph
    from forecause.pipeline import discover as run
    from forecause.simulate import simulate

    system = simulate(nodes=6, max_lag=3, rows=5000, mechanism="mlp-add", seed=seed)
    system.save(out / "truth")
    with terminal.progress(quiet) as report:
        found = run(out / "truth" / "data.csv", 3, seed=seed, report=report)
        folder = found.save(out)
        found.report(folder / "report.html", truth=system.graph)
    terminal.show_discovery(found, folder)
    terminal.show_scores(score_graph(found.graph, system.graph))


@app.command()
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
    from forecause.simulate import simulate as run

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


@app.command()
def score(
    predicted: Annotated[Path, typer.Argument(help="A graph.json.")],
    truth: Annotated[Path, typer.Argument(help="The graph.json to compare it with.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Compare a graph with the true one, by every metric."""
    from forecause import terminal
    from forecause.graph.lagged import LaggedGraph
    from forecause.graph.metrics import score_graph

    metrics = score_graph(LaggedGraph.from_json(predicted), LaggedGraph.from_json(truth))
    if json:
        terminal.show_json(metrics)
    else:
        terminal.show_scores(metrics)


@app.command()
def power(
    folder: Annotated[Path, typer.Argument(help="A folder written by discover.")],
    repeats: Annotated[
        int | None,
        typer.Option(help="Simulations.  [default: 5 for linear or additive, otherwise 1]"),
    ] = None,
    seed: Seed = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quiet: Quiet = False,
) -> None:
    """Simulate from a saved run, discover again: which edges can be found in such data?"""
    from forecause import load, terminal

    with terminal.progress(quiet) as report:
        found = load(folder).with_power(seed=seed, repeats=repeats, report=report)
        found.save(folder)
    terminal.show_power(found, as_json=json)


@app.command()
def refine(
    folder: Annotated[Path, typer.Argument(help="A folder written by discover.")],
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
    quiet: Quiet = False,
) -> None:
    """Look past an assumption: hidden common causes, or effects within a row."""
    from forecause import terminal
    from forecause.store import load_run

    with terminal.progress(quiet) as report:
        found = load_run(folder).refine(
            latent=latent,
            instantaneous=instantaneous,
            method=method,
            data=(data[0] if len(data) == 1 else data) if data else None,
            report=report,
        )
        written = found.save(out or folder.with_name(f"{folder.name}-refined"))
    terminal.show_discovery(found, written)


@app.command()
def evaluate(
    data: Annotated[
        list[Path],
        typer.Argument(help="CSV, TSV, Parquet, Feather, NPY, NPZ or NetCDF; a series each."),
    ],
    max_lag: Annotated[int, typer.Option(help="How many rows back the forecaster looks.")] = 5,
    steps: Annotated[int, typer.Option(help="Rows to forecast from each origin.")] = 12,
    origins: Annotated[int, typer.Option(help="Places to forecast from, in every series.")] = 5,
    season: Annotated[
        str, typer.Option(help="Rows of a season for seasonal naive; auto finds it, none: no.")
    ] = "auto",
    refit: Annotated[
        Literal["auto", "first", "every"],
        typer.Option(help="Fit at every origin or the first alone.  auto: every, if it is quick."),
    ] = "auto",
    forecaster: Annotated[
        ForecasterName, typer.Option(help="What predicts; auto takes the best per variable.")
    ] = "auto",
    preset: Annotated[PresetName, typer.Option(help="quick: shorter training.")] = "default",
    time: Annotated[str | None, typer.Option(help="Column with the time.")] = None,
    series: Annotated[str | None, typer.Option(help="Column that tells series apart.")] = None,
    domain: Annotated[str | None, typer.Option(help="Column with known regimes.")] = None,
    interpolate: Annotated[
        int, typer.Option(help="Fill gaps of at most this many missing values.")
    ] = 0,
    seed: Seed = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Also write the errors by step to this CSV file.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Forecast held-out rows from several origins, beside seasonal naive and a VAR."""
    from forecause import Panel, terminal
    from forecause.evaluation import rolling_origin

    panel = Panel.of(
        data[0] if len(data) == 1 else list(data),
        time=time,
        series=series,
        domain=domain,
        interpolate=interpolate,
    )
    with terminal.progress(quiet) as report:
        found = rolling_origin(
            panel,
            max_lag,
            steps=steps,
            origins=origins,
            season=_season(season),
            refit=refit,
            forecaster=forecaster,
            preset=preset,
            seed=seed,
            device=device,
            report=report,
        )
    if out:
        found.table.to_csv(out, index=False)
    terminal.show_evaluation(found)


def _season(text: str) -> int | Literal["auto"] | None:
    if text in ("auto", "none"):
        return "auto" if text == "auto" else None
    if not text.isdecimal():
        raise typer.BadParameter(f"expected a whole number, auto or none, found {text!r}.")
    return int(text)


@app.command()
def bench(
    suite: Annotated[str, typer.Argument(help="Name of the suite; --list shows them.")] = "quick",
    rows: Annotated[str | None, typer.Option(help="Rows per system, several by comma.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Systems per column.")] = None,
    methods: Annotated[str | None, typer.Option(help="Methods, by comma.")] = None,
    columns: Annotated[str | None, typer.Option(help="Columns, by comma.")] = None,
    limit: Annotated[float | None, typer.Option(help="Most seconds per job.")] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Processes.  [default: one per core]", show_default=False)
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of recorded data, for the suites that need it.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results.  [default: bench-SUITE]")
    ] = None,
    quiet: Quiet = False,
    show: Annotated[bool, typer.Option("--list", help="Show the suites and end.")] = False,
) -> None:
    """Run a benchmark beside the paper's figures; a stopped run continues where it was."""
    from forecause.benchmark.options import names, numbers
    from forecause.benchmark.suites import describe_suites, find_suite

    if show:
        typer.echo("\n".join(describe_suites()))
        return
    chosen = find_suite(suite)
    from forecause import terminal
    from forecause.benchmark.run import run_suite

    try:
        with terminal.progress(quiet) as report:
            done = run_suite(
                chosen,
                rows=numbers(rows),
                seeds=seeds,
                methods=names(methods),
                columns=names(columns),
                limit=limit,
                jobs=jobs,
                data=data,
                out=out,
                report=report,
            )
    except _Interrupted:
        _fail("stopped; finished jobs are kept, the same command continues.", 130)
    typer.echo("\n".join([*done.verdict, f"table: {done.table}"]))


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder written by discover.")],
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
    """Write the page of a saved run again, beside another run or the truth."""
    from forecause.graph.lagged import LaggedGraph
    from forecause.store import PAGE, load_run

    found = load_run(folder)
    page = found.report(
        out or folder / PAGE,
        compare=load_run(compare) if compare else None,
        truth=LaggedGraph.from_json(truth) if truth else None,
    )
    typer.echo(str(page))


def _lags(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.lstrip("-").isdecimal():
        raise typer.BadParameter(f"expected a whole number or auto, found {text!r}.")
    return int(text)


class _Interrupted(BaseException):
    """Ctrl-C, under a name that no library on the way catches."""


def main() -> None:
    """Run the command; 0 done, 2 the input or the call is wrong, 1 our fault, 130 interrupted."""
    from forecause.errors import InputError

    signal.signal(signal.SIGINT, _interrupt)
    try:
        app()
    except InputError as error:
        _fail(str(error), 2)
    except _Interrupted:
        _fail("stopped; nothing was written.", 130)
    except Exception as error:
        if os.environ.get("FORECAUSE_DEBUG"):
            raise
        _fail(f"{type(error).__name__}: {error} (set FORECAUSE_DEBUG=1 for the details)", 1)


def _interrupt(_signal: int, _frame: object) -> None:
    raise _Interrupted


def _fail(sentence: str, code: int) -> None:
    sys.stderr.write(f"forecause: {sentence}\n")
    raise SystemExit(code)
