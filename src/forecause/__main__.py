"""`python -m forecause` and the script `forecause`: the command, ready to be stopped at once."""

import os
import signal
import sys


def main() -> None:
    """Run the command; Ctrl-C while its modules are still being imported ends it quietly."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _leave)
    _speak_utf8()
    from forecause.cli import main as command

    command()


def _speak_utf8() -> None:
    """Begin again in UTF-8 where Python was told that files and arguments are plain ASCII.

    Else no path or name beyond it could be given, let alone be written into a run.
    """
    if sys.getfilesystemencoding() == "ascii":
        again = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]
        os.execve(sys.executable, again, os.environ | {"PYTHONUTF8": "1"})


def _leave(number: int, _frame: object) -> None:
    os.write(2, b"forecause: stopped; nothing was written.\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
