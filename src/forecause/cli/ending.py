"""How the command ends: exit codes, and one sentence on stderr."""

from __future__ import annotations

import sys


class Interrupted(BaseException):
    """Ctrl-C, under a name that no library on the way catches."""


def interrupt(_signal: int, _frame: object) -> None:
    """The handler of Ctrl-C."""
    raise Interrupted


def fail(sentence: str, code: int) -> None:
    """Say what went wrong and end."""
    sys.stderr.write(f"forecause: {sentence}\n")
    raise SystemExit(code)
