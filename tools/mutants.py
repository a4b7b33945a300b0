"""Do the tests see an error? `python tools/mutants.py --count 100` changes one place of the code at
a time, runs the tests that reach its line, and lists the changes that no test noticed.

The places are drawn from a seed over `edges`, `regression`, `attribution`, `graph` and `store`. The
code itself is never touched: the tests import a copy. First all tests are run on the copy as it is,
where they must pass, and the lines that each reaches are noted; `--remember FILE` keeps the notes.
"""

from __future__ import annotations

import argparse
import compileall
import gc
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from mutations import ROOT, SAME, SOURCE, Mutant, mutants
from reached import Chosen, Reached, Tracer

PACKAGES = ("edges", "regression", "forecast/attribution", "graph")
FILES = [
    *(path for package in PACKAGES for path in sorted((SOURCE / package).rglob("*.py"))),
    SOURCE / "store" / "run_folder.py",
]
TESTS = (  # of these files, and others that reach them
    *PACKAGES,
    *("forecast/input_tests", "test_domains.py", "test_method.py", "test_one_model.py"),
    *("store", "common/test_bounded.py"),
)
HEAVY = (  # imported once; every trial is a fork
    *("torch", "pandas", "xarray", "scipy.stats", "sklearn.ensemble", "jinja2", "pydantic"),
    *("statsmodels.api", "polars", "hypothesis", "pytest", "typer", "rich.console", "networkx"),
)
# Of a processor, so that the count does not depend on what else the machine does:
LEAST_PATIENCE = 60  # seconds; a mutant that takes ten times as long as the tests is noticed
LONGEST = 20.0  # seconds of tests, the quickest first, that look for one mutant

WAITING = 3600.0  # seconds on the clock for tests that wait for something and do no work


class Copy:
    """A copy of the package that tests import; one file of it is another's code for a while."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(SOURCE, folder / "forecause")
        compileall.compile_dir(folder / "forecause", quiet=1)
        for name in HEAVY:
            __import__(name)
        gc.freeze()

    def reached(self, known: Reached) -> Reached:
        """Run the tests whose reach is not known, on the code as it is."""
        tests = [ROOT / "tests" / name for name in TESTS]
        every = [file for test in tests for file in (sorted(test.rglob("test_*.py")) or [test])]
        for file in known.unknown(every):
            notes = self.folder / "notes.json"
            tracer = Tracer(self.folder / "forecause", FILES, notes)
            if self._run([file], [tracer], 3600) != 0:
                said = "\n".join((self.folder / "said.txt").read_text().splitlines()[-15:])
                sys.exit(f"These tests fail without any change:\n{said}")
            known.add(file, notes)
        return known

    def notices(self, mutant: Mutant, known: Reached) -> bool:
        """Whether tests fail with a mutant in its file's place, or do not end."""
        tests = known.tests(mutant, LONGEST)
        place = self.folder / "forecause" / mutant.file.relative_to(SOURCE)
        place.write_text(mutant.code, encoding="utf-8")
        patience = max(LEAST_PATIENCE, int(10 * sum(test.seconds for test in tests)))
        files = list(dict.fromkeys(test.file for test in tests))
        try:
            return self._run(files, [Chosen([test.name for test in tests])], patience) != 0
        finally:
            shutil.copy2(mutant.file, place)

    def _run(self, files: Sequence[Path], plugins: Sequence[object], patience: int) -> int:
        """The exit code of pytest in a process of its own; negative for one that did not end."""
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (patience, patience))
            os._exit(self._try(files, plugins))
        until = time.monotonic() + WAITING
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return -1

    def _try(self, files: Sequence[Path], plugins: Sequence[object]) -> int:
        os.setsid()
        paths = [str(self.folder), str(ROOT / "bench" / "src")]
        sys.path[:0] = paths
        sys.dont_write_bytecode = True
        os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(self.folder / "examples")
        os.chdir(ROOT)
        with open(self.folder / "said.txt", "w") as said:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            import pytest

            quietly = ["-n", "0", "-x", "-q", "--assert=plain", "--hypothesis-seed=0"]
            quietly += ["-p", "no:cacheprovider"]
            code = int(pytest.main([*quietly, *map(str, files)], plugins=list(plugins)))
        import forecause

        assert str(forecause.__file__).startswith(str(self.folder))
        return code


def drawn(count: int, seed: int, only: str) -> tuple[list[Mutant], int]:
    """Some of all mutants, and how many there are; those that change nothing are left out."""
    every = [mutant for file in FILES for mutant in mutants(file)]
    found = [mutant for mutant in every if mutant.key not in SAME and only in str(mutant)]
    return random.Random(seed).sample(found, min(count, len(found))), len(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--only", default="", help="a part of `FILE:LINE CHANGE in CODE`")
    parser.add_argument("--remember", type=Path, help="where to note which lines tests reach")
    asked = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    chosen, of = drawn(asked.count, asked.seed, asked.only)
    until = time.monotonic() + 60 * asked.minutes
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        copy, tried, survivors = Copy(Path(name)), 0, []
        known = copy.reached(Reached(FILES, asked.remember))
        say(f"{len(known)} tests, {known.seconds:.0f} seconds")
        for mutant in chosen:
            if time.monotonic() > until:
                break
            tried += 1
            if not copy.notices(mutant, known):
                survivors.append(mutant)
                say(f"{tried}: {mutant}")
    noticed = tried - len(survivors)
    say(f"{tried} of {of:,} mutants tried, {noticed} noticed ({noticed / max(tried, 1):.1%})")


def say(line: str) -> None:
    """Print, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
