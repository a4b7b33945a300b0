"""The page in words: the verdict, one sentence of evidence per edge, the assumptions."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from forecause.graph.edge_table import edge_records
from forecause.report.history import lag_text

if TYPE_CHECKING:
    from forecause.result import Result


CLEAR_SIGN = 0.5  # a sign shared by fewer samples (net) than this is called mixed


def direction(edge: Mapping[str, Any]) -> str:
    """raises, lowers or moves (both, depending on the state) the target."""
    sign = _known(edge, "sign") or np.sign(_known(edge, "effect") or 0.0)
    consistency = _known(edge, "sign_consistency")
    if not sign or (consistency is not None and consistency < CLEAR_SIGN):
        return "moves"
    return "raises" if sign > 0 else "lowers"


def _known(edge: Mapping[str, Any], column: str) -> float | None:
    """A number of the edge table; None where the column is not there or holds nothing."""
    value = edge.get(column)
    return None if value is None or value != value else float(value)


def isolated(name: str) -> str:
    """The name; one that runs from right to left is kept from turning its sentence around."""
    turned = any(unicodedata.bidirectional(letter) in ("R", "AL", "RLE", "RLO") for letter in name)
    return f"\u2068{name}\u2069" if turned else name


def edge_sentence(
    edge: Mapping[str, Any], shown: Mapping[str, Any] | None, sd: float, time: dict[str, Any]
) -> str:
    """One sentence of evidence; `shown` holds the edge's curves, `sd` is the target's."""
    source, target, verb = isolated(edge["source"]), isolated(edge["target"]), direction(edge)
    itself = source == target
    when = "within the same row" if edge["lag"] == 0 else f"{lag_text(edge['lag'], time)} later"
    reasons = []
    if shown:
        reasons += _moves(shown["response"], source, "the next" if itself else target, sd)
        lost = shown["lost"]
        if lost is not None:
            reasons.append(_lost_text(lost))
    q_value, stability = _known(edge, "q_value"), _known(edge, "stability")
    if q_value is not None:
        reasons.append(f"its q-value is {_small(q_value)}")
    if stability is not None:
        reasons.append(f"it is found again in {100 * stability:.0f} % of the repetitions")
    because = f": {_listed(reasons)}" if reasons else ""
    return f"{source} {verb} {'itself' if itself else target} {when}{because}."


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


def verdict(found: Result) -> list[str]:
    """What a reader should take away, most important first."""
    edges, time = found.graph.edges, found.evidence.get("time", {})
    if not len(edges):
        return [
            "No variable was found to drive another. Either there is nothing to find at these "
            "delays, or the data is too short or too noisy to show it."
        ]
    lines = []
    between = edges[edges["source"] != edges["target"]]
    if len(between):
        top = edge_records(between.head(1))[0]
        lines.append(
            f"The strongest link: {isolated(str(top['source']))} {direction(top)} "
            f"{isolated(str(top['target']))} "
            f"after {lag_text(int(top['lag'] or 0), time)}."
        )
        lines += _hubs(between)
    selfs = len(edges) - len(between)
    if selfs:
        lines.append(f"{_count(selfs, 'link')} of a variable to its own past.")
    alone = set(found.data.variables) - set(between["source"]) - set(between["target"])
    if alone:
        names = ", ".join(isolated(name) for name in sorted(alone)[:6]) + (
            " and others" if len(alone) > 6 else ""
        )
        lines.append(f"Not linked to any other variable: {names}.")
    return [*lines, forecast_verdict(found.losses)]


def forecast_verdict(losses: pd.DataFrame) -> str:
    """How the forecasts compare with repeating the last value and with the VAR."""
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


def chosen_losses(losses: pd.DataFrame) -> pd.Series[Any]:
    """Held-out loss of the forecaster in use, per variable."""
    rows = losses.to_dict(orient="records")
    return pd.Series([float(row[row["chosen"]]) for row in rows], index=losses.index)


def assumptions(found: Result) -> list[tuple[str, str]]:
    """(what is taken for granted, what happens where it fails), in plain words."""
    span = lag_text(found.graph.max_lag, found.evidence.get("time", {}))
    steady = (
        "Each domain has one graph; within it the influences stay the same."
        if found.graph.domains
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


def _small(value: float) -> str:
    return "below 0.0001" if value < 1e-4 else f"{value:.2g}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
