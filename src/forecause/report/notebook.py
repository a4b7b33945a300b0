"""What a notebook shows of a run: the headline, the doubts, the graph, the strongest links."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from jinja2 import Environment

from forecause.graph.edge_table import between_variables
from forecause.report.words import NOTHING_FOUND, data_line, delay_unit, headline, top_links

if TYPE_CHECKING:
    from forecause.graph.lagged import LaggedGraph
    from forecause.result import Result

MOST_VARIABLES = 40  # drawn; of more, the links alone are told
COLOURS = {"raises": "#0072b2", "lowers": "#d55e00", "moves": "#6c7480"}
TEMPLATE = """
<div style="max-width: 62rem; font: 14px/1.5 system-ui, sans-serif">
<p style="font-size: 1.25em; font-weight: 650; margin: 0.2em 0 0">{{ headline }}</p>
<p style="margin: 0 0 0.6em; opacity: 0.75">{{ data_line }}</p>
{% for doubt in doubts %}<p style="border-left: 3px solid #8a5a00; background: #fff4dc;
color: #18212c; padding: 0.3em 0.7em; margin: 0 0 0.6em">{{ doubt }}</p>
{% endfor %}<div style="display: flex; flex-wrap: wrap; gap: 1.2em; align-items: flex-start">
{% if picture %}<div style="flex: 1 1 32em; background: #fff; border-radius: 8px">
{{ picture | safe }}</div>{% endif %}
<div style="flex: 1 1 22em">
{% for link in links %}<p style="border-left: 4px solid {{ colours[link.direction] }};
padding-left: 0.7em; margin: 0 0 0.7em"><b>{{ link.claim }}</b>
{% if link.grade %}({{ link.grade }}){% endif %}
{% if link.amount %}<br><span style="opacity: 0.75">
{{ link.amount[0] | upper }}{{ link.amount[1:] }}</span>{% endif %}</p>
{% else %}<p>{{ nothing }}</p>
{% endfor %}<p style="opacity: 0.75; font-size: 0.9em">
{% if told %}In brackets: 90 % confidence intervals. {% endif %}
<code>.graph.edges</code> has all links, <code>.report()</code> writes the whole page.</p>
</div></div></div>
"""


def notebook_html(run: Result) -> str:
    """A piece of HTML without scripts; names from the data are escaped."""
    links, unit = top_links(run), delay_unit(run.timing)
    drawn = len(run.data.variables) <= MOST_VARIABLES
    template = Environment(autoescape=True).from_string(TEMPLATE)
    return template.render(
        headline=headline(run),
        data_line=data_line(run),
        doubts=run.doubts,
        picture=graph_svg(run.graph, unit) if drawn else "",
        links=links,
        told=any(link["amount"] for link in links),
        colours=COLOURS,
        nothing=NOTHING_FOUND,
    )


def graph_svg(graph: LaggedGraph, unit: str) -> str:
    """The summary graph as an SVG element; no figure is left open and no style changed."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from forecause.report.drawing import summary_graph

    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "forecause"}):
        figure = Figure(figsize=(6.5, 5.0), layout="constrained")
        only_own = not between_variables(graph.edges).any()  # else no news
        summary_graph(figure.add_subplot(), graph, self_links=only_own, unit=unit)
        text = StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :].replace("<svg", '<svg style="max-width: 100%"', 1)
