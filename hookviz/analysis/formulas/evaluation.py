"""Evaluate formulas: a small set of operations, computed by walking the syntax tree, never run as Python.

This module computes with settings: numbers, shapes and None. ``autograd.formulas`` also computes with tensors.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from hookviz.trace.values import Value

Dims = int | Sequence[int] | None


class NotRecorded:
    """A placeholder for a value that was not recorded; ``why`` is the end of the message key that says why."""

    def __init__(self, why: str) -> None:
        self.why = why


class Missing(Exception):
    """A formula needs a value that was not recorded."""


class NoReading(Exception):
    """The reading of a formula does not cover this case."""


class NeedsTorch(Exception):
    """A formula computes with tensors, which this evaluator does not support."""


def numel(x: Any, dim: Dims = None) -> int:
    """The number of elements of a shape (or a tensor), in total or along some of its dimensions.

    >>> numel((2, 3)), numel((2, 3), -1), numel(())
    (6, 3, 1)
    """
    shape = getattr(x, "shape", x)
    dims = [dim] if isinstance(dim, int) else list(dim or range(len(shape)))
    return math.prod(shape[d] for d in dims) if len(shape) else 1


def invert_order(dims: Sequence[int]) -> tuple[int, ...]:
    """The order of dimensions that reverses the permutation ``dims``.

    >>> invert_order((2, 0, -2))
    (1, 2, 0)
    """
    order = [d % len(dims) for d in dims]
    return tuple(order.index(d) for d in range(len(dims)))


def negate_each(numbers: Sequence[int]) -> tuple[int, ...]:
    """Negate each number.

    >>> negate_each((1, -2))
    (-1, 2)
    """
    return tuple(-n for n in numbers)


def last_dims(shape: Sequence[int]) -> tuple[int, ...]:
    """The last dimensions of a tensor, as many as ``shape`` has.

    >>> last_dims((3, 4))
    (-2, -1)
    """
    return tuple(range(-len(shape), 0))


PLAIN_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "size": numel,
    "inverse": invert_order,
    "opposite": negate_each,
    "last": last_dims,
}
"""Name in formulas → a function that returns plain numbers; a formula with values shows its result."""


def _raise_to_power(base: Any, exponent: Any) -> Any:
    """Compute a power of plain numbers; in floating point if an integer result could have very many digits."""
    return base**exponent if isinstance(base, float) or abs(exponent) <= 64 else float(base) ** exponent


_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _raise_to_power,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


class Evaluator:
    """Computes the values of expressions, given the values of their names.

    Raises:
        Missing: a required value was not recorded.
        NoReading: the reading does not cover this case.
        NeedsTorch: the formula computes with tensors.
        Exception: Python cannot compute with these settings; a file may hold any settings.

    >>> from hookviz.analysis.formulas.derivatives import parse_formula
    >>> Evaluator({"a": 2}).value(parse_formula("(a + 1) ** 2"))
    9
    """

    functions: ClassVar[Mapping[str, Callable[..., Any]]] = PLAIN_FUNCTIONS

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names

    def value(self, node: ast.expr) -> Any:
        """Compute the value of an expression."""
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(id=name):
                return self._look_up(name)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self.negated(self.value(inner))
            case ast.BinOp(left=left, op=op, right=right):
                return self.combined(type(op), self.value(left), self.value(right))
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op]):
                return _COMPARISONS[type(op)](self.names.get(name), None)  # the value need not be recorded
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.compared(_COMPARISONS[type(op)], self.value(left), self.value(right))
            case ast.BoolOp(values=operands):  # formulas contain no other operator than "or"
                return any(self.value(operand) for operand in operands)
            case ast.IfExp():
                return _require_reading(self.value(self.branch(node)))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self.functions[name](*(self.value(argument) for argument in arguments))
        raise TypeError(ast.dump(node))

    def branch(self, node: ast.IfExp) -> ast.expr:
        """The branch of a conditional expression that applies."""
        return node.body if self.value(node.test) else node.orelse

    def _look_up(self, name: str) -> Any:
        """The value of a name; raises ``Missing`` if it was not recorded."""
        if name == "pi":
            return math.pi
        value = self.names.get(name, NotRecorded("none"))
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, NotRecorded):
                raise Missing(item.why)
        return value

    def negated(self, x: Any) -> Any:
        """Negate a number."""
        return -_require_plain(x)

    def combined(self, op: type[ast.operator], a: Any, b: Any) -> Any:
        """Add, multiply, … two numbers."""
        return _ARITHMETIC[op](_require_plain(a), _require_plain(b))

    def compared(self, compare: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        """Compare two settings with the operator ``compare``."""
        return compare(_require_plain(a), _require_plain(b))


def _require_reading(x: Any) -> Any:
    """``x``; raises ``NoReading`` if it is None, which marks a case that the reading does not cover."""
    if x is None:
        raise NoReading
    return x


def _require_plain(x: Any) -> Any:
    """``x``; raises ``NeedsTorch`` if it is a tensor or a list of tensors."""
    if isinstance(x, Value | list):
        raise NeedsTorch
    return x
