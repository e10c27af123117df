"""Explain why a module returned NaN or Inf, using only causes that the recorded numbers show."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hookviz.analysis.findings.pass_statistics import PassStatistics
from hookviz.analysis.findings.torchless_numbers import broadcast_pairs, largest_number, rows_along
from hookviz.support.messages import join, say
from hookviz.trace import TensorRow
from hookviz.trace.values import Value, format_number, get_norm_nan_inf


class Cause(NamedTuple):
    """A way in which an op made NaN or Inf."""

    kind: str
    """``nan`` or ``inf``: the kind that it made."""
    text: str
    needs_inf: bool = False
    """Whether the input of the op already contained Inf."""


def explain_cause(statistics: PassStatistics, index: int, before: Any, kind: str) -> tuple[str, bool]:
    """Explain why the forward at step ``index`` returned NaN or Inf although its input, ``before``, had none.

    The search covers: the parameters of the module; its ops in the order of the forward, with the numbers that they
    saved for backward or received as the only input of the module; sums and products of finite numbers that exceed the
    largest number of the dtype.

    Returns:
        The explanation in words, and whether the recorded numbers show the cause.
    """
    call = statistics.trace.rows[index].own_call
    made = statistics.trace.lookup.nodes_by_call.get(call, ())
    nodes = sorted(node for node in made if statistics.trace.ops[node] != "AccumulateGrad")
    parameters = _list_parameters(statistics, call)
    for row in parameters:
        if statistics.is_nonfinite(row.data):
            return _explain_parameter(statistics, index, row), True
    inputs = [value for value in _read_values(statistics, before) if value.note is None]
    ops = _CallOps(statistics, call, nodes, inputs, parameters)
    cause = _describe_known_cause(ops, kind)
    if cause is None and kind == "inf" and _is_overflow(statistics, call, nodes, inputs, parameters):
        outputs = _read_values(statistics, statistics.trace.rows[index].after)
        cause = _describe_overflow(next(value.dtype for value in outputs if _holds_inf(value)))
    if cause is not None:
        return cause, True
    text = _describe_input(inputs, any(not _is_known_finite(statistics, row.data) for row in parameters))
    culprits = [node for node in nodes if _contains_kind(ops.saved_tensor(node, "result"), kind)]
    first = [say("trouble.cause.first", op=statistics.describe_node(node)) for node in culprits[:1]]
    return join("join.sentences", [text, *first]), False


def _contains_kind(value: Value | None, kind: str) -> bool:
    """Whether a value is known and contains NaN or Inf, as ``kind`` says."""
    return value is not None and bool(get_norm_nan_inf(value.row)[1] if kind == "nan" else _holds_inf(value))


def _holds_inf(value: Value) -> bool:
    return get_norm_nan_inf(value.row)[2] > 0


def _describe_known_cause(ops: "_CallOps", kind: str) -> str | None:
    """Describe the first cause that the numbers of the ops show; if it needs an Inf, also where that came from."""
    causes = list(_find_causes(ops))
    first = next((cause for cause in causes if cause.kind == kind), None)
    if first is None:
        return None
    origin = next((cause for cause in causes if cause.kind == "inf"), None) if first.needs_inf else None
    more = [] if origin is None else [say("trouble.cause.infinite", told=origin.text)]
    return join("join.sentences", [say("trouble.cause", told=first.text), *more])


def _describe_input(inputs: list[Value], has_unread_parameters: bool) -> str:
    """Describe the range of the input of a module whose NaN or Inf has no known cause."""
    if any(value.min is None for value in inputs):
        return say("trouble.input.norm")
    known = [value for value in inputs if not math.isnan(_minimum(value))]
    if not known:
        return say("trouble.input.unknown")
    low, high = format_number(min(map(_minimum, known)), 4), format_number(max(map(_maximum, known)), 4)
    return say("trouble.input.unread" if has_unread_parameters else "trouble.input", low=low, high=high)


def _minimum(value: Value | None) -> float:
    """The smallest number of a tensor; NaN if it is not known."""
    return math.nan if value is None or value.min is None else value.min


def _maximum(value: Value | None) -> float:
    """The largest number of a tensor; NaN if it is not known."""
    return math.nan if value is None or value.max is None else value.max


def _list_parameters(statistics: PassStatistics, call: int) -> list[TensorRow]:
    """The parameters of a module, and of the modules inside it that it uses without calling them."""
    module = statistics.trace.calls[call].module
    calls, prefix = statistics.trace.calls, f"{statistics.trace.module(module)}."

    def belongs(row: TensorRow) -> bool:
        owner = statistics.trace.owners.get(row.node)
        return calls[owner].module == module if owner is not None else row.name.startswith(prefix)

    return [row for row in statistics.tensors if row.leaf and belongs(row)]


def _explain_parameter(statistics: PassStatistics, index: int, row: TensorRow) -> str:
    """Explain that a parameter contained NaN or Inf before the pass, and what may have put it there."""
    earlier = statistics.trace.lookup.tensors_before(statistics.pass_id, row.node)
    if not earlier or not _is_known_finite(statistics, earlier[-1].data):
        return say("trouble.parameter", on=row.name)
    last_steps = _find_last_steps(statistics, earlier[-1].pass_id, index)
    if not last_steps:
        return say("trouble.parameter.between", on=row.name)
    last = max(last_steps.values())
    is_spoiled = _had_nonfinite_gradient(statistics, row, earlier[-1].pass_id, last)
    if len(last_steps) > 1:  # a step row does not hold which parameters the optimizer changed
        steps = [statistics.trace.steps[i] for i in last_steps.values()]
        each = [say("trouble.parameter.step", optimizer=step.on, step=step.index + 1) for step in steps]
        more = say("trouble.parameter.several.spoiled") if is_spoiled else _describe_unrecorded(statistics)
        return say("trouble.parameter.several", on=row.name, optimizers=join("join.list", each), more=more)
    arguments = {"on": row.name, "step": last + 1, "optimizer": statistics.trace.steps[last].on}
    if is_spoiled:
        return say("trouble.parameter.since.spoiled", **arguments)
    return say("trouble.parameter.since", **arguments, more=_describe_unrecorded(statistics))


def _find_last_steps(statistics: PassStatistics, since: int, index: int) -> dict[int, int]:
    """Optimizer → its last step between the beginning of pass ``since`` and step ``index``."""
    first = next((i for i in statistics.trace.lookup.steps(since) if statistics.trace.rows[i].kind == "seed"), 0)
    steps = statistics.trace.lookup.optimizer_steps
    between = ((i, statistics.trace.rows[i]) for i in steps[bisect_left(steps, first) : bisect_left(steps, index)])
    return {row.optimizer: i for i, row in between if row.optimizer is not None and row.pass_id >= since}


def _had_nonfinite_gradient(statistics: PassStatistics, row: TensorRow, since: int, step: int) -> bool:
    """Whether the last gradient of a parameter before ``step`` contains NaN or Inf and is not from before ``since``."""
    accumulations = (
        earlier
        for earlier in map(statistics.trace.rows.__getitem__, range(step - 1, -1, -1))
        if earlier.node == row.node
        and earlier.kind in ("accumulate", "post_accumulate_hook")
        and earlier.subject == "gradient"
    )
    last = next(accumulations, None)
    return last is not None and last.pass_id >= since and statistics.is_nonfinite(last.after)


def _describe_unrecorded(statistics: PassStatistics) -> str:
    """Describe what may have changed a parameter between two passes, apart from a step of an optimizer."""
    every = next((dict(note.arguments)["every"] for note in statistics.trace.remarks if note.key == "note.every"), None)
    if every is None:
        return say("trouble.parameter.more")
    return say("trouble.parameter.more.every", every=every)


def _is_known_finite(statistics: PassStatistics, index: int | None) -> bool:
    """Whether the numbers of a value are known and contain neither NaN nor Inf."""
    return index is not None and statistics.value(index).note is None and not statistics.is_nonfinite(index)


def _read_values(statistics: PassStatistics, indices: Any) -> list[Value]:
    """The values with these indices: a single index, a tuple of them, or None."""
    values = statistics.trace.value(indices)
    return [value for value in (values if isinstance(values, tuple) else (values,)) if value is not None]


def _outputs_of(statistics: PassStatistics, call: int) -> Iterator[Value]:
    """The values that the forward of a module call returned."""
    rows = (row for _, row in statistics.rows if row.kind == "forward" and row.call == call)
    yield from (value for row in rows for value in _read_values(statistics, row.after))


# -- ops and their inputs


class _CallOps:
    """The ops of one module call in the order of the forward, and the known numbers of their inputs."""

    def __init__(
        self, statistics: PassStatistics, call: int, nodes: list[int], inputs: list[Value], parameters: list[TensorRow]
    ) -> None:
        self.statistics, self.nodes = statistics, nodes
        self.dtype = next((value.dtype for value in _outputs_of(statistics, call)), "")
        self._saved = {(row.node, row.name): row for row in statistics.trace.saved if row.pass_id == statistics.pass_id}
        self._parameter_values = {(row.node, row.output): row.data for row in parameters if row.data is not None}
        inside = set(nodes)
        following = statistics.trace.lookup.next_nodes
        outgoing = ((node, slot) for node in nodes for slot, end in following.get(node, ()) if end not in inside)
        ends = {statistics.trace.edges[edge] for edge in outgoing}
        outside = ends - self._parameter_values.keys()
        has_one_input = len(outside) == 1 and len(inputs) == 1
        # A value that was made inside this call, by a module inside this one, is not its input.
        if has_one_input and call not in statistics.enclosing_calls(next(iter(outside))[0]):
            self._inputs = dict.fromkeys(outside, inputs[0])
        else:
            self._inputs = {}

    def op_name(self, node: int) -> str:
        """The name of the op: ``Log`` for a node ``LogBackward0``."""
        return self.statistics.trace.ops[node].partition("Backward")[0]

    def saved_number(self, node: int, name: str) -> float | None:
        """A number that the node saved, such as an exponent; None if it is a tensor or unknown."""
        row = self._saved.get((node, name))
        return row.plain if row is not None and isinstance(row.plain, int | float) else None

    def saved_tensor(self, node: int, name: str) -> Value | None:
        """The tensor that the node saved under ``name``; None if it is unknown."""
        row = self._saved.get((node, name))
        return self.statistics.value(row.value) if row is not None and isinstance(row.value, int) else None

    def input_value(self, node: int, slot: int, name: str) -> Value | None:
        """The forward input of a node in ``slot``, which the node may have saved under ``name``; None if unknown.

        If the node did not save it, it may be the result that the previous op saved, a parameter, or the input of the
        module, provided that the module has one input and its ops use nothing else from outside.
        """
        place = self.statistics.trace.edges.get((node, slot))
        value = self.saved_tensor(node, name)
        if value is None and place is not None:
            value = self.saved_tensor(place[0], "result") or self._inputs.get(place)
            if value is None and place in self._parameter_values:
                value = self.statistics.value(self._parameter_values[place])
        return value if value is not None and value.note is None else None


def _find_causes(ops: _CallOps) -> Iterator[Cause]:
    """Check every op of a module call, in the order of the forward."""
    for node in ops.nodes:
        check = _CHECKS.get(ops.op_name(node))
        if check is not None:
            yield from check(ops, node)


def _check_log(ops: _CallOps, node: int) -> Iterator[Cause]:
    value = ops.input_value(node, 0, "self")
    least = -1 if ops.op_name(node) == "Log1P" else 0
    if _minimum(value) < least:
        yield Cause("nan", say("trouble.cause.log", least=least, low=format_number(_minimum(value), 4)))
    if value is not None and (value.min == least or (least == 0 and value.zero)):
        yield Cause("inf", say("trouble.cause.log.one" if least else "trouble.cause.log.zero"))


def _check_root(ops: _CallOps, node: int) -> Iterator[Cause]:
    value = ops.input_value(node, 0, "self")
    if _minimum(value) < 0:
        yield Cause("nan", say("trouble.cause.root", low=format_number(_minimum(value), 4)))
    if value is not None and value.zero and ops.op_name(node) == "Rsqrt":
        yield Cause("inf", say("trouble.cause.division.zero"))


def _check_reciprocal(ops: _CallOps, node: int) -> Iterator[Cause]:
    value = ops.input_value(node, 0, "self")
    if value is not None and value.zero:
        yield Cause("inf", say("trouble.cause.division.zero"))


def _check_exponential(ops: _CallOps, node: int) -> Iterator[Cause]:
    result = ops.saved_tensor(node, "result")
    if result is not None and _holds_inf(result):
        limit = format_number(math.log(largest_number(result.dtype)), 3)
        yield Cause("inf", say("trouble.cause.exp", largest=limit, dtype=result.dtype))


def _check_division(ops: _CallOps, node: int) -> Iterator[Cause]:
    numerator, denominator = ops.input_value(node, 0, "self"), ops.input_value(node, 1, "other")
    for x, y in broadcast_pairs(numerator, denominator):
        if y == 0 or (math.isinf(x) and math.isinf(y)):
            is_nan = x == 0 or y != 0
            key = "infinite" if y else "zeros" if is_nan else "zero"
            yield Cause("nan" if is_nan else "inf", say(f"trouble.cause.division.{key}"), needs_inf=y != 0)
    if numerator is None and denominator is not None and denominator.zero == math.prod(denominator.shape):
        yield Cause("inf", say("trouble.cause.division.zero"))


def _check_product(ops: _CallOps, node: int) -> Iterator[Cause]:
    one, other = ops.input_value(node, 0, "self"), ops.input_value(node, 1, "other")
    for x, y in broadcast_pairs(one, other):
        if 0 in (x, y) and (math.isinf(x) or math.isinf(y)):
            yield Cause("nan", say("trouble.cause.product", infinite=_format_inf(x if x else y)), needs_inf=True)
        elif one is not None and other is not None and _overflows(x, y, one.dtype, other.dtype):
            limit = _format_largest(one.dtype)
            factors = {"x": format_number(x, 4), "y": format_number(y, 4)}
            yield Cause("inf", say("trouble.cause.product.large", largest=limit, dtype=one.dtype, **factors))


def _check_sum(ops: _CallOps, node: int) -> Iterator[Cause]:
    sign = -1 if ops.op_name(node) == "Sub" else 1
    for x, y in broadcast_pairs(ops.input_value(node, 0, "self"), ops.input_value(node, 1, "other")):
        if math.isinf(x) and x == -sign * y:
            text = say("trouble.cause.sum" if sign > 0 else "trouble.cause.difference", x=_format_inf(x))
            yield Cause("nan", text, needs_inf=True)


def _check_power(ops: _CallOps, node: int) -> Iterator[Cause]:
    base, exponent = ops.input_value(node, 0, "self"), ops.saved_number(node, "exponent")
    pairs = broadcast_pairs(base, ops.input_value(node, 1, "exponent"))
    if base is not None and exponent is not None:
        pairs = iter(((_minimum(base), exponent), *([(0.0, exponent)] if base.zero else [])))
    for x, y in pairs:
        if x < 0 and math.isfinite(y) and y != int(y):
            yield Cause("nan", say("trouble.cause.power", low=format_number(x, 4), exponent=format_number(y)))
        elif x == 0 and y < 0:
            yield Cause("inf", say("trouble.cause.power.zero", exponent=format_number(y)))


def _check_softmax(ops: _CallOps, node: int) -> Iterator[Cause]:
    value = ops.input_value(node, 0, "self")
    if value is None:
        return
    if value.max == -math.inf or any(max(row) == -math.inf for row in rows_along(value, ops.saved_number(node, "dim"))):
        yield Cause("nan", say("trouble.cause.softmax"), needs_inf=True)
    elif value.max == math.inf:
        yield Cause("nan", say("trouble.cause.softmax.inf"), needs_inf=True)


def _check_cast(ops: _CallOps, node: int) -> Iterator[Cause]:
    value = ops.input_value(node, 0, "self")
    magnitude = max(_maximum(value), -_minimum(value))
    if ops.nodes == [node] and math.isfinite(magnitude) and _exceeds(magnitude, ops.dtype):
        limit = _format_largest(ops.dtype)
        yield Cause("inf", say("trouble.cause.cast", largest=limit, dtype=ops.dtype, far=format_number(magnitude)))


_CHECKS: dict[str, Callable[[_CallOps, int], Iterator[Cause]]] = {
    **dict.fromkeys(("Log", "Log2", "Log10", "Log1P"), _check_log),
    **dict.fromkeys(("Sqrt", "Rsqrt"), _check_root),
    **dict.fromkeys(("Add", "Sub"), _check_sum),
    **dict.fromkeys(("Softmax", "LogSoftmax"), _check_softmax),
    "ToCopy": _check_cast,
    "Reciprocal": _check_reciprocal,
    "Exp": _check_exponential,
    "Div": _check_division,
    "Mul": _check_product,
    "Pow": _check_power,
}
"""Op → the check whether its inputs or its result show that it made NaN or Inf."""


def _format_largest(dtype: str) -> str:
    return f"{largest_number(dtype):,.6g}"


def _exceeds(x: float, *dtypes: str) -> bool:
    """Whether a number is too large for all of these dtypes, by more than rounding can explain."""
    return all(abs(x) > 1.001 * largest_number(dtype) for dtype in dtypes)


def _overflows(x: float, y: float, *dtypes: str) -> bool:
    """Whether the product of two finite numbers is too large for all of these dtypes."""
    return _exceeds(x * y, *dtypes) and math.isfinite(x) and math.isfinite(y)


def _format_inf(x: float) -> str:
    return "Inf" if x > 0 else "-Inf"


# -- numbers that grow too large


_LINEAR_LAYERS = {"Linear", "Conv1d", "Conv2d", "Conv3d"}
_LINEAR_OPS = {"Addmm", "Mm", "Convolution", "MkldnnConvolution"}
_LINEAR_OPS |= {"View", "UnsafeView", "T", "Transpose", "ToCopy", "Squeeze"}


def _is_overflow(
    statistics: PassStatistics, call: int, nodes: list[int], inputs: list[Value], parameters: list[TensorRow]
) -> bool:
    """Whether a linear layer has finite inputs and parameters, so that its sums of products must have overflowed."""
    is_layer = statistics.trace.modules[statistics.trace.calls[call].module].kind in _LINEAR_LAYERS
    only_linear = {statistics.trace.ops[node].partition("Backward")[0] for node in nodes} <= _LINEAR_OPS
    has_weight = any(row.name.endswith(".weight") for row in parameters)
    is_finite = all(_is_known_finite(statistics, row.data) for row in parameters) and not any(map(_holds_inf, inputs))
    return is_layer and only_linear and has_weight and bool(inputs) and is_finite


def _describe_overflow(dtype: str) -> str:
    return say("trouble.cause.overflow", largest=_format_largest(dtype), dtype=dtype)
