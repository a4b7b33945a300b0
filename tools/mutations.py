"""The changes that `tools/mutants.py` makes: one comparison, sign, operator, number or call.

Left alone are places that are only said (types, messages, reports of progress), constants of a
module, how much is worked on at once, which seed is taken, and the very border of a threshold that
is a real number, which no value of real data meets.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "forecause"
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
AT_ONCE = ("NUMBERS", "BATCH_NUMBERS")  # how much is held at once, which changes no result
ESTIMATES = ("work", "numbers", "widest")  # variables by which work is divided
NO_MATTER = ("strict", "copy", "check_finite", "work")  # arguments that change no result
BORDERS = ({ast.Lt, ast.LtE}, {ast.Gt, ast.GtE})  # pairs that differ where both sides are equal
SAME = {  # (file, line, change) that does nothing, and why
    (
        "edges/certainty.py",
        "powers = -np.log10(np.clip(np.nan_to_num(p_values, nan=1.0), least, 1.0))",
        "1.0 -> 2.0",
    ): "a p-value is above 1 by rounding alone, if at all; the square root of less than 0 is none",
    (
        "regression/residuals.py",
        "if len(i) > a.shape[1]:",
        "Gt -> GtE",
    ): "both ways of summing give the same",
    (
        "regression/residuals.py",
        "if len(i) > a.shape[1]:",
        "Gt -> LtE",
    ): "both ways of summing give the same",
    (
        "regression/residuals.py",
        "total, pairs = float(evidence[asked].sum()), max(int(asked.sum()), 1)",
        "1 -> 2",
    ): "without a pair there is no evidence, whatever it is divided by",
    (
        "regression/residuals.py",
        "beyond_chance = max(1 - pairs / max(total, 1e-300), 0.0)",
        "1e-300 -> 1.0",
    ): "evidence below one pair's is nothing beyond chance either way",
    (
        "regression/p_values.py",
        "return np.where(mean > 1e14, 1 / (np.maximum(mean, 1.0) * np.pi), tail)",
        "1.0 -> 2.0",
    ): "where it counts, the mean is beyond 1e14",
    (
        "regression/p_values.py",
        "return np.where(mean > 1e14, 1 / (np.maximum(mean, 1.0) * np.pi), tail)",
        "Gt -> GtE",
    ): "at the border both are the same to fourteen digits",
    (
        "regression/p_values.py",
        "return np.where(mean > 1e14, 1 / (np.maximum(mean, 1.0) * np.pi), tail)",
        "100000000000000.0 -> 100000000000001.0",
    ): "at the border both are the same to fourteen digits",
    (
        "regression/robust.py",
        "stretches = [p for part in sample.rows for p in pieces(part, length * max(1, size // "
        "length))]",
        "max -> min",
    ): "how many blocks are summed at once",
    (
        "regression/robust.py",
        "stretches = [p for part in sample.rows for p in pieces(part, length * max(1, size // "
        "length))]",
        "1 -> 2",
    ): "how many blocks are summed at once",
    (
        "regression/robust.py",
        "for batch in pieces(stretch, size if size < length else len(stretch)):",
        "Lt -> LtE",
    ): "how many windows are summed at once",
    (
        "regression/autoregression.py",
        "size = np.linalg.slogdet(covariance + DAMPING * np.eye(columns))[1]",
        "Add -> Sub",
    ): "a billionth, so that the determinant is not zero",
    (
        "regression/autoregression.py",
        "if len(part) <= lags:",
        "LtE -> Lt",
    ): "a stretch as long as its lags has no row either way",
    (
        "regression/autoregression.py",
        "sd = np.where(sd > 0, sd, 1.0)",
        "1.0 -> 2.0",
    ): "what never varies is zero in any unit",
    (
        "regression/splines.py",
        "return cls(knots, curved, slopes, left.mean(0), np.where(scales > 1e-9, scales, 1.0))",
        "1.0 -> 2.0",
    ): "what never varies is zero in any unit",
    (
        "regression/screen.py",
        "np.put_along_axis(scores, chosen.inputs, -2.0, axis=1)",
        "2.0 -> 3.0",
    ): "below all scores either way",
    (
        "forecast/attribution/relevance.py",
        "stream = RelevanceStream(power=1)",
        "1 -> 2",
    ): "only the mean of what it is given is asked of it",
    (
        "store/run_folder.py",
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
    lines: frozenset[int]  # that the change stands in
    change: str
    code: str

    @property
    def key(self) -> tuple[str, str, str]:
        """How the table of changes that do nothing names it."""
        return str(self.file.relative_to(SOURCE)), self.line, self.change

    def __str__(self) -> str:
        name = self.file.relative_to(SOURCE)
        return f"{name}:{self.number} {self.change} in `{self.line}`"


def _real_thresholds() -> set[str]:
    """The names of thresholds that are real numbers."""
    tree = ast.parse((SOURCE / "config" / "thresholds.py").read_text(encoding="utf-8"))
    fields = [node for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)]
    kinds = [(ast.unparse(field.target), ast.unparse(field.annotation)) for field in fields]
    return {name for name, kind in kinds if kind in ("Share", "Positive", "float")} - {
        name for name, kind in kinds if kind == "Count"
    }


REAL = _real_thresholds()


def _is_real(side: ast.expr) -> bool:
    """Whether a side of a comparison is a threshold, or a number, that is no whole one."""
    number = side.value if isinstance(side, ast.Constant) else 0
    is_broken = isinstance(number, float) and not number.is_integer()
    return is_broken or getattr(side, "attr", "") in REAL


def mutants(file: Path) -> Iterator[Mutant]:
    """Every mutant of a file in turn: its tree is changed, written down, and changed back."""
    text = file.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    silent = {id(node) for part in ast.walk(tree) for node in _not_run(part)}
    for node in list(ast.walk(tree)):
        if id(node) not in silent:
            number = getattr(node, "lineno", 1)
            own = frozenset(range(number, getattr(node, "end_lineno", number) + 1))
            for change in _changes(node):
                line = lines[number - 1].strip()
                yield Mutant(file, line, number, own, change, ast.unparse(tree))


def _changes(node: ast.AST) -> Iterator[str]:
    """Change a node in every way, each undone when the next is asked for."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for place, old in enumerate(node.ops):
            real = any(map(_is_real, sides[place : place + 2]))
            for new in SWAPS.get(type(old), ()):
                if not (real and {type(old), new} in BORDERS):
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
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ESTIMATES:
        parts.append(node)
    if isinstance(node, ast.Call):
        inside = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        parts += [node] if ast.unparse(node.func) == "max" and inside & {*AT_ONCE} else []
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        parts += node.args if name in (*SAID, "default_rng") else []
        parts += [key for key in node.keywords if name in SAID or key.arg in NO_MATTER]
        if name == "reshape":  # NumPy finds the length that any negative number stands for
            parts += [part for part in node.args if ast.unparse(part) == "-1"]
    if isinstance(node, ast.Module):
        parts += [part for part in node.body if _is_choice(part)]
    for part in parts:
        if isinstance(part, ast.AST):
            yield from ast.walk(part)


def _is_choice(node: ast.stmt) -> bool:
    """A constant of a module: another value is another choice, such as of how many rows to read."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
    named = ast.unparse(targets[0]).lstrip("(")
    return isinstance(node, ast.Assign | ast.AnnAssign) and named[0].isupper()
