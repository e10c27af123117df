"""Compute formulas from tensors, with a bound on the rounding error of each number."""

import ast
from collections.abc import Callable, Mapping
from typing import Any

import torch

from hookviz.analysis.formulas.evaluation import Evaluator
from hookviz.autograd.formulas import bounded_values
from hookviz.autograd.formulas.bounded_values import BoundedValue, as_bounded
from hookviz.autograd.formulas.functions import FUNCTIONS, ROOM, TooLarge, check_room

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
    """Evaluates expressions whose names stand for a ``BoundedValue`` or a plain value.

    Raises:
        TooLarge: a step would give more numbers than ``ROOM``.
        Exception: as ``Evaluator``, or torch cannot compute with such values.
    """

    functions = FUNCTIONS

    def negated(self, x: Any) -> Any:
        """Negate a value."""
        return BoundedValue(-x.value, x.error) if isinstance(x, BoundedValue) else super().negated(x)

    def combined(self, op: type[ast.operator], a: Any, b: Any) -> Any:
        """Apply a binary operator to two values."""
        if not isinstance(a, BoundedValue) and not isinstance(b, BoundedValue):
            return super().combined(op, a, b)
        _check_result_size(op, a, b)
        return _BINARY[op](as_bounded(a), as_bounded(b))

    def compared(self, compare: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        """Compare two values elementwise with ``compare``."""
        if not isinstance(a, BoundedValue) and not isinstance(b, BoundedValue):
            return super().compared(compare, a, b)
        return BoundedValue(compare(as_bounded(a).value, as_bounded(b).value), 0.0)


def evaluate(tree: ast.expr, names: Mapping[str, Any]) -> Any:
    """Evaluate an expression whose names are given.

    >>> from hookviz.analysis.formulas.derivatives import parse_formula
    >>> evaluate(parse_formula("exp(a)"), {"a": BoundedValue(torch.tensor(0.0), 0.0)}).value
    tensor(1.)
    """
    return TensorEvaluator(names).value(tree)


def _check_result_size(op: type[ast.operator], a: Any, b: Any) -> None:
    """Raise ``TooLarge`` if broadcasting two values would give too many numbers."""
    first, second = (x.value if isinstance(x, BoundedValue) else x for x in (a, b))
    if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
        return
    if first.numel() * second.numel() <= ROOM:
        return
    if op is ast.MatMult:
        raise TooLarge
    check_room(torch.broadcast_shapes(first.shape, second.shape))  # type: ignore[no-untyped-call]
