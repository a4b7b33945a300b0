"""What others made is read within bounds: plain files of a known size, JSON of so many parts.

A device or a pipe gives bytes without end or none at all, and a few megabytes of brackets become
gigabytes of Python objects; both are refused before they are read.
"""

from __future__ import annotations

import json
import math
import os
import stat
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from forecause.errors import InputError

# Time and memory:
LARGEST_TEXT = 2**28  # bytes of a graph, a page or a file of a run; the largest made had 0.1 GB
LARGEST_MODEL = 2**30  # bytes of a forecaster's weights
MOST_PARTS = 20_000_000  # numbers of a JSON document, a list counting as four
MOST_CANDIDATES = 10**8  # (target, source, lag) of a graph; 3,000 variables and 10 lags have 9e7
MOST_COUNTED = 2**53  # of anything; more is no whole number once it is a float

Count = Annotated[int, Field(ge=0, le=MOST_COUNTED)]


def check_file(path: Path) -> None:
    """Refuse what is no plain file; a folder is an OSError."""
    handle = _opened(path)
    try:
        _check(path, os.fstat(handle), None)
    finally:
        os.close(handle)


def read_file(path: Path, most: int = LARGEST_TEXT) -> bytes:
    """The bytes of a plain file that has no more than `most`; opened once."""
    with open(path, "rb", opener=lambda name, _: _opened(name)) as file:
        about = os.fstat(file.fileno())
        _check(path, about, most)
        return file.read(about.st_size)


def text_of(source: str | Path, opening: str = "") -> str:
    """The text of a file; a string that begins with `opening` is taken as the text itself."""
    if opening and isinstance(source, str) and source.lstrip().startswith(opening):
        return source
    try:
        return read_file(Path(source)).decode("utf-8-sig")
    except InputError:
        raise
    except UnicodeDecodeError as error:
        raise InputError(
            f"{str(source)!r} is not a text file in UTF-8 (byte {error.start + 1}); "
            "is it the right file?"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"Cannot read {str(source)[:200]!r}: {reason}.") from error


def parse_json(text: str, strict: bool = True) -> Any:
    """The content of a JSON document that fits into memory; if strict, of finite numbers alone."""
    parts = text.count(",") + 4 * (text.count("[") + text.count("{"))
    if parts > MOST_PARTS:
        raise InputError("it has far more entries than any that Forecause writes")
    if not strict:
        return json.loads(text)
    return json.loads(text, parse_constant=_no_number, parse_float=_finite)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is beyond all numbers")
    return number


def is_whole(number: Any) -> bool:
    """Whether it is a whole number, of Python or of NumPy; True and False are none."""
    return isinstance(number, Integral) and not isinstance(number, bool)


def check_candidates(variables: int, lags: int) -> None:
    """Refuse arrays over (target, source, lag) that no machine should make."""
    if variables * variables * lags > MOST_CANDIDATES:
        raise InputError(
            f"A graph of {variables:,} variables and {lags!r:.20} lags is too large: at most "
            f"{MOST_CANDIDATES:,} triples of target, source and lag can be held; use fewer lags."
        )


def _opened(path: str | Path) -> int:
    """A handle that is there at once, even if nobody writes into a pipe."""
    nowait = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    return os.open(path, os.O_RDONLY | nowait | getattr(os, "O_CLOEXEC", 0))


def _check(path: Path, about: os.stat_result, most: int | None) -> None:
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(21, "Is a directory")
    shown = str(path) if len(str(path)) <= 160 else f"{str(path)[:80]}...{str(path)[-70:]}"
    if not stat.S_ISREG(about.st_mode):
        raise InputError(f"{shown!r} is a pipe or a device; give a file.")
    if most is not None and about.st_size > most:
        raise InputError(
            f"{shown!r} has {about.st_size / 2**30:.1f} GB; at most {most / 2**30:g} GB are read."
        )
