"""A formula computed from values: a small set of operations, walked as a tree and never run as Python."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch

from hookviz.analysis.formulas import bounded_values
from hookviz.analysis.formulas.bounded_values import BoundedValue, term
from hookviz.analysis.formulas.functions import FUNCTIONS, ROOM, TooLarge, bounded


class NotRecorded:
    """Stands for a value that is there and was not kept; ``why`` says why."""

    def __init__(self, why: str) -> None:
        self.why = why


class Missing(Exception):
    """A formula needs a value that was not kept."""


class NoReading(Exception):
    """A formula says nothing of this case."""


def _raised(base: Any, exponent: Any) -> Any:
    """A power of plain numbers. One of whole numbers could have any number of digits."""
    return base**exponent if isinstance(base, float) or abs(exponent) <= 64 else float(base) ** exponent


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: bounded_values.add,
    ast.Sub: bounded_values.subtract,
    ast.Mult: bounded_values.multiply,
    ast.Div: bounded_values.divide,
    ast.MatMult: bounded_values.matrix_product,
    ast.Pow: bounded_values.power,
}
_PLAIN: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: _raised,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def evaluate(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """What an expression comes to: a ``BoundedValue``, or a plain value.

    Raises:
        Missing: a value that it needs was not kept.
        NoReading: the formula is silent about this case.
        TooLarge: it would give more numbers than anybody could look at.
        Exception: torch or Python cannot compute with such values; a file may hold any.

    >>> from hookviz.analysis.formulas.derivatives import parsed
    >>> evaluate(parsed("(a + 1) ** 2"), {"a": 2})
    9
    """
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(id=name):
            return _named(name, names)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            x = evaluate(inner, names)
            return BoundedValue(-x.value, x.error) if isinstance(x, BoundedValue) else -x
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(type(op), evaluate(left, names), evaluate(right, names))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compared(type(op), left, right, names)
        case ast.BoolOp(values=parts):  # "or" is all that is needed
            return any(evaluate(part, names) for part in parts)
        case ast.IfExp():
            return _read(evaluate(branch(node, names), names))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return FUNCTIONS[name](*(evaluate(part, names) for part in arguments))
    raise TypeError(ast.dump(node))


def branch(node: ast.IfExp, names: Mapping[str, Any]) -> ast.expr:
    """The part of a choice that holds here."""
    return node.body if evaluate(node.test, names) else node.orelse


def _read(x: Any) -> Any:
    if x is None:
        raise NoReading
    return x


def _named(name: str, names: Mapping[str, Any]) -> Any:
    if name == "pi":
        return math.pi
    found = names.get(name, NotRecorded("none"))
    for part in found if isinstance(found, list) else [found]:
        if isinstance(part, NotRecorded):
            raise Missing(part.why)
    return found


def _binary(op: type[ast.operator], a: Any, b: Any) -> Any:
    if not isinstance(a, BoundedValue) and not isinstance(b, BoundedValue):
        return _PLAIN[op](a, b)
    if op in (ast.BitAnd, ast.BitOr):
        return BoundedValue(_PLAIN[op](a.value, b.value), 0.0)
    _make_room(op, a, b)
    return _BINARY[op](term(a), term(b))


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


def _compared(op: type[ast.cmpop], left: ast.expr, right: ast.expr, names: Mapping[str, Any]) -> Any:
    compare = _COMPARE[op]
    if op in (ast.Is, ast.IsNot) and isinstance(left, ast.Name):  # asked of what may not have been kept, too
        return compare(names.get(left.id), None)
    a, b = evaluate(left, names), evaluate(right, names)
    if not isinstance(a, BoundedValue) and not isinstance(b, BoundedValue):
        return compare(a, b)
    return BoundedValue(compare(term(a).value, term(b).value), 0.0)
