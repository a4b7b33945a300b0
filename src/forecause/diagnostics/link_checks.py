"""Links that may be something else: a shock that reaches both ends, an echo of a smaller lag."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from forecause.advice import Advice, hint
from forecause.arrays import Index, Mask
from forecause.diagnostics.driver_checks import REMEDIES
from forecause.diagnostics.examined import Examined
from forecause.diagnostics.finding import Finding, Links, listed
from forecause.edges.lookalikes import echoes, only_surprises


def shocks_ahead(run: Examined) -> Iterator[Finding]:
    """Links that go with the surprises of their source, not with its value.

    A shock from elsewhere that reaches one variable first and another later looks so. All lags of
    such a pair are doubted.
    """
    drawn = _drawn(run)
    level = run.bounds.level / max(int(drawn.sum()), 1)
    found = only_surprises(run.windows, drawn, level, run.bounds.value_tells)
    links = _links(run, found)
    if links:
        pairs = list(dict.fromkeys((one.source, one.target) for one in links))
        yield Finding(
            "shocks-ahead",
            f"{_shown(links)}: the target follows what the source's own past did not tell, and not "
            "the source's value, as if a shock that is not in the table reached one first and the "
            "other later",
            gravity="doubt",
            about=tuple(Links(source, target) for source, target in pairs),
            variables=_ends(run, links),
            evidence={"links": len(links), "of": int(drawn.sum())},
            advice=REMEDIES,
        )


def echoed(run: Examined) -> Iterator[Finding]:
    """Older lags of a cause that may only tell its effect from the target's lingering noise."""
    links = _links(run, echoes(run.windows, _drawn(run), run.bounds.level))
    if links:
        yield Finding(
            "echo",
            f"{_shown(links)}: may echo a smaller lag of the same cause, since the noise of the "
            "target remembers more rows than the lag window",
            gravity="doubt",
            about=tuple(links),
            variables=_ends(run, links),
            evidence={"links": len(links)},
            advice=(
                Advice("max_lag", words="a longer lag window"),
                hint("add what makes the target linger as a variable"),
            ),
        )


def _drawn(run: Examined) -> Mask:
    """The links between variables that the graph has, (target, source, lag)."""
    edges = run.graph.edges
    drawn = np.zeros((len(run.names), len(run.names), run.windows.max_lag), dtype=bool)
    place = {name: k for k, name in enumerate(run.names)}
    source, target = (edges[end].map(place).to_numpy(np.int64) for end in ("source", "target"))
    lag: Index = edges["lag"].to_numpy(np.int64)
    drawn[target, source, lag - 1] = source != target
    return drawn


def _links(run: Examined, found: Mask) -> list[Links]:
    return [
        Links(run.names[source], run.names[target], lag + 1)
        for target, source, lag in np.argwhere(found).tolist()
    ]


def _shown(links: list[Links]) -> str:
    return listed([f"{one.source} -> {one.target} (lag {one.lag})" for one in links])


def _ends(run: Examined, links: list[Links]) -> tuple[str, ...]:
    ends = {end for one in links for end in (one.source, one.target)}
    return tuple(name for name in run.names if name in ends)
