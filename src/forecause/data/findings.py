"""What was done to a table on the way to a Panel, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from forecause.advice import Advice, sentence
from forecause.errors import InputError, MissingExtra

ChangeKind = Literal[
    "read",
    "left out",
    "missing",
    "sorted",
    "averaged",
    "resampled",
    "chosen",
    "filled",
    "doubtful",
    "counter",
]
# Looks:
MOST_SHOWN = 20  # problems listed in one message


@dataclass(frozen=True)
class Change:
    """One change of the table, or with kind `doubtful` something that was only noticed.

    `seen` tells the user, `count` is how many cells, rows or columns it concerns.
    """

    kind: ChangeKind
    seen: str
    count: int = 1
    column: str | None = None
    advice: tuple[Advice, ...] = ()
    value: float | None = None  # of a column that was left out because it never changes

    @property
    def sentence(self) -> str:
        """What happened, and what may help."""
        return sentence(self.seen.removesuffix("."), self.advice)


class SeveralProblems(InputError):
    """An InputError that lists more than one sentence."""

    def __init__(self, sentences: Sequence[str]) -> None:
        self.sentences = tuple(sentences)
        shown = [f"({n}) {sentence}" for n, sentence in enumerate(sentences[:MOST_SHOWN], 1)]
        rest = len(sentences) - len(shown)
        shown += [f"And {rest} more."] if rest else []
        super().__init__(f"The data cannot be used for {len(sentences)} reasons: {' '.join(shown)}")


class Problems:
    """Collects what is wrong with a table, so that one message can list all of it."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def add(self, sentence: str) -> None:
        """Remember a problem; the same one is listed once."""
        if sentence not in self.sentences:
            self.sentences.append(sentence)

    @contextmanager
    def collected(self, where: str = "") -> Iterator[None]:
        """An InputError raised within becomes a problem of the list, and the work goes on."""
        try:
            yield
        except MissingExtra:
            raise
        except SeveralProblems as error:
            for sentence in error.sentences:
                self.add(f"In {where}: {sentence}" if where else sentence)
        except InputError as error:
            self.add(f"In {where}: {error}" if where else str(error))

    def raise_if_any(self) -> None:
        """Raise one InputError that lists everything."""
        if len(self.sentences) == 1:
            raise InputError(self.sentences[0])
        if self.sentences:
            raise SeveralProblems(self.sentences)


def counted(count: int, noun: str) -> str:
    """`1 row`, `2,000 rows`."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
