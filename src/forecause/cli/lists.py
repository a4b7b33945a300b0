"""Lists as they are written on a command line: joined by commas."""

from __future__ import annotations

from forecause.errors import InputError


def names(text: str | None) -> list[str] | None:
    """`a,b` as a list; None stays None."""
    if text is None:
        return None
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        raise InputError(f"Expected names joined by commas, found {text!r}.")
    return found


def numbers(text: str | None) -> list[int] | None:
    """`1000,50_000` as a list of whole numbers; None stays None."""
    found = names(text)
    try:
        return None if found is None else [int(part) for part in found]
    except ValueError:
        raise InputError(f"Expected whole numbers joined by commas, found {text!r}.") from None
