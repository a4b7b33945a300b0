"""What the command shows: progress on stderr, results on stdout."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from forecause.data.summary import delay_text
from forecause.diagnostics.finding import listed
from forecause.forecast.comparison import over_mean
from forecause.graph.edge_table import between_variables, edge_records
from forecause.progress import QUIET, Progress, TerminalProgress
from forecause.report.shapes import edge_shapes
from forecause.report.words import (
    NOTHING_FOUND,
    change_text,
    data_line,
    headline,
    key_of,
    short_names,
    top_links,
)

if TYPE_CHECKING:
    import pandas as pd

    from forecause.effects.direct_effect import Effect
    from forecause.effects.evaluate import Evaluation
    from forecause.graph.lagged import LaggedGraph
    from forecause.result import Result


MOST_LINES = 40  # of a table on the terminal; all are in edges.csv and in the report
MOST_SENTENCES, MOST_LINKS = 5, 10  # shown unless more is asked for
MIN_NAME = 12  # letters that a name keeps, however narrow the terminal


def progress(quiet: bool) -> Progress:
    """A bar on stderr, unless quiet."""
    return QUIET if quiet else TerminalProgress()


def show_discovery(run: Result, folder: Path, aside: bool = False, verbose: bool = False) -> None:
    """The headline, a few sentences, the strongest links and where the page is; all if `verbose`.

    On stderr if the results stand `aside` of what a program reads from stdout.
    """
    console = Console(stderr=aside)
    console.print(Text(headline(run), style="bold"))
    _say(data_line(run), console, run)
    said, rest = _sentences(run, verbose)
    for sentence in said:
        _say(sentence, console, run, bullet="- ")
    if len(run.graph):
        _show_edges(run, console, verbose)
    if verbose:
        _show_more(run, console)
    elif rest:
        _say(f"{_counted(rest, 'more note')} on the page, or with -v.", console, run)
    console.print(Text(f"report: {folder / 'report.html'}"), soft_wrap=True)


def _sentences(run: Result, verbose: bool) -> tuple[list[str], int]:
    """What is said, and how many notes are not.

    Cells that may be no values, doubts, the table, links, then other findings.
    """
    findings = [one for one in run.findings if one.gravity != "doubt"]
    odd = [f"note: {one.sentence}" for one in findings if one.kind == "odd-values"]
    others = [f"note: {one.sentence}" for one in findings if one.kind != "odd-values"]
    doubts = [finding.warning for finding in run.findings if finding.gravity == "doubt"]
    links = [_link_sentence(link) for link in top_links(run)] or [NOTHING_FOUND]
    power = [f"note: {run.measured_power.sentence}"] if run.measured_power else []
    notes = sorted(run.data.notes, key=lambda note: note.endswith("was taken as the time."))
    if verbose:
        return [*odd, *doubts, *power, *notes, *links, *others], 0
    changes = run.panel.changes if run.panel else ()
    gone = {change.sentence: change.column for change in changes if change.kind == "left out"}
    if len(gone) > 1:
        notes = [_left_out([*gone.values()]), *(note for note in notes if note not in gone)]
    said = [*odd[:1], *doubts[:2], *power, *notes[:1], *links, *notes[1:], *others]
    said = said[:MOST_SENTENCES]
    return said, len({*odd, *doubts, *notes, *others} - set(said))


def _left_out(columns: Sequence[str | None]) -> str:
    """Columns that are no variables, in one sentence."""
    shown = listed([repr(name) for name in columns])
    return f"{len(columns)} columns were left out: {shown}; -v says why."


def _show_more(run: Result, console: Console) -> None:
    """How well each variable is forecast, and the graphs of the domains."""
    labels = "; of labels, the Brier score" if run.data.labels else ""
    title = f"held-out squared error{labels} (1 = no better than the mean)"
    console.print(_loss_table(over_mean(run.losses), title, console.width))
    _count_rest(len(run.losses), MOST_LINES, "report.html", console)
    if run.nll is not None:
        title = "held-out negative log-likelihood, by which the forecaster was chosen"
        console.print(_loss_table(run.nll, title, console.width))
    if run.graph.domains:
        console.print(Text(_in_common(run)))
        console.print(_domain_table(run))


def show_agreement(lagged: Mapping[str, Any]) -> None:
    """A found graph beside the true one, in a sentence."""
    true, found = int(lagged["true_edges"]), int(lagged["predicted_edges"])
    right = round(lagged["recall"] * true)
    text = (
        f"truth: {right} of {true} true links found, {found - right} false (F1 {lagged['f1']:.2f})"
    )
    Console().print(Text(text))


def show_next(folder: Path) -> None:
    """After the demo: what to do with a table of one's own."""
    program = _program()
    for line in (
        f"Open {folder / 'report.html'} in a browser.",
        "Your own table, time running down its rows:",
        f"  {program} discover data.csv --max-lag 5",
    ):
        Console().print(Text(line), soft_wrap=True)


def _program() -> str:
    """The command as it was called, from here."""
    called = Path(sys.argv[0])
    if called.name != "forecause":
        return "forecause"
    return os.path.relpath(called) if called.parent.name == "bin" else "forecause"


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
            "kind": "total" if one.total else "direct",
        }
        for one in effects
    ]
    if as_json:
        show_json(rows)
        return
    first = effects[0]
    kind = "total" if first.total else "direct"
    console = Console()
    for push, some in groupby(effects, lambda one: one.push):
        table = Table("after", f"{kind} change of", "", "90 % interval")
        for one in some:
            interval = "-" if one.low != one.low else f"{one.low:.4g} to {one.high:.4g}"
            after = delay_text(one.lag, run.timing)
            table.add_row(after, Text(one.target), _short(one.change), interval)
        console.print(Text(f"{push}:"), soft_wrap=True)
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


def _link_sentence(link: Mapping[str, Any]) -> str:
    """X4 raises X1 after 2 rows (firm): by 1.26 per standard deviation of X4 (1.1)."""
    grade = f" ({link['grade']})" if link["grade"] else ""
    return f"{link['claim']}{grade}{': ' + link['amount'] if link['amount'] else ''}."


def _say(sentence: str, console: Console, run: Result, bullet: str = "") -> None:
    """A sentence, wrapped for a terminal so that no name is split; piped, on one line."""
    if not (console.is_terminal or "COLUMNS" in os.environ):
        console.print(Text(bullet + sentence), soft_wrap=True)
        return
    for name in run.data.variables:
        if " " in name:
            sentence = sentence.replace(name, name.replace(" ", "\u00a0"))
    lines = textwrap.wrap(
        sentence,
        console.width,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )
    console.print(Text("\n".join(lines).replace("\u00a0", " ")), soft_wrap=True)


def _show_edges(run: Result, console: Console, verbose: bool) -> None:
    """The strongest links between variables; those to its own past are no news."""
    edges = run.graph.edges
    between = between_variables(edges)
    shown = edges if verbose else edges[between] if between.any() else edges
    most = MOST_LINES if verbose else MOST_LINKS
    console.print(_edge_table(run, shown.head(most), console.width))
    _count_rest(len(shown), most, "edges.csv", console)
    own = len(edges) - len(shown)
    if own:
        console.print(Text(f"{_counted(own, 'link')} of a variable to its own past: edges.csv"))


def _count_rest(lines: int, shown: int, where: str, console: Console) -> None:
    if lines > shown:
        console.print(Text(f"... and {lines - shown} more in {where}"))


def _edge_table(run: Result, edges: pd.DataFrame, width: int) -> Table:
    """One line per link; names that are too long for that stand below each other, whole."""
    shapes = edge_shapes(run.data, run.evidence)
    rows = []
    for edge in edge_records(edges):
        key = key_of(edge)
        change, grade = change_text(edge, shapes.get(key, "")), str(edge.get("grade") or "-")
        rows.append((delay_text(key[2], run.timing), change, grade))
    heads = ("after", "per sd [90 %]", "grade")
    taken = sum(max(len(row[i]) for row in (*rows, heads)) + 2 for i in range(len(heads))) + 1
    ends = [[str(name) for name in edges[end]] for end in ("source", "target")]
    beside = sum(max(map(len, [*names, "source"])) + 2 for names in ends) <= width - taken
    short = short_names(ends[0] + ends[1], max(width - taken - 4, MIN_NAME))
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for name in (*(("source", "target") if beside else ("link",)), *heads):
        table.add_column(name, no_wrap=True)
    for source, target, row in zip(*ends, rows, strict=True):
        both = f"{short[source]}\n\u2192 {short[target]}"
        named = (source, target) if beside else (both,)
        cells = row if beside else tuple(f"\n{cell}" for cell in row)
        table.add_row(*map(Text, (*named, *cells)))
    return table


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _domain_table(run: Result) -> Table:
    table = Table("domain", "windows", "links")
    for name, windows in run.data.domain_windows.items():
        graph = run.graph.domains.get(name)
        table.add_row(
            Text(name), f"{windows:,}", "too few rows" if graph is None else _links_between(graph)
        )
    return table


def _links_between(graph: LaggedGraph) -> str:
    return f"{int(between_variables(graph.edges).sum())}"


def _in_common(run: Result) -> str:
    changing = int(between_variables(run.graph.changes.reset_index()).sum())
    shared = _links_between(run.graph.invariant)
    return f"graph per domain: {shared} links in all of them, {changing} in some"


def _loss_table(losses: pd.DataFrame, title: str, width: int) -> Table:
    """One line per variable; a narrow terminal shows the best alone, in whole words."""
    chosen = "chosen"
    names = list(map(str, losses.columns))
    if sum(max(len(name), 5) + 3 for name in names) + 20 > width:
        kept = [name for name in ("naive", "linear") if name in names]
        best = [float(row[row[chosen]]) for row in losses.to_dict(orient="records")]
        losses = losses[[*kept, chosen]].assign(best=best)[[*kept, "best", chosen]]
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("variable", no_wrap=True)
    for name in losses.columns:
        table.add_column(str(name), no_wrap=True)
    short = short_names(list(map(str, losses.index)), max(width // 2 - 10, MIN_NAME))
    for variable, row in losses.head(MOST_LINES).iterrows():
        table.add_row(Text(short[str(variable)]), *[_number(value) for value in row])
    return table


def _finite(value: float) -> float | None:
    return value if value == value else None


def _short(value: float) -> str:
    return "-" if value != value else f"{value:.4g}"


def _number(value: Any) -> str:
    if value is None or value != value:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
