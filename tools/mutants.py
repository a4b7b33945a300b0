"""Do the tests see an error? `python tools/mutants.py --count 100` changes one place of the code at
a time, runs the tests that reach that file, and lists the changes that no test noticed.

The places are drawn from a seed over `edges`, `regression`, `attribute`, `graph` and `store`. The
code itself is never touched: the tests import a copy. They must pass on the copy as it is before
any mutant is tried, so that a test that fails anyway notices nothing.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import gc
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src" / "forecause", ROOT / "tests"
PACKAGES = ("edges", "regression", "attribute", "graph")
BEYOND = {  # tests that reach a package without being its own
    "edges": ("forecast/input_tests/test_given_parents.py", "test_domains.py", "test_method.py"),
    "regression": ("forecast/input_tests", "edges"),
    "attribute": ("test_method.py",),
    "graph": ("test_store.py",),
    "store.py": ("test_store.py", "test_saved.py", "test_saved_runs.py", "test_bounded.py"),
}
HEAVY = (  # imported once; every trial is a fork
    *("torch", "pandas", "xarray", "scipy.stats", "sklearn.ensemble", "jinja2", "pydantic"),
    *("statsmodels.api", "polars", "hypothesis", "pytest", "typer", "rich.console", "networkx"),
)
LEAST_PATIENCE = 120.0  # seconds; a mutant that takes ten times as long as the tests is noticed
SWAPS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
NAMES = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum"}
NAMES |= {"any": "all", "all": "any", "nanmax": "nanmin", "nanmin": "nanmax"}
DROPPED = ("abs", "sorted", "default_rng")  # abs(x) -> x, sorted(x) -> x, a seed -> none
SAID = ("step", "warn", "field", "Field")  # calls whose arguments change no result
SAME = {  # (file, line, change) that does nothing, and why
    (
        "regression/robust.py",
        "beta = coefficients[: groups * size].T.reshape(-1, groups, size)",
        "1 -> 2",
    ): "NumPy takes any negative number for the length that it is to find",
    (
        "edges/certainty.py",
        "return windows.at(np.flatnonzero(largest <= np.quantile(largest, CALM_SHARE)))",
        "LtE -> Lt",
    ): "one window of thousands, the one at the quantile itself",
    (
        "edges/certainty.py",
        "return np.asarray((_either(looked) < bounds.clear_with_events) "
        "& (calm > bounds.gone_in_calm))",
        "Gt -> GtE",
    ): "a p-value is never the very number of a threshold",
    (
        "store.py",
        'return first if len(first) <= 300 else f"{first[:297]}..."',
        "300 -> 301",
    ): "a message may be a letter longer",
}


@dataclass(frozen=True)
class Mutant:
    """One change of a file."""

    file: Path
    line: str
    number: int
    change: str
    code: str

    @property
    def key(self) -> tuple[str, str, str]:
        """How the table of changes that do nothing names it."""
        return str(self.file.relative_to(SOURCE)), self.line, self.change

    def __str__(self) -> str:
        name = self.file.relative_to(SOURCE)
        return f"{name}:{self.number} {self.change} in `{self.line}`"


def mutants(file: Path) -> Iterator[Mutant]:
    """Every mutant of a file in turn: its tree is changed, written down, and changed back."""
    text = file.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    silent = {id(node) for part in ast.walk(tree) for node in _not_run(part)}
    for node in list(ast.walk(tree)):
        if id(node) not in silent:
            for change in _changes(node):
                number = getattr(node, "lineno", 1)
                yield Mutant(file, lines[number - 1].strip(), number, change, ast.unparse(tree))


def _changes(node: ast.AST) -> Iterator[str]:
    """Change a node in every way, each undone when the next is asked for."""
    if isinstance(node, ast.Compare):
        for place, old in enumerate(node.ops):
            for new in SWAPS.get(type(old), ()):
                node.ops[place] = new()  # type: ignore[call-overload]
                yield f"{type(old).__name__} -> {new.__name__}"
            node.ops[place] = old
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        operator = node.op
        for new in SWAPS.get(type(operator), ()):
            node.op = new()  # type: ignore[assignment]
            yield f"{type(operator).__name__} -> {new.__name__}"
        node.op = operator  # type: ignore[assignment]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not | ast.Invert):
        inner = node.operand
        node.operand = ast.UnaryOp(node.op, inner)
        yield f"{type(node.op).__name__} twice"
        node.operand = inner
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
        value = node.value
        node.value = (not value) if isinstance(value, bool) else value + 1
        yield f"{value} -> {node.value}"
        node.value = value
    elif isinstance(node, ast.Call):
        yield from _other_calls(node)


def _other_calls(node: ast.Call) -> Iterator[str]:
    function = node.func
    name = getattr(function, "attr", getattr(function, "id", ""))
    where = "attr" if isinstance(function, ast.Attribute) else "id"
    if name in NAMES:
        setattr(function, where, NAMES[name])
        yield f"{name} -> {NAMES[name]}"
        setattr(function, where, name)
    elif name in DROPPED and len(node.args) == 1:
        arguments, keywords = node.args, node.keywords
        if name == "default_rng":
            node.args = []
        else:  # a name of its own, so that the call stays a call
            node.func, node.keywords = ast.parse("(lambda _: _)", mode="eval").body, []
        yield f"{name} dropped"
        node.func, node.args, node.keywords = function, arguments, keywords


def _not_run(node: ast.AST) -> Iterator[ast.AST]:
    """Parts of a node that say something but do nothing: types, messages, reports of progress."""
    parts = [getattr(node, name, None) for name in ("annotation", "returns")]
    if isinstance(node, ast.Raise | ast.JoinedStr):
        parts.append(node)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        parts += node.decorator_list
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        parts += node.args if name in SAID else []
        parts += [key for key in node.keywords if name in SAID or key.arg in ("strict", "copy")]
    if isinstance(node, ast.Module):
        parts += [part for part in node.body if _is_choice(part)]
    for part in parts:
        if isinstance(part, ast.AST):
            yield from ast.walk(part)


def _is_choice(node: ast.stmt) -> bool:
    """A constant of a module: another value is another choice, such as of how many rows to read."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
    return isinstance(node, ast.Assign | ast.AnnAssign) and ast.unparse(targets[0])[0].isupper()


Tests = tuple[str, ...]


@cache
def near(file: Path) -> list[Tests]:
    """The tests that name a file, and the others of its package."""
    place = file.relative_to(SOURCE)
    if len(place.parts) == 1:
        return far(file)[:2]
    module = ".".join(("forecause", *place.with_suffix("").parts))
    own = sorted((TESTS / place.parts[0]).rglob("test_*.py"))
    named = [test for test in own if file.stem in test.stem or module in test.read_text()]
    parts = (named, [test for test in own if test not in named])
    return [tuple(map(str, part)) for part in parts if part]


@cache
def far(file: Path) -> list[Tests]:
    """Tests of other packages that reach a file."""
    return [(str(TESTS / name),) for name in BEYOND[file.relative_to(SOURCE).parts[0]]]


class Copy:
    """A copy of the package that tests import; one file of it is another's code for a while."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(SOURCE, folder / "forecause")
        compileall.compile_dir(folder / "forecause", quiet=1)
        for name in HEAVY:
            __import__(name)
        gc.freeze()
        self.seconds: dict[Tests, float] = {}

    def notices(self, mutant: Mutant, groups: list[Tests]) -> bool:
        """Whether tests fail with a mutant in its file's place, or do not end."""
        for tests in groups:
            patience = max(LEAST_PATIENCE, 10 * self._seconds_as_is(tests))
            place = self.folder / "forecause" / mutant.file.relative_to(SOURCE)
            place.write_text(mutant.code, encoding="utf-8")
            try:
                if self._run(tests, patience) != 0:
                    return True
            finally:
                shutil.copy2(mutant.file, place)
        return False

    def _seconds_as_is(self, tests: Tests) -> float:
        """How long these tests take on the code as it is, where they must pass."""
        if tests not in self.seconds:
            begun = time.monotonic()
            if self._run(tests, 3600.0) != 0:
                said = "\n".join((self.folder / "said.txt").read_text().splitlines()[-15:])
                sys.exit(f"These tests fail without any change:\n{said}")
            self.seconds[tests] = time.monotonic() - begun
        return self.seconds[tests]

    def _run(self, tests: Tests, patience: float) -> int:
        """The exit code of pytest in a process of its own; -1 for one that did not end."""
        child = os.fork()
        if child == 0:
            os._exit(self._try(tests))
        until = time.monotonic() + patience
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.05)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return -1

    def _try(self, tests: Tests) -> int:
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
            code = int(pytest.main([*quietly, *tests]))
        import forecause

        assert str(forecause.__file__).startswith(str(self.folder))
        return code


def drawn(count: int, seed: int, only: str) -> tuple[list[Mutant], int]:
    """Some of all mutants, and how many there are; those that change nothing are left out."""
    files = [path for package in PACKAGES for path in sorted((SOURCE / package).rglob("*.py"))]
    found = [
        mutant
        for file in [*files, SOURCE / "store.py"]
        if only in str(file.relative_to(SOURCE))
        for mutant in mutants(file)
        if mutant.key not in SAME
    ]
    return random.Random(seed).sample(found, min(count, len(found))), len(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--only", default="", help="a part of the names of files")
    asked = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    chosen, of = drawn(asked.count, asked.seed, asked.only)
    until = time.monotonic() + 60 * asked.minutes
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        copy, tried, left = Copy(Path(name)), 0, []
        for mutant in chosen:
            if time.monotonic() > until:
                break
            tried += 1
            if not copy.notices(mutant, near(mutant.file)):
                left.append(mutant)
                say(f"not near: {mutant}")
        say(f"{tried} of {of:,} mutants tried; {len(left)} are left to tests of other packages")
        survivors = [
            mutant
            for mutant in left
            if time.monotonic() > until or not copy.notices(mutant, far(mutant.file))
        ]
    say(f"{1 - len(survivors) / max(tried, 1):.1%} noticed; survivors:")
    for mutant in survivors:
        say(f"  {mutant}")


def say(line: str) -> None:
    """Print, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
