"""Keeping to a time: which networks are trained, how large and how long, and what is read."""

from __future__ import annotations

from forecause.forecast.selection import Plan, Share
from forecause.resources.cost import Cost, in_words

USEFUL_STEPS = 600  # with fewer a network is halved, and if that is not enough left out
RESERVE = 0.1  # of the time, for what estimates miss
LEAST_EFFORT = 0.05  # of the tests and the readout


def plan_for(budget: float, cost: Cost, asked: str | None, fits: int = 1) -> Plan:
    """How to keep to `budget` seconds; the kind that is `asked` for by name is never left out.

    `fits` is how often every network is trained: once, and once for each part of a cross-fit.
    """
    networks = [kind for kind in cost.seconds if kind in cost.steps]
    fixed = sum(cost.seconds[stage] for stage in cost.seconds if stage not in networks)
    left = budget * (1 - RESERVE)
    effort = max(LEAST_EFFORT, min(1.0, left / 2 / fixed))
    left = max(0.0, left - fixed * effort)
    shares: dict[str, Share | None] = {}
    notes = []
    for number, kind in enumerate(networks):
        own = left / (len(networks) - number) / fits
        if cost.seconds[kind] <= own:
            left -= cost.seconds[kind] * fits
            continue
        shares[kind] = _share(own, cost, kind, needed=kind == asked)
        notes.append(_note(kind, shares[kind], cost))
        left -= own * fits if shares[kind] else 0.0
    if effort < 1:
        notes.append(f"{effort:.0%} of the windows are read and tested")
    kept = f"To keep to {in_words(budget)}: {', '.join(notes)}." if notes else ""
    return Plan(shares, effort, (kept,) if kept else ())


def _share(seconds: float, cost: Cost, kind: str, needed: bool) -> Share | None:
    most = cost.steps[kind]
    steps = int(most * seconds / cost.seconds[kind])
    if steps >= USEFUL_STEPS:
        return Share(seconds, min(steps, most))
    if needed or 2 * steps >= USEFUL_STEPS:  # half the width takes about half the time
        return Share(seconds, max(1, min(2 * steps, most)), halved=True)
    return None


def _note(kind: str, share: Share | None, cost: Cost) -> str:
    if share is None:
        return f"no {kind}"
    half = " of half the width" if share.halved else ""
    return f"{share.steps:,} of {cost.steps[kind]:,} steps of the {kind}{half}"
