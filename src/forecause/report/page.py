"""The report: one HTML file that works offline."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment

from forecause import __version__
from forecause.report.picture import graph_svg

if TYPE_CHECKING:
    from forecause.discovery import Discovery


def write_report(found: Discovery, path: Path) -> Path:
    """Render the page; names from the data are escaped, never interpreted."""
    template = (files("forecause.report") / "page.html.j2").read_text(encoding="utf-8")
    page = Environment(autoescape=True).from_string(template)
    path.write_text(
        page.render(
            found=found,
            data=found.data,
            edges=found.graph.edges.to_dict(orient="records"),
            losses=found.losses.reset_index().to_dict(orient="records"),
            candidates=list(found.losses.columns.drop("chosen")),
            picture=graph_svg(found.graph),
            settings=found.settings.model_dump(mode="json"),
            version=__version__,
        ),
        encoding="utf-8",
    )
    return path
