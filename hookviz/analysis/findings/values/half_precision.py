"""Say where float16 has too few numbers: gradients that become 0 in it, and what becomes Inf, with the remedy."""

import math

from hookviz.analysis.findings.ops import INFINITE_AT_0, PRODUCTS, VIEWS, get_op
from hookviz.analysis.findings.values.op_causes import ForwardOps, largest
from hookviz.analysis.findings.values.pass_statistics import FORWARD_KINDS, PassFinding, PassStatistics
from hookviz.analysis.findings.values.suspects import collect_known_tensors, read_forward
from hookviz.analysis.findings.values.torchless_numbers import largest_number
from hookviz.support.messages import N_, _
from hookviz.trace.values import as_tuple, format_number, get_norm_nan_inf

_HALF = "float16"
_SMALLEST = 2.0**-24
"""The smallest number of float16 that is not 0."""
_NEAR = 100
"""A gradient whose largest number is below so many times the smallest one becomes 0 in a product with ordinary weights.
"""
_ROUNDING = 0.01
"""Norms that differ by less than this part may be equal but for rounding."""
_CAST = "ToCopy"
_SHRINKING_OPS = {
    "Addmm", "Bmm", "Mm", "Convolution", "MkldnnConvolution", "Div", "Mean", "Gelu", "Silu", "Sigmoid", "Tanh",
    "Softmax", "LogSoftmax", "NativeLayerNorm", "NativeGroupNorm", "NativeBatchNorm", _CAST,
}  # fmt: skip
"""Ops that send 0 for a gradient that is not 0 only if the product is too small, or if they multiply by zeros."""
ENLARGE = N_("Use a GradScaler, which makes the gradients larger, or bfloat16.")
"""What to do about gradients that are too small."""
_STEEP_AT_0 = (*INFINITE_AT_0, "Div", "Sqrt")
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
    data = [one.data for one in statistics.root_tensors]
    is_forward = row.kind in FORWARD_KINDS or statistics.is_nonfinite(tuple(data))
    values = [*as_tuple(row.after), *(data if is_forward else ())]
    spoiled = [statistics.value(index) for index in values if statistics.is_nonfinite(index)]
    is_half = finding.kind == "inf" and bool(spoiled) and all(value.dtype == _HALF for value in spoiled)
    if not is_half or _is_at_zero(statistics, finding.nodes) or (statistics.scales and not is_forward):
        return ""
    limit = f"{largest_number(_HALF):,.0f}"
    scale = None if is_forward else _find_scale(statistics)
    if scale is not None:
        return _(_FIXED_SCALE).format(largest=limit, scale=format_number(scale))
    text = _IN_FORWARD if is_forward else _IN_BACKWARD
    return _(text).format(largest=limit)


def _is_at_zero(statistics: PassStatistics, nodes: tuple[int, ...]) -> bool:
    """Whether an op, or its slope, is infinite at an input of 0, in each dtype, and its input is 0 or not known."""
    ops = read_forward(statistics)
    for node in nodes:
        slot, name = (1, "other") if ops.op_name(node) == "Div" else (0, "self")
        exponent = statistics.saved_number(node, "exponent")
        is_infinite = ops.op_name(node) in _STEEP_AT_0 or (exponent is not None and exponent < 1)
        value = ops.input_value(node, slot, name) if is_infinite else None
        if is_infinite and (value is None or value.zero is None or value.zero):
            return True
    return False


def _find_scale(statistics: PassStatistics) -> float | None:
    """Return the large number by which the program multiplies the loss, as a GradScaler would; None if it does not."""
    products = [node for node, _output in statistics.roots if get_op(statistics.trace, node) == "Mul"]
    factors = (statistics.saved_tensor(node, "other") for node in products)
    numbers = (factor.tolist() for factor in factors if factor is not None and factor.shape == ())
    return next((float(number) for number in numbers if number >= _LEAST_SCALE), None)


def describe_underflow(statistics: PassStatistics, step: int) -> str:
    """Return the sentence on a gradient in float16 that became 0 at a step because it was too small; else empty."""
    row = statistics.trace.rows[step]
    op = get_op(statistics.trace, row.own_node) if row.kind == "compute" else ""
    if op not in _SHRINKING_OPS:
        return ""
    before, after = map(statistics.values, (row.before, row.after))
    if not before or any(value.dtype != _HALF for value in (*after, *(before if op != _CAST else ()))):
        return ""
    most = max(map(largest, before))
    if not 0 < most < (_SMALLEST if op == _CAST else _NEAR * _SMALLEST):
        return ""
    if op in PRODUCTS and not _has_factors(statistics, row.own_node):
        return ""
    text = _(
        "These numbers are too small for float16: the largest one that arrives is {largest}, and what is below "
        "{smallest} becomes 0."
    )
    return text.format(largest=format_number(most, 3), smallest=format_number(_SMALLEST, 2))


def _has_factors(statistics: PassStatistics, node: int) -> bool:
    """Whether the factors by which a product multiplies a gradient that it sends as 0 are known not to be all 0."""
    ops = ForwardOps(statistics, [node], collect_known_tensors(statistics, [node]))
    one, other = PRODUCTS[ops.op_name(node)]
    sent = statistics.sent(node)
    factors = [
        factor
        for (slot, _name), factor in ((one, other), (other, one))
        if slot < len(sent) and (index := sent[slot]) is not None and statistics.norm(index) == 0
    ]
    values = [ops.input_value(node, slot, name) for slot, name in factors]
    return all(value is not None and bool(get_norm_nan_inf(value.row)[0]) for value in values) or (
        None in values and _shows_factors(statistics, node)
    )


def _shows_factors(statistics: PassStatistics, node: int) -> bool:
    """Whether what the layer of a product returned is more than its bias, so that its weight is not 0."""
    trace, call = statistics.trace, statistics.trace.owners.get(node)
    made = None if call is None else statistics.find_only("forward", call)
    own = [] if call is None else trace.lookup.nodes_by_call.get(call, ())
    ops = {get_op(trace, one) for one in own if one != node}
    norm = None if made is None or ops - {*VIEWS, "AccumulateGrad"} else statistics.norm(made)
    leaf = trace.edges.get((node, 0)) if trace.ops[node].startswith("Addmm") else None
    bias = None if leaf is None else next((row.data for row in statistics.tensors_of(leaf[0])), None)
    if made is None or norm is None or (bias is None and trace.ops[node].startswith("Addmm")):
        return False
    rows = math.prod(trace.values[made][0][:-1])
    own_norm = 0.0 if bias is None else (statistics.norm(bias) or 0.0) * math.sqrt(rows)
    return abs(norm - own_norm) > _ROUNDING * norm
