"""The page as a widget of a notebook: filter by delay and certainty, click links and variables.

It is the page's own document in a frame, with the page's own drawing code.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from forecause.errors import MissingExtra
from forecause.report.page import write_report

if TYPE_CHECKING:
    from forecause.result import Result

HEIGHT = 780  # pixels
RENDER = """
function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.title = "Forecause report";
  frame.sandbox = "allow-scripts";
  frame.style.cssText = "width: 100%; border: 1px solid #dde2e8; border-radius: 8px";
  frame.style.height = `${model.get("height")}px`;
  frame.srcdoc = model.get("page");
  el.append(frame);
}
export default { render };
"""


def graph_widget(run: Result, height: int = HEIGHT) -> Any:
    """A widget that shows the page of a run; without scripts from elsewhere, and offline."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise MissingExtra(error.name or "anywidget", "notebook") from error

    class GraphWidget(anywidget.AnyWidget):
        _esm = RENDER
        page = traitlets.Unicode("").tag(sync=True)
        height = traitlets.Int(HEIGHT).tag(sync=True)

    with TemporaryDirectory() as folder:
        page = write_report(run, Path(folder) / "report.html").read_text(encoding="utf-8")
    return GraphWidget(page=page, height=height)
