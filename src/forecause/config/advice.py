"""How a user writes an option, and advice as data: an option and the value that would help.

A sentence holds an `Advice` where the option stands. As text it is `season=[24]` or
`fc.read(data, labels=["day type"])` in Python, and `--season 24` or `--labels 'day type'` while the
command is at work. So are the lines that reproduce a run. Tests parse them again.
"""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

from forecause.config.options import GROUP_OF, head_of
from forecause.config.spec import ForecasterSpec, Settings, did_you_mean
from forecause.config.thresholds import Thresholds
from forecause.errors import InputError

# Where each option is given in Python. What stands nowhere else is an argument of `discover`.
OF_READ = (
    *("labels", "missing", "every", "every_how", "rows", "interpolate", "gaps"),
    *("columns", "exclude", "encoding", "sheet", "counter"),
)
OF_CONFIG = (
    *("trend", "difference", "head", "weights", "held_out"),
    *("cross_fit", "domain_input", "per_series", "thresholds"),
)
OF_RULE = ("k", "by")
# Where the options of `discover` before version 0.3 went, by what to write instead.
MOVED = {
    **{name: f"fc.read: fc.discover(fc.read(data, {name}=...))" for name in OF_READ},
    **{name: f"fc.Config: fc.discover(data, config=fc.Config({name}=...))" for name in OF_CONFIG},
    **dict.fromkeys(OF_RULE, "fc.TopK: select=fc.TopK(3, by='rank')"),
    "head": "a network: forecaster=fc.forecasters.MLP(head=...), or fc.Config(head=...)",
    "weights": "a forecaster: forecaster=fc.forecasters.Pretrained(weights=...)",
}
# Options with a flag of their own; the others are given as --set group.name=value.
FLAGS = (
    *("max_lag", "time", "series", "domain", "labels", "missing", "every", "rows", "season"),
    *("columns", "exclude", "encoding", "sheet", "counter"),
    *("forecaster", "preset", "weights", "regimes", "readout", "select", "k", "fdr"),
    *("forbid", "require", "seed", "device", "budget"),
)
# Several values in one text.
BY_COMMA = ("labels", "missing", "season", "columns", "exclude", "counter")
OF_TOP_K = ("top-k", "global-top-k")

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")

Call = Literal["discover", "refine"]

_command_is_at_work = False


def with_known_names(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """The function, whose misspelt or moved arguments are an InputError that helps."""

    @wraps(function)
    def checked(*arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
        refuse_unknown(named, function.__annotations__)
        return function(*arguments, **named)

    return checked


def refuse_unknown(asked: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an argument that does not exist, saying where it went or which one is near."""
    names = list(known)
    for name in asked:
        if name in names:
            continue
        if name in MOVED:
            raise InputError(f"{name} is an option of {MOVED[name]}.")
        raise InputError(f"There is no option {name!r}{did_you_mean(name, [*names, *MOVED])}")


def as_python(name: str, value: Any) -> str:
    """One option as advised to a user of the library: `season="none"`, or with what it is of."""
    text = f"{name}={python_value(value)}"
    if name in OF_READ:
        return f"fc.read(data, {text})"
    if name in OF_CONFIG:
        return f"config=fc.Config({text})"
    if name in OF_RULE:
        return f"select=fc.TopK({text})"
    return text


def as_flag(name: str, value: Any) -> str:
    """One option as the command takes it, quoted for a shell."""
    if isinstance(value, ForecasterSpec):
        settings = [_setting(f"forecaster.{n}", v) for n, v in _changed(value).items()]
        return " ".join([f"--forecaster {value.kind}", *settings])
    if isinstance(value, Thresholds):
        numbers = [
            _setting(f"thresholds.{group}.{n}", v)
            for group, own in value.changed().items()
            for n, v in own.items()
        ]
        return " ".join(numbers)
    if name not in FLAGS:
        return _setting(f"{GROUP_OF[name]}.{name}", value)
    flag = f"--{name.replace('_', '-')}"
    values = value if isinstance(value, list | tuple) else (value,)
    if name in BY_COMMA:
        values = (joined_by_comma(values),)
    return " ".join(f"{flag} {shlex.quote(_text(one))}" for one in values)


def call(data: str, options: Mapping[str, Any]) -> str:
    """The call of `discover` with these options, by their plain names; `data` is Python's text."""
    own = {name: value for name, value in options.items() if value is not None}
    read = "".join(f", {name}={python_value(own.pop(name))}" for name in OF_READ if name in own)
    columns = ("time", "series", "domain")
    if read:
        roles = "".join(f", {n}={python_value(own.pop(n))}" for n in columns if n in own)
        data = f"fc.read({data}{roles}{read})"
    if head_of(own.get("forecaster")) is not None:
        own.pop("head", None)
    inside = [name for name in OF_CONFIG if name in own]
    if inside:  # what these depend on stands beside them
        inside = [name for name in ("preset", "forecaster") if name in own] + inside
    rest = ", ".join(f"{name}={python_value(own.pop(name))}" for name in inside)
    if own.get("select") in OF_TOP_K:
        rule = {name: own.pop(name) for name in OF_RULE if name in own}
        rule |= {"overall": True} if own["select"] == "global-top-k" else {}
        asked = ", ".join(f"{name}={python_value(value)}" for name, value in rule.items())
        own["select"] = Written(f"fc.TopK({asked})")
    arguments = "".join(f", {name}={python_value(value)}" for name, value in own.items())
    return f"fc.discover({data}{arguments}{f', config=fc.Config({rest})' if rest else ''})"


def command(files: Sequence[str], options: Mapping[str, Any]) -> str:
    """The command line with these options, by their plain names."""
    own = {name: value for name, value in options.items() if value is not None}
    if head_of(own.get("forecaster")) is not None:
        own.pop("head", None)
    flags = [as_flag(name, value) for name, value in own.items()]
    return " ".join(["forecause discover", *map(shlex.quote, files), *filter(None, flags)])


class Written(str):
    """Text that is Python already."""


ANY = Written("...")  # stands for a value that the reader has to find


def python_value(value: Any) -> str:
    """A value as Python takes it."""
    if isinstance(value, Written):
        return str(value)
    if isinstance(value, ForecasterSpec):
        settings = [f"{name}={python_value(v)}" for name, v in _changed(value).items()]
        own = "fc.forecasters." if type(value).__module__.startswith("forecause.") else ""
        return f"{own}{type(value).__name__}({', '.join(settings)})"
    if isinstance(value, Thresholds):
        return python_value(value.changed())
    if isinstance(value, Mapping):
        items = (f"{python_value(key)}: {python_value(held)}" for key, held in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(python_value, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value)


def joined_by_comma(values: Sequence[Any]) -> str:
    """Several values in one text; one that holds a comma or a quote is quoted, as in CSV."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([_text(value) for value in values])
    return line.getvalue()


def split_by_comma(text: str) -> list[str]:
    """Back from `joined_by_comma`; blanks around a value do not count."""
    (row,) = csv.reader([text], skipinitialspace=True) if text else ([],)
    return [value.strip() for value in row if value.strip()]


def _setting(name: str, value: Any) -> str:
    """`--set name=value`, the value as JSON where that differs from its text."""
    plain = isinstance(value, str) and not _is_json(value)
    text = value if plain else json.dumps(value, ensure_ascii=False)
    return f"--set {shlex.quote(f'{name}={text}')}"


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _changed(settings: Settings) -> dict[str, Any]:
    """The settings that differ from the defaults, as plain values."""
    return settings.model_dump(exclude_defaults=True)


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


@contextmanager
def advising_flags() -> Iterator[None]:
    """Inside, advice is given as flags: the command is at work in this process."""
    global _command_is_at_work
    before, _command_is_at_work = _command_is_at_work, True
    try:
        yield
    finally:
        _command_is_at_work = before


@dataclass(frozen=True)
class Advice:
    """What may help: an option of a call, its value, and the words around it.

    Without a value the reader has to find one. Without an option the words say it all.
    """

    option: str = ""
    value: Any = None  # plain JSON: a text, a number, a truth value, or a tuple of those
    words: str = "{}"  # the option stands for {}; never holds names from the data
    call: Call = "discover"

    def __str__(self) -> str:
        return self.flag if _command_is_at_work else self.argument

    @property
    def phrase(self) -> str:
        """The words with the option in them, such as `try max_lag=8`."""
        return self.words.replace("{}", str(self)) if "{}" in self.words else self.words

    @property
    def argument(self) -> str:
        """As Python takes it."""
        if self.call == "refine":
            return f"run.refine({self.option}={self.value!r})"
        return as_python(self.option, ANY if self.value is None else self.value)

    @property
    def flag(self) -> str:
        """As the command takes it; a flag whose value the reader has to find stands alone."""
        if self.call == "refine":
            return f"forecause refine RUN --{self.option}"
        if self.value is None and self.option in FLAGS:
            return f"--{self.option.replace('_', '-')}"
        return as_flag(self.option, ANY if self.value is None else self.value)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        return {"option": self.option, "value": value, "words": self.words, "call": self.call}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Advice:
        """Back from `to_json`."""
        value = tuple(saved["value"]) if isinstance(saved["value"], list) else saved["value"]
        return cls(saved["option"], value, saved["words"], saved["call"])


def hint(words: str) -> Advice:
    """Advice that is no option, such as `use more rows`."""
    return Advice(words=words)


def sentence(seen: str, advice: Sequence[Advice]) -> str:
    """What was seen, without its full stop, and what may help, as one sentence."""
    phrases = [one.phrase for one in advice]
    if not phrases:
        return f"{seen}."
    first = f"{', '.join(phrases[:-1])} or " if len(phrases) > 1 else ""
    return f"{seen}; {first}{phrases[-1]}."
