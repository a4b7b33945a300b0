"""An explained event as a section of the page: the answer, a picture over time, the causes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from forecause.effects.explain import Explanation

LINES = 4  # variables in the picture
MOST_CAUSES = 12  # lines of the table
MOST_POINTS = 400  # of a line in the picture
WIDTH, HEIGHT, MARGIN = 640, 180, 8


def event_section(told: Explanation) -> dict[str, Any]:
    """What the template shows of an event, as plain text and numbers."""
    ways = dict(zip(told.paths["cause"], told.paths["path"], strict=True))
    return {
        "sentence": told.sentence,
        "from": str(told.start),
        "until": str(told.end),
        "target": told.target,
        "notes": [*told.notes, told.caveat],
        "causes": [_cause(row, ways) for row in told.causes.head(MOST_CAUSES).to_dict("records")],
        "more": max(len(told.causes) - MOST_CAUSES, 0),
        "picture": _picture(told),
    }


def _cause(row: Mapping[Any, Any], ways: dict[str, str]) -> dict[str, str]:
    """A line of the table in words."""
    share = row["share"]
    return {
        "variable": str(row["variable"]),
        "score": f"{row['score']:.2f}",
        "surprise": f"{row['surprise']:.1f}",
        "first": "-" if pd.isna(row["first"]) else str(row["first"]),
        "share": "-" if share != share else f"{round(share, 2) + 0.0:.0%}",
        "path": ways.get(str(row["variable"]), ""),
    }


def _picture(told: Explanation) -> dict[str, Any]:
    """Lines of what is new in the likeliest causes, in a box of WIDTH x HEIGHT."""
    names = told.causes["variable"].head(LINES).tolist()
    values = told.surprises[names].to_numpy(dtype=float)
    values = values[:: -(-len(values) // MOST_POINTS)]
    known = values[np.isfinite(values)]
    low, high = min(known.min(initial=0.0), -1.0), max(known.max(initial=0.0), 1.0)
    across = np.linspace(MARGIN, WIDTH - MARGIN, len(values))
    down = MARGIN + (high - values) / (high - low) * (HEIGHT - 2 * MARGIN)
    zero = MARGIN + high / (high - low) * (HEIGHT - 2 * MARGIN)
    lines = [{"name": n, "path": _path(across, y)} for n, y in zip(names, down.T, strict=True)]
    ends = {"low": f"{low:.1f}", "high": f"{high:.1f}", "zero": f"{zero:.1f}"}
    return {"width": WIDTH, "height": HEIGHT, "lines": lines, **ends}


def _path(across: Any, down: Any) -> str:
    """A path of SVG that is broken where a value is missing."""
    parts, draws = [], False
    for x, y in zip(across, down, strict=True):
        if np.isfinite(y):
            parts.append(f"{'L' if draws else 'M'}{x:.1f} {y:.1f}")
        draws = bool(np.isfinite(y))
    return "".join(parts)
