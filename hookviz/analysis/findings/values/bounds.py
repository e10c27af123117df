"""Bounds on the numbers of a forward: where finite numbers stay finite, and which op alone can have left that range."""

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from graphlib import TopologicalSorter

from hookviz.analysis.findings.ops import COPIES, PARTS, PRODUCTS, VIEWS, iter_reached
from hookviz.analysis.findings.values.op_causes import ForwardOps, format_largest, largest
from hookviz.analysis.findings.values.torchless_numbers import largest_number
from hookviz.support.messages import _
from hookviz.trace import NodeOutput
from hookviz.trace.values import Value, format_number

_KEEPING = frozenset({*VIEWS, *PARTS, *COPIES, "Abs", "Index", "Neg", "Relu"})
"""Ops whose result is no larger than their input."""
_LIMITED = frozenset({"Cos", "Sigmoid", "Sin", "Softmax", "Tanh"})
"""Ops whose result is between -1 and 1."""


class Bounds:
    """The largest numbers that the tensors of a forward can hold, as far as the known ones tell; Inf if they do not."""

    def __init__(self, ops: ForwardOps) -> None:
        self.ops = ops
        self._edges = ops.statistics.trace.edges
        self._found: dict[int, float] = {}

    def find_source(self, node: int) -> int | None:
        """Return the op that alone can have made the NaN or Inf that an op takes or makes; None if several can."""
        found = {*self._list_sources(node)}
        return found.pop() if len(found) == 1 else None

    def _list_sources(self, node: int) -> Iterator[int]:
        """Yield each op before a node, or itself, that can make NaN or Inf of numbers without any."""
        for one in iter_reached(node, self._list_unbound_inputs):
            if not self._list_unbound_inputs(one) or self._is_unbound(one):
                yield one

    def _list_unbound_inputs(self, node: int) -> list[int]:
        return [place[0] for place in self._list_inputs(node) if self._measure(place) == math.inf]

    def _is_unbound(self, node: int) -> bool:
        """Whether an op may make NaN or Inf whatever it takes, as a mask or a logarithm does."""
        op = self.ops.op_name(node)
        return op not in _LIMITED and op not in _BOUNDS

    def _list_inputs(self, node: int) -> list[NodeOutput]:
        following = self.ops.statistics.trace.lookup.next_nodes.get(node, ())
        return [self._edges[node, slot] for slot, _end in following]

    def _measure(self, place: NodeOutput) -> float:
        value = self.ops.known_value(place)
        if value is not None:
            return _bound(value)
        if place[0] not in self._found:
            # A forward may be thousands of ops deep, so that this does not call itself.
            needed = {node: self._list_unmeasured(node) for node in iter_reached(place[0], self._list_unmeasured)}
            for node in TopologicalSorter(needed).static_order():
                self._found[node] = self._compute(node)
        return self._found[place[0]]

    def _list_unmeasured(self, node: int) -> list[int]:
        """List the nodes of unknown bounds whose results a node took."""
        unknown = (place[0] for place in self._list_inputs(node) if self.ops.known_value(place) is None)
        return [end for end in unknown if end not in self._found]

    def _compute(self, node: int) -> float:
        op = self.ops.op_name(node)
        if op in _LIMITED:
            return 1.0 if self.measure_input(node, 0, "self") < math.inf else math.inf
        compute = _BOUNDS.get(op)
        found = math.inf if compute is None else compute(self, node)
        return found if found < largest_number(self.find_dtype(node)) else math.inf

    def measure_input(self, node: int, slot: int, name: str) -> float:
        """Return the bound of an input of an op."""
        value, place = self.ops.input_value(node, slot, name), self._edges.get((node, slot))
        if value is not None:
            return _bound(value)
        return math.inf if place is None else self._measure(place)

    def measure_both(self, node: int) -> tuple[float, float]:
        """Return the bounds of both inputs of an op such as a sum."""
        return self.measure_input(node, 0, "self"), self.measure_input(node, 1, "other")

    def find_dtype(self, node: int) -> str:
        """Return the dtype in which a matrix product computes; for another op, the one of the pass that ends first."""
        factors = PRODUCTS.get(self.ops.op_name(node), ())
        values = (self.ops.input_value(node, slot, name) for slot, name in factors)
        return next((value.dtype for value in values if value is not None), self._smallest_dtype)

    @cached_property
    def _smallest_dtype(self) -> str:
        statistics = self.ops.statistics
        sides = (values for _step, row in statistics.rows for values in (row.before, row.after))
        dtypes = {value.dtype for values in sides for value in statistics.values(values)}
        floats = (dtype for dtype in dtypes if dtype.startswith(("float", "bfloat")))
        return min(floats, key=largest_number, default="float32")

    def describe_product(self, node: int) -> str | None:
        """Say how a matrix product of finite numbers can have left the range of its dtype; None of another op."""
        factors = PRODUCTS.get(self.ops.op_name(node))
        count = None if factors is None else self.count_products(node)
        if factors is None or count is None:
            return None
        one, other = (self.measure_input(node, slot, name) for slot, name in factors)
        dtype = self.find_dtype(node)
        if math.inf in (one, other) or not count * one * other > largest_number(dtype):
            return None
        text = _(
            "adds up {count} products of numbers up to {one} and {other}, which can go beyond {largest}, the largest "
            "number of {dtype}"
        )
        numbers = {"one": format_number(one, 4), "other": format_number(other, 4), "count": f"{count:,}"}
        return text.format(largest=format_largest(dtype), dtype=dtype, **numbers)

    def count_products(self, node: int) -> int | None:
        """Return how many products a matrix product adds up for each number."""
        first, second = PRODUCTS[self.ops.op_name(node)]
        one, other = self.ops.input_value(node, *first), self.ops.input_value(node, *second)
        return one.shape[-1] if one is not None else other.shape[-2] if other is not None else None


def _bound(value: Value) -> float:
    return largest(value) if math.isfinite(largest(value)) else math.inf


def _divide(bounds: Bounds, node: int) -> float:
    divisor = bounds.ops.input_value(node, 1, "other")
    if divisor is None or divisor.min is None or divisor.max is None or not (divisor.min > 0 or divisor.max < 0):
        return math.inf
    return bounds.measure_input(node, 0, "self") / min(abs(divisor.min), abs(divisor.max))


def _multiply_matrices(bounds: Bounds, node: int) -> float:
    one, other = PRODUCTS[bounds.ops.op_name(node)]
    count = bounds.count_products(node)
    added = bounds.measure_input(node, 0, "self") if bounds.ops.op_name(node) == "Addmm" else 0.0
    return (
        math.inf
        if count is None
        else added + count * bounds.measure_input(node, *one) * bounds.measure_input(node, *other)
    )


_BOUNDS: dict[str, Callable[[Bounds, int], float]] = {
    **dict.fromkeys(_KEEPING, lambda bounds, node: bounds.measure_input(node, 0, "self")),
    **dict.fromkeys(("Add", "Sub"), lambda bounds, node: sum(bounds.measure_both(node))),
    **dict.fromkeys(PRODUCTS, _multiply_matrices),
    "Mul": lambda bounds, node: math.prod(bounds.measure_both(node)),
    "Div": _divide,
}
"""Op → the bound on what it makes."""
