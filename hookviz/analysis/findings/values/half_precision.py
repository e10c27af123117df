"""Say where float16 has too few numbers: gradients that become 0 in it, and what becomes Inf, with the remedy."""

import math
from typing import Any

from hookviz.analysis.findings.values.pass_statistics import PassFinding, PassStatistics
from hookviz.analysis.findings.values.torchless_numbers import largest_number
from hookviz.support.messages import N_, _
from hookviz.trace import FORWARD_HOOK_KINDS
from hookviz.trace.values import Value, as_tuple, format_number

_HALF = "float16"
_SMALLEST = 2.0**-24
"""The smallest number of float16 that is not 0."""
_NEAR = 100
"""A gradient whose largest number is below so many times the smallest one becomes 0 in a product with ordinary weights.
"""
_CAST = "ToCopy"
_SHRINKING_OPS = {
    "Addmm", "Bmm", "Mm", "Convolution", "MkldnnConvolution", "Div", "Mean", "Gelu", "Silu", "Sigmoid", "Tanh",
    "Softmax", "LogSoftmax", "NativeLayerNorm", "NativeGroupNorm", "NativeBatchNorm", _CAST,
}  # fmt: skip
"""Ops that send 0 for a gradient that is not 0 only if the product is too small, or if they multiply by zeros."""
ENLARGE = N_("Use a GradScaler, which makes the gradients larger, or bfloat16.")
"""What to do about gradients that are too small."""
_IN_FORWARD = N_(
    "float16 ends at {largest}: compute this in bfloat16 or float32, whose numbers reach 3.4e+38, or keep the numbers "
    "smaller."
)
_IN_BACKWARD = N_(
    "float16 ends at {largest}, and no GradScaler watches this pass: use one, which skips such steps and lowers its "
    "scale, or use bfloat16."
)

_FIXED_SCALE = N_(
    "The loss is multiplied by {scale} before backward, and float16 ends at {largest}: a fixed scale can be too large "
    "for some steps. Use a GradScaler, which skips such steps and lowers its scale, or use bfloat16."
)
_LEAST_SCALE = 16
"""A smaller factor of a loss is no scale against underflow."""


def advise_on_overflow(statistics: PassStatistics, finding: PassFinding) -> str:
    """Return what to do about Inf that began in float16; empty for another dtype."""
    row = statistics.trace.rows[finding.step]
    pass_id = statistics.pass_id
    roots = statistics.trace.roots[pass_id] if pass_id < len(statistics.trace.roots) else []
    data = [one.data for one in statistics.tensors if (one.node, one.output) in roots]
    is_forward = row.kind in ("call", "forward", *FORWARD_HOOK_KINDS) or statistics.is_nonfinite(tuple(data))
    values = [*as_tuple(row.after), *(data if is_forward else ())]
    spoiled = [statistics.value(index) for index in values if index is not None and statistics.is_nonfinite(index)]
    is_half = finding.kind == "inf" and bool(spoiled) and all(value.dtype == _HALF for value in spoiled)
    if not is_half or (statistics.scales and not is_forward):
        return ""
    largest = f"{largest_number(_HALF):,.0f}"
    scale = None if is_forward else _find_scale(statistics)
    if scale is not None:
        return _(_FIXED_SCALE).format(largest=largest, scale=format_number(scale))
    text = _IN_FORWARD if is_forward else _IN_BACKWARD
    return _(text).format(largest=largest)


def _find_scale(statistics: PassStatistics) -> float | None:
    """Return the large number by which the program multiplies the loss, as a GradScaler would; None if it does not."""
    roots = statistics.trace.roots[statistics.pass_id] if statistics.pass_id < len(statistics.trace.roots) else []
    products = [node for node, _output in roots if statistics.trace.ops[node].startswith("MulBackward")]
    rows = (row for node in products for row in statistics.trace.lookup.saved(statistics.pass_id, node))
    values = (statistics.value(row.value) for row in rows if row.name == "other" and isinstance(row.value, int))
    numbers = (value.tolist() for value in values if value.shape == ())
    return next((float(number) for number in numbers if number >= _LEAST_SCALE), None)


def describe_underflow(statistics: PassStatistics, step: int) -> str:
    """Return the sentence on a gradient in float16 that became 0 at a step because it was too small; else empty."""
    row = statistics.trace.rows[step]
    op = statistics.trace.ops[row.own_node].partition("Backward")[0] if row.kind == "compute" else ""
    if op not in _SHRINKING_OPS:
        return ""
    before, after = (_read_all(statistics, values) for values in (row.before, row.after))
    if not before or any(value.dtype != _HALF for value in (*after, *(before if op != _CAST else ()))):
        return ""
    largest = max(map(_measure_largest, before))
    if not 0 < largest < (_SMALLEST if op == _CAST else _NEAR * _SMALLEST):
        return ""
    text = _(
        "These numbers are too small for float16: the largest one that arrives is {largest}, and what is below "
        "{smallest} becomes 0."
    )
    return text.format(largest=format_number(largest, 3), smallest=format_number(_SMALLEST, 2))


def _measure_largest(value: Value) -> float:
    """Return the largest absolute number of a value; NaN if it is not known."""
    return math.nan if value.min is None or value.max is None else max(abs(value.min), abs(value.max))


def _read_all(statistics: PassStatistics, values: Any) -> list[Value]:
    """List the values of a step that are there."""
    indexes = as_tuple(values)
    return [statistics.value(index) for index in indexes if index is not None]
