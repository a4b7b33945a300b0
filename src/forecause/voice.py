"""Advice in the reader's language: the command's speaks flags, Python's speaks arguments.

Sentences are written with flags (`--labels weather`); `spoken` turns them into arguments
(`labels=["weather"]`) unless the command is at work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_flags = ContextVar("flags", default=False)

# Flags whose value may be any text up to the end of its clause; lists in Python.
NAMED = (
    r"--(time|series|domain|labels|missing) (?!or |and |to |with |if )"
    r"('[^']*'|.+?)(?= makes |[.;,]?(?: |$))"
)
# Flags with a value that can be nothing else, flags that are true, and the bare name of a flag.
VALUES = "auto|none|drop|local|cpu|linear|additive|transformer|gradient|top-k"
VALUED = rf"--([a-z][a-z-]+) ({VALUES}|\d+)\b"
SWITCHES = r"--(difference|latent|instantaneous|per-series|power)\b"
BARE = r"--([a-z][a-z-]+)"
LISTS = ("labels", "missing")


@contextmanager
def speaking_flags() -> Iterator[None]:
    """Inside, sentences stay as the command's user needs them."""
    before = _flags.set(True)
    try:
        yield
    finally:
        _flags.reset(before)


def spoken(sentence: str) -> str:
    """The sentence for whoever reads it now."""
    if _flags.get():
        return sentence
    sentence = sentence.replace(
        "forecause refine --instantaneous or --latent",
        "run.refine(instantaneous=True) or run.refine(latent=True)",
    )
    sentence = re.sub(NAMED, lambda found: _argument(found[1], found[2]), sentence)
    sentence = re.sub(VALUED, lambda found: _argument(found[1], found[2]), sentence)
    sentence = re.sub(SWITCHES, lambda found: f"{_name(found[1])}=True", sentence)
    return re.sub(BARE, lambda found: f"{_name(found[1])}=", sentence)


def _argument(flag: str, value: str) -> str:
    shown = value if re.fullmatch(r"-?\d+(\.\d+)?", value) else f'"{value.strip(chr(39))}"'
    return f"{_name(flag)}={f'[{shown}]' if flag in LISTS else shown}"


def _name(flag: str) -> str:
    return flag.replace("-", "_")
