"""Finding: what a diagnosis saw, for whom, how grave it is, the figures, and what may help."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import isfinite
from typing import Any, Literal, get_args

import pandas as pd

from forecause.config.advice import Advice, sentence
from forecause.forecast.causal import Causal
from forecause.graph.edge_table import between_variables
from forecause.graph.lagged import LaggedGraph

Gravity = Literal["note", "alert", "doubt"]

NO_PROMISE = "No error rate can be promised"
GRAVITIES: tuple[Gravity, ...] = get_args(Gravity)  # from the least on

# Looks:
SHOWN = 3  # examples in a sentence
MOST_FIGURES = 20  # kept with a finding
MOST_PAIRS = 100  # told apart; of more pairs, all links into their variables are meant


@dataclass(frozen=True)
class Links:
    """Some of a graph's links: those of this source, target and lag, as far as these are named."""

    source: str | None = None
    target: str | None = None
    lag: int | None = None

    def __str__(self) -> str:
        return f"{self.source} -> {self.target} (lag {self.lag})"

    def among(self, edges: pd.DataFrame) -> pd.Series[bool]:
        """Which edges of a table are meant, (edge,)."""
        meant = pd.Series(True, index=edges.index)
        for name in ("source", "target", "lag"):
            wanted = getattr(self, name)
            if wanted is not None:
                meant &= edges[name] == wanted
        return meant


@dataclass(frozen=True)
class Finding:
    """A sign that an assumption fails, or something that was decided and should be known.

    A `note` only informs. An `alert` is a reason to look again. Where there is a `doubt`, no error
    rate can be promised: the links that it is about are at most tentative. `about` names them; if
    it is empty, the finding is about the whole run.
    """

    kind: str  # short-window, say; docs/reference/findings.md lists them
    seen: str  # what was seen, without a full stop
    gravity: Gravity = "alert"
    about: tuple[Links, ...] = ()
    variables: tuple[str, ...] = ()  # whom the sentence is about
    evidence: Mapping[str, float] = field(default_factory=dict)  # figure by what it is of
    advice: tuple[Advice, ...] = ()

    @property
    def sentence(self) -> str:
        """What was seen and what may help; options are flags while the command is at work."""
        return sentence(self.seen, self.advice)

    @property
    def warning(self) -> str:
        """A doubt, as a user is warned of it: for whom nothing is promised, and why."""
        targets = [links.target for links in self.about if links.target is not None]
        whom = {
            "run": "",
            "target": f" for links into {listed(targets)}" if targets else "",
            "edge": " for some links",
        }
        return f"{NO_PROMISE}{whom[self.scope]}: {self.sentence}"

    @property
    def code(self) -> str:
        """The kind, under its name of version 0.2."""
        return self.kind

    @property
    def grave(self) -> bool:
        """Whether no error rate can be promised for what it is about."""
        return self.gravity == "doubt"

    @property
    def scope(self) -> Literal["run", "target", "edge"]:
        """For whom it is: the run, some targets, or some edges."""
        if not self.about:
            return "run"
        return "target" if all(links.source is None for links in self.about) else "edge"

    def __str__(self) -> str:
        return self.sentence

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; `code`, `sentence` and `grave` are what earlier versions read."""
        return {
            "code": self.kind,
            "sentence": self.sentence,
            "variables": list(self.variables),
            "grave": self.grave,
            "seen": self.seen,
            "gravity": self.gravity,
            "about": [[links.source, links.target, links.lag] for links in self.about],
            "evidence": {of: figure for of, figure in self.evidence.items() if isfinite(figure)},
            "advice": [one.to_json() for one in self.advice],
        }

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Finding:
        """Back from `to_json`, or from an alert of version 0.1 or 0.2, whose sentence holds its
        advice and which was about the whole run."""
        common = {"kind": saved["code"], "variables": tuple(saved.get("variables", ()))}
        if "seen" not in saved:
            gravity: Gravity = "doubt" if saved.get("grave") else "alert"
            return cls(seen=saved["sentence"].removesuffix("."), gravity=gravity, **common)
        return cls(
            seen=saved["seen"],
            gravity=saved["gravity"],
            about=tuple(Links(*links) for links in saved["about"]),
            evidence=dict(saved["evidence"]),
            advice=tuple(Advice.from_json(one) for one in saved["advice"]),
            **common,
        )


def into(*targets: str) -> tuple[Links, ...]:
    """All links into these variables."""
    return tuple(Links(target=name) for name in targets)


def between(pairs: Sequence[tuple[str, str]]) -> tuple[Links, ...]:
    """The links between the two variables of each pair, either way."""
    if len(pairs) > MOST_PAIRS:
        return into(*dict.fromkeys(name for pair in pairs for name in pair))
    return tuple(Links(*way) for pair in pairs for way in (pair, pair[::-1]))


def within(targets: Sequence[str], names: Sequence[str]) -> tuple[Links, ...]:
    """The links into some variables from all others, those from their own past left out."""
    if len(targets) * (len(names) - 1) > MOST_PAIRS:
        return into(*targets)
    return tuple(Links(other, name) for name in targets for other in names if other != name)


def strongest(figures: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The first figures, by what they are of."""
    return dict(islice(figures, MOST_FIGURES))


def doubted_edges(findings: Sequence[Finding], graph: LaggedGraph) -> pd.Series[bool]:
    """Which edges of a graph, or of a domain's, a doubt is about, (edge,).

    Also those that the tests have marked `doubtful`; see forecast.input_tests.misfit.
    """
    edges = graph.edges
    doubted = pd.Series(False, index=edges.index)
    if "doubtful" in edges:
        doubted |= edges["doubtful"].astype(bool)
    for finding in findings:
        if finding.grave:
            for links in finding.about or (Links(),):
                doubted |= links.among(edges)
    return doubted


def unforecast_links(causal: Causal | None, graph: LaggedGraph) -> pd.Series[bool]:
    """Which links between variables, (edge,), lead into a target that nothing forecasts better
    than its own past."""
    edges = graph.edges
    if causal is None:
        return pd.Series(False, index=edges.index)
    names = causal.losses.index[~causal.is_forecast]
    return edges["target"].isin(names) & between_variables(edges)


def listed(items: Sequence[str]) -> str:
    """The first few items, and how many more there are."""
    more = len(items) - SHOWN
    shown = [*items[:SHOWN], f"{more} more"] if more > 0 else list(items)
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
