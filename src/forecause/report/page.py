"""The report: one HTML file that works offline, and the graph read back from it."""

from __future__ import annotations

import json
import math
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, Template
from markupsafe import Markup, escape

from forecause.common.bounded import parse_json, text_of
from forecause.common.files import save_text
from forecause.common.version import __version__
from forecause.config.thresholds import Thresholds
from forecause.data.summary import lag_text, sampling_text
from forecause.diagnostics.finding import Gravity
from forecause.errors import InputError
from forecause.forecast.comparison import chosen_losses, over_mean
from forecause.graph.lagged import LaggedGraph, links_among
from forecause.report.content import FORMAT, graph_data, page_data
from forecause.report.event import event_section
from forecause.report.reproduction import commands
from forecause.report.words import (
    NOTHING_FOUND,
    assumptions,
    data_line,
    delay_unit,
    forecaster_text,
    headline,
    top_links,
    verdict,
)

if TYPE_CHECKING:
    from forecause.effects.explain import Explanation
    from forecause.result import Result

STYLES = ("style.css", "explore.css")
SCRIPTS = (
    "state.js",
    "stage.js",
    "summary.js",
    "timegraph.js",
    "heatmap.js",
    "charts.js",
    "panels.js",
    "exports.js",
    "table.js",
    "changes.js",
    "main.js",
)
WORST = 1.5  # of the loss scale; 1 is the variable's mean, worse ones are drawn at the end
BLOCK = re.compile(r'<script type="application/json" id="forecause-report">(.*?)</script>', re.S)


def write_report(
    run: Result,
    path: Path,
    *,
    compare: Result | None = None,
    truth: LaggedGraph | None = None,
    event: Explanation | None = None,
) -> Path:
    """Render the page; names from the data are escaped, never interpreted."""
    quality = _quality(run)
    page = _rendered(
        page_data(run, compare, truth),
        _place_rules(quality),
        of_run=True,
        several=bool(run.graph.domains or compare),
        headline=headline(run),
        data_line=data_line(run),
        delay_unit=delay_unit(run.timing),
        links=top_links(run),
        doubts=_of_gravity(run, "doubt"),
        verdict=verdict(run),
        notes=_notes(run),
        alerts=_of_gravity(run, "alert"),
        facts=_facts(run),
        assumptions=assumptions(run),
        quality=quality,
        has_var=_has_var(run),
        loss_name="held-out squared error" + (" (labels: Brier)" if run.data.labels else ""),
        has_surprise=run.nll is not None,
        mean_place=_place(1.0),
        reproduction=_reproduction(run),
        event=None if event is None else event_section(event),
    )
    save_text(page, path)
    return path


def graph_page(graph: LaggedGraph) -> str:
    """The page of a graph without its run: the picture, the links and the edge table."""
    nothing = {"alerts": [], "doubts": [], "facts": [], "quality": [], "data_line": ""}
    return _rendered(
        graph_data(graph),
        [],
        of_run=False,
        several=bool(graph.domains),
        headline=links_among(graph),
        delay_unit="rows",
        links=[],
        verdict=[NOTHING_FOUND],
        **nothing,
    )


def _rendered(data: dict[str, Any], rules: list[str], **parts: Any) -> str:
    """The template with style, script and data in it, and a policy that lets in these alone."""
    style = "\n".join([*(_file(name) for name in STYLES), *rules])
    script = "(() => {\n'use strict';\n" + "\n".join(_file(name) for name in SCRIPTS) + "})();\n"
    return _template().render(
        version=__version__,
        style=style,
        style_hash=_policy_hash(style),
        script=script,
        script_hash=_policy_hash(script),
        data=_embedded(data),
        **parts,
    )


@cache
def _template() -> Template:
    return Environment(autoescape=True, trim_blocks=True).from_string(_file("page.html.j2"))


def read_report(path: Path) -> LaggedGraph:
    """The graph with its scores out of a page that `write_report` made."""
    block = BLOCK.search(text_of(path, "<!doctype html>"))
    if block is None:
        raise InputError(f"{path} is not a Forecause report: it holds no graph.")
    try:
        content = parse_json(block[1])
    except (ValueError, RecursionError) as error:
        raise InputError(f"The report {path} is damaged: {error}.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} is not a report of the format {FORMAT}.")
    try:
        return LaggedGraph.from_json(json.dumps(content.get("graph", {})))
    except InputError as error:
        raise InputError(f"The report {path} is damaged: {error}") from None


def _embedded(data: dict[str, Any]) -> str:
    """JSON that is safe inside a script element: no character there can end it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _unbroken(sentence: str) -> Markup:
    """The sentence, escaped, whose flags (--max-lag) do not wrap at their hyphens."""
    plain = str(escape(sentence))
    return Markup(re.sub(r"(--[a-z][a-z-]*)", r'<span class="flag">\1</span>', plain))


def _of_gravity(run: Result, gravity: Gravity) -> list[Markup]:
    return [_unbroken(one.sentence) for one in run.findings if one.gravity == gravity]


def _notes(run: Result) -> list[str | Markup]:
    power = run.measured_power
    measured = [power.sentence] if power else []
    return [*run.data.notes, *_of_gravity(run, "note"), *measured]


def _facts(run: Result) -> list[tuple[str, str]]:
    data, time = run.data, run.timing
    facts = [
        ("variables", f"{len(data.variables):,}"),
        ("rows", f"{data.rows:,}"),
        ("sampled", sampling_text(time)),
        ("missing values", f"{data.missing_share:.1%}"),
        ("windows used", f"{data.windows:,}"),
        ("delays looked for", f"up to {lag_text(run.graph.max_lag, time)}"),
        ("forecaster", forecaster_text(run).removeprefix("forecaster ")),
    ]
    if len(data.series_names) > 1:
        facts.insert(2, ("series", f"{len(data.series_names):,}"))
    if data.lost_share > 0:
        facts.insert(5, ("windows lost to gaps", f"{data.lost_share:.1%}"))
    return facts


def _has_var(run: Result) -> bool:
    shown = over_mean(run.losses).columns
    return "linear" in shown and len(shown) > 3


def _quality(run: Result) -> list[dict[str, Any]]:
    """One row per variable: losses, their places on the scale, and how they compare."""
    rows = []
    has_var = _has_var(run)
    losses = over_mean(run.losses)
    own = chosen_losses(losses)
    for loss, (name, row) in zip(own.tolist(), losses.iterrows(), strict=True):
        naive = float(row["naive"])
        var = float(row["linear"]) if has_var else float("nan")
        rows.append(
            {
                "name": name,
                "model": row["chosen"],
                "own": f"{loss:.3f}",
                "naive": f"{naive:.3f}",
                "var": f"{var:.3f}",
                "to_naive": _change(loss, naive),
                "to_var": _change(loss, var),
                "surprise": _surprise(run, str(name)),
                "own_place": _place(loss),
                "naive_place": _place(naive),
                "var_place": _place(var) if has_var else "",
            }
        )
    return rows


def _surprise(run: Result, variable: str) -> str:
    """Held-out negative log-likelihood of the model in use, where models were chosen by it."""
    if run.nll is None:
        return ""
    return f"{chosen_losses(run.nll)[variable]:.3f}"


def _change(loss: float, other: float) -> str:
    change = loss / other - 1 if other > 0 else 0.0
    return "±0 %" if abs(change) < 0.0005 else f"{change:+.1%}".replace("%", " %").replace("-", "−")


def _place(loss: float) -> str:
    """The class that puts a dot at its place; the page's policy allows no style on elements."""
    share = min(max(loss / WORST, 0.0), 1.0) if math.isfinite(loss) else 1.0
    return f"at-{round(1000 * share)}"


def _place_rules(quality: list[dict[str, Any]]) -> list[str]:
    """What the classes of `_place` mean."""
    cells = (row[name] for row in quality for name in ("own_place", "naive_place", "var_place"))
    used = sorted({_place(1.0), *cells} - {""})
    return [f".{name} {{ left: {int(name.removeprefix('at-')) / 10:g}%; }}" for name in used]


def _policy_hash(text: str) -> str:
    """What the page's policy lets in: this text and no other."""
    return "'sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode() + "'"


def _reproduction(run: Result) -> list[tuple[str, str]]:
    origin = run.evidence.get("origin", {})
    versions = origin.get("versions", {"forecause": __version__})
    settings = run.config.to_json()
    if run.config.thresholds == Thresholds():  # the usual numbers are many; run.json has them
        settings["thresholds"] = "usual"
    return [
        *((name, text) for name, text in commands(run).items()),
        ("data fingerprint", run.data.fingerprint),
        ("seed", str(settings["seed"])),
        ("settings", ", ".join(f"{name} = {value}" for name, value in settings.items())),
        ("versions", ", ".join(f"{name} {value}" for name, value in versions.items())),
        *([("machine", origin["machine"])] if "machine" in origin else []),
    ]


def _file(name: str) -> str:
    return (files("forecause.report") / "web" / name).read_text(encoding="utf-8")
