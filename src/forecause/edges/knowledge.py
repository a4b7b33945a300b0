"""What the user already knows: edges that cannot be and edges that must be.

A rule is `SOURCE -> TARGET` or `TARGET <- SOURCE`, optionally `@ LAGS`: one lag, a range or both,
such as `rain -> river @ 1-3,6`. A name may hold the wildcard `*`; as a source, `self` stands for
the target itself and `others` for everything else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from forecause.common.bounded import read_file
from forecause.config import EdgeOptions, rule_texts
from forecause.edges.select import check_k
from forecause.errors import InputError
from forecause.graph.axes import empty_scores

ARROW = re.compile(r"\s*(->|<-)\s*")
LAGS = re.compile(r"@\s*(\d+(?:\s*-\s*\d+)?(?:\s*,\s*\d+(?:\s*-\s*\d+)?)*)\s*$")
# Formats:
MOST_DIGITS = 18  # of a lag


@dataclass(frozen=True)
class Rule:
    """Sources, targets and lags as the user wrote them; no lags means all of them."""

    text: str
    source: str
    target: str
    lags: tuple[range, ...] | None

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read one rule."""
        lags = LAGS.search(text)
        sides = ARROW.split(text[: lags.start()] if lags else text)
        if len(sides) != 3 or not all(side.strip() for side in sides):
            raise InputError(
                f"Cannot read the rule {text!r}: expected 'SOURCE -> TARGET' or "
                "'TARGET <- SOURCE', then '@ LAGS' if it is about some lags only."
            )
        first, arrow, second = (side.strip() for side in sides)
        source, target = (first, second) if arrow == "->" else (second, first)
        return cls(text, source, target, _lags(lags.group(1)) if lags else None)

    def pairs(self, variables: Sequence[str]) -> list[tuple[int, int]]:
        """(target, source) places that the rule is about."""
        targets = self._matching(self.target, variables)
        if self.source in ("self", "others") and self.source not in variables:
            own = self.source == "self"
            return [(i, j) for i in targets for j in range(len(variables)) if (i == j) == own]
        sources = self._matching(self.source, variables)
        return [(i, j) for i in targets for j in sources]

    def check_lags(self, max_lag: int) -> None:
        """A lag that no candidate can have is a mistake."""
        largest = max((span[-1] for span in self.lags or () if span), default=0)
        if largest > max_lag:
            raise InputError(
                f"The rule {self.text!r} names lag {largest}, but the largest lag is {max_lag}."
            )

    def _matching(self, name: str, variables: Sequence[str]) -> list[int]:
        if name in variables:
            return [list(variables).index(name)]
        literal = name.replace("[", "[[]").replace("?", "[?]")  # only * is a wildcard
        matches = [i for i, variable in enumerate(variables) if fnmatchcase(variable, literal)]
        if not matches:
            raise InputError(
                f"The rule {self.text!r} names {name!r}, which is not a variable; there are "
                f"{', '.join(variables)}."
            )
        return matches


@dataclass(frozen=True)
class Required:
    """At least one of these lags must be an edge; exactly these if the user named them."""

    target: int
    source: int
    lags: tuple[int, ...]
    all_of_them: bool


@dataclass(frozen=True)
class Knowledge:
    """Forbidden and required edges."""

    forbid: tuple[Rule, ...] = ()
    require: tuple[Rule, ...] = ()

    @classmethod
    def of(cls, forbid: Iterable[Any] = (), require: Iterable[Any] = ()) -> Knowledge:
        """From rules, or tuples (source, target) or (source, target, lag)."""
        return cls(
            tuple(Rule.parse(text) for text in rule_texts(forbid)),
            tuple(Rule.parse(text) for text in rule_texts(require)),
        )

    def __bool__(self) -> bool:
        return bool(self.forbid or self.require)

    def allowed(self, variables: Sequence[str], max_lag: int, first_lag: int = 1) -> xr.DataArray:
        """False where an edge is forbidden, over (target, source, lag)."""
        allowed = ~empty_scores(variables, max_lag, first_lag).astype(bool)
        for rule in self.forbid:
            rule.check_lags(max_lag)
            for target, source in rule.pairs(variables):
                for lag in _chosen(rule, first_lag, max_lag):
                    allowed.values[target, source, lag - first_lag] = False
        return allowed

    def required(self, allowed: xr.DataArray) -> list[Required]:
        """The edges that must be there; a rule against what is allowed is an InputError."""
        variables = allowed["target"].values.tolist()
        first_lag, max_lag = int(allowed["lag"][0]), int(allowed["lag"][-1])
        required = []
        for rule in self.require:
            rule.check_lags(max_lag)
            for target, source in rule.pairs(variables):
                wanted = [
                    lag for lag in _chosen(rule, first_lag, max_lag) if lag or target != source
                ]
                free = [lag for lag in wanted if allowed.values[target, source, lag - first_lag]]
                if not wanted:  # about lag 0 alone, where lag 0 is no candidate
                    continue
                if not free or (rule.lags is not None and len(free) < len(wanted)):
                    raise InputError(f"The edge {rule.text!r} is both required and forbidden.")
                required.append(Required(target, source, tuple(free), rule.lags is not None))
        return required


@dataclass(frozen=True, eq=False)
class Candidates:
    """Which edges may be chosen and which must be, worked out once for a run."""

    allowed: xr.DataArray  # (target, source, lag), False where an edge is forbidden
    required: tuple[Required, ...] = ()
    some_forbidden: bool = False

    @classmethod
    def of(cls, options: EdgeOptions, variables: Sequence[str], max_lag: int) -> Candidates:
        """From what the user knows; contradictions and too large a `k` are InputErrors."""
        knowledge = Knowledge.of(options.forbid, options.require)
        allowed = knowledge.allowed(variables, max_lag)
        if options.select == "top-k":
            check_k(options.k or 1, allowed[0].size)
        if options.select == "global-top-k":
            check_k(options.k or 1, allowed.size)
        required = tuple(knowledge.required(allowed))
        return cls(allowed, required, bool(knowledge.forbid))


def read_knowledge(path: str | Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Forbidden and required rules from a text file of lines `forbid RULE` and `require RULE`.

    Empty lines and what follows a # are skipped.
    """
    try:
        lines = read_file(Path(path)).decode("utf-8").splitlines()
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read the rules in {str(path)!r}: {error}.") from None
    rules: dict[str, list[str]] = {"forbid": [], "require": []}
    for number, line in enumerate(lines, 1):
        kind, _, rule = line.partition("#")[0].strip().partition(" ")
        if not kind:
            continue
        if kind.rstrip(":") not in rules:
            raise InputError(
                f"Line {number} of {str(path)!r} must start with 'forbid' or 'require', found "
                f"{kind!r}."
            )
        rules[kind.rstrip(":")].append(rule.strip())
    return tuple(rules["forbid"]), tuple(rules["require"])


def with_required(
    chosen: xr.DataArray, scores: xr.DataArray, required: Sequence[Required]
) -> xr.DataArray:
    """Add the required edges; without a named lag the best-scored one, unless one is there."""
    chosen = chosen.copy()
    first = int(chosen["lag"].values[0])
    for one in required:
        places = np.array(one.lags) - first
        cells = chosen.values[one.target, one.source]
        if one.all_of_them:
            cells[places] = True
        elif not cells[places].any():
            cells[places[np.argmax(scores.values[one.target, one.source, places])]] = True
    return chosen


def _chosen(rule: Rule, first_lag: int, max_lag: int) -> list[int]:
    every = range(first_lag, max_lag + 1)
    return [lag for lag in every if rule.lags is None or any(lag in span for span in rule.lags)]


def _lags(text: str) -> tuple[range, ...]:
    """Ranges, which are never listed: `1-99999999999` is as short as `1-2`."""
    spans = []
    for part in text.split(","):
        low, _, high = (end.strip() for end in part.partition("-"))
        if max(len(low), len(high)) > MOST_DIGITS:
            raise InputError(f"A rule names a lag of {max(len(low), len(high))} digits.")
        spans.append(range(int(low), int(high or low) + 1))
    return tuple(spans)
