"""The page as a widget of a notebook: filter by delay and certainty, click links and variables.

It is the page's own document in a frame, with the page's own drawing code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from forecause.errors import MissingExtra
from forecause.report.page import graph_page, write_report

if TYPE_CHECKING:
    from forecause.graph.lagged import LaggedGraph
    from forecause.result import Result

HEIGHT = 780  # pixels
VIEW, STATIC = "FORECAUSE_VIEW", "static"  # the environment may ask for pictures instead of widgets
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


def run_widget(run: Result, height: int = HEIGHT) -> Any:
    """A widget that shows the page of a run; without scripts from elsewhere, and offline."""
    with TemporaryDirectory() as folder:
        page = write_report(run, Path(folder) / "report.html").read_text(encoding="utf-8")
    return _framed(page, height)


def graph_widget(graph: LaggedGraph, height: int = HEIGHT) -> Any:
    """The same of a graph: its picture and its edges, without the curves of a run."""
    return _framed(graph_page(graph), height)


def default_view(run: Result) -> Mapping[str, Any]:
    """What a notebook with widgets shows of a run by itself; empty where there are none.

    A notebook that cannot draw the widget falls back to the picture of `notebook_html`.
    """
    if os.environ.get(VIEW) == STATIC or not _has_kernel():
        return {}
    try:
        shown = run_widget(run)._repr_mimebundle_()
    except MissingExtra:
        return {}
    return dict(shown[0] if isinstance(shown, tuple) else shown or {})


def _has_kernel() -> bool:
    """Whether this is a notebook: IPython with a kernel, not a terminal or a script."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


def _framed(page: str, height: int) -> Any:
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise MissingExtra(error.name or "anywidget", "notebook") from error

    class GraphWidget(anywidget.AnyWidget):
        _esm = RENDER
        page = traitlets.Unicode("").tag(sync=True)
        height = traitlets.Int(HEIGHT).tag(sync=True)

    return GraphWidget(page=page, height=height)
