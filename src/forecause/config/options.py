"""The options in their four groups, rules as objects, and what texts mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny

from forecause.config.spec import (
    ByName,
    ForecasterSpec,
    GapsName,
    HeadChoice,
    HowName,
    PresetName,
    ReadoutName,
    RuleName,
    SeasonName,
    Settings,
    TrendName,
)
from forecause.errors import InputError

# Formats:
LARGEST_SEED = 2**63 - 1

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}

Period = Annotated[float, Field(ge=2, le=1e9)]  # rows


class ReadingOptions(Settings):
    """How a table is read; see forecause.read."""

    time: str | None = None  # the column with the time
    series: str | None = None  # the column that tells series apart
    domain: str | None = None  # the column with known regimes
    labels: tuple[str, ...] = ()  # columns that hold labels, not numbers
    missing: tuple[float | str, ...] = ()  # cells that mean a missing value, such as -9999
    every: float | str | None = None  # put the rows on a regular grid, such as "1h"
    every_how: HowName = "mean"  # what a cell of that grid is of the rows in it
    rows: str | None = None  # which rows are explained: a column of truth values or a condition
    interpolate: int = Field(default=0, ge=0)  # longest gap that is filled linearly
    gaps: GapsName = "fill"  # other short gaps: by what is expected, or not at all
    columns: tuple[str, ...] = ()  # the only ones that are read; of an array, their names
    exclude: tuple[str, ...] = ()  # columns that are not read
    encoding: str | None = None  # of a text file, where it is not found out
    sheet: str | None = None  # of an Excel file
    counter: tuple[str, ...] = ()  # columns whose increase matters; none: no column's


class DataOptions(ReadingOptions):
    """How the table is read, and what time alone explains of it."""

    season: SeasonName | tuple[Period, ...] = "auto"  # cycles taken out: found, none, or periods
    trend: TrendName = "auto"  # whether slow trends and level shifts are looked for and taken out
    difference: bool = False  # whether numbers become their change from row to row

    @property
    def reading(self) -> dict[str, Any]:
        """What `Panel.of` takes."""
        return {name: getattr(self, name) for name in ReadingOptions.model_fields}


class ForecastOptions(Settings):
    """What is fitted, and to what."""

    forecaster: str | SerializeAsAny[ForecasterSpec] = "auto"
    preset: PresetName = "default"
    head: HeadChoice = "mse"  # what a network learns of the distribution
    weights: str | None = None  # of a pretrained forecaster: a folder or an id on the hub
    held_out: float = Field(default=0.2, ge=0.01, lt=0.9)  # the last share of every series
    cross_fit: int = Field(default=0, ge=0, le=20)  # models on disjoint parts of time; 0: one
    domain_input: bool = True  # False: the forecaster must tell the domains apart from the past
    # look for unknown regimes; how many
    regimes: Literal["auto"] | Annotated[int, Field(ge=1, le=100)] | None = None
    per_series: bool = False  # a graph for every series besides that of all


class EdgeOptions(Settings):
    """How relevance is read and edges are chosen."""

    readout: ReadoutName = "gradient"
    select: RuleName = "auto"
    k: int | None = Field(default=None, ge=1)  # edges of top-k and global-top-k
    by: ByName = "score"  # what top-k and global-top-k compare
    fdr: float | None = Field(default=None, gt=0, lt=1)  # None: the usual one
    forbid: tuple[str, ...] = ()  # see forecause.edges.knowledge
    require: tuple[str, ...] = ()

    @property
    def tested(self) -> bool:
        """Whether edges are chosen by tests."""
        return self.select in ("auto", "fdr")


class RunOptions(Settings):
    """How the work is done, whatever it is."""

    seed: int = Field(default=0, ge=0, le=LARGEST_SEED)
    device: str = "auto"
    budget: float | None = Field(default=None, gt=0)  # seconds to keep to


GROUPS: dict[str, type[Settings]] = {
    "data": DataOptions,
    "forecasting": ForecastOptions,
    "edges": EdgeOptions,
    "run": RunOptions,
}
GROUP_OF = {name: group for group, kind in GROUPS.items() for name in kind.model_fields}


@dataclass(frozen=True)
class TopK:
    """Choose the `k` best candidates of every target, or `overall`.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.TopK(2)
    TopK(k=2, by='score', overall=False)
    >>> fc.TopK(30, by="rank", overall=True).options()["select"]
    'global-top-k'
    """

    k: int = 3  # as in the paper
    by: ByName = "score"
    overall: bool = False  # the best of all candidates together

    def options(self) -> dict[str, Any]:
        """The options that this rule stands for."""
        name: RuleName = "global-top-k" if self.overall else "top-k"
        return {"select": name, "k": self.k, "by": self.by}


GlobalTopK = partial(TopK, overall=True)  # as version 0.2 wrote it
SelectionRule = TopK


def normalised(asked: dict[str, Any]) -> dict[str, Any]:
    """Objects and texts as the fields hold them."""
    options = dict(asked)
    if isinstance(options.get("select"), SelectionRule):
        options |= options.pop("select").options()
    head = head_of(options.get("forecaster"))
    if head is not None and options.setdefault("head", head) != head:
        raise InputError(
            f"The forecaster asks for the head {head!r} and the configuration for "
            f"{options['head']!r}; name one of them."
        )
    if "regimes" in options:
        options["regimes"] = _regimes(options["regimes"])
    if "budget" in options:
        options["budget"] = parse_budget(options["budget"])
    for name in ("labels", "columns", "exclude", "counter"):
        if name in options:
            options[name] = _texts(name, options[name])
    if isinstance(options.get("missing"), str | float | int):
        options["missing"] = (options["missing"],)
    if isinstance(options.get("missing"), list | tuple):  # what is no number is missing anyway
        options["missing"] = tuple(cell for cell in options["missing"] if cell == cell)
    if "season" in options:
        options["season"] = _season(options["season"])
    for name in ("forbid", "require"):
        if name in options:
            options[name] = rule_texts(options[name])
    return options


def head_of(forecaster: Any) -> HeadChoice | None:
    """The head that a forecaster's object asks for, `MLP(head="gaussian")`; None: the usual."""
    if not isinstance(forecaster, ForecasterSpec):
        return None
    head: HeadChoice = getattr(forecaster, "head", "mse")
    return None if head == "mse" else head


def _texts(name: str, values: Any) -> tuple[str, ...]:
    several = (values,) if isinstance(values, str) else values
    try:
        texts = tuple(several)
    except TypeError:
        texts = (several,)
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"{name} must be names of columns, found {values!r}.")
    return texts


def _season(asked: Any) -> Any:
    """`auto`, `none`, or periods: numbers, or a text like 24,168."""
    if isinstance(asked, str) and asked in ("auto", "none"):
        return asked
    several = asked.split(",") if isinstance(asked, str) else asked
    try:
        periods = tuple(map(float, several if isinstance(several, Iterable) else (several,)))
    except (TypeError, ValueError):
        periods = ()
    if not periods or not all(2 <= period <= 1e9 for period in periods):
        raise InputError(
            "season must be 'auto', 'none' or periods in rows of at least 2, such as 24 or "
            f"'24,168'; found {asked!r}."
        )
    return periods


def _regimes(asked: Any) -> Any:
    if isinstance(asked, str) and asked != "auto":
        if not asked.isdecimal() or len(asked) > 9:
            raise InputError(f"regimes must be 'auto' or a whole number, found {asked!r}.")
        return int(asked)
    return asked


def parse_budget(text: str | float) -> float:
    """Seconds of a duration like 90s, 10m or 1.5h; a plain number is seconds."""
    if isinstance(text, str):
        match = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]*)?)\s*([smh]?)\s*", text)
        seconds = float(match[1]) * SECONDS[match[2] or "s"] if match else 0.0
    else:
        seconds = float(text) if isinstance(text, int | float) else 0.0
    if not 0 < seconds < float("inf"):
        raise InputError(f"Expected a time budget like 90s, 10m or 2h, found {text!r}.")
    return seconds


def rule_texts(rules: Any) -> tuple[str, ...]:
    """Rules as text, from one text or several, or from tuples (source, target[, lag])."""
    if isinstance(rules, str):
        return (rules,)
    if not isinstance(rules, Iterable):
        raise InputError(f"Expected rules such as 'rain -> river @ 1', found {rules!r}.")
    texts = []
    for rule in rules:
        if isinstance(rule, str):
            texts.append(rule)
        elif isinstance(rule, tuple | list) and len(rule) in (2, 3):
            texts.append(f"{rule[0]} -> {rule[1]}" + (f" @ {rule[2]}" if len(rule) == 3 else ""))
        else:
            raise InputError(
                "Expected a rule such as 'rain -> river @ 1' or ('rain', 'river', 1), found "
                f"{rule!r}."
            )
    return tuple(texts)
