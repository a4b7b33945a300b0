"""Answers of a run to questions, on the terminal: a table and sentences, or plain JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from forecause.report.terminal import MOST_LINES, show_json


def show_answer(
    tables: Mapping[str, pd.DataFrame],
    sentences: Sequence[str],
    as_json: bool,
    more: Mapping[str, Any] | None = None,
) -> None:
    """Tables by name, then what they say; as JSON, with `more` numbers beside them."""
    if as_json:
        show_json({**{name: records(table) for name, table in tables.items()}, **(more or {})})
        return
    console = Console()
    for name, table in tables.items():
        if table.empty:
            continue
        drawn = Table(title=name if len(tables) > 1 else None, title_justify="left")
        for column in table.columns:
            drawn.add_column(str(column), overflow="fold")
        for row in table.head(MOST_LINES).itertuples(index=False):
            drawn.add_row(*(Text(_cell(cell)) for cell in row))
        console.print(drawn)
        if len(table) > MOST_LINES:
            console.print(Text(f"... and {len(table) - MOST_LINES} more with --out or --json"))
    for sentence in filter(None, sentences):
        console.print(Text(sentence), soft_wrap=True)


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The lines of a table as plain values; what is not known is None."""
    text = table.to_json(orient="records", date_format="iso", double_precision=10)
    found: list[dict[str, Any]] = json.loads(text)
    return found


def _cell(value: Any) -> str:
    if value is None or value is pd.NaT or value != value:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
