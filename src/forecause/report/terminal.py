"""What the command shows: progress on stderr, results on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from forecause.data.sampling import delay_text
from forecause.forecast.comparison import over_mean
from forecause.graph.edge_table import edge_records
from forecause.progress import QUIET, Progress, TerminalProgress
from forecause.report.words import NOTHING_FOUND, change_text, top_links

if TYPE_CHECKING:
    import pandas as pd

    from forecause.effects.what_if import Effect
    from forecause.evaluate import Evaluation
    from forecause.result import Result


MOST_LINES = 40  # of a table on the terminal; all are in edges.csv and in the report


def progress(quiet: bool) -> Progress:
    """A bar on stderr, unless quiet."""
    return QUIET if quiet else TerminalProgress()


def show_discovery(run: Result, folder: Path, aside: bool = False) -> None:
    """The strongest edges, how well each variable is forecast, and where the results are.

    On stderr if the results stand `aside` of what a program reads from stdout.
    """
    console = Console(stderr=aside)
    data = run.data
    for finding in run.findings:
        if finding.gravity == "doubt":
            console.print(Text(finding.warning, style="bold"), soft_wrap=True)
    for note in data.notes:
        console.print(Text(note), soft_wrap=True)
    console.print(
        Text(
            f"{len(data.variables)} variables, {data.rows:,} rows, {data.windows:,} windows"
            + (f" ({data.lost_share:.1%} lost to missing values)" if data.lost_share else "")
        )
    )
    if len(run.graph):
        _show_edges(run, console)
    else:
        console.print(Text(NOTHING_FOUND, style="bold"), soft_wrap=True)
    labels = "; of labels, the Brier score" if data.labels else ""
    title = f"held-out squared error{labels} (1 = no better than the mean)"
    console.print(_loss_table(over_mean(run.losses), title))
    _count_rest(len(run.losses), "report.html", console)
    if run.nll is not None:
        title = "held-out negative log-likelihood, by which the forecaster was chosen"
        console.print(_loss_table(run.nll, title))
    if run.graph.domains:
        console.print(Text(_in_common(run)))
        console.print(_domain_table(run))
    for finding in run.findings:
        if finding.gravity != "doubt":  # those were said first
            console.print(Text(f"note: {finding.sentence}"), soft_wrap=True)
    if run.measured_power:
        console.print(Text(f"note: {run.measured_power.sentence}"), soft_wrap=True)
    console.print(Text(f"report: {folder / 'report.html'}"), soft_wrap=True)


def show_scores(metrics: Mapping[str, Any]) -> None:
    """Metrics as a table, one column per view of the graph, and what chance alone would give."""
    views = {name: values for name, values in metrics.items() if name != "null"}
    table = Table("metric", *[name.replace("_", " ") for name in views])
    for name in dict.fromkeys(name for values in views.values() for name in values):
        table.add_row(name.replace("_", " "), *[_number(v.get(name)) for v in views.values()])
    chance = [_number(metrics["null"][view].get("f1")) for view in views]
    table.add_row("f1 by chance", *chance)
    Console().print(table)


def show_power(run: Result, as_json: bool) -> None:
    """Recovered and false edges per strength, and the answer in words."""
    power = run.measured_power
    if power is None:
        return
    if as_json:
        show_json(power.to_dict())
        return
    table = Table("strength", "edges", "recovered", "found", "false")
    for row in power.to_dict()["strengths"]:
        upper = f"to {row['to']:g}" if row["to"] is not None else "and more"
        counts = [_number(row[name]) for name in ("edges", "recovered", "found", "false")]
        table.add_row(f"{row['from']:g} {upper}", *counts)
    console = Console()
    console.print(table)
    console.print(Text(power.sentence), soft_wrap=True)


def show_effects(run: Result, effects: Sequence[Effect], as_json: bool) -> None:
    """The change and its interval at every lag asked for, and on what it rests."""
    rows = [
        {
            "source": one.source,
            "target": one.target,
            "lag": one.lag,
            "shift": one.shift,
            "change": _finite(one.change),
            "low": _finite(one.low),
            "high": _finite(one.high),
            "level": one.level,
        }
        for one in effects
    ]
    if as_json:
        show_json(rows)
        return
    first = effects[0]
    table = Table("after", f"change of {first.target}", "90 % interval")
    for one in effects:
        interval = "-" if one.low != one.low else f"{one.low:.4g} to {one.high:.4g}"
        table.add_row(delay_text(one.lag, run.timing), _short(one.change), interval)
    console = Console()
    shift = f"{first.source} one standard deviation ({first.shift:.3g}) higher:"
    console.print(Text(shift), soft_wrap=True)
    console.print(table)
    console.print(Text(first.caveat), soft_wrap=True)


def show_forecast(bands: pd.DataFrame, as_json: bool) -> None:
    """One line per step and variable, with its bands."""
    if as_json:
        sys.stdout.write(bands.to_json(orient="records", date_format="iso", indent=2) + "\n")
        return
    step = str(bands.columns[0])
    table = Table(step, "variable", "forecast", "80 % band", "95 % band")
    for row in bands.to_dict(orient="records"):
        ends = [f"{_short(row[f'low_{n}'])} to {_short(row[f'high_{n}'])}" for n in (80, 95)]
        table.add_row(
            str(row[step]).removesuffix(" 00:00:00"),
            Text(str(row["variable"])),
            _short(row["forecast"]),
            *ends,
        )
    Console().print(table)


def show_evaluation(evaluation: Evaluation) -> None:
    """Error of every method per variable, relative to its own past, and the answer in words."""
    mase = evaluation.summary.pivot_table("mase", "variable", "method", sort=False)
    table = Table("variable", "season", *mase.columns)
    for variable, row in mase.iterrows():
        season = evaluation.seasons[str(variable)]
        table.add_row(
            Text(str(variable)), str(season) if season > 1 else "-", *[f"{x:.3f}" for x in row]
        )
    console = Console()
    console.print(table)
    for sentence in (
        "mean absolute error; 1: that of seasonal naive one season ahead, before the first origin.",
        evaluation.sentence,
        *evaluation.notes,
    ):
        console.print(Text(sentence), soft_wrap=True)


def show_json(value: Any) -> None:
    """Plain JSON on stdout."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def _show_edges(run: Result, console: Console) -> None:
    """The strongest links as sentences, then all edges."""
    for link in top_links(run):
        grade = f" ({link['grade']})" if link["grade"] else ""
        much = f": {link['amount']}" if link["amount"] else ""
        console.print(Text(f"- {link['claim']}{grade}{much}."), soft_wrap=True)
    console.print(_edge_table(run))
    _count_rest(len(run.graph), "edges.csv", console)


def _count_rest(lines: int, where: str, console: Console) -> None:
    if lines > MOST_LINES:
        console.print(Text(f"... and {lines - MOST_LINES} more in {where}"))


def _edge_table(run: Result) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in ("source", "target"):
        table.add_column(name, overflow="fold")
    for name in ("after", "per sd [90 %]", "share", "grade"):
        table.add_column(name, no_wrap=True)
    edges: list[Mapping[str, Any]] = [*edge_records(run.graph.edges.head(MOST_LINES))]
    for edge in edges:
        table.add_row(
            Text(str(edge["source"])),
            Text(str(edge["target"])),
            delay_text(int(edge["lag"]), run.timing),
            Text(change_text({str(name): cell for name, cell in edge.items()})),
            _number(edge["share"]),
            str(edge.get("grade") or "-"),
        )
    return table


def _domain_table(run: Result) -> Table:
    table = Table("domain", "windows", "edges")
    for name, windows in run.data.domain_windows.items():
        graph = run.graph.domains.get(name)
        table.add_row(
            Text(name), f"{windows:,}", "too few rows" if graph is None else f"{len(graph)}"
        )
    return table


def _in_common(run: Result) -> str:
    shared, changing = len(run.graph.invariant), len(run.graph.changes)
    return f"graph per domain: {shared} edges in all of them, {changing} in some"


def _loss_table(losses: pd.DataFrame, title: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("variable")
    for name in losses.columns:
        table.add_column(str(name))
    for variable, row in losses.head(MOST_LINES).iterrows():
        table.add_row(Text(str(variable)), *[_number(value) for value in row])
    return table


def _finite(value: float) -> float | None:
    return value if value == value else None


def _short(value: float) -> str:
    return "-" if value != value else f"{value:.4g}"


def _number(value: Any) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
