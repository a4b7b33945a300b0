"""Instruments: causes of a source that reach the target through it speak for a real edge.

If a hidden variable drives both ends of an edge, what drives its source tells nothing about its
target. If the edge is a cause, it does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from forecause.baselines.design import Moments
from forecause.baselines.ols import regress
from forecause.data.panel import Panel
from forecause.refine.candidates import Place


def instrument_p_values(panel: Panel, places: Sequence[Place], max_lag: int) -> dict[Place, float]:
    """For every edge (target, source, lag), how surely its instruments reach the target.

    Instruments are parents of the source that are variables without an edge of their own into the
    target; the F-test has the other parents of both ends beside them. No instrument: p = 1.
    """
    moments = Moments.of(panel, 2 * max_lag)
    parents: list[list[tuple[int, int]]] = [[] for _ in panel.variables]
    for target, source, lag in places:
        parents[target].append((source, lag))
    return {place: _p_value(moments, parents, place) for place in places}


def _p_value(moments: Moments, parents: list[list[tuple[int, int]]], place: Place) -> float:
    target, source, lag = place
    known = {variable for variable, _ in parents[target]} | {source, target}
    earlier = [(variable, lag + more) for variable, more in parents[source]]
    instruments = [cell for cell in earlier if cell[0] not in known]
    if not instruments:
        return 1.0
    others = {cell for cell in (*parents[target], *earlier) if cell[0] in known}
    others.discard((source, lag))
    columns = [delay * moments.variables + v for v, delay in (*instruments, *sorted(others))]
    fit = regress(moments, np.array(columns), np.array([target]))
    return float(fit.group_p(np.arange(len(instruments)))[0])
