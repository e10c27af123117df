"""Why a module returned NaN or Inf, as far as the trace shows it: no cause is named that was not seen."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hookviz.analysis.findings.pass_statistics import PassStatistics
from hookviz.analysis.findings.tensor_numbers import broadcast_pairs, largest, rows_along
from hookviz.support.messages import join, say
from hookviz.trace import TensorRow
from hookviz.trace.values import Value, format_number, get_norm_nan_inf


class Cause(NamedTuple):
    """What an op did that gives NaN or Inf."""

    kind: str
    """``nan`` or ``inf``: what it gives."""
    text: str
    infinite: bool = False
    """Whether it needs an Inf that was made before."""


def explain_cause(of: PassStatistics, index: int, before: Any, kind: str) -> tuple[str, bool]:
    """Why the forward at step ``index`` returned NaN or Inf where its input, ``before``, held none.

    Looked at are the module's parameters; then its ops in the order of the forward, with the numbers that they saved
    for backward, or were given as the module's only input; then whether sums and products of finite numbers went beyond
    the largest number of the dtype. A cause is named where the numbers show it, else that it was not seen.

    Returns:
        The reason in words, and whether the cause was seen.
    """
    call = of.trace.rows[index].call
    made = of.trace.lookup.nodes_by_call.get(call, ())
    nodes = sorted(node for node in made if of.trace.ops[node] != "AccumulateGrad")
    parameters = _parameters(of, call)
    for row in parameters:
        if of.bad(row.data):
            return _held(of, index, row), True
    given = [value for value in _values(of, before) if value.note is None]
    ops = _Ops(of, call, nodes, given, parameters)
    told = _seen(ops, kind)
    if told is None and kind == "inf" and _overflows(of, call, nodes, given, parameters):
        told = _overflow(next(value.dtype for value in _values(of, of.trace.rows[index].after) if _holds_inf(value)))
    if told is not None:
        return told, True
    told = _unseen(given, any(not _clean(of, row.data) for row in parameters))
    named = (of.named(node) for node in nodes if _gave(ops.saved(node, "result"), kind))
    first = [say("trouble.cause.first", op=name) for name in list(named)[:1]]
    return join("join.sentences", [told, *first]), False


def _gave(result: Value | None, kind: str) -> bool:
    return result is not None and bool(get_norm_nan_inf(result.row)[1] if kind == "nan" else _holds_inf(result))


def _holds_inf(value: Value) -> bool:
    return get_norm_nan_inf(value.row)[2] > 0


def _seen(ops: "_Ops", kind: str) -> str | None:
    """The first cause that the numbers of the ops show; of a NaN that came of an Inf, also how that came about."""
    causes = list(_causes(ops))
    first = next((cause for cause in causes if cause.kind == kind), None)
    if first is None:
        return None
    infinite = next((cause for cause in causes if cause.kind == "inf"), None) if first.infinite else None
    more = [] if infinite is None else [say("trouble.cause.infinite", told=infinite.text)]
    return join("join.sentences", [say("trouble.cause", told=first.text), *more])


def _unseen(given: list[Value], unread: bool) -> str:
    if any(value.min is None for value in given):
        return say("trouble.input.norm")
    seen = [value for value in given if not math.isnan(_low(value))]
    if not seen:
        return say("trouble.input.unknown")
    low, high = format_number(min(map(_low, seen)), 4), format_number(max(map(_high, seen)), 4)
    return say("trouble.input.unread" if unread else "trouble.input", low=low, high=high)


def _low(value: Value | None) -> float:
    """The smallest number of a tensor; NaN where that is not known."""
    return math.nan if value is None or value.min is None else value.min


def _high(value: Value | None) -> float:
    """The largest number of a tensor; NaN where that is not known."""
    return math.nan if value is None or value.max is None else value.max


def _parameters(of: PassStatistics, call: int) -> list[TensorRow]:
    """The module's own parameters, and those of modules in it that it uses without calling them."""
    module = of.trace.calls[call].module
    calls, prefix = of.trace.calls, f"{of.trace.module(module)}."

    def belongs(row: TensorRow) -> bool:
        owner = of.trace.owners.get(row.node)
        return calls[owner].module == module if owner is not None else row.name.startswith(prefix)

    return [row for row in of.tensors if row.leaf and belongs(row)]


def _held(of: PassStatistics, index: int, row: TensorRow) -> str:
    """A parameter that held it before, and what is known of how it came to that."""
    earlier = of.trace.lookup.tensors_before(of.pass_id, row.node)
    if not earlier or not _clean(of, earlier[-1].data):
        return say("trouble.parameter", on=row.name)
    stepped = _stepped(of, earlier[-1].pass_id, index)
    if not stepped:
        return say("trouble.parameter.between", on=row.name)
    last = max(stepped.values())
    spoiled = _spoiled(of, row, earlier[-1].pass_id, last)
    if len(stepped) > 1:  # a step does not tell whose parameters it changed
        each = [say("trouble.parameter.step", optimizer=of.trace.steps[i].on, step=i + 1) for i in stepped.values()]
        more = say("trouble.parameter.several.spoiled") if spoiled else _between(of)
        return say("trouble.parameter.several", on=row.name, optimizers=join("join.list", each), more=more)
    said = {"on": row.name, "step": last + 1, "optimizer": of.trace.steps[last].on}
    if spoiled:
        return say("trouble.parameter.since.spoiled", **said)
    return say("trouble.parameter.since", **said, more=_between(of))


def _stepped(of: PassStatistics, since: int, index: int) -> dict[int, int]:
    """Optimizer → its last step after pass ``since`` began and before step ``index``."""
    begins = next((i for i in of.trace.lookup.steps(since) if of.trace.rows[i].kind == "seed"), 0)
    steps = of.trace.lookup.optimizer_steps
    between = steps[bisect_left(steps, begins) : bisect_left(steps, index)]
    return {of.trace.rows[i].optimizer: i for i in between if of.trace.rows[i].pass_id >= since}


def _spoiled(of: PassStatistics, row: TensorRow, since: int, step: int) -> bool:
    """Whether the gradient that was last written for a parameter, in pass ``since`` or later, is NaN or Inf."""
    written = (
        one
        for one in map(of.trace.rows.__getitem__, range(step - 1, -1, -1))
        if one.node == row.node and one.kind in ("accumulate", "post_accumulate_hook") and one.subject == "gradient"
    )
    last = next(written, None)
    return last is not None and last.pass_id >= since and of.bad(last.after)


def _between(of: PassStatistics) -> str:
    """What may have changed a parameter between two passes, besides an optimizer's step."""
    every = next((dict(note.arguments)["every"] for note in of.trace.remarks if note.key == "note.every"), None)
    if every is None:
        return say("trouble.parameter.more")
    return say("trouble.parameter.more.every", every=every)


def _clean(of: PassStatistics, index: int | None) -> bool:
    """Whether the numbers of a value are known, and NaN and Inf are not among them."""
    return index is not None and of.value(index).note is None and not of.bad(index)


def _values(of: PassStatistics, kept: Any) -> list[Value]:
    found = of.trace.value(kept)
    return [value for value in (found if isinstance(found, tuple) else (found,)) if value is not None]


def _outputs_of(of: PassStatistics, call: int) -> Iterator[Value]:
    rows = (row for _, row in of.rows if row.kind == "forward" and row.call == call)
    yield from (value for row in rows for value in _values(of, row.after))


# -- ops and the numbers that they took


class _Ops:
    """The ops of one module call, in the order of the forward, and what is known of the numbers that they took."""

    def __init__(
        self, of: PassStatistics, call: int, nodes: list[int], given: list[Value], parameters: list[TensorRow]
    ) -> None:
        self.of, self.nodes = of, nodes
        self.dtype = next((value.dtype for value in _outputs_of(of, call)), "")
        self._saved = {(row.node, row.name): row for row in of.trace.saved if row.pass_id == of.pass_id}
        self._data = {(row.node, row.output): row.data for row in parameters if row.data is not None}
        inside = set(nodes)
        ways = (
            (node, slot)
            for node in nodes
            for slot, end in of.trace.lookup.next_nodes.get(node, ())
            if end not in inside
        )
        ends = {of.trace.edges[way] for way in ways}
        outside = ends - self._data.keys()
        one = len(outside) == 1 and len(given) == 1
        if one and call not in of.calls_around(next(iter(outside))[0]):  # else a module inside this one made it
            self._given = dict.fromkeys(outside, given[0])
        else:
            self._given = {}

    def name(self, node: int) -> str:
        """``Log`` for a node ``LogBackward0``."""
        return self.of.trace.ops[node].partition("Backward")[0]

    def setting(self, node: int, name: str) -> float | None:
        """A number that the node saved, such as an exponent; None where it is a tensor or unknown."""
        row = self._saved.get((node, name))
        return row.plain if row is not None and isinstance(row.plain, int | float) else None

    def saved(self, node: int, name: str) -> Value | None:
        """The tensor that the node saved under ``name``; None where it is unknown."""
        row = self._saved.get((node, name))
        return self.of.value(row.value) if row is not None and isinstance(row.value, int) else None

    def took(self, node: int, slot: int, name: str) -> Value | None:
        """What a node took in ``slot``: what it saved under ``name``, or what is known of where that came from.

        That is the result that the op before it saved, a parameter, or the module's input, where it has only one and
        its ops use nothing else from outside.
        """
        place = self.of.trace.edges.get((node, slot))
        found = self.saved(node, name)
        if found is None and place is not None:
            found = self.saved(place[0], "result") or self._given.get(place)
            if found is None and place in self._data:
                found = self.of.value(self._data[place])
        return found if found is not None and found.note is None else None


def _causes(ops: _Ops) -> Iterator[Cause]:
    for node in ops.nodes:
        rule = _RULES.get(ops.name(node))
        if rule is not None:
            yield from rule(ops, node)


def _log(ops: _Ops, node: int) -> Iterator[Cause]:
    value = ops.took(node, 0, "self")
    least = -1 if ops.name(node) == "Log1P" else 0
    if _low(value) < least:
        yield Cause("nan", say("trouble.cause.log", least=least, low=format_number(_low(value), 4)))
    if value is not None and (value.min == least or (least == 0 and value.zero)):
        yield Cause("inf", say("trouble.cause.log.one" if least else "trouble.cause.log.zero"))


def _root(ops: _Ops, node: int) -> Iterator[Cause]:
    value = ops.took(node, 0, "self")
    if _low(value) < 0:
        yield Cause("nan", say("trouble.cause.root", low=format_number(_low(value), 4)))
    if value is not None and value.zero and ops.name(node) == "Rsqrt":
        yield Cause("inf", say("trouble.cause.division.zero"))


def _reciprocal(ops: _Ops, node: int) -> Iterator[Cause]:
    value = ops.took(node, 0, "self")
    if value is not None and value.zero:
        yield Cause("inf", say("trouble.cause.division.zero"))


def _exponential(ops: _Ops, node: int) -> Iterator[Cause]:
    result = ops.saved(node, "result")
    if result is not None and _holds_inf(result):
        most = format_number(math.log(largest(result.dtype)), 3)
        yield Cause("inf", say("trouble.cause.exp", largest=most, dtype=result.dtype))


def _division(ops: _Ops, node: int) -> Iterator[Cause]:
    numerator, denominator = ops.took(node, 0, "self"), ops.took(node, 1, "other")
    for x, y in broadcast_pairs(numerator, denominator):
        if y == 0 or (math.isinf(x) and math.isinf(y)):
            nan = x == 0 or y != 0
            key = "infinite" if y else "zeros" if nan else "zero"
            yield Cause("nan" if nan else "inf", say(f"trouble.cause.division.{key}"), infinite=y != 0)
    if numerator is None and denominator is not None and denominator.zero == math.prod(denominator.shape):
        yield Cause("inf", say("trouble.cause.division.zero"))


def _product(ops: _Ops, node: int) -> Iterator[Cause]:
    one, other = ops.took(node, 0, "self"), ops.took(node, 1, "other")
    for x, y in broadcast_pairs(one, other):
        if 0 in (x, y) and (math.isinf(x) or math.isinf(y)):
            yield Cause("nan", say("trouble.cause.product", infinite=_signed(x if x else y)), infinite=True)
        elif one is not None and other is not None and _beyond(x * y, one.dtype, other.dtype) and _finite(x, y):
            parts = {
                "x": format_number(x, 4),
                "y": format_number(y, 4),
                "largest": _largest(one.dtype),
                "dtype": one.dtype,
            }
            yield Cause("inf", say("trouble.cause.product.large", **parts))


def _sum(ops: _Ops, node: int) -> Iterator[Cause]:
    sign = -1 if ops.name(node) == "Sub" else 1
    for x, y in broadcast_pairs(ops.took(node, 0, "self"), ops.took(node, 1, "other")):
        if math.isinf(x) and x == -sign * y:
            text = say("trouble.cause.sum" if sign > 0 else "trouble.cause.difference", x=_signed(x))
            yield Cause("nan", text, infinite=True)


def _power(ops: _Ops, node: int) -> Iterator[Cause]:
    base, exponent = ops.took(node, 0, "self"), ops.setting(node, "exponent")
    known = broadcast_pairs(base, ops.took(node, 1, "exponent"))
    if base is not None and exponent is not None:
        known = iter(((_low(base), exponent), *([(0.0, exponent)] if base.zero else [])))
    for x, y in known:
        if x < 0 and math.isfinite(y) and y != int(y):
            yield Cause("nan", say("trouble.cause.power", low=format_number(x, 4), exponent=format_number(y)))
        elif x == 0 and y < 0:
            yield Cause("inf", say("trouble.cause.power.zero", exponent=format_number(y)))


def _softmax(ops: _Ops, node: int) -> Iterator[Cause]:
    value = ops.took(node, 0, "self")
    if value is None:
        return
    if value.max == -math.inf or any(max(row) == -math.inf for row in rows_along(value, ops.setting(node, "dim"))):
        yield Cause("nan", say("trouble.cause.softmax"), infinite=True)
    elif value.max == math.inf:
        yield Cause("nan", say("trouble.cause.softmax.inf"), infinite=True)


def _cast(ops: _Ops, node: int) -> Iterator[Cause]:
    value = ops.took(node, 0, "self")
    far = max(_high(value), -_low(value))
    if ops.nodes == [node] and math.isfinite(far) and _beyond(far, ops.dtype):
        parts = {"largest": _largest(ops.dtype), "dtype": ops.dtype, "far": format_number(far)}
        yield Cause("inf", say("trouble.cause.cast", **parts))


_RULES: dict[str, Callable[[_Ops, int], Iterator[Cause]]] = {
    **dict.fromkeys(("Log", "Log2", "Log10", "Log1P"), _log),
    **dict.fromkeys(("Sqrt", "Rsqrt"), _root),
    **dict.fromkeys(("Add", "Sub"), _sum),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _softmax),
    "ToCopy": _cast,
    "Reciprocal": _reciprocal,
    "Exp": _exponential,
    "Div": _division,
    "Mul": _product,
    "Pow": _power,
}
"""An op, and how to see in the numbers that it took, or gave, that it made NaN or Inf."""


def _largest(dtype: str) -> str:
    return f"{largest(dtype):,.6g}"


def _beyond(x: float, *dtypes: str) -> bool:
    """Whether a number is too large for all of these dtypes, more than rounding would explain."""
    return all(abs(x) > 1.001 * largest(dtype) for dtype in dtypes)


def _finite(*numbers: float) -> bool:
    return all(map(math.isfinite, numbers))


def _signed(x: float) -> str:
    return "Inf" if x > 0 else "-Inf"


# -- numbers that grow too large


_LAYERS = {"Linear", "Conv1d", "Conv2d", "Conv3d"}
_SUMS = {"Addmm", "Mm", "Convolution", "MkldnnConvolution", "View", "UnsafeView", "T", "Transpose", "ToCopy", "Squeeze"}


def _overflows(
    of: PassStatistics, call: int, nodes: list[int], given: list[Value], parameters: list[TensorRow]
) -> bool:
    """Whether a layer whose input and parameters are finite does nothing but multiply and add."""
    layer = of.trace.modules[of.trace.calls[call].module].kind in _LAYERS
    only = {of.trace.ops[node].partition("Backward")[0] for node in nodes} <= _SUMS
    weight = any(row.name.endswith(".weight") for row in parameters)
    finite = all(_clean(of, row.data) for row in parameters) and not any(map(_holds_inf, given))
    return layer and only and weight and bool(given) and finite


def _overflow(dtype: str) -> str:
    return say("trouble.cause.overflow", largest=_largest(dtype), dtype=dtype)
