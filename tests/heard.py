"""A listener for tests: remembers what long work told it."""

from __future__ import annotations

from forecause.progress import Progress


class Heard(Progress):
    """Steps as (what, share), remarks as sentences, in their order."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float]] = []
        self.sentences: list[str] = []

    def step(self, what: str, share: float) -> None:
        self.steps.append((what, share))

    def say(self, sentence: str) -> None:
        self.sentences.append(sentence)

    @property
    def stages(self) -> list[str]:
        return [what for what, _ in self.steps]

    @property
    def shares(self) -> list[float]:
        return [share for _, share in self.steps]
