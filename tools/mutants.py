"""Do the tests see an error? `python tools/mutants.py --count 100` changes one place of the code at
a time, runs the tests of that file, and lists the changes that no test noticed.

The places are drawn from a seed over `edges`, `regression`, `attribute`, `graph` and `store`. The
code itself is never touched: every mutant is a copy that the tests import instead.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE, TESTS = ROOT / "src" / "forecause", ROOT / "tests"
PACKAGES = ("edges", "regression", "attribute", "graph")
LONGEST = 900.0  # seconds of the tests of one mutant; one that never ends is noticed, too
WHOLE_WAY = ("test_method.py", "test_hard_numbers.py")  # where a package has no test of a file
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


def mutants(tree: ast.Module) -> Iterator[str]:
    """Every mutant of a module in turn: the tree is changed, a description given, and undone."""
    silent = {id(node) for part in ast.walk(tree) for node in _not_run(part)}
    for node in list(ast.walk(tree)):
        if id(node) in silent:
            continue
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            yield from _swapped(node.ops, line)
        elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
            old = node.op
            node.op = SWAPS[type(old)]()  # type: ignore[assignment]
            yield f"line {line}: {type(old).__name__} -> {type(node.op).__name__}"
            node.op = old  # type: ignore[assignment]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
            old_operator, node.op = node.op, ast.UAdd()
            if isinstance(old_operator, ast.USub):
                yield f"line {line}: a sign removed"
            node.op = old_operator
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float, bool):
            value = node.value
            node.value = (not value) if isinstance(value, bool) else value + 1
            yield f"line {line}: {value} -> {node.value}"
            node.value = value


def _swapped(operators: list[ast.cmpop], line: int) -> Iterator[str]:
    old = operators[0]
    operators[0] = SWAPS[type(old)]()  # type: ignore[assignment]
    yield f"line {line}: {type(old).__name__} -> {type(operators[0]).__name__}"
    operators[0] = old


def _not_run(node: ast.AST) -> Iterator[ast.AST]:
    """Parts of a node that say something but do nothing: annotations and messages of errors."""
    for name in ("annotation", "returns"):
        if isinstance(part := getattr(node, name, None), ast.AST):
            yield from ast.walk(part)
    if isinstance(node, ast.Raise | ast.JoinedStr):
        yield from ast.walk(node)


def tests_of(file: Path) -> list[str]:
    """The tests of a file by its name, or those of its package and the whole way."""
    if file.name == "store.py":
        return [str(TESTS / name) for name in ("test_store.py", "test_saved.py")]
    package = TESTS / file.relative_to(SOURCE).parts[0]
    own = sorted(package.rglob(f"test_{file.stem}*.py"))
    found = own or sorted(package.rglob("test_*.py")) + [TESTS / name for name in WHOLE_WAY]
    return [str(path) for path in found]


def is_noticed(file: Path, code: str) -> bool:
    """Whether the tests of a file fail with this code in its place."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        copy = Path(name) / "forecause"
        shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / file.relative_to(SOURCE)).write_text(code, encoding="utf-8")
        paths = [name, str(ROOT / "bench" / "src")]
        command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", *tests_of(file)]
        there = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
        try:
            ended = subprocess.run(
                command, cwd=ROOT, env=there, capture_output=True, timeout=LONGEST
            )
        except subprocess.TimeoutExpired:
            return True
        return ended.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=600)
    asked = parser.parse_args()
    files = [path for package in PACKAGES for path in sorted((SOURCE / package).rglob("*.py"))]
    places = []
    for file in [*files, SOURCE / "store.py"]:
        tree = ast.parse(file.read_text(encoding="utf-8"))
        places += [(file, place, what) for place, what in enumerate(mutants(tree))]
    drawn = random.Random(asked.seed).sample(places, min(asked.count, len(places)))
    until, tried, survivors = time.monotonic() + 60 * asked.minutes, 0, []
    for file, place, what in drawn:
        if time.monotonic() > until:
            break
        tree = ast.parse(file.read_text(encoding="utf-8"))
        code = next(ast.unparse(tree) for at, _ in enumerate(mutants(tree)) if at == place)
        noticed = is_noticed(file, code)
        tried += 1
        name = f"{file.relative_to(ROOT)} {what}"
        sys.stdout.write(f"{'noticed ' if noticed else 'SURVIVED'} {name}\n")
        sys.stdout.flush()
        survivors += [] if noticed else [name]
    share = 1 - len(survivors) / max(tried, 1)
    sys.stdout.write(f"{tried} of {len(places):,} mutants tried, {share:.0%} noticed; survivors:\n")
    sys.stdout.writelines(f"  {name}\n" for name in survivors)


if __name__ == "__main__":
    main()
