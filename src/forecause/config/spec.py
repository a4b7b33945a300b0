"""What a forecaster says of itself, and the names of everything that can be chosen."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, ClassVar, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

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
PresetName = Literal["default", "paper", "paper-shallow", "quick", "sparse"]
HeadName = Literal["mse", "gaussian", "mixture"]
HeadChoice = Literal["mse", "gaussian", "mixture", "auto"]
ReadoutName = Literal[
    "gradient",
    "score",
    "input-gradient",
    "lrp",
    "balanced-lrp",
    "cp-lrp",
    "attention",
    "rollout",
    "intervention",
]
RuleName = Literal["auto", "fdr", "top-k", "global-top-k", "uniform"]
ByName = Literal["score", "rank", "rank/sd"]
InstantaneousName = Literal["pcmci+", "dynotears"]
GapsName = Literal["fill", "drop"]
HowName = Literal["mean", "sum", "last"]
SeasonName = Literal["auto", "none"]
TrendName = Literal["auto", "none"]

OWN_KINDS = "forecause.forecast.selection"  # a layer above, imported when a forecaster is asked for
EVERY_HEAD: tuple[str, ...] = get_args(HeadName)
EVERY_READOUT: tuple[str, ...] = get_args(ReadoutName)
WITHOUT_ATTENTION = tuple(r for r in EVERY_READOUT if r not in ("attention", "rollout"))
PLAIN_READOUTS = tuple(r for r in WITHOUT_ATTENTION if "lrp" not in r)


_may_fetch = ContextVar("may_fetch", default=True)


@contextmanager
def fetching(allowed: bool) -> Iterator[None]:
    """Whether weights that are named by a hub id may be fetched from there meanwhile."""
    token = _may_fetch.set(allowed)
    try:
        yield
    finally:
        _may_fetch.reset(token)


class NotFetched(InputError):
    """Weights that are not on this machine and may not be fetched."""


def may_fetch() -> bool:
    """As the innermost `fetching` says; yes outside of all."""
    return _may_fetch.get()


class Settings(BaseModel):
    """Base of everything that is asked for and saved: unknown names are refused, values fixed."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def checked(cls, **asked: Any) -> Self:
        """What a user asked for; the first mistake as an InputError."""
        try:
            return cls(**asked)
        except ValidationError as error:
            raise first_mistake(error) from None


def first_mistake(error: ValidationError) -> InputError:
    """What pydantic refused first, as a sentence for the user."""
    first = error.errors()[0]
    value = repr(first["input"])
    value = value if len(value) <= 80 else f"{value[:77]}..."
    wrong = first["msg"].replace("Input should", "it should")
    return InputError(f"The setting {first['loc'][0]}={value}: {wrong}.")


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
    can_be_sparse: ClassVar[bool] = False  # whether the preset `sparse` means anything to it
    weights_use: ClassVar[Literal["none", "optional", "required"]] = "none"
    is_saved: ClassVar[bool] = True  # else a saved run keeps its name alone

    def __init__(self, **asked: Any) -> None:
        check_names(asked, type(self).model_fields, f"setting of {type(self).__name__}:")
        try:
            super().__init__(**asked)
        except ValidationError as error:
            raise first_mistake(error) from None

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
    def every(cls) -> dict[str, type[ForecasterSpec]]:
        """All specs by name, the product's own and those of users that are imported."""
        import_module(OWN_KINDS)  # each makes itself known there
        return cls.known

    @classmethod
    def named(cls, kind: str) -> type[ForecasterSpec]:
        """The spec with this name, or an InputError that lists the names."""
        if kind not in cls.known and kind not in cls.every():
            names = get_args(ForecasterName)
            raise InputError(
                f"Unknown forecaster {kind!r}; choose one of {', '.join(names)}"
                f"{did_you_mean(kind, names)}"
            )
        return cls.known[kind]


def check_names(asked: Iterable[str], known: Iterable[str], what: str = "option") -> None:
    """Refuse an option that does not exist, naming the nearest one that does."""
    names = list(known)
    for name in asked:
        if name not in names:
            raise InputError(f"There is no {what} {name!r}{did_you_mean(name, names)}")


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """The end of a sentence, with its stop, that suggests the nearest name, if one is near."""
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean {close[0]!r}?" if close else "."
