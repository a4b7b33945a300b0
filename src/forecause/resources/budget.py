"""Keeping to a time: which networks are trained, how large and how long, and what is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from forecause.errors import InputError
from forecause.forecast.forecaster import ForecasterSettings
from forecause.forecast.models.mlp import MLPSettings
from forecause.forecast.models.transformer import TransformerSettings
from forecause.forecast.training.loop import TrainedSettings
from forecause.resources.cost import Cost, in_words

UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
USEFUL_STEPS = 600  # with fewer a network is halved, and if that is not enough left out
RESERVE = 0.1  # of the time, for what estimates miss
LEAST_EFFORT = 0.05  # of the tests and the readout


@dataclass(frozen=True)
class Share:
    """What one network is given."""

    seconds: float
    steps: int
    halved: bool = False


@dataclass(frozen=True)
class Plan:
    """What the time is spent on; by default there is no limit."""

    networks: Mapping[str, Share | None] = field(default_factory=dict)  # None: not trained
    effort: float = 1.0  # share of the windows that are read and tested
    notes: tuple[str, ...] = ()

    def leaves_out(self, kind: str) -> bool:
        return kind in self.networks and self.networks[kind] is None

    def seconds(self, kind: str) -> float | None:
        """How long a network may train."""
        share = self.networks.get(kind)
        return share.seconds if share else None

    def applied(self, kind: str, settings: ForecasterSettings) -> ForecasterSettings:
        """The settings of a network as the plan has it."""
        share = self.networks.get(kind)
        if share is None or not isinstance(settings, TrainedSettings):
            return settings
        steps = min(settings.training.max_steps, share.steps)
        training = settings.training.model_copy(update={"max_steps": steps})
        settings = settings.model_copy(update={"training": training})
        return halved(settings) if share.halved else settings


UNLIMITED = Plan()


def plan_for(budget: float, cost: Cost, asked: str, fits: int = 1) -> Plan:
    """How to keep to `budget` seconds; a forecaster that is `asked` for by name is never left out.

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


def parse_budget(text: str | float) -> float:
    """Seconds of a duration like 90s, 10m or 1.5h; a plain number is seconds."""
    if isinstance(text, str):
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?)\s*([smh]?)\s*", text)
        seconds = float(found[1]) * UNITS[found[2] or "s"] if found else 0.0
    else:
        seconds = float(text)
    if seconds <= 0:
        raise InputError(f"Expected a time budget like 90s, 10m or 2h, found {text!r}.")
    return seconds


def halved(settings: ForecasterSettings) -> ForecasterSettings:
    """A network of half the width, where there is such a thing."""
    if isinstance(settings, MLPSettings):
        return settings.model_copy(update={"hidden": settings.hidden // 2})
    if isinstance(settings, TransformerSettings):
        half = {"width": settings.width // 2, "heads": settings.heads // 2}
        return settings.model_copy(update=half)
    return settings
