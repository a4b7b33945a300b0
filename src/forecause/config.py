"""Everything that can be asked for: typed, in four groups, checked before any work begins.

`Config.of(max_lag=3, forecaster="mlp", select="top-k", k=2)` takes the options by their plain
names, applies the preset, and either gives a configuration that is whole and consistent or raises
an InputError that names the conflict. Nothing here imports torch, so the command can list the
choices at once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, ValidationError

from forecause.errors import InputError

ForecasterName = Literal[
    "auto",
    "transformer",
    "vector",
    "mlp",
    "cnn",
    "dictionary",
    "trees",
    "additive",
    "linear",
    "chronos",
    "pretrained",
]
PresetName = Literal["default", "paper", "quick", "sparse"]
HeadName = Literal["mse", "gaussian", "mixture"]
HeadChoice = Literal["mse", "gaussian", "mixture", "auto"]
ReadoutName = Literal[
    "gradient", "score", "input-gradient", "lrp", "cp-lrp", "attention", "rollout", "intervention"
]
RuleName = Literal["auto", "fdr", "top-k", "global-top-k", "uniform"]
ByName = Literal["score", "rank"]
InstantaneousName = Literal["pcmci+", "dynotears"]
GapsName = Literal["fill", "drop"]
HowName = Literal["mean", "sum", "last"]
SeasonName = Literal["auto", "none"]
TrendName = Literal["auto", "none"]

EVERY_HEAD: tuple[str, ...] = get_args(HeadName)
EVERY_READOUT: tuple[str, ...] = get_args(ReadoutName)
WITHOUT_ATTENTION = tuple(r for r in EVERY_READOUT if r not in ("attention", "rollout"))
PLAIN_READOUTS = tuple(r for r in WITHOUT_ATTENTION if r not in ("lrp", "cp-lrp"))
LARGEST_SEED = 2**63 - 1
LARGEST_LAG = 100_000  # longer windows than any machine could hold
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}

# What a preset changes unless the user asks for something else.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "quick": {},
    "sparse": {},
    "paper": {
        "forecaster": "transformer",
        "readout": "lrp",
        "select": "top-k",
        "domain_input": False,
        "season": "none",
        "trend": "none",
    },
}
USUAL_K = 3  # edges per target of top-k, as in the paper


class Settings(BaseModel):
    """Base of everything that is asked for and saved: unknown names are refused, values fixed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def checked(cls, **asked: Any) -> Self:
        """What a user asked for; the first mistake as an InputError."""
        try:
            return cls(**asked)
        except ValidationError as error:
            first = error.errors()[0]
            name = first["loc"][0]
            found = repr(first["input"])
            found = found if len(found) <= 80 else f"{found[:77]}..."
            raise InputError(f"The setting {name}={found}: {first['msg']}.") from None


class ForecasterSpec(Settings):
    """A forecaster that can be asked for: its settings, and what it can do.

    A subclass that names a `kind` can be chosen by that name and is found again when a saved run
    is loaded; nothing else has to be registered. It says of itself what the rest of the program
    needs to know, and builds the model.
    """

    kind: ClassVar[str] = ""
    known: ClassVar[dict[str, type[ForecasterSpec]]] = {}
    closed_form: ClassVar[bool] = False  # solved, not trained step by step
    adds_up: ClassVar[bool] = False  # the forecast is a sum of what each input adds
    token_per_input: ClassVar[bool] = False  # a forecast costs as many parts as there are inputs
    instant: ClassVar[bool] = False  # fitted in a moment, so it may be fitted many times
    head_names: ClassVar[tuple[str, ...]] = ("mse",)  # what it can learn of the distribution
    readouts: ClassVar[tuple[str, ...]] = WITHOUT_ATTENTION
    has_gradient: ClassVar[bool] = True  # else its tests tell the relevance
    own_tests: ClassVar[bool] = False  # `auto` chooses edges by its own tests, not closed forms
    can_be_sparse: ClassVar[bool] = False  # whether the preset `sparse` means anything to it
    weights_use: ClassVar[Literal["none", "optional", "required"]] = "none"

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "kind" in cls.__dict__:
            ForecasterSpec.known[cls.kind] = cls

    @classmethod
    def of_preset(cls, preset: str) -> ForecasterSpec:
        """The settings under a preset; only some forecasters differ from their defaults."""
        return cls()

    def with_weights(self, weights: str) -> Self:
        """The same, started from these weights."""
        return self.model_copy(update={"weights": weights})

    def halved(self) -> Self:
        """A model of half the width for a small budget, where there is such a thing."""
        return self

    def sized(self, inputs: int) -> Self:
        """The settings for so many inputs per target."""
        return self

    @classmethod
    def named(cls, kind: str) -> type[ForecasterSpec]:
        """The spec with this name, or an InputError that lists the names."""
        if kind not in cls.known:
            names = get_args(ForecasterName)
            raise InputError(
                f"Unknown forecaster {kind!r}; choose one of {', '.join(names)}"
                f"{_meant(kind, names)}."
            )
        return cls.known[kind]


Period = Annotated[float, Field(ge=2, le=1e9)]  # rows


class DataOptions(Settings):
    """How the table is read; see forecause.Panel.of."""

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
    season: SeasonName | tuple[Period, ...] = "auto"  # cycles taken out: found, none, or periods
    trend: TrendName = "auto"  # whether slow trends and level shifts are looked for and taken out
    difference: bool = False  # whether numbers become their change from row to row

    @property
    def reading(self) -> dict[str, Any]:
        """What `Panel.of` takes."""
        return self.model_dump(exclude={"season", "trend", "difference"})


class ForecastOptions(Settings):
    """What is fitted, and to what."""

    forecaster: str | SerializeAsAny[ForecasterSpec] = "auto"
    preset: PresetName = "default"
    head: HeadChoice = "mse"  # what a network learns of the distribution
    weights: str | None = None  # of a pretrained forecaster: a folder or an id on the hub
    held_out: float = Field(default=0.2, ge=0.01, lt=0.9)  # the last share of every series
    cross_fit: int = Field(default=0, ge=0, le=20)  # models on disjoint parts of time; 0: one
    domain_input: bool = True  # False: the forecaster must tell the domains apart from the past
    regimes: Literal["auto"] | Annotated[int, Field(ge=1, le=100)] | None = (
        None  # look for unknown regimes; how many
    )
    per_series: bool = False  # a graph for every series besides that of all


class EdgeOptions(Settings):
    """How relevance is read and edges are chosen."""

    readout: ReadoutName = "gradient"
    select: RuleName = "auto"
    k: int | None = Field(default=None, ge=1)  # edges of top-k and global-top-k
    by: ByName = "score"  # what top-k and global-top-k compare
    fdr: float | None = Field(default=None, gt=0, lt=1)  # None: 2 %, or 5 % with few windows
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
    """Choose the `k` best candidates of every target.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.TopK(2)
    TopK(k=2, by='score')
    """

    k: int = USUAL_K
    by: ByName = "score"
    name: ClassVar[RuleName] = "top-k"

    def options(self) -> dict[str, Any]:
        """The options that this rule stands for."""
        return {"select": self.name, "k": self.k, "by": self.by}


@dataclass(frozen=True)
class GlobalTopK(TopK):
    """Choose the `k` best candidates of all.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.GlobalTopK(10, by="rank")
    GlobalTopK(k=10, by='rank')
    """

    name: ClassVar[RuleName] = "global-top-k"


@dataclass(frozen=True)
class FalseDiscovery:
    """Choose the edges that pass their tests, at this accepted share of false ones.

    Examples
    --------
    >>> import forecause as fc
    >>> fc.FalseDiscovery(0.1)
    FalseDiscovery(fdr=0.1)
    """

    fdr: float | None = None

    def options(self) -> dict[str, Any]:
        """The options that this rule stands for."""
        return {"select": "fdr", "fdr": self.fdr}


SelectionRule = TopK | FalseDiscovery


class Config(Settings):
    """All that decides a run besides the data; saved with it.

    Examples
    --------
    >>> import forecause as fc
    >>> config = fc.Config.of(max_lag=3, forecaster="linear", fdr=0.1)
    >>> config.max_lag, config.edges.fdr
    (3, 0.1)
    """

    max_lag: Annotated[int, Field(ge=1, le=LARGEST_LAG)] | Literal["auto"] = 5
    data: DataOptions = DataOptions()
    forecasting: ForecastOptions = ForecastOptions()
    edges: EdgeOptions = EdgeOptions()
    run: RunOptions = RunOptions()

    @classmethod
    def of(cls, base: Config | None = None, /, **asked: Any) -> Config:
        """A configuration from plain option names; `base` gives those that are not asked for.

        An option that is None counts as not asked for. Conflicts are InputErrors.
        """
        if base is not None and not isinstance(base, Config):
            raise InputError(f"config must be a forecause.Config, found {type(base).__name__}.")
        named = {name: value for name, value in asked.items() if value is not None}
        check_names(named, ("max_lag", *GROUP_OF))
        if base is not None:
            named = base.changed() | named
        try:
            named = _normalised(named)
        except OverflowError:
            raise InputError("A number among the options is too large to be used.") from None
        flat = _with_preset(named)
        grouped: dict[str, Any] = {group: {} for group in GROUPS}
        for name, value in flat.items():
            if name != "max_lag":
                grouped[GROUP_OF[name]][name] = value
        groups = {name: GROUPS[name].checked(**values) for name, values in grouped.items()}
        lag = {"max_lag": flat["max_lag"]} if "max_lag" in flat else {}
        config = cls.checked(**lag, **groups)
        check(config, named)
        return config

    def flat(self) -> dict[str, Any]:
        """All options by their plain names, as `of` takes them."""
        found: dict[str, Any] = {"max_lag": self.max_lag}
        for group in GROUPS:
            part = getattr(self, group)
            found |= {name: getattr(part, name) for name in type(part).model_fields}
        return found

    def changed(self) -> dict[str, Any]:
        """The options that differ from the defaults, by their plain names."""
        usual = type(self)().flat()
        return {name: value for name, value in self.flat().items() if value != usual[name]}

    def with_options(self, **changes: Any) -> Config:
        """The same with some options replaced by what was found out, such as the lag window."""
        found = self
        for name, value in changes.items():
            if name == "max_lag":
                found = found.model_copy(update={"max_lag": value})
                continue
            group = GROUP_OF[name]
            part = getattr(found, group).model_copy(update={name: value})
            found = found.model_copy(update={group: part})
        return found

    @property
    def spec(self) -> type[ForecasterSpec] | None:
        """What the forecaster asked for can do; None for `auto`, which tries several."""
        asked = self.forecasting.forecaster
        if isinstance(asked, ForecasterSpec):
            return type(asked)
        return None if asked == "auto" else ForecasterSpec.named(asked)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, by the options' plain names."""
        found = self.flat()
        asked = found["forecaster"]
        if isinstance(asked, ForecasterSpec):
            found["forecaster"] = {"kind": asked.kind, "settings": asked.model_dump(mode="json")}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Config:
        """Back from `to_json`, or from the settings of a run that version 0.1 saved."""
        found = dict(saved)
        asked = found.get("forecaster")
        if isinstance(asked, Mapping):
            found["forecaster"] = ForecasterSpec.named(asked["kind"])(**asked["settings"])
        rule = found.get("select", "auto")
        if rule not in ("top-k", "global-top-k"):  # 0.1 wrote their defaults into every run
            found = {name: v for name, v in found.items() if name not in ("k", "by")}
        if rule not in ("auto", "fdr"):
            found.pop("fdr", None)
        return cls.of(**found)

    @property
    def lag(self) -> int:
        """The largest lag, once it is decided."""
        assert isinstance(self.max_lag, int)
        return self.max_lag


def check(config: Config, asked: Mapping[str, Any]) -> None:
    """Refuse what contradicts itself; `asked` are the options that the user named."""
    _check_rule(config.edges, asked)
    _check_forecaster(config)
    fitting = config.forecasting
    if fitting.cross_fit == 1:
        raise InputError("Cross-fitting needs at least 2 parts (or 0 for none), found 1.")
    if fitting.per_series and fitting.regimes:
        raise InputError("Ask either for regimes or for a graph per series, not for both.")
    if config.data.domain is not None and (fitting.regimes or fitting.per_series):
        raise InputError(
            "The domains are known (domain); neither look for regimes nor ask for a graph per "
            "series at the same time."
        )


def _check_rule(edges: EdgeOptions, asked: Mapping[str, Any]) -> None:
    counted = edges.select in ("top-k", "global-top-k")
    for name in ("k", "by"):
        if name in asked and not counted:
            raise InputError(
                f"{name} belongs to the rules top-k and global-top-k, found select="
                f"{edges.select!r}; choose select='top-k' or leave {name} out."
            )
    if "fdr" in asked and not edges.tested:
        raise InputError(
            f"fdr belongs to the rule fdr, found select={edges.select!r}; choose select='fdr' or "
            "leave fdr out."
        )


def _check_forecaster(config: Config) -> None:
    fitting, spec = config.forecasting, config.spec
    if spec is None:
        if config.edges.readout in ("attention", "rollout"):
            raise InputError(
                f"The readout {config.edges.readout!r} needs a forecaster with attention; choose "
                "forecaster='transformer'."
            )
        if fitting.weights is not None:
            raise InputError(_weights_sentence("auto"))
        return
    if config.edges.readout not in spec.readouts:
        raise InputError(
            f"The readout {config.edges.readout!r} cannot be read from the forecaster "
            f"{spec.kind!r}; choose one of {', '.join(spec.readouts)}."
        )
    if fitting.head not in (*spec.head_names, "auto") or (
        fitting.head == "auto" and spec.head_names == ("mse",)
    ):
        others = [name for name, kind in _selectable().items() if len(kind.head_names) > 1]
        raise InputError(
            f"The forecaster {spec.kind!r} has no head {fitting.head!r}; choose one of "
            f"{', '.join(others)} or auto, or head='mse'."
        )
    if fitting.preset == "sparse" and not spec.can_be_sparse:
        raise InputError(
            f"The preset 'sparse' puts a penalty on a network's gradients, and the forecaster "
            f"{spec.kind!r} has none; choose another preset or forecaster."
        )
    if fitting.weights is not None and spec.weights_use == "none":
        raise InputError(_weights_sentence(spec.kind))
    given = isinstance(fitting.forecaster, ForecasterSpec)
    if spec.weights_use == "required" and fitting.weights is None and not given:
        raise InputError(
            f"The forecaster {spec.kind!r} needs weights: a folder with Chronos-2 weights, or "
            "their id on the hub."
        )


def _weights_sentence(kind: str) -> str:
    names = [name for name, spec in _selectable().items() if spec.weights_use != "none"]
    return (
        f"Only {' and '.join(names)} start from weights, no other forecaster takes them; found "
        f"{kind!r}."
    )


def _selectable() -> dict[str, type[ForecasterSpec]]:
    """The forecasters that can be chosen by name, in the order they are listed."""
    names = get_args(ForecasterName)
    return {name: ForecasterSpec.known[name] for name in names if name in ForecasterSpec.known}


def check_names(asked: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an option that does not exist, naming the nearest one that does."""
    names = list(known)
    for name in asked:
        if name not in names:
            raise InputError(f"There is no option {name!r}{_meant(name, names)}.")


def _meant(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]!r}?".rstrip("?") if close else ""


def _with_preset(asked: dict[str, Any]) -> dict[str, Any]:
    """What was asked for, completed by what the preset and the head bring."""
    preset = asked.get("preset", "default")
    if not isinstance(preset, str) or preset not in PRESETS:
        raise InputError(f"Unknown preset {preset!r}; choose one of {', '.join(PRESETS)}.")
    brought = dict(PRESETS[preset])
    if asked.get("head", "mse") != "mse":  # a parent that drives the variance alone is invisible
        brought["readout"] = "score"  # to the gradient of the mean
    found = brought | asked
    spec = ForecasterSpec.known.get(str(found.get("forecaster")))
    if "readout" not in asked and spec is not None and found.get("readout") not in spec.readouts:
        found.pop("readout", None)  # chronos, say, whose inside LRP has no rules for
    if found.get("select") in ("top-k", "global-top-k"):
        found.setdefault("k", USUAL_K)
    return found


def _normalised(asked: dict[str, Any]) -> dict[str, Any]:
    """Objects and texts as the fields hold them."""
    found = dict(asked)
    if isinstance(found.get("select"), SelectionRule):
        rule = found.pop("select").options()
        found |= {name: value for name, value in rule.items() if value is not None}
    if "regimes" in found:
        found["regimes"] = _regimes(found["regimes"])
    if "budget" in found:
        found["budget"] = parse_budget(found["budget"])
    if "labels" in found:
        found["labels"] = _texts("labels", found["labels"])
    if isinstance(found.get("missing"), str | float | int):
        found["missing"] = (found["missing"],)
    if isinstance(found.get("missing"), list | tuple):  # what is no number is missing anyway
        found["missing"] = tuple(cell for cell in found["missing"] if cell == cell)
    if "season" in found:
        found["season"] = _season(found["season"])
    for name in ("forbid", "require"):
        if name in found:
            found[name] = rule_texts(found[name])
    return found


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
        found = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]*)?)\s*([smh]?)\s*", text)
        seconds = float(found[1]) * SECONDS[found[2] or "s"] if found else 0.0
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
