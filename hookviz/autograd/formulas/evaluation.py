"""A formula computed from tensors, with a bound on what rounding may have done to each number."""

import ast
from collections.abc import Callable, Mapping
from typing import Any

import torch

from hookviz.analysis.formulas.evaluation import Evaluator
from hookviz.autograd.formulas import bounded_values
from hookviz.autograd.formulas.bounded_values import BoundedValue, term
from hookviz.autograd.formulas.functions import FUNCTIONS, ROOM, TooLarge, bounded

_BINARY: dict[type[ast.operator], Callable[[Any, Any], BoundedValue]] = {
    ast.Add: bounded_values.add,
    ast.Sub: bounded_values.subtract,
    ast.Mult: bounded_values.multiply,
    ast.Div: bounded_values.divide,
    ast.MatMult: bounded_values.matrix_product,
    ast.Pow: bounded_values.power,
    ast.BitAnd: lambda a, b: BoundedValue(a.value & b.value, 0.0),
    ast.BitOr: lambda a, b: BoundedValue(a.value | b.value, 0.0),
}


class TensorEvaluator(Evaluator):
    """Computes what expressions come to, given what their names stand for: a ``BoundedValue``, or a plain value.

    Raises:
        TooLarge: a step would give more numbers than anybody could look at.
        Exception: as ``Evaluator``; and torch cannot compute with such values.
    """

    functions = FUNCTIONS

    def negated(self, x: Any) -> Any:
        """The opposite of a value."""
        return BoundedValue(-x.value, x.error) if isinstance(x, BoundedValue) else super().negated(x)

    def combined(self, op: type[ast.operator], a: Any, b: Any) -> Any:
        """Two values added, multiplied, …"""
        if not isinstance(a, BoundedValue) and not isinstance(b, BoundedValue):
            return super().combined(op, a, b)
        _make_room(op, a, b)
        return _BINARY[op](term(a), term(b))

    def compared(self, compare: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        """Whether ``compare`` holds of two values, number by number."""
        if not isinstance(a, BoundedValue) and not isinstance(b, BoundedValue):
            return super().compared(compare, a, b)
        return BoundedValue(compare(term(a).value, term(b).value), 0.0)


def evaluate(tree: ast.expr, names: Mapping[str, Any]) -> Any:
    """What an expression comes to.

    >>> from hookviz.analysis.formulas.derivatives import parse_formula
    >>> evaluate(parse_formula("exp(a)"), {"a": BoundedValue(torch.tensor(0.0), 0.0)}).value
    tensor(1.)
    """
    return TensorEvaluator(names).value(tree)


def _make_room(op: type[ast.operator], a: Any, b: Any) -> None:
    """Refuse to combine two values into one of too many numbers: each of one may meet each of the other."""
    one, other = (x.value if isinstance(x, BoundedValue) else x for x in (a, b))
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return
    if one.numel() * other.numel() <= ROOM:
        return
    if op is ast.MatMult:
        raise TooLarge
    bounded(torch.broadcast_shapes(one.shape, other.shape))  # type: ignore[no-untyped-call]
