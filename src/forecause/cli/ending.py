"""How the command ends: exit codes, and one sentence on stderr."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext


class Interrupted(BaseException):
    """Ctrl-C, under a name that no library on the way catches."""


def interrupt(_signal: int, _frame: object) -> None:
    """The handler of Ctrl-C."""
    raise Interrupted


def fail(sentence: str, code: int) -> None:
    """Say what went wrong and end; of several processes under torchrun, one says it."""
    with _last_word() as speaks:
        if speaks:
            sys.stderr.write(f"forecause: {sentence}\n")
            sys.stderr.flush()
    raise SystemExit(code)


def under_torchrun() -> bool:
    """Whether torchrun started this process, known without importing torch."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def _last_word() -> AbstractContextManager[bool]:
    if not under_torchrun():
        return nullcontext(True)
    from forecause.forecast.training.distributed import last_word

    return last_word()
