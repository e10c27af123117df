"""A formula computed: a small set of operations, walked as a tree and never run as Python.

Here it is computed from settings: numbers, shapes and None. ``autograd.formulas`` computes it from tensors, too.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from hookviz.trace.values import Value

Dims = int | Sequence[int] | None


class NotRecorded:
    """Stands for a value that is there and was not kept; ``why`` says why."""

    def __init__(self, why: str) -> None:
        self.why = why


class Missing(Exception):
    """A formula needs a value that was not kept."""


class NoReading(Exception):
    """A formula says nothing of this case."""


class NeedsTorch(Exception):
    """A formula computes with the numbers of tensors."""


def numel(x: Any, dim: Dims = None) -> int:
    """How many numbers a shape (or a tensor) has, or how many along some of its dimensions.

    >>> numel((2, 3)), numel((2, 3), -1), numel(())
    (6, 3, 1)
    """
    shape = getattr(x, "shape", x)
    several = [dim] if isinstance(dim, int) else list(dim or range(len(shape)))
    return math.prod(shape[d] for d in several) if len(shape) else 1


def inverse(dims: Sequence[int]) -> tuple[int, ...]:
    """The order of dimensions that undoes ``dims``.

    >>> inverse((2, 0, -2))
    (1, 2, 0)
    """
    order = [d % len(dims) for d in dims]
    return tuple(order.index(d) for d in range(len(dims)))


def opposite(numbers: Sequence[int]) -> tuple[int, ...]:
    """Each number with its sign turned.

    >>> opposite((1, -2))
    (-1, 2)
    """
    return tuple(-n for n in numbers)


def last(shape: Sequence[int]) -> tuple[int, ...]:
    """The last dimensions, as many as ``shape`` has.

    >>> last((3, 4))
    (-2, -1)
    """
    return tuple(range(-len(shape), 0))


PLAIN: dict[str, Callable[..., Any]] = {"size": numel, "inverse": inverse, "opposite": opposite, "last": last}
"""Functions that give plain numbers; with values in it, a formula shows the numbers."""


def _raised(base: Any, exponent: Any) -> Any:
    """A power of plain numbers. One of whole numbers could have any number of digits."""
    return base**exponent if isinstance(base, float) or abs(exponent) <= 64 else float(base) ** exponent


_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
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


class Evaluator:
    """Computes what expressions come to, given what their names stand for.

    Raises:
        Missing: a value that is needed was not kept.
        NoReading: the formula is silent about this case.
        NeedsTorch: the formula computes with the numbers of tensors.
        Exception: Python cannot compute with such settings; a file may hold any.

    >>> from hookviz.analysis.formulas.derivatives import parsed
    >>> Evaluator({"a": 2}).value(parsed("(a + 1) ** 2"))
    9
    """

    functions: ClassVar[Mapping[str, Callable[..., Any]]] = PLAIN

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names

    def value(self, node: ast.expr) -> Any:
        """What an expression comes to."""
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(id=name):
                return self._named(name)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return self.negated(self.value(inner))
            case ast.BinOp(left=left, op=op, right=right):
                return self.combined(type(op), self.value(left), self.value(right))
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op]):
                return _COMPARE[type(op)](self.names.get(name), None)  # asked of what may not have been kept, too
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self.compared(_COMPARE[type(op)], self.value(left), self.value(right))
            case ast.BoolOp(values=parts):  # "or" is all that is needed
                return any(self.value(part) for part in parts)
            case ast.IfExp():
                return _read(self.value(self.branch(node)))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self.functions[name](*(self.value(part) for part in arguments))
        raise TypeError(ast.dump(node))

    def branch(self, node: ast.IfExp) -> ast.expr:
        """The part of a choice that holds here."""
        return node.body if self.value(node.test) else node.orelse

    def _named(self, name: str) -> Any:
        if name == "pi":
            return math.pi
        found = self.names.get(name, NotRecorded("none"))
        for part in found if isinstance(found, list) else [found]:
            if isinstance(part, NotRecorded):
                raise Missing(part.why)
        return found

    def negated(self, x: Any) -> Any:
        """The opposite of a number."""
        return -_plain(x)

    def combined(self, op: type[ast.operator], a: Any, b: Any) -> Any:
        """Two numbers added, multiplied, …"""
        return _ARITHMETIC[op](_plain(a), _plain(b))

    def compared(self, compare: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
        """Whether ``compare`` holds of two settings."""
        return compare(_plain(a), _plain(b))


def _read(x: Any) -> Any:
    if x is None:
        raise NoReading
    return x


def _plain(x: Any) -> Any:
    if isinstance(x, Value | list):
        raise NeedsTorch
    return x
