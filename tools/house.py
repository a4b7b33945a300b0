"""How the house looks from outside, in figures: `python tools/house.py`."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

PRODUCT = Path("src/forecause")
LONG_FUNCTION = 40


def files() -> list[Path]:
    """The Python files of the product."""
    return sorted(PRODUCT.rglob("*.py"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring and its arguments."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1 if body else 0


def lazy_imports(path: Path) -> int:
    """Imports of the product inside functions."""
    inner = 0
    for node in functions(path):
        for child in ast.walk(node):
            if isinstance(child, ast.ImportFrom) and (child.module or "").startswith("forecause"):
                inner += 1
    return inner


def figures() -> dict[str, object]:
    """All figures, by what they count."""
    import typer

    import forecause as fc
    from forecause.cli import app

    sources = files()
    lengths = [len(path.read_text(encoding="utf-8").splitlines()) for path in sources]
    top = [p for p in PRODUCT.iterdir() if p.suffix == ".py" or (p.is_dir() and p.name[0] != "_")]
    arguments = inspect.signature(fc.discover).parameters.values()
    untyped = [a.name for a in arguments if a.annotation in ("Any", inspect.Parameter.empty)]
    command = typer.main.get_command(app).get_command(None, "discover")
    options = sum(option.param_type_name == "option" for option in command.params)
    solvers = [
        path
        for path in sources
        if re.search(r"linalg\.(solve|lstsq|inv|pinv|cholesky)|lstsq\(", path.read_text("utf-8"))
    ]
    bodies = [body_lines(node) for path in sources for node in functions(path)]
    return {
        "names at the top": len(top),
        "files": len(sources),
        "lines": sum(lengths),
        "shortest file (without __init__)": min(
            n for n, p in zip(lengths, sources, strict=True) if not p.name.startswith("__")
        ),
        "mean file": round(sum(lengths) / len(lengths)),
        "lazy imports of the product": sum(lazy_imports(path) for path in sources),
        "arguments of discover": len(arguments),
        "of them untyped": len(untyped),
        "options of the command discover": options,
        "files that solve equations": len(solvers),
        f"functions over {LONG_FUNCTION} lines": sum(n > LONG_FUNCTION for n in bodies),
        "mean function": round(sum(bodies) / len(bodies), 1),
    }


if __name__ == "__main__":
    for name, value in figures().items():
        sys.stdout.write(f"{name}: {value}\n")
