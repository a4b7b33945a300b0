"""The paper's own table of a real suite, whole: it has methods that are not run here."""

from __future__ import annotations

from forecause_bench.aggregate import Results
from forecause_bench.document import Block, Heading, Paragraph, Table, Text
from forecause_bench.paper import Figure, paper_rows
from forecause_bench.real.words import REAL_NAMES

DIGITS = 3


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
