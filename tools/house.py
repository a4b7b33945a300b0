"""How the house looks from outside, in figures: `python tools/house.py [--run]`.

`--run` also makes a run of 300 rows and 4 variables, which trains no network, and counts how often
the table is drawn and how often arrays cross between NumPy and torch.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PRODUCT = Path("src/forecause")
LONG_FUNCTION = 40
# Whatever solves linear equations or takes a matrix apart, by NumPy, SciPy or torch.
SOLVERS = (
    *("solve", "solve_triangular", "solve_toeplitz", "cho_solve", "cho_factor", "cholesky"),
    *("lstsq", "inv", "pinv", "qr", "svd", "eigh", "eig", "eigvalsh", "lu_factor", "lu_solve"),
)
LINALG = r"(?:linalg\.|scipy_linalg\.)"
THRESHOLD_HOME = PRODUCT / "config" / "thresholds.py"
# What the numbers of a module are, as far as they decide no result: a comment such as `# Looks:`
# says it of the constants below it, up to the next blank line. In these folders all are the same.
KINDS = ("Shape of the model", "Time and memory", "Numerics", "Formats", "Looks")
KIND_OF_FOLDER = {"report": "Looks", "cli": "Looks", "simulation": "Simulated systems"}
DECIDING = "decide a result"


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


def imports(path: Path, package: str) -> bool:
    """Whether a file imports the package, at its top or within a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if any(name.split(".")[0] == package for name in names):
            return True
    return False


def lazy_imports(path: Path) -> int:
    """Imports of the product inside functions."""
    inner = 0
    for node in functions(path):
        for child in ast.walk(node):
            if isinstance(child, ast.ImportFrom) and (child.module or "").startswith("forecause"):
                inner += 1
    return inner


def solvers(path: Path) -> set[str]:
    """The solvers that a file calls: as `linalg.name(`, or by a name imported from a linalg."""
    text = path.read_text(encoding="utf-8")
    called = set(re.findall(rf"{LINALG}({'|'.join(SOLVERS)})\b", text))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("linalg"):
            called |= {alias.name for alias in node.names} & set(SOLVERS)
    return called


def numeric_constants(path: Path) -> list[tuple[str, str]]:
    """Module constants that are numbers, or tuples of numbers: what they are, and their names."""
    found: list[tuple[str, str]] = []
    text = path.read_text(encoding="utf-8")
    kinds = kind_of_line(text)
    own = KIND_OF_FOLDER.get(path.relative_to(PRODUCT).parts[0])
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            continue
        if _is_number(value):
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            found += [(own or kinds[node.lineno - 1], ast.unparse(name)) for name in names]
    return found


def kind_of_line(text: str) -> list[str]:
    """For every line, what the constants in it are."""
    kinds, present = [], DECIDING
    for line in text.splitlines():
        if not line.strip():
            present = DECIDING
        elif line.removeprefix("# ").removesuffix(":") in KINDS:
            present = line[2:-1]
        kinds.append(present)
    return kinds


def _is_number(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _is_number(node.operand)
    if isinstance(node, ast.BinOp):
        return _is_number(node.left) and _is_number(node.right)
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts) and all(_is_number(one) for one in node.elts)
    return False


def figures() -> dict[str, object]:
    """All figures that the source tells, by what they count."""
    import typer

    import forecause as fc
    from forecause.cli import app

    sources = files()
    lengths = [len(path.read_text(encoding="utf-8").splitlines()) for path in sources]
    top = [p for p in PRODUCT.iterdir() if p.suffix == ".py" or (p.is_dir() and p.name[0] != "_")]
    arguments = inspect.signature(fc.discover).parameters.values()
    untyped = [a.name for a in arguments if a.annotation in ("Any", inspect.Parameter.empty)]
    command = typer.main.get_command(app).get_command(None, "discover")  # type: ignore[attr-defined]
    options = sum(option.param_type_name == "option" for option in command.params)
    solving = {path: solvers(path) for path in sources if solvers(path)}
    using_torch = [path for path in sources if imports(path, "torch")]
    outside = [path for path in using_torch if "networks" not in path.parts]
    constants = [c for path in sources if path != THRESHOLD_HOME for c in numeric_constants(path)]
    of_kind = Counter(kind for kind, _ in constants)
    deciding = Counter(name for kind, name in constants if kind == DECIDING)
    bodies = [body_lines(node) for path in sources for node in functions(path)]
    return {
        "files and folders at the top": len(top),
        "public names": len(fc.__all__),
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
        "files that import torch": len(using_torch),
        "of them outside networks": _listed(outside),
        "files that solve equations": _listed(list(solving)),
        "solvers called": ", ".join(sorted(set().union(*solving.values()))),
        "numeric constants outside the thresholds": len(constants),
        **{f"  of them {kind.lower()}": count for kind, count in of_kind.most_common()},
        "names of the deciding with several places": sum(n > 1 for n in deciding.values()),
        f"functions over {LONG_FUNCTION} lines": sum(n > LONG_FUNCTION for n in bodies),
        "mean function": round(sum(bodies) / len(bodies), 1),
    }


def _listed(paths: list[Path]) -> str:
    names = ", ".join(str(path.relative_to(PRODUCT)) for path in paths)
    return f"{len(paths)} ({names})" if paths else "0"


def figures_of_a_run() -> dict[str, object]:
    """Windows drawn and arrays turned into tensors or back, in a run that trains no network.

    A whole draw is as many windows as the run has, in one piece or in batches. Most are views of
    the one standardised table; the others are copied out of it.
    """
    import numpy as np

    import forecause as fc
    from forecause.data.panel import StandardTable

    counts: Counter[str] = Counter()
    original = StandardTable.windows

    def cut(self: StandardTable, last: Any, max_lag: int) -> Any:
        counts["cuts"] += 1
        counts["windows"] += len(last)
        found = original(self, last, max_lag)
        if self.whole is None or not np.may_share_memory(found, self.whole):
            counts["copied"] += len(last)
        return found

    table = fc.simulate(nodes=4, max_lag=3, rows=300, seed=0).frame()
    StandardTable.windows = cut  # type: ignore[method-assign]
    crossings = _count_crossings(counts)
    run = fc.discover(table, max_lag=3)
    StandardTable.windows = original  # type: ignore[method-assign]
    return {
        "draws of the whole table": round(counts["windows"] / run.data.windows, 1),
        "of them copied": round(counts["copied"] / run.data.windows, 1),
        "times that windows were cut from it": counts["cuts"],
        "crossings NumPy/torch": crossings(),
        "torch was imported": "torch" in sys.modules,
        "heavy packages imported": ", ".join(
            name
            for name in ("torch", "sklearn", "scipy.stats", "pandas", "xarray", "matplotlib")
            if name in sys.modules
        ),
    }


def _count_crossings(counts: Counter[str]) -> Callable[[], int]:
    """Count calls of torch's two doors to NumPy; torch is looked at only once it is there.

    A run that never imports torch makes none. Else `torch.from_numpy`, `torch.as_tensor`,
    `torch.tensor` and `Tensor.numpy` are counted by a profile function, which sees C calls too.
    """
    doors = {"from_numpy", "as_tensor", "numpy"}

    def look(_frame: Any, event: str, called: Any) -> None:
        if event == "c_call" and getattr(called, "__name__", "") in doors:
            owner = type(getattr(called, "__self__", None)).__module__ or ""
            module = getattr(called, "__module__", "") or owner
            if "torch" in module or "torch" in owner:
                counts["crossings"] += 1

    sys.setprofile(look)

    def stop() -> int:
        sys.setprofile(None)
        return counts["crossings"]

    return stop


if __name__ == "__main__":
    shown = figures() | (figures_of_a_run() if "--run" in sys.argv else {})
    for name, value in shown.items():
        sys.stdout.write(f"{name}: {value}\n")
