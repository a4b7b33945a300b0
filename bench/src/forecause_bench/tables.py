"""The tables of a suite in the paper's layout, ours beside the paper's figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from forecause_bench.aggregate import (
    LOWER_IS_BETTER,
    Column,
    Entry,
    Results,
    Row,
    lead_metric,
)
from forecause_bench.document import (
    Block,
    Heading,
    Lines,
    Paragraph,
    Picture,
    Style,
    Table,
    Text,
)
from forecause_bench.growth import growth_tables
from forecause_bench.jobs import Result
from forecause_bench.methods import METHODS
from forecause_bench.paper import Figure, paper_figure
from forecause_bench.real.page import (
    REAL_NAMES,
    REAL_READING,
    REAL_VIEWS,
    published_tables,
)
from forecause_bench.real.source import is_real
from forecause_bench.suite import BY_ROWS, FEWEST, PAPER_ROWS
from forecause_bench.verdict import verdict

NAMES = {
    "f1": "F1",
    "precision": "Precision",
    "fdr": "False discovery rate",
    "false_cross": "False links between variables, as a share of all links",
    "recall": "Recall",
    "lagged_no_self/recall": "Recall of links between variables",
    "shd": "SHD",
    "lagged_no_self/shd": "SHD of links between variables",
    "broken": "Share of the runs with two or more false links, over 15 % of those drawn",
    "silent": "Share of the runs that break their promise in silence",
    "false_links": "False links between variables, per table",
    "true_links": "True links between variables that are found, per table",
    "firm_links": "Links between variables that are called firm, per table",
    "firm_false": "False ones among the firm links, per table",
    "doubted": "Share of the runs that are doubted",
    "misfit": "Share of the runs in which the alarm speaks",
    "effect_coverage": "Share of the effects within their 90 % interval",
    "effect_width": "Width of that interval, as a share of the effect (median)",
    **{f"forecast_{n}": f"Share of the rows to come within the {n} % band" for n in (80, 90, 95)},
    "auroc": "AUROC",
    "average_precision": "Average precision",
    "missed": "Change points missed by more than 2 % of the rows, per system",
    "invented": "Change points invented, per system",
    "error": "Largest distance of a change point, as a share of the rows",
    "loss": "Held-out loss (1 = no better than the mean)",
    "seconds": "Time in seconds",
    "method_cpu_seconds": "Processor time in seconds, about the time on an idle machine",
    "products": "Time in products of two 1,024 x 1,024 matrices on one thread, just afterwards",
    "memory_mb": "Peak memory in MB",
    "spearman": "Spearman correlation with the intervention effects",
    "pearson": "Pearson correlation with the intervention effects",
    "oracle/best_threshold_f1": "F1 at the best threshold (oracle)",
    "oracle/true_k_f1": "F1 with as many edges as the truth has (oracle)",
    **REAL_NAMES,
}
CEILING = "the most that 3 edges per target can reach"
VIEWS = {
    "f1": "F1",
    "lagged_no_self/f1": "without self-links",
    "summary/f1": "summary graph",
    "summary_no_self/f1": "summary, without self-links",
    "auroc": "AUROC",
    "average_precision": "average precision",
    "lag_accuracy": "right lag",
}
MOST_COLUMNS = 12  # beside each other
NOTE = (
    "Our simulator follows the family of systems that the paper draws from, but it is not the "
    "paper's, and sizes may differ: the paper's figures (in italics) are comparable in kind only."
)
READING = (
    "Mean ± standard deviation over seeds of the lagged graph, self-links included. Bold is best, "
    "underlined second, among the methods with a result for every seed; - is not run on this "
    "column. No method in this section sees the truth. The paper's rules take 3 edges per "
    "target; the last row of a table says what such a rule can reach at most, and `0.50 of 0.53` "
    "is an F1 of 0.50 where a rule with this number of edges can reach 0.53."
)
SEGMENTS = (
    "Columns with segments compare each segment's own graph with the graph that a method found "
    "for all rows together, unless it finds one per segment, and average over the segments. "
    "Forecause is told where the segments begin and finds a graph for each; its rivals see the "
    "pooled rows, unless they are marked `each segment`."
)
PUBLISHED = (
    "DOT is the paper's transformer. How long the paper trains is not said; here it is 300 steps "
    "of 256 windows, the rate falling to zero in the last 100."
)
ORACLE = (
    "These figures use the truth to decide which edges to keep: they tell how well candidates are "
    "ranked, not what a user would get, and are not comparable with the truth-free section. They "
    "are no upper bound either: a method may decide by more than its score, as Forecause does."
)


def document(results: Results, origin: Sequence[str], pictures: Sequence[Picture]) -> list[Block]:
    """The whole page: results, verdict, oracles, other views, cost and troubles."""
    suite = results.suite
    segmented = any(cell.system.get("segments", 1) > 1 for cell in suite.cells)
    blocks: list[Block] = [Heading(suite.title, 1), Lines(list(origin))]
    real = is_real(suite)
    reading = [REAL_READING] if real else [NOTE, READING, SEGMENTS if segmented else ""]
    notes = [suite.note, PUBLISHED if "dot" in suite.methods else "", *reading]
    blocks.extend(Paragraph(note) for note in notes if note)
    asked = lead_metric(suite) == "silent"
    blocks.append(Heading("In short" if asked else "Where Forecause wins and where it loses"))
    blocks.append(Lines(verdict(results)))
    blocks.append(Heading("Truth-free results"))
    blocks.extend(_section(results, suite.metrics, oracle=False))
    blocks.extend(pictures)
    blocks.extend(growth_tables(results))
    blocks.extend([Heading("Other views of the same graphs"), *_views(results)])
    if real:
        blocks.extend(published_tables(results))
    else:
        blocks.extend([Heading("Oracle results"), Paragraph(ORACLE), *_oracle_section(results)])
    blocks.extend([Heading("Time and memory"), *_cost(results)])
    blocks.extend(_troubles(results))
    return blocks


def _section(results: Results, metrics: Sequence[str], *, oracle: bool) -> list[Block]:
    rows = results.rows(oracle=oracle)
    blocks: list[Block] = []
    for title, columns in results.layouts():
        for metric in metrics:
            blocks.append(Heading(f"{NAMES[metric]}, {title}", 3))
            blocks.append(metric_table(results, rows, columns, metric))
    return blocks


def _oracle_section(results: Results) -> list[Block]:
    """Every method's ranking at its best, then the methods that are oracles themselves."""
    blocks: list[Block] = []
    every = results.rows(oracle=False)
    for title, columns in results.layouts():
        for metric in ("oracle/best_threshold_f1", "oracle/true_k_f1"):
            blocks.append(Heading(f"{NAMES[metric]}, {title}", 3))
            blocks.append(metric_table(results, every, columns, metric))
    if results.rows(oracle=True):
        blocks.append(Heading("Methods that use the truth", 3))
        blocks.extend(_section(results, ("f1",), oracle=True))
    return blocks


def metric_table(
    results: Results, rows: Sequence[Row], columns: Sequence[Column], metric: str
) -> Table:
    """One metric: a row per method, and per column our figure with the paper's beside it.

    Many columns are written below each other instead, with their mean.
    """
    if len(columns) > MOST_COLUMNS:
        return _tall_table(results, rows, columns, metric)
    header, cells = ["Method"], [[Text(row.label)] for row in rows]
    for column in columns:
        entries = [results.entry(row, column, metric) for row in rows]
        header.append(column.heading)
        for place, text in enumerate(_marked(entries, metric)):
            most = _reachable(results, rows[place], column) if metric == "f1" else ""
            cells[place].append(replace(text, text=text.text + most))
        published = [_published(row, column, metric) for row in rows]
        if any(published):
            header.append(f"{column.heading}, paper{_paper_rows(column)}")
            for place, figure in enumerate(published):
                cells[place].append(Text(_figure(figure, metric), "quoted" if figure else ""))
    if metric == "f1":
        cells.extend(_ceilings(results, columns, header))
    return Table(header, cells)


def _tall_table(
    results: Results, rows: Sequence[Row], columns: Sequence[Column], metric: str
) -> Table:
    """A row per column of the suite and a column per method; the last row has the means."""
    body, means = [], [[Text("mean")]]
    for column in columns:
        entries = [results.entry(row, column, metric) for row in rows]
        body.append([Text(column.heading), *_marked(entries, metric)])
    for row in rows:
        every = [results.entry(row, column, metric) for column in columns]
        known = [entry.mean for entry in every if entry.complete]
        text = f"{sum(known) / len(known):.{_digits(metric)}f}" if known else "-"
        short = "" if len(known) == len(every) else f" ({len(known)} of {len(every)})"
        means[0].append(Text(text + short))
    return Table([results.suite.axis, *[row.label for row in rows]], body + means)


def _ceilings(
    results: Results, columns: Sequence[Column], header: Sequence[str]
) -> list[list[Text]]:
    """A last row that says what 3 edges for every target can reach at most, if it is known."""
    found = {column.heading: results.ceiling(column) for column in columns}
    if all(value is None for value in found.values()):
        return []
    values = [found.get(name) for name in header[1:]]
    texts = ["" if value is None else f"{value:.2f}" for value in values]
    return [[Text(name, "quoted" if name else "") for name in (CEILING, *texts)]]


def _reachable(results: Results, row: Row, column: Column) -> str:
    """What a rule with a fixed number of edges can reach at most, as ` of 0.53`."""
    rule = re.search(r"top-\d+ (per target|overall)", row.answer)
    if rule is None:
        return ""
    entry = results.entry(row, column, f"reachable_{rule[1].replace(' ', '_')}")
    return f" of {entry.mean:.2f}" if entry.values else ""


def _published(row: Row, column: Column, metric: str) -> Figure | None:
    place = column.cell.paper_column(column.rows)
    return paper_figure(*place, row.method, metric) if place else None


def _paper_rows(column: Column) -> str:
    """Which rows the paper's figure is for, where its table goes by rows."""
    by_rows = column.cell.paper is not None and column.cell.paper[1] == BY_ROWS
    return "" if not by_rows or column.rows in PAPER_ROWS else f" ({FEWEST} rows)"


def _marked(entries: Sequence[Entry], metric: str) -> list[Text]:
    """Entries as text, the best and second best marked; equal as printed is equal."""
    sign = 1 if metric in LOWER_IS_BETTER else -1
    printed = {
        place: sign * float(f"{entry.mean:.{_digits(metric)}f}")
        for place, entry in enumerate(entries)
        if entry.complete
    }
    ranked = sorted(set(printed.values())) if len(printed) > 1 else []
    texts = []
    for place, entry in enumerate(entries):
        rank = ranked.index(printed[place]) if ranked and place in printed else -1
        style: Style = "best" if rank == 0 else "second" if rank == 1 else ""
        texts.append(Text(entry_text(entry, metric), style))
    return texts


def entry_text(entry: Entry, metric: str) -> str:
    """`0.91±0.03`, what went wrong instead, or both."""
    if entry.asked == 0:
        return "-"
    troubles = [f"{entry.troubles.count(t)} {t}" for t in dict.fromkeys(entry.troubles)]
    if not entry.values:
        return troubles[0].partition(" ")[2] if len(troubles) == 1 else ", ".join(troubles)
    text = _number(entry.mean, entry.sd, metric)
    return f"{text} ({', '.join(troubles)})" if troubles else text


def _figure(figure: Figure | None, metric: str) -> str:
    return _number(figure.mean, figure.sd, metric) if figure else "-"


def _number(mean: float, sd: float | None, metric: str) -> str:
    digits = _digits(metric)
    return f"{mean:.{digits}f}" + ("" if sd is None else f"±{sd:.{digits}f}")


def _digits(metric: str) -> int:
    digits = {"shd": 1, "memory_mb": 0, "products": 0, "false_cross": 3}
    return digits.get(metric, 2)


def _views(results: Results) -> list[Block]:
    """Means over all columns that a method finished, so that rows may rest on fewer columns."""
    body = []
    lead = lead_metric(results.suite)
    views = REAL_VIEWS if is_real(results.suite) else VIEWS
    for row in results.rows(oracle=False):
        finished = [c for c in results.columns() if results.entry(row, c, lead).complete]
        cells = [Text(row.label), Text(f"{len(finished)}")]
        for metric in views:
            entries = [results.entry(row, column, metric) for column in finished]
            means = [entry.mean for entry in entries if entry.values]
            cells.append(Text(f"{sum(means) / len(means):.2f}" if means else "-"))
        body.append(cells)
    return [
        Paragraph("Means over the columns that a method finished, whose number comes first."),
        Table(["Method", "columns", *views.values()], body),
    ]


def _cost(results: Results) -> list[Block]:
    statuses = ("done", "timeout", "failed", "missing")
    body = []
    for name in results.suite.methods:
        found = results.of_method(name)
        done = [result for result in found if result["status"] == "done"]
        seconds = [result["seconds"] for result in done]
        memory = [result.get("memory_mb", 0.0) for result in found]
        counts = [str(sum(result["status"] == status for result in found)) for status in statuses]
        times = [_mean_of(done, "seconds"), f"{max(seconds):.2f}" if seconds else "-"]
        cells = [*times, _mean_of(done, "cpu_seconds"), f"{max(memory, default=0):.0f}", *counts]
        body.append([Text(METHODS[name].label), *[Text(cell) for cell in cells]])
    header = ["Method", "mean s", "longest s", "mean CPU s", "peak MB", *statuses]
    limit = f"{results.suite.limit:g}"
    return [
        Paragraph(
            "Wall time of the method alone on one thread, CPU time of the whole job, and the most "
            "memory it took on top of a process that has imported everything (what guessing takes "
            f"is what any job takes). The limit was {limit} s per job; a job over it is a timeout."
        ),
        Table(header, body),
    ]


def _mean_of(results: Sequence[Result], name: str) -> str:
    values = [result[name] for result in results if name in result]
    return f"{sum(values) / len(values):.2f}" if values else "-"


def _troubles(results: Results) -> list[Block]:
    """The errors of jobs that failed, each once."""
    errors: dict[str, int] = {}
    for name in results.suite.methods:
        for result in results.of_method(name):
            if result.get("error"):
                line = f"{METHODS[name].label}, {result['job']['cell']}: {result['error']}"
                errors[line] = errors.get(line, 0) + 1
    if not errors:
        return []
    lines = [f"{line} ({count} jobs)" if count > 1 else line for line, count in errors.items()]
    return [Heading("Failures"), Lines([" ".join(line.split()) for line in lines])]
