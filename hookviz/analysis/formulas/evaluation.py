"""Evaluate formulas by walking their syntax trees, which are never run as Python."""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hookviz.trace.values import Value

Dims = int | Sequence[int] | None


class NotRecorded:
    """A placeholder for a value that was not recorded; ``why`` is the key of the sentence that says why."""

    def __init__(self, why: str) -> None:
        self.why = why


class Missing(Exception):
    """A formula cannot be computed; the message is the key of the sentence that says which value is missing."""


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


PLAIN_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "size": numel,
    "inverse": invert_order,
    "opposite": negate_each,
    "last": last_dims,
}
"""Name in formulas → a function that returns plain numbers; a formula with values shows its result."""


def _raise_to_power(base: Any, exponent: Any) -> Any:
    """Compute a power; of integers in floating point if the result could have very many digits."""
    is_huge = isinstance(base, int) and isinstance(exponent, int) and abs(exponent) > 64
    return float(base) ** exponent if is_huge else base**exponent


_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.USub: operator.neg,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.MatMult: operator.matmul,
    ast.Pow: _raise_to_power,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
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

    It computes with anything that has Python's operators: settings, which are plain numbers and shapes, and the values
    of ``hookviz.autograd.formulas``. It does not compute with a recorded ``Value``, which has only a shape here.

    Raises:
        Missing: a required value was not recorded.
        Exception: Python cannot compute with these values; a file may hold any settings.

    >>> from hookviz.analysis.formulas.derivatives import parse_formula
    >>> Evaluator({"a": 2}).value(parse_formula("(a + 1) ** 2"))
    9
    """

    def __init__(self, names: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]] = PLAIN_FUNCTIONS) -> None:
        self.names, self.functions = names, functions

    def value(self, node: ast.expr) -> Any:
        """Compute the value of an expression."""
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(id=name):
                return self._look_up(name)
            case ast.UnaryOp(op=op, operand=inner):
                return self._apply(op, inner)
            case ast.BinOp(left=left, op=op, right=right):
                return self._apply(op, left, right)
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op]):
                return _OPERATORS[type(op)](self.names.get(name), None)  # the value need not be recorded
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._apply(op, left, right)
            case ast.BoolOp(values=operands):  # formulas contain no other operator than "or"
                return any(self.value(operand) for operand in operands)
            case ast.IfExp():
                return self.value(self.branch(node))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return self.functions[name](*(self.value(argument) for argument in arguments))
        raise TypeError(ast.dump(node))

    def branch(self, node: ast.IfExp) -> ast.expr:
        """The branch of a conditional expression that applies, however deep conditionals are nested."""
        branch = node.body if self.value(node.test) else node.orelse
        return self.branch(branch) if isinstance(branch, ast.IfExp) else branch

    def _look_up(self, name: str) -> Any:
        """The value of a name; raises ``Missing`` if it was not recorded."""
        if name == "pi":
            return math.pi
        value = self.names.get(name, NotRecorded("none"))
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, NotRecorded):
                raise Missing(item.why)
        return value

    def _apply(self, op: ast.AST, *operands: ast.expr) -> Any:
        """Apply an operator to the values of its operands."""
        values = [self.value(operand) for operand in operands]
        if any(isinstance(value, Value | list) for value in values):
            raise TypeError(type(op).__name__)
        return _OPERATORS[type(op)](*values)
