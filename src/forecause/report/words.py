"""The page in words: the verdict, one sentence of evidence per edge, the assumptions."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from forecause.data.summary import delay_text, lag_text, sampling_text
from forecause.diagnostics.finding import NO_PROMISE, doubted_edges
from forecause.forecast.comparison import chosen_losses, over_mean
from forecause.graph.edge_table import between_variables, edge_records
from forecause.graph.lagged import links_among
from forecause.report.shapes import BOTH_WAYS, THROUGH_SIZE, WITH_OTHERS, edge_shapes
from forecause.report.units import with_unit

if TYPE_CHECKING:
    from forecause.graph.lagged import LaggedGraph
    from forecause.result import Result


NOTHING_FOUND = (
    "No variable was found to drive another. Either there is nothing to find at these delays, or "
    "the data is too short or too noisy to show it."
)
TOP_LINKS = 5
CLEAR_SIGN = 0.5  # a sign shared by fewer samples (net) than this is called mixed
SHAPES = {
    THROUGH_SIZE: "through its size: high and low values move the target alike",
    WITH_OTHERS: "with others: which way depends on them",
    BOTH_WAYS: "up and down: which way depends on its own value",
}


def direction(edge: Mapping[str, Any]) -> str:
    """raises, lowers or moves (both, or neither on average) the target.

    The interval of the average effect decides where it is known; what a readout says of its sign
    is asked where it is not.
    """
    if no_push(edge):
        return "moves"
    change = _interval(edge)
    if change is not None:
        return "raises" if change[0] > 0 else "lowers"
    sign = _known(edge, "sign") or np.sign(_known(edge, "effect") or 0.0)
    if not sign or _mixed(edge):
        return "moves"
    return "raises" if sign > 0 else "lowers"


def no_push(edge: Mapping[str, Any]) -> bool:
    """Whether the interval of the average effect holds zero: the edge acts, but not as a push."""
    known = _interval(edge)
    return known is not None and known[1] <= 0 <= known[2]


def _mixed(edge: Mapping[str, Any]) -> bool:
    consistency = _known(edge, "sign_consistency")
    return consistency is not None and consistency < CLEAR_SIGN


def _interval(edge: Mapping[str, Any]) -> tuple[float, float, float] | None:
    """The average effect per standard deviation of the source and its ends, where known."""
    change, low, high = (_known(edge, name) for name in ("change", "change_low", "change_high"))
    return None if change is None or low is None or high is None else (change, low, high)


def _known(edge: Mapping[str, Any], column: str) -> float | None:
    """A number of the edge table; None where the column is not there or holds nothing."""
    value = edge.get(column)
    return None if value is None or value != value else float(value)


def isolated(name: str) -> str:
    """The name; one that runs from right to left is kept from turning its sentence around."""
    turned = any(unicodedata.bidirectional(letter) in ("R", "AL", "RLE", "RLO") for letter in name)
    return f"\u2068{name}\u2069" if turned else name


def short_names(names: Sequence[str], width: int) -> dict[str, str]:
    """Names of at most `width` letters that still differ; the middle of a long one is left out."""
    found: dict[str, str] = {}
    taken = {name for name in names if len(name) <= width}
    for name in dict.fromkeys(names):
        text, tail = name, width // 2
        while len(text) > width or (text != name and text in taken):
            text = f"{name[: width - tail - 1]}…{name[len(name) - tail :]}"
            if text not in taken:
                break
            tail -= 1
            if tail < 1:  # alike in all that can be shown
                text = f"{name[: width - 4]}…{len(found)}"
                break
        taken.add(text)
        found[name] = text
    return found


def claim(edge: Mapping[str, Any], time: dict[str, Any]) -> str:
    """rain raises river after 2 days."""
    source, target = isolated(edge["source"]), isolated(edge["target"])
    when = "within the same row" if edge["lag"] == 0 else f"after {delay_text(edge['lag'], time)}"
    return f"{source} {direction(edge)} {'itself' if source == target else target} {when}"


def delay_unit(time: dict[str, Any]) -> str:
    """What delays are counted in: days, or rows of 15 minutes, or rows."""
    number, _, unit = delay_text(1, time).partition(" ")
    return f"{unit}s" if number == "1" else f"rows of {number} {unit}"


def amount(edge: Mapping[str, Any], shift: float, shape: str = "") -> str:
    """By 1.75 [1.62, 1.88] per standard deviation of rain (3.8); empty if unknown.

    `shift` is the source's standard deviation, `shape` how an edge acts that does not push.
    """
    known = _interval(edge)
    if known is None:
        return ""
    change, low, high = known
    if no_push(edge):
        how = f"; it acts {SHAPES[shape]}" if shape in SHAPES else ""
        return f"no push on average [{_figure(low, high - low)}, {_figure(high, high - low)}]{how}"
    low, high = sorted((abs(low), abs(high)))
    much = with_unit(_figure(abs(change), high - low), edge["target"])
    spread = with_unit(_figure(shift, shift), edge["source"])
    return (
        f"by {much} [{_figure(low, high - low)}, {_figure(high, high - low)}]"
        f"{' on average' if _mixed(edge) else ''} per standard deviation of "
        f"{isolated(edge['source'])} ({spread})"
    )


def change_text(edge: Mapping[str, Any], shape: str = "") -> str:
    """3.44 [3.29, 3.59]: the change per standard deviation of the source; a dash if unknown.

    Of an edge that does not push on average, its shape.
    """
    known = _interval(edge)
    if known is None:
        return "-"
    if no_push(edge):
        return shape or "no push on average"
    change, low, high = known
    middle, *ends = (_figure(value, high - low) for value in (change, low, high))
    return f"{middle} [{', '.join(ends)}]"


def _figure(value: float, width: float) -> str:
    """A number with as many digits as tell two ends of this width apart."""
    if not 1e-5 < max(abs(value), width) < 1e7:
        return f"{value:.2e}"
    digits = 1 - math.floor(math.log10(width)) if width > 0 else 2
    return f"{value:,.{min(max(digits, 0), 8)}f}".replace("-", "−")


def edge_sentence(
    edge: Mapping[str, Any],
    shown: Mapping[str, Any] | None,
    time: dict[str, Any],
    shift: float,
    sd: float,
    shape: str = "",
) -> str:
    """What an edge does, how much, and the evidence for it.

    `shown` holds the edge's curves, `shift` is the source's standard deviation, `sd` the target's,
    `shape` how an edge acts that does not push on average.
    """
    source, target = isolated(edge["source"]), isolated(edge["target"])
    itself = source == target
    grade = f" ({edge['grade']})" if edge.get("grade") else ""
    much = amount(edge, shift, shape)
    reasons = []
    if shown:
        reasons += _moves(shown["response"], source, "the next" if itself else target, sd)
        lost = shown["lost"]
        if lost is not None:
            reasons.append(_lost_text(lost))
    q_value, stability = _known(edge, "q_value"), _known(edge, "stability")
    if q_value is not None:
        reasons.append(f"chance alone is {_unlikely(q_value)} (q-value {_small(q_value)})")
    if stability is not None:
        reasons.append(f"it is found again in {100 * stability:.0f} % of the repetitions")
    told = f"{claim(edge, time)}{grade}{': ' + much if much else ''}."
    if not reasons:
        return told
    because = _listed(reasons)
    return f"{told} {because[:1].upper()}{because[1:]}."


def _moves(response: Mapping[str, Any], source: str, target: str, sd: float) -> list[str]:
    """How far the forecast goes along the response curve; of a label, the chance of a level."""
    curve = [y for y in response["y"] if y is not None]
    if not curve:
        return []
    span, start = max(curve) - min(curve), f"across the usual values of {source}"
    if "level" in response:
        level = isolated(response["level"])
        return [f"{start} the chance of {target} being {level} moves by {100 * span:.0f} points"]
    return [f"{start} the forecast of {target} moves by {span / sd:.2g} standard deviations"]


def headline(run: Result) -> str:
    """How many links there are, and whether they can be relied on."""
    among, between = links_among(run.graph), between_variables(run.graph.edges)
    doubted = int((doubted_edges(run.findings, run.graph) & between).sum()) if run.doubts else 0
    if not doubted:
        return among
    if doubted == between.sum():
        return f"{NO_PROMISE}: {among}, all of them tentative"
    return f"{among}; {NO_PROMISE[:1].lower()}{NO_PROMISE[1:]} for {doubted} of them"


def data_line(run: Result) -> str:
    """What was looked at, in one line."""
    data, time = run.data, run.timing
    series = f" of {len(data.series_names):,} series" if len(data.series_names) > 1 else ""
    sampled = f", {sampling_text(time)}" if time.get("step") else ""
    return (
        f"{data.rows:,} rows{series}{sampled}; delays up to "
        f"{delay_text(run.graph.max_lag, time)}; {forecaster_text(run)}"
    )


def forecaster_text(run: Result) -> str:
    """What forecast: one kind, or the best of several for each variable."""
    kind = run.forecaster.kind
    return "the best forecaster of each variable" if kind == "auto" else f"forecaster {kind}"


def key_of(edge: Mapping[str, Any]) -> tuple[str, str, int]:
    """Source, target and lag."""
    return str(edge["source"]), str(edge["target"]), int(edge["lag"])


def strongest_edges(graph: LaggedGraph) -> pd.DataFrame:
    """The first edges between variables, those to itself if there are no others."""
    between = graph.edges[between_variables(graph.edges)]
    return (between if len(between) else graph.edges).head(TOP_LINKS)


def top_links(run: Result, graph: LaggedGraph | None = None) -> list[dict[str, Any]]:
    """The strongest links.

    Each with its key, what it claims, how much, and how sure. `graph` is that of a domain.
    """
    time, chosen = run.timing, edge_records(strongest_edges(graph or run.graph))
    shift = dict(zip(run.data.variables, run.data.variable_sd.tolist(), strict=True))
    shapes = edge_shapes(run.data, run.evidence)
    return [
        {
            "edge": [edge["source"], edge["target"], edge["lag"]],
            "claim": claim(edge, time),
            "amount": amount(edge, shift[str(edge["source"])], shapes.get(key_of(edge), "")),
            "grade": edge.get("grade"),
            "direction": direction(edge),
        }
        for edge in chosen
    ]


def verdict(run: Result) -> list[str]:
    """What a reader should take away, most important first."""
    edges = run.graph.edges
    if not len(edges):
        return [NOTHING_FOUND]
    between = edges[between_variables(edges)]
    lines = _hubs(between) if len(between) else []
    selfs = len(edges) - len(between)
    if selfs:
        lines.append(f"{_count(selfs, 'link')} of a variable to its own past.")
    alone = set(run.data.variables) - set(between["source"]) - set(between["target"])
    if alone:
        names = ", ".join(isolated(name) for name in sorted(alone)[:6]) + (
            " and others" if len(alone) > 6 else ""
        )
        lines.append(f"Not linked to any other variable: {names}.")
    return [*lines, forecast_verdict(run.losses)]


def forecast_verdict(losses: pd.DataFrame) -> str:
    """How the forecasts compare with repeating the last value and with the VAR."""
    losses = over_mean(losses)
    own = chosen_losses(losses)
    total = len(losses)
    helpful = int((own < 0.98).sum())
    beats = int((own < losses["naive"]).sum())
    text = (
        f"On held-out rows the forecaster beats repeating the last value for {beats} of "
        f"{total} variables and the variable's mean for {helpful}"
    )
    if "linear" in losses.columns and len(losses.columns) > 3:
        better = int((own < 0.98 * losses["linear"]).sum())
        text += f"; for {better} it is more than 2 % better than a linear VAR"
    return text + "."


def assumptions(run: Result) -> list[tuple[str, str]]:
    """(what is taken for granted, what happens where it fails), in plain words."""
    span = lag_text(run.graph.max_lag, run.timing)
    steady = (
        "Each domain has one graph; within it the influences stay the same."
        if run.graph.domains
        else "The influences stay the same from the first row to the last."
    )
    return [
        (
            "Nothing important is missing.",
            "Every common cause of two variables is among the columns. A hidden one can make its "
            "effects look as if they drove each other.",
        ),
        (
            "Causes come first.",
            "An effect follows at least one row after its cause. Anything faster than the "
            "sampling is missed or shows at a wrong delay.",
        ),
        (
            f"Nothing takes longer than {span}.",
            "Slower influences are not looked for; their traces may appear at shorter delays.",
        ),
        (steady, "Where they change, the page shows an average of what was true at times."),
        (
            "Influences do not cancel.",
            "A cause whose effects cancel exactly, or that hardly varies, leaves no trace and is "
            "not found.",
        ),
    ]


def _hubs(between: pd.DataFrame) -> list[str]:
    drives = between.groupby("source")["target"].nunique().sort_values(ascending=False)
    driven = between.groupby("target")["source"].nunique().sort_values(ascending=False)
    lines = []
    if drives.iloc[0] > 1:
        lines.append(f"{isolated(drives.index[0])} drives the most others ({drives.iloc[0]}).")
    if driven.iloc[0] > 1:
        lines.append(
            f"{isolated(driven.index[0])} is driven by the most others ({driven.iloc[0]})."
        )
    return lines


def _lost_text(lost: float) -> str:
    if lost < 0.005:
        return "without it the held-out error hardly changes"
    share = f"{lost:.0%}" if lost >= 0.1 else f"{lost:.1%}"
    return f"without it the held-out error grows by {share.replace('%', ' %')}"


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _unlikely(q_value: float) -> str:
    """The q-value in words."""
    if q_value < 0.001:
        return "practically excluded"
    return "unlikely" if q_value < 0.05 else "not excluded"


def _small(value: float) -> str:
    return "below 0.0001" if value < 1e-4 else f"{value:.2g}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
