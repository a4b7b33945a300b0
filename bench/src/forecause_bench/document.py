"""A small document of headings, paragraphs, lists, tables and pictures, as Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

Style = Literal["", "best", "second", "quoted"]
_HTML_TAGS = {"best": "b", "second": "u", "quoted": "i"}
_CSS = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse;margin:1em 0;display:block;overflow-x:auto}"
    "th,td{padding:.25em .7em;border-bottom:1px solid #ddd;text-align:right;white-space:nowrap}"
    "th:first-child,td:first-child{text-align:left}th{border-bottom:2px solid #444}"
    "i{color:#777}img{max-width:100%}"
)


@dataclass(frozen=True)
class Text:
    """A cell of a table: plain, the best, the second best, or quoted from elsewhere."""

    text: str
    style: Style = ""

    def markdown(self) -> str:
        plain = self.text.replace("|", "\\|")
        match self.style:
            case "best":
                return f"**{plain}**"
            case "second":
                return f"<u>{plain}</u>"
            case "quoted":
                return f"*{plain}*"
        return plain

    def html(self) -> str:
        plain = escape(self.text)
        tag = _HTML_TAGS.get(self.style)
        return f"<{tag}>{plain}</{tag}>" if tag else plain


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2

    def markdown(self) -> str:
        return f"{'#' * self.level} {self.text}"

    def html(self) -> str:
        return f"<h{self.level}>{escape(self.text)}</h{self.level}>"


@dataclass(frozen=True)
class Paragraph:
    text: str

    def markdown(self) -> str:
        return self.text

    def html(self) -> str:
        return f"<p>{escape(self.text)}</p>"


@dataclass(frozen=True)
class Lines:
    """A list of points."""

    lines: Sequence[str]

    def markdown(self) -> str:
        return "\n".join(f"- {line}" for line in self.lines)

    def html(self) -> str:
        return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in self.lines) + "</ul>"


@dataclass(frozen=True)
class Table:
    """A header and rows of cells; the first column names the row."""

    header: Sequence[str]
    body: Sequence[Sequence[Text]]
    words: bool = False  # cells are sentences: Markdown sets them to the left

    def markdown(self) -> str:
        rows = [[Text(name).markdown() for name in self.header]]
        rows.append(["---", *["---" if self.words else "---:"] * (len(self.header) - 1)])
        rows.extend([cell.markdown() for cell in row] for row in self.body)
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)

    def html(self) -> str:
        header = "".join(f"<th>{escape(name)}</th>" for name in self.header)
        rows = ["".join(f"<td>{cell.html()}</td>" for cell in row) for row in self.body]
        body = "".join(f"<tr>{row}</tr>\n" for row in rows)
        return f"<table><thead><tr>{header}</tr></thead><tbody>\n{body}</tbody></table>"


@dataclass(frozen=True)
class Picture:
    """A picture that lies beside the document as PNG and SVG; `path` has no ending."""

    title: str
    path: str

    def markdown(self) -> str:
        return f"![{self.title}]({self.path}.png)"

    def html(self) -> str:
        return f'<p><img src="{escape(self.path)}.svg" alt="{escape(self.title)}"></p>'


Block = Heading | Paragraph | Lines | Table | Picture


def to_markdown(blocks: Sequence[Block]) -> str:
    """The whole document as Markdown."""
    return "\n\n".join(block.markdown() for block in blocks) + "\n"


def to_html(title: str, blocks: Sequence[Block]) -> str:
    """The whole document as one HTML page without scripts."""
    body = "\n".join(block.html() for block in blocks)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f"</title><style>{_CSS}</style></head><body>\n{body}\n</body></html>\n"
    )
