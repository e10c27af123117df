"""Find the ops that may have made NaN or Inf, where the recorded numbers do not show which one did."""

from typing import NamedTuple

from hookviz.analysis.findings.finding import name_of_kind
from hookviz.analysis.findings.ops import LOGARITHMS, MASKS, PRODUCTS, get_op
from hookviz.analysis.findings.values.op_causes import ForwardOps, OpCause, explain_by_statistics
from hookviz.analysis.findings.values.pass_statistics import PassStatistics
from hookviz.support.messages import _, join_list
from hookviz.trace import NodeOutput
from hookviz.trace.values import Value

_SUSPECTS = (
    "Log", "Log2", "Log10", "Log1P", "Sqrt", "Rsqrt", "Div", "Reciprocal", "Pow", "Softmax", "LogSoftmax", "Acos",
    "Asin", "Std", "Var", "NllLoss",
)  # fmt: skip
"""The ops that make NaN or Inf of ordinary numbers, such as 0."""
MAX_SUSPECTS = 3
"""A sentence names at most so many ops."""
_DECIDING = {
    **dict.fromkeys(("Log", "Log2", "Log10", "Log1P", "Sqrt", "Rsqrt", "Reciprocal"), ((0, "self"),)),
    "Div": ((0, "self"), (1, "other")),
}
"""Op → the inputs, slot and name under which it saves them, whose statistics tell whether it can make NaN or Inf."""
_BINARY_OPS = ("Mul", "Div", "Add", "Sub")
_UNARY_OPS = (
    "Log", "Log2", "Log10", "Log1P", "Abs", "Sin", "Cos", "Pow", "Gelu", "Silu", "Elu", "Softplus", "LogSigmoid",
    "Clamp", "ClampMin", "ClampMax",
)  # fmt: skip
"""The ops that save their input as ``self``."""
_LOSSES = ("MseLoss", "SmoothL1Loss", "HuberLoss", "BinaryCrossEntropy", "BinaryCrossEntropyWithLogits")
SAVED_INPUTS = {
    **{(op, name): slot for op, factors in PRODUCTS.items() for slot, name in factors},
    **{(op, "self"): 0 for op in (*_UNARY_OPS, *_BINARY_OPS, "Dot", "Mv", *_LOSSES)},
    **{(op, "other"): 1 for op in _BINARY_OPS},
    **{(op, "input"): 0 for op in ("Convolution", "NativeLayerNorm", "NativeGroupNorm", "NativeBatchNorm")},
    **{(op, "target"): 1 for op in _LOSSES},
    ("Dot", "tensor"): 1,
    ("Mv", "vec"): 1,
}
"""Op and name of a tensor that it saves → the slot of the input that this is."""


class Suspects(NamedTuple):
    """The ops that may have made NaN or Inf, as far as it is known."""

    sentences: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    """The node, if it is a single one, and that of the Inf that it needs."""
    are_explained: bool = False
    """Whether the statistics of its inputs tell how it made it."""


def find_suspects(statistics: PassStatistics, call: int | None, until: int, kind: str) -> Suspects:
    """Find the ops of a call, or outside of all, before a node that can have made NaN or Inf.

    It is not known what they made; of a single one the statistics of its inputs may tell how.
    """
    ops = read_forward(statistics)
    own = [node for node in ops.nodes if node < until and statistics.trace.owners.get(node) == call]
    found = [node for node in own if _is_suspect(ops, node, kind)]
    nodes = [node for node in found if kind != "nan" or not _gives_only_inf(ops, node)]
    if not nodes:
        return _find_inf_before(ops, found)
    cause = explain_by_statistics(ops, nodes[0], kind) if len(nodes) == 1 else None
    if cause is None:
        names = join_list([statistics.describe_node(node) for node in nodes[:MAX_SUSPECTS]])
        text = _("What these made was not kept, and it can be {what}: {ops}.")
        return Suspects((text.format(what=name_of_kind(kind), ops=names),), tuple(nodes) if len(nodes) == 1 else ())
    text = _("As far as the statistics of its inputs tell, {op} {cause}.")
    sentence = text.format(op=statistics.describe_node(nodes[0]), cause=cause.text)
    origin = find_inf(ops, nodes[0], cause)
    if origin is None:
        return Suspects((sentence,), (nodes[0],), are_explained=True)
    return Suspects((sentence, describe_inf(statistics, *origin)), (nodes[0], origin[0]), are_explained=True)


def _is_suspect(ops: ForwardOps, node: int, kind: str) -> bool:
    """Whether an op can have made ``kind``: its result is not known, and its inputs do not speak against it."""
    name = ops.op_name(node)
    if ops.knows(node) or ops.is_masked(node):
        return False
    if explain_by_statistics(ops, node, kind) is not None:
        return True
    if name not in _SUSPECTS:
        return kind == "inf" and name in MASKS
    values = [ops.input_value(node, slot, saved) for slot, saved in _DECIDING.get(name, ())]
    is_known = bool(values) and all(value is not None and value.min is not None for value in values)
    return not is_known or ops.find_cause(kind, [node]) is not None


def _gives_only_inf(ops: ForwardOps, node: int) -> bool:
    """Whether an op is a logarithm of numbers none of which is negative or NaN: of 0 it gives -Inf."""
    value = ops.input_value(node, 0, "self") if ops.op_name(node) in LOGARITHMS else None
    return value is not None and value.min is not None and value.min >= 0 and not value.nan


def _find_inf_before(ops: ForwardOps, nodes: list[int]) -> Suspects:
    """Name the op that made the Inf of which NaN may have come, if the recorded numbers show it."""
    found = ops.find_cause("inf", nodes)
    if found is None:
        return Suspects()
    node, cause = found
    text = _("Inf begins at {on}: it {cause}. 0 * Inf, or Inf - Inf, is NaN.")
    return Suspects((text.format(on=ops.statistics.describe_node(node), cause=cause.text),), (node,))


def find_inf(ops: ForwardOps, node: int, cause: OpCause | None) -> tuple[int, OpCause] | None:
    """Return the op that made the Inf that the cause at a node needs, if one on a path to it is known."""
    if cause is None or not cause.needs_inf:
        return None
    return ops.find_cause("inf", ops.statistics.list_behind(node))


def describe_inf(statistics: PassStatistics, node: int, cause: OpCause) -> str:
    """Say at which op the Inf began that NaN needed."""
    text = _("The Inf begins at {on}, which {cause}.")
    return text.format(on=statistics.describe_node(node), cause=cause.text)


def read_forward(statistics: PassStatistics) -> ForwardOps:
    """The ops of the forward of a pass, with the tensors that are known."""
    nodes = sorted(node for node in statistics.compute_steps if statistics.trace.ops[node] != "AccumulateGrad")
    return ForwardOps(statistics, nodes, collect_known_tensors(statistics, nodes))


def collect_known_tensors(statistics: PassStatistics, nodes: list[int]) -> dict[NodeOutput, Value]:
    """Place → the value of its tensor in the forward: a named tensor, a leaf, or what a node saved."""
    known: dict[NodeOutput, Value] = {}
    inside, edges, trace = set(nodes), statistics.trace.edges, statistics.trace
    for row in trace.saved:
        if row.pass_id != statistics.pass_id or row.node not in inside or not isinstance(row.value, int):
            continue
        op = get_op(trace, row.node)
        place = (row.node, 0) if row.name == "result" else None
        slot = SAVED_INPUTS.get((op, row.name))
        if slot is not None:
            place = edges.get((row.node, slot))
        if place is not None:
            known.setdefault(place, statistics.value(row.value))
    named = {(row.node, row.output): statistics.value(row.data) for row in statistics.tensors if row.data is not None}
    return {place: value for place, value in (known | named).items() if value.note is None}
