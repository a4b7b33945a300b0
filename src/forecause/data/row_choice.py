"""Which rows are to be explained: a column of truth values, or a condition on columns.

The condition is read by a small evaluator of its own; nothing in it is ever run as Python.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from forecause.data.cells import absent_cells
from forecause.data.sources.rawtable import RawTable
from forecause.errors import InputError

Mask = npt.NDArray[np.bool_]

COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
EXAMPLE = 'expected a condition such as "season == \'winter\'" or "temp > 0 and month in (1, 2)"'


def chosen_rows(table: RawTable, asked: str) -> Mask:
    """Where (row,) the column `asked` is true, or the condition holds; missing cells are not."""
    if asked in table.names or asked in table.beside:
        return _truth(asked, table.column(asked))
    chosen = _Condition(table, asked).value()
    if not isinstance(chosen, np.ndarray) or chosen.dtype != bool:
        raise InputError(f"The rows to use are given as {asked!r}; {EXAMPLE}.")
    return chosen


def columns_named(asked: str) -> set[str]:
    """The columns that a condition speaks of, or the one that it is."""
    try:
        tree = ast.parse(asked, mode="eval")
    except SyntaxError:
        return {asked}
    return {asked, *(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))}


def _truth(name: str, values: npt.NDArray[Any]) -> Mask:
    """A column of truth values or of 0 and 1."""
    absent = absent_cells(values)
    known = values[~absent]
    texts = {str(cell).strip().lower() for cell in np.unique(known.astype(str))}
    if not texts <= {"true", "false", "0", "1", "0.0", "1.0"}:
        odd = sorted(texts - {"true", "false", "0", "1"})[0]
        raise InputError(
            f"The column {name!r} of rows to use must hold true and false or 1 and 0, found "
            f"{odd!r}; or give a condition such as \"{name} == '{odd}'\"."
        )
    made = np.zeros(len(values), dtype=bool)
    lowered = np.char.strip(np.char.lower(known.astype(str)))
    made[~absent] = np.isin(lowered, ("true", "1", "1.0"))
    return made


class _Condition:
    """Comparisons of columns with constants or each other, joined by and, or, not."""

    def __init__(self, table: RawTable, text: str) -> None:
        self.table, self.text = table, text

    def value(self) -> Any:
        try:
            return self._of(ast.parse(self.text, mode="eval").body)
        except (SyntaxError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"The rows to use are given as {self.text!r}; {EXAMPLE}.") from error

    def _of(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=str() | int() | float() as value):
                return value
            case ast.Name(id=name):
                return self._column(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._of(operand)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self._mask(operand)
            case ast.BoolOp(op=op, values=values):
                join = np.logical_and if isinstance(op, ast.And) else np.logical_or
                return join.reduce([self._mask(value) for value in values])
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [left, *others]
                parts = [
                    self._compared(a, op, b)
                    for a, op, b in zip(sides[:-1], ops, others, strict=True)
                ]
                return np.logical_and.reduce(parts)
        raise InputError(f"The rows to use are given as {self.text!r}; {EXAMPLE}.")

    def _mask(self, node: ast.expr) -> Mask:
        mask = self._of(node)
        if isinstance(node, ast.Name):
            return _truth(node.id, mask)
        if not isinstance(mask, np.ndarray) or mask.dtype != bool:
            raise InputError(f"The rows to use are given as {self.text!r}; {EXAMPLE}.")
        return mask

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Mask:
        if isinstance(op, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List):
                raise InputError(f"Expected a list after 'in' in {self.text!r}.")
            several = [self._compared(left, ast.Eq(), one) for one in right.elts]
            any_of = np.logical_or.reduce(several)
            return np.asarray(any_of if isinstance(op, ast.In) else ~any_of)
        one, other = self._of(left), self._of(right)
        holds = np.asarray(COMPARISONS[type(op)](one, other))
        if holds.dtype != bool or holds.shape != (self.table.rows,):
            raise InputError(
                f"In the rows to use, {ast.unparse(left)!r} and {ast.unparse(right)!r} cannot be "
                "compared; write text in quotes and numbers without."
            )
        known = ~self._absent(left) & ~self._absent(right)
        return holds & known

    def _absent(self, node: ast.expr) -> Mask:
        if isinstance(node, ast.Name):
            return absent_cells(self._column(node.id))
        return np.zeros(self.table.rows, dtype=bool)

    def _column(self, name: str) -> npt.NDArray[Any]:
        if name not in self.table.names and name not in self.table.beside:
            known = ", ".join(map(repr, [*self.table.names, *self.table.beside][:20]))
            raise InputError(
                f"The rows to use name {name!r}, but the columns are {known}; write text in quotes."
            )
        return self.table.column(name)
