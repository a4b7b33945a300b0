"""Everything that can be asked for: typed, in groups, checked before any work begins.

`Config(max_lag=3, forecaster="mlp", select="top-k", k=2)` takes the options by their plain names,
applies the preset, and either gives a configuration that is whole and consistent or raises an
InputError that names the conflict. The numbers that decide a result are its `thresholds`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, ValidationError

from forecause.config.options import (
    GROUP_OF,
    GROUPS,
    DataOptions,
    EdgeOptions,
    ForecastOptions,
    RunOptions,
    SelectionRule,
    TopK,
    head_of,
    normalised,
    rule_texts,
)
from forecause.config.spec import (
    EVERY_HEAD,
    EVERY_READOUT,
    PLAIN_READOUTS,
    ForecasterName,
    ForecasterSpec,
    HeadName,
    InstantaneousName,
    PresetName,
    ReadoutName,
    RuleName,
    SeasonName,
    Settings,
    check_names,
    first_mistake,
)
from forecause.config.thresholds import THRESHOLDS, Thresholds
from forecause.errors import InputError

__all__ = [
    "EVERY_HEAD",
    "EVERY_READOUT",
    "GROUPS",
    "GROUP_OF",
    "PLAIN_READOUTS",
    "Config",
    "DataOptions",
    "EdgeOptions",
    "ForecastOptions",
    "ForecasterName",
    "ForecasterSpec",
    "HeadName",
    "InstantaneousName",
    "PresetName",
    "ReadoutName",
    "RuleName",
    "SeasonName",
    "SelectionRule",
    "Settings",
    "Thresholds",
    "TopK",
    "check_names",
    "rule_texts",
]

# Time and memory:
LARGEST_LAG = 100_000  # longer windows than any machine could hold
UNGROUPED = ("max_lag", "thresholds")
OPTION_NAMES = (*UNGROUPED, *GROUP_OF)
BRINGING = ("preset", "forecaster", "weights", "head")  # options that bring others

PAPER: dict[str, Any] = {
    "forecaster": "transformer",
    "readout": "lrp",
    "select": "top-k",
    "domain_input": False,
    "season": "none",
    "trend": "none",
}
# What a preset changes unless the user asks for something else.
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "quick": {},
    "sparse": {},
    "paper": PAPER,
    "paper-shallow": PAPER,
}


class Config(Settings):
    """All that decides a run besides the data; saved with it.

    Options come by their plain names, `fc.Config(max_lag=3, trend="none")`, and are held in groups,
    `config.data.trend`. An option that is None counts as not asked for.

    Examples
    --------
    >>> import forecause as fc
    >>> config = fc.Config(max_lag=3, forecaster="linear", fdr=0.1, held_out=0.3)
    >>> config.max_lag, config.edges.fdr, config.forecasting.held_out
    (3, 0.1, 0.3)
    """

    max_lag: Annotated[int, Field(ge=1, le=LARGEST_LAG)] | Literal["auto"] = 5
    data: DataOptions = DataOptions()
    forecasting: ForecastOptions = ForecastOptions()
    edges: EdgeOptions = EdgeOptions()
    run: RunOptions = RunOptions()
    thresholds: Thresholds = THRESHOLDS

    def __init__(self, **asked: Any) -> None:
        named = {name: value for name, value in asked.items() if value is not None}
        check_names(named, OPTION_NAMES)
        try:
            named = normalised(named)
        except OverflowError:
            raise InputError("A number among the options is too large to be used.") from None
        _check_kind_of(named.get("forecaster", "auto"))
        complete = _with_preset(named)
        grouped: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
        whole = {name: complete.pop(name) for name in UNGROUPED if name in complete}
        if "thresholds" in whole:
            whole["thresholds"] = Thresholds.of(whole["thresholds"])
        for name, value in complete.items():
            grouped[GROUP_OF[name]][name] = value
        groups = {name: GROUPS[name].checked(**values) for name, values in grouped.items()}
        try:
            super().__init__(**whole, **groups)
        except ValidationError as error:
            raise first_mistake(error) from None
        check(self, named)

    @classmethod
    def of(cls, base: Config | None = None, /, **asked: Any) -> Config:
        """The configuration `base` with the options replaced that are asked for."""
        if base is None:
            return cls(**asked)
        if not isinstance(base, Config):
            raise InputError(f"config must be a forecause.Config, found {type(base).__name__}.")
        kept = base.changed()
        if head_of(asked.get("forecaster")) is not None:
            kept.pop("head", None)
        return cls(**kept | {name: value for name, value in asked.items() if value is not None})

    def flat(self) -> dict[str, Any]:
        """All options by their plain names, as `of` takes them."""
        options: dict[str, Any] = {name: getattr(self, name) for name in UNGROUPED}
        for group in GROUPS:
            part = getattr(self, group)
            options |= {name: getattr(part, name) for name in type(part).model_fields}
        return options

    def changed(self) -> dict[str, Any]:
        """The options that differ from what their preset brings, by their plain names.

        `Config(**config.changed())` is the same configuration.
        """
        bringing = {name: getattr(self.forecasting, name) for name in BRINGING}
        usual, brought = Config().flat(), Config(**bringing).flat()
        return {
            name: value
            for name, value in self.flat().items()
            if value != (usual if name in BRINGING else brought)[name]
        }

    def with_options(self, **changes: Any) -> Config:
        """The same with some options replaced by what was found out, such as the lag window."""
        config = self
        for name, value in changes.items():
            if name in UNGROUPED:
                config = config.model_copy(update={name: value})
                continue
            group = GROUP_OF[name]
            part = GROUPS[group].checked(**dict(getattr(config, group)) | {name: value})
            config = config.model_copy(update={group: part})
        return config

    @property
    def spec(self) -> type[ForecasterSpec] | None:
        """What the forecaster asked for can do; None for `auto`, which tries several."""
        asked = self.forecasting.forecaster
        if isinstance(asked, ForecasterSpec):
            return type(asked)
        return None if asked == "auto" else ForecasterSpec.named(asked)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, by the options' plain names."""
        options = self.flat()
        asked = options["forecaster"]
        if isinstance(asked, ForecasterSpec):
            options["forecaster"] = {"kind": asked.kind, "settings": asked.model_dump(mode="json")}
        options["thresholds"] = self.thresholds.model_dump(mode="json")
        return {name: list(v) if isinstance(v, tuple) else v for name, v in options.items()}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Config:
        """Back from `to_json`, or from the settings of a run that an older version saved."""
        options = dict(saved)
        asked = options.get("forecaster")
        if isinstance(asked, Mapping):
            options["forecaster"] = ForecasterSpec.named(asked["kind"])(**asked["settings"])
        rule = options.get("select", "auto")
        if rule not in ("top-k", "global-top-k"):  # 0.1 wrote their defaults into every run
            options = {name: v for name, v in options.items() if name not in ("k", "by")}
        if rule not in ("auto", "fdr"):
            options.pop("fdr", None)
        if "thresholds" in options:
            options["thresholds"] = Thresholds.from_json(options["thresholds"])
        return cls(**options)

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


def _check_kind_of(forecaster: Any) -> None:
    """Refuse a model of another library, and say where it goes."""
    if not isinstance(forecaster, str | ForecasterSpec):
        raise InputError(
            "A forecaster is a name such as 'mlp' or settings such as "
            "fc.forecasters.MLP(hidden=64); a model of another library or a torch module goes to "
            f"fc.drivers(model, data), whose `run` has the graph. Found "
            f"{type(forecaster).__name__}."
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
    known = ForecasterSpec.every()
    return {name: known[name] for name in names if name in known}


def _with_preset(asked: dict[str, Any]) -> dict[str, Any]:
    """What was asked for, completed by what the preset and the head bring."""
    preset = asked.get("preset", "default")
    if not isinstance(preset, str) or preset not in PRESETS:
        raise InputError(f"Unknown preset {preset!r}; choose one of {', '.join(PRESETS)}.")
    brought = dict(PRESETS[preset])
    if asked.get("head", "mse") != "mse":  # a parent that drives the variance alone is invisible
        brought["readout"] = "score"  # to the gradient of the mean
    complete = brought | asked
    kind = complete.get("forecaster", "auto")
    spec = ForecasterSpec.every().get(kind) if isinstance(kind, str) else None
    if "readout" not in asked and spec is not None and complete.get("readout") not in spec.readouts:
        complete.pop("readout", None)  # chronos, say, whose inside LRP has no rules for
    if complete.get("select") in ("top-k", "global-top-k"):
        complete.setdefault("k", TopK.k)
    return complete
