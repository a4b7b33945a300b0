"""How the command ends: exit codes, signals, and one sentence on stderr."""

from __future__ import annotations

import codecs
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
LONGEST = 600  # characters of a sentence; the rest is left out

_written: list[str] = []  # what this process has finished writing
_held: list[int] | None = None  # signals that came while they were held back


class Interrupted(BaseException):
    """Ctrl-C, or a request to end, under a name that no library on the way catches."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.code = 128 + number


def watch_signals() -> None:
    """From now on Ctrl-C, SIGTERM and SIGHUP raise Interrupted; what nohup ignores stays so."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)


def interrupt(number: int, _frame: object) -> None:
    """The handler; a second signal is not held back."""
    if _held is not None and not _held:
        _held.append(number)
        return
    raise Interrupted(number)


@contextmanager
def signals_held() -> Iterator[None]:
    """Let what is inside finish, a second or so, before a signal ends the command."""
    global _held
    _held = []
    try:
        yield
    finally:
        came, _held = _held, None
    if came:
        raise Interrupted(came[0])


def was_written(path: Path) -> None:
    """Remember a result that is whole, to say so if the command ends early."""
    _written.append(str(path))


def stopped() -> str:
    """What to say after an interruption."""
    if not _written:
        return "stopped; nothing was written."
    return f"stopped; {_written[-1]} is written and whole."


def one_line(sentence: str) -> str:
    """A sentence without line breaks and control characters, of a bearable length."""
    plain = "".join(letter if letter.isprintable() else " " for letter in sentence)
    plain = plain.encode("utf-8", "replace").decode("utf-8")
    return plain if len(plain) <= LONGEST else f"{plain[: LONGEST - 100]} ... {plain[-90:]}"


def any_letter_can_be_shown() -> None:
    """A terminal of few letters shows others by their numbers; plain ASCII is taken for UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            ascii_alone = codecs.lookup(stream.encoding).name == "ascii"
            known = "utf-8" if ascii_alone else None
            stream.reconfigure(encoding=known, errors="backslashreplace")


@contextmanager
def output_arrives() -> Iterator[None]:
    """What was printed has left this process at the end, or an OSError says why it has not."""
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except OSError:
            with suppress(OSError, ValueError):  # else Python would say it once more at its end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise


def fail(sentence: str, code: int) -> None:
    """Say what went wrong and end; of several processes under torchrun, one says it."""
    with _last_word() as speaks, suppress(OSError):
        if speaks:
            sys.stderr.write(f"forecause: {one_line(sentence)}\n")
            sys.stderr.flush()
    raise SystemExit(code)


def under_torchrun() -> bool:
    """Whether torchrun started this process, known without importing torch."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def _last_word() -> AbstractContextManager[bool]:
    if not under_torchrun():
        return nullcontext(True)
    from forecause.networks.distributed import last_word

    return last_word()
