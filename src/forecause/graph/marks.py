"""Marks: what is known of an edge's direction, in the signs of tigramite.

An edge table may have a column `mark`; where it is missing, the edge is a cause.
"""

from __future__ import annotations

import pandas as pd

CAUSE = "-->"  # the source drives the target
POSSIBLE_CAUSE = "o->"  # it does, or a hidden variable drives both
CONFOUNDED = "<->"  # a hidden variable drives both
UNDIRECTED = "o-o"  # one drives the other within the same row, either way
CONFLICTING = "x-x"  # the same, with evidence for both ways

CAUSAL = (CAUSE, POSSIBLE_CAUSE)
WITHOUT_DIRECTION = (UNDIRECTED, CONFLICTING)


def marks_of(edges: pd.DataFrame) -> pd.Series[str]:
    """The mark of every edge, in the order of the table."""
    if "mark" not in edges:
        return pd.Series(CAUSE, index=edges.index, dtype=object)
    return edges["mark"].where(edges["mark"].notna(), CAUSE).astype(object)


def mirrored(mark: str) -> str:
    """The same link seen from its other end."""
    return mark[::-1].translate(str.maketrans("<>", "><"))
