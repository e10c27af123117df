"""What is known of the tensors of a forward: those with names, the leaves, and what the nodes saved."""

from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.trace import NodeOutput
from hookviz.trace.values import Value

_BINARY_OPS = ("Mul", "Div", "Add", "Sub")
_UNARY_OPS = (
    "Log", "Log2", "Log10", "Log1P", "Abs", "Sin", "Cos", "Pow", "Gelu", "Silu", "Elu", "Softplus", "LogSigmoid",
    "Clamp", "ClampMin", "ClampMax",
)  # fmt: skip
"""The ops that save their input as ``self``."""
_SAVED_INPUTS = {
    **{(op, "self"): 0 for op in (*_UNARY_OPS, *_BINARY_OPS, "Mm", "Bmm", "MseLoss", "BinaryCrossEntropy")},
    **{(op, "other"): 1 for op in _BINARY_OPS},
    **{(op, "mat2"): 1 for op in ("Mm", "Bmm")},
    **{(op, "input"): 0 for op in ("Convolution", "NativeLayerNorm", "NativeGroupNorm", "NativeBatchNorm")},
    ("Addmm", "mat1"): 1,
    ("Addmm", "mat2"): 2,
}
"""Op and name of a tensor that it saves → the slot of the input that this is."""


def collect_known_tensors(statistics: PassStatistics, nodes: list[int]) -> dict[NodeOutput, Value]:
    """Place → the value of its tensor in the forward: a named tensor, a leaf, or what a node saved."""
    known: dict[NodeOutput, Value] = {}
    inside, edges, trace = set(nodes), statistics.trace.edges, statistics.trace
    for row in trace.saved:
        if row.pass_id != statistics.pass_id or row.node not in inside or not isinstance(row.value, int):
            continue
        op = trace.ops[row.node].partition("Backward")[0]
        place = (row.node, 0) if row.name == "result" else None
        slot = _SAVED_INPUTS.get((op, row.name))
        if slot is not None:
            place = edges.get((row.node, slot))
        if place is not None:
            known.setdefault(place, statistics.value(row.value))
    named = {(row.node, row.output): statistics.value(row.data) for row in statistics.tensors if row.data is not None}
    return {place: value for place, value in (known | named).items() if value.note is None}
