"""Advice as data: an option and the value that would help.

A sentence holds an `Advice` where the option stands. As text it is `season=[24]` or
`fc.read(data, labels=["day type"])` in Python, and `--season 24` or `--labels 'day type'` while the
command is at work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from forecause.config.spelling import FLAGS, Written, as_flag, as_python

Call = Literal["discover", "refine"]

ANY = Written("...")  # stands for a value that the reader has to find

_command_is_at_work = False


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
