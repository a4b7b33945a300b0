"""Links that may be something else: a shock that reaches both ends, an echo, an event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from forecause.common.arrays import Index, Mask
from forecause.config.advice import Advice, hint
from forecause.diagnostics.driver_checks import EVENT_COLUMN, REMEDIES
from forecause.diagnostics.examined import Examined
from forecause.diagnostics.finding import Finding, Links, listed
from forecause.edges.certainty import gone_in_calm
from forecause.edges.lookalikes import echoes, only_surprises
from forecause.graph.edge_table import between_variables


def shocks_ahead(run: Examined) -> Iterator[Finding]:
    """Links that go with the surprises of their source, not with its value.

    A shock from elsewhere that reaches one variable first and another later looks so. All lags of
    such a pair are doubted.
    """
    drawn = _drawn(run)
    level = run.bounds.level / max(int(drawn.sum()), 1)
    links = _links(run, only_surprises(run.windows, drawn, level, run.bounds.value_tells))
    if links:
        yield _doubt(
            run,
            "shocks-ahead",
            links,
            ": the target follows what the source's own past did not tell, and not the source's "
            "value, as if a shock that is not in the table reached one first and the other later",
            about=tuple(dict.fromkeys(Links(one.source, one.target) for one in links)),
            evidence={"links": len(links), "of": int(drawn.sum())},
            advice=REMEDIES,
        )


def echoed(run: Examined) -> Iterator[Finding]:
    """Older lags of a cause that may only tell its effect from the target's lingering noise."""
    links = _links(run, echoes(run.windows, _drawn(run), run.bounds.level))
    if links:
        yield _doubt(
            run,
            "echo",
            links,
            ": may echo a smaller lag of the same cause, since the noise of the target remembers "
            "more rows than the lag window",
            evidence={"links": len(links)},
            advice=(
                Advice("max_lag", words="a longer lag window"),
                hint("add what makes the target linger as a variable"),
            ),
        )


def only_in_events(run: Examined) -> Iterator[Finding]:
    """Links that a fifth of the windows, those with the largest inputs, carry alone.

    A cause acts on calm days too. What shows only where something is far off may be the order in
    which an event reached the columns; it may also be an effect that begins at a threshold.
    """
    drawn = _drawn(run)
    if drawn.sum() < run.bounds.least_gone:
        return
    links = _links(run, gone_in_calm(run.windows, drawn))
    if len(links) >= run.bounds.least_gone:
        yield _doubt(
            run,
            "only-in-events",
            links,
            ": seen only where some input is far from its usual values; an event that is not in "
            "the table may have reached both, or the effect begins at a threshold",
            evidence={"links": len(links), "of": int(drawn.sum())},
            advice=(EVENT_COLUMN, *REMEDIES),
        )


def _places(run: Examined) -> tuple[Index, ...]:
    """Targets, sources and lags from 0 of the links between variables, the strongest first."""
    edges = run.graph.edges[between_variables(run.graph.edges)]
    place = {name: k for k, name in enumerate(run.names)}
    ends = (edges[end].map(place).to_numpy(np.int64) for end in ("target", "source"))
    return (*ends, edges["lag"].to_numpy(np.int64) - 1)


def _drawn(run: Examined) -> Mask:
    """The links between variables that the graph has, (target, source, lag)."""
    drawn = np.zeros((len(run.names), len(run.names), run.windows.max_lag), dtype=bool)
    drawn[_places(run)] = True
    return drawn


def _links(run: Examined, found: Mask) -> list[Links]:
    """Those of the graph's that a mask has."""
    places, names = _places(run), run.names
    rows = zip(*(place[found[places]].tolist() for place in places), strict=True)
    return [Links(names[source], names[target], lag + 1) for target, source, lag in rows]


def _doubt(
    run: Examined, kind: str, links: list[Links], seen: str, about: Any = None, **more: Any
) -> Finding:
    """That some links may be something else."""
    ends = {end for one in links for end in (one.source, one.target)}
    return Finding(
        kind,
        listed(list(map(str, links))) + seen,
        gravity="doubt",
        about=about or tuple(links),
        variables=tuple(name for name in run.names if name in ends),
        **more,
    )
