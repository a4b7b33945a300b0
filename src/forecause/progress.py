"""Progress: what long work tells whoever waits for it.

A piece of work is given a `Progress` and calls its methods. The base class keeps silent;
the others show a bar in a terminal or a notebook, or write to Python's logging.
"""

from __future__ import annotations

import importlib
import logging
import math
import sys
from html import escape
from time import monotonic
from types import TracebackType
from typing import Any, Self


class Progress:
    """Keeps silent. Subclasses show what they are told.

    Examples
    --------
    >>> import forecause as fc
    >>> class Printed(fc.Progress):
    ...     def say(self, sentence):
    ...         print(sentence)
    >>> Printed().say("Expecting about 3 s.")
    Expecting about 3 s.
    """

    @staticmethod
    def logged(logger: logging.Logger | None = None) -> Progress:
        """One that writes stages and remarks to a logger, usually `forecause`, as INFO."""
        return LoggedProgress(logger)

    def step(self, what: str, share: float) -> None:
        """`what` is being done, and this share of it (0 to 1) is done."""

    def say(self, sentence: str) -> None:
        """A remark, such as the time a run is expected to take."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End whatever is shown."""


QUIET = Progress()


class LoggedProgress(Progress):
    """Writes stages and remarks to a logger; see Progress.logged."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self.logger = logger or logging.getLogger("forecause")
        self.stage = ""

    def step(self, what: str, share: float) -> None:
        if what != self.stage:  # once for every stage, not for every share of it
            self.stage = what
            self.logger.info(what)

    def say(self, sentence: str) -> None:
        self.logger.info(sentence)


class TerminalProgress(Progress):
    """A bar with the time left on stderr while the `with` block lasts."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        self.bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,  # remarks are printed all the same
        )
        self.tasks: dict[str, Any] = {}

    def step(self, what: str, share: float) -> None:
        if what not in self.tasks:
            for earlier in self.tasks.values():
                self.bar.update(earlier, visible=False)
            self.tasks[what] = self.bar.add_task(what, total=1.0)
        self.bar.update(self.tasks[what], completed=share)

    def say(self, sentence: str) -> None:
        from rich.text import Text

        self.bar.console.print(Text(sentence), style="dim")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def close(self) -> None:
        self.bar.stop()


class NotebookProgress(Progress):
    """A bar in a notebook's output that moves as the work goes on and is gone when it is done."""

    APART = 0.1  # seconds between two updates of the same stage

    def __init__(self) -> None:
        self.handle: Any = None
        self.stage, self.remark = "", ""
        self.shown = -math.inf  # when

    def step(self, what: str, share: float) -> None:
        share, now = min(max(share, 0.0), 1.0), monotonic()
        if what == self.stage and share < 1 and now - self.shown < self.APART:
            return
        self.stage, self.shown = what, now
        bar = f'<progress max="1" value="{share:.3f}"></progress>'
        self._show(f"{what} {share:.0%} {self.remark}", f"{bar} {self._words(f'{share:.0%}')}")

    def say(self, sentence: str) -> None:
        self.remark = sentence
        self._show(sentence, self._words(""))

    def close(self) -> None:
        if self.handle is not None:
            self._show("", "")

    def _words(self, share: str) -> str:
        parts = (self.stage, share, self.remark)
        return f"<small>{escape(' · '.join(part for part in parts if part))}</small>"

    def _show(self, plain: str, html: str) -> None:
        display = importlib.import_module("IPython.display").display
        shown = {"text/plain": plain, "text/html": html}
        if self.handle is None:
            self.handle = display(shown, raw=True, display_id=True)
        else:
            self.handle.update(shown, raw=True)


def usual_progress() -> Progress:
    """A bar in a notebook, silence anywhere else."""
    ipython = sys.modules.get("IPython")  # never imported for this alone
    shell = ipython.get_ipython() if ipython is not None else None
    return NotebookProgress() if type(shell).__name__ == "ZMQInteractiveShell" else QUIET
