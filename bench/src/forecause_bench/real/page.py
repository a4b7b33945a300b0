"""What the page of a real suite says, how it calls its metrics, and the paper's own table of it.

That table is shown whole: it has methods that are not run here.
"""

from __future__ import annotations

from forecause_bench.aggregate import Results
from forecause_bench.document import Block, Heading, Paragraph, Table, Text
from forecause_bench.paper import Figure, paper_rows

DIGITS = 3
_SELF = {"summary": "self-links included", "summary_no_self": "without self-links"}
_METRICS = {
    "auroc": "AUROC",
    "average_precision": "Average precision",
    "auprc_trapezoid": "AUPRC by trapezoids",
}
REAL_NAMES = {
    f"{view}/{metric}": f"{name} of the summary graph, {which}"
    for view, which in _SELF.items()
    for metric, name in _METRICS.items()
}
REAL_VIEWS = {
    "summary_no_self/auroc": "AUROC without self-links",
    "summary/auroc": "AUROC",
    "summary_no_self/average_precision": "average precision without self-links",
    "summary/average_precision": "average precision",
    "summary_no_self/f1": "F1 without self-links",
    "summary/f1": "F1",
}
REAL_READING = (
    "The truth says which variable drives which, not when: a pair's score is its largest over the "
    "lags. Mean ± standard deviation over seeds. AUROC and average precision tell how well the "
    "pairs are ranked, whatever edges a method chooses; the AUPRC by trapezoids is the area under "
    "straight lines between the points of the precision-recall curve, from recall 0 and precision "
    "1 on, as some published tables have it. Bold is best, underlined second, among the methods "
    "with a result for every seed. No method in this section sees the truth."
)


def published_tables(results: Results) -> list[Block]:
    """One table per metric that the paper reports; nothing if it does not have these columns."""
    places = dict(cell.paper for cell in results.suite.cells if cell.paper)  # table -> a column
    columns = [cell.paper[1] for cell in results.suite.cells if cell.paper]
    blocks: list[Block] = []
    for table in places:
        for metric in results.suite.metrics:
            if rows := paper_rows(table, metric):
                blocks.append(Heading(REAL_NAMES[metric], 3))
                blocks.append(_table(rows, columns))
    if not blocks:
        return []
    note = "Means ± standard deviations over five seeds; DOT is the paper's low-complexity variant."
    return [Heading("As published in the paper"), Paragraph(note), *blocks]


def _table(rows: dict[str, dict[str, Figure]], columns: list[str]) -> Table:
    body = [
        [Text(name), *[Text(_text(figures.get(column)), "quoted") for column in columns]]
        for name, figures in rows.items()
    ]
    return Table(["Method", *columns], body)


def _text(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    spread = "" if figure.sd is None else f"±{figure.sd:.{DIGITS}f}"
    return f"{figure.mean:.{DIGITS}f}{spread}"
