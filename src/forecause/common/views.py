"""Small views for a notebook: a heading, lines and a table, as HTML without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import pandas as pd


def figure(value: float) -> str:
    """Four digits; a dash for what is not known."""
    return "-" if value != value else f"{value:.4g}"


def card(title: str, lines: Sequence[str] = (), table: pd.DataFrame | None = None) -> str:
    """A piece of HTML; all text is escaped."""
    shown = "" if table is None else _table(table)
    said = "".join(f'<p style="margin: 0 0 0.4em; opacity: 0.8">{escape(x)}</p>' for x in lines)
    head = f'<p style="font-weight: 650; margin: 0.2em 0">{escape(title)}</p>'
    style = "max-width: 46rem; font: 14px/1.5 system-ui, sans-serif"
    return f'<div style="{style}">{head}{said}{shown}</div>'


def _table(table: pd.DataFrame) -> str:
    cells = table.map(_cell)
    return str(cells.to_html(index=False, border=0, justify="left", escape=True))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return figure(value) if isinstance(value, float) else str(value)
