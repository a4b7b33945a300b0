"""Which lines of the code each test reaches, for `tools/mutants.py`."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from mutations import ROOT, SOURCE, Mutant

Lines = set[tuple[str, int]]


@dataclass(frozen=True)
class Test:
    """One test, its seconds of a processor, and the lines (of each file) that it reaches."""

    file: Path
    name: str
    seconds: float
    lines: dict[str, frozenset[int]]


def worked() -> float:
    """Seconds that this process and those it waited for have had of a processor."""
    return sum(os.times()[:4])


class Reached:
    """The lines that tests reach. What was noted of a file of tests holds until it, a conftest or
    the code changes."""

    def __init__(self, code: Sequence[Path], kept: Path | None) -> None:
        self.kept = kept
        self.code = b"".join(file.read_bytes() for file in code)
        self.notes: dict[str, Any] = json.loads(kept.read_text()) if kept and kept.exists() else {}
        self.every: list[Test] = []

    def __len__(self) -> int:
        return len(self.every)

    @property
    def seconds(self) -> float:
        """Of all tests together."""
        return sum(test.seconds for test in self.every)

    def unknown(self, files: Sequence[Path]) -> Iterator[Path]:
        """The files of tests that nothing is known of; what is known of the others is taken in."""
        for file in files:
            note = self.notes.get(str(file.relative_to(ROOT)))
            if note is None or note["of"] != self._print(file):
                yield file
            else:
                self._take_in(file, note)

    def add(self, file: Path, notes: Path) -> None:
        """Take in what a Tracer noted of a file of tests."""
        note = {"of": self._print(file), "tests": json.loads(notes.read_text())}
        self.notes[str(file.relative_to(ROOT))] = note
        self._take_in(file, note)
        if self.kept:
            self.kept.write_text(json.dumps(self.notes))

    def tests(self, mutant: Mutant, longest: float) -> list[Test]:
        """Those that reach the lines of a mutant, or if none does its file; those that are named
        after it first, the quickest of them first, and as many as take so many seconds."""
        file = str(mutant.file.relative_to(SOURCE))
        of_file = [test for test in self.every if file in test.lines]
        of_lines = [test for test in of_file if not test.lines[file].isdisjoint(mutant.lines)]
        taken, seconds = [], 0.0
        own = mutant.file.stem
        for test in sorted(
            of_lines or of_file, key=lambda test: (own not in test.file.stem, test.seconds)
        ):
            seconds += test.seconds
            if seconds > longest and taken:
                break
            taken.append(test)
        return taken

    def _print(self, file: Path) -> str:
        return sha256(self.code + file.read_bytes()).hexdigest()

    def _take_in(self, file: Path, note: dict[str, Any]) -> None:
        for name, seconds, lines in note["tests"]:
            reached = {of: frozenset(numbers) for of, numbers in lines.items()}
            self.every.append(Test(file, name, seconds, reached))


class Tracer:
    """Notes the lines that each test reaches. What a fixture reaches counts for all who use it."""

    def __init__(self, package: Path, code: Sequence[Path], notes: Path) -> None:
        names = [str(file.relative_to(SOURCE)) for file in code]
        self.traced = {str(package / name): name for name in names}
        self.notes, self.lines, self.found = notes, Lines(), list[Any]()
        self.fixtures: dict[int, tuple[Lines, float]] = {}

    def pytest_sessionstart(self) -> None:
        sys.settrace(self._called)
        threading.settrace(self._called)

    def _called(self, frame: Any, event: str, argument: Any) -> Any:
        name = self.traced.get(frame.f_code.co_filename)
        if name is None:
            return None

        def reached(frame: Any, event: str, argument: Any) -> Any:
            self.lines.add((name, frame.f_lineno))
            return reached

        return reached

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        before, self.lines, begun = self.lines, Lines(), worked()
        try:
            return (yield)
        finally:
            known, _ = self.fixtures.get(id(fixturedef), (Lines(), 0.0))
            self.fixtures[id(fixturedef)] = known | self.lines, worked() - begun
            self.lines |= before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        sys.settrace(self._called)
        self.lines, begun = Lines(), worked()
        try:
            return (yield)
        finally:
            seconds = worked() - begun
            for definitions in item._fixtureinfo.name2fixturedefs.values():
                for definition in definitions:
                    lines, _ = self.fixtures.get(id(definition), (Lines(), 0.0))
                    self.lines |= lines
            by_file: dict[str, list[int]] = {}
            for file, number in sorted(self.lines):
                by_file.setdefault(file, []).append(number)
            self.found.append((item.nodeid, seconds, by_file))

    def pytest_sessionfinish(self) -> None:
        sys.settrace(None)
        self.notes.write_text(json.dumps(self.found))


class Chosen:
    """Runs tests of these names alone, in this order."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        known = {item.nodeid: item for item in items}
        items[:] = [known[name] for name in self.names if name in known]
