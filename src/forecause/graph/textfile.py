"""Graphs as text files: UTF-8, exactly the characters that were given, clear refusals."""

from __future__ import annotations

import re
from pathlib import Path

from forecause.bounded import read_file
from forecause.errors import InputError
from forecause.files import write_whole

FORMULA = re.compile(r"'*\s*[=+\-@]")  # text that spreadsheets run, marked as text or not


def save_text(text: str, path: str | Path | None) -> str:
    """Write `text` to `path` if one is given, whole or not at all; it is returned either way."""
    if path is None:
        return text
    try:
        write_whole(Path(path), text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise InputError(
            f"A name holds {text[error.start]!r}, half of a character pair, which no file can "
            "hold; rename it."
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"Cannot write {str(path)[:200]!r}: {reason}.") from error
    return text


def no_formula(text: str) -> str:
    """Text that a spreadsheet would take for a formula, marked as text by a ' before it."""
    return f"'{text}" if FORMULA.match(text) else text


def text_of(source: str | Path, opening: str) -> str:
    """The text of a file; a string that begins with `opening` is taken as the text itself."""
    if isinstance(source, str) and source.lstrip().startswith(opening):
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
