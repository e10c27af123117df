"""Find the step that turns a gradient into zeros, and the leaves that get a zero gradient because of it."""

from typing import Any

from hookviz.analysis.findings.values.half_precision import ENLARGE, describe_underflow
from hookviz.analysis.findings.values.nonfinite import describe_saved
from hookviz.analysis.findings.values.pass_statistics import CHANGING_KINDS, PassFinding, PassStatistics
from hookviz.analysis.findings.values.zero_causes import (
    CANCELLED,
    advise_on_zeros,
    cancels,
    describe_cancellation,
    describe_zero_factors,
    explain_zeros,
    list_zero_parameters,
)
from hookviz.support.messages import _, join_first, join_list, join_sentences
from hookviz.trace import StepRow
from hookviz.trace.sentences import format_values
from hookviz.trace.values import as_tuple


def find_zeros(statistics: PassStatistics) -> PassFinding | None:
    """Find the step that turns a gradient into zeros and gives the most leaves a gradient of 0.

    The finding is a warning if an op of ``_FLAT_OPS`` affects at least half of the leaves, or any op all of several
    leaves; not if it is an op of the loss, such as that of a margin which each example has, or multiplies by the number
    0, as a term of a loss that does not count yet. It is one, too, if a hook edits a gradient in place and sets another
    one in the same memory to 0. Else it is a remark.
    """
    culprits: dict[int, int] = {}
    """Node → the step that made the gradient which arrives there 0."""
    zero_leaves: dict[int, list[int]] = {}
    """Step that made a gradient 0 → the leaves that get a gradient of 0 because of it."""
    leaves: set[int] = set()
    for index, row in statistics.rows:
        if row.subject == "gradient" and row.kind in ("compute", *CHANGING_KINDS):
            if row.kind in _SENDING_KINDS:
                targets = _targets_of_zeros(statistics, row)
            else:
                targets = [row.own_node] if _has_zero_norm(statistics, row.after) else []
            is_known = bool(statistics.norms(row.before))
            if not targets and row.kind in CHANGING_KINDS and row.kind not in _SENDING_KINDS:
                culprits.pop(row.own_node, None)  # a hook makes something else of the zeros
            culprit = culprits.get(row.own_node) if targets and _has_zero_norm(statistics, row.before) else index
            is_new = bool(targets) and culprit == index and row.kind == "compute"
            if is_new and _sends_rightful_zeros(statistics.trace.ops[row.own_node]):
                continue
            if culprit is not None and (is_known or culprit != index):
                culprits |= {target: culprit for target in targets if target not in culprits}
        elif row.kind == "aliased" and row.cause is not None and _has_zero_norm(statistics, row.after):
            culprits.setdefault(row.own_node, row.cause)
        elif row.kind == "arrive" and len(row.parts) > 1 and cancels(statistics, row):
            culprits[row.own_node] = index
        elif culprits and row.kind == "arrive" and not _has_zero_norm(statistics, row.after):
            culprits.pop(row.own_node, None)  # a gradient arrives on another path, too
        elif row.kind in ("accumulate", "returned"):
            leaves.add(row.own_node)
            if row.own_node in culprits:
                zero_leaves.setdefault(culprits[row.own_node], []).append(row.own_node)
    if not zero_leaves:
        return None
    first = max(zero_leaves, key=lambda step: (len(zero_leaves[step]), -step))
    affected = list(dict.fromkeys(zero_leaves[first]))
    if statistics.trace.rows[first].kind == "arrive":
        return _make_cancelled(statistics, first, zero_leaves, leaves)
    sentence = _describe_zeros(statistics, first, affected)
    row = statistics.trace.rows[first]
    zeros = tuple(list_zero_parameters(statistics, row.own_node)) if row.kind == "compute" else ()
    underflow = describe_underflow(statistics, first)
    severity = _rate(statistics, first, len(affected), len(leaves))
    if underflow and statistics.trace.updates and not statistics.scales:
        severity = "warning"
    nodes = (row.own_node,) if row.kind == "compute" else ()
    advice = _(ENLARGE) if underflow and not statistics.scales else ""
    advice = advice or (advise_on_zeros(statistics, row.own_node) if nodes else "")
    sentence = join_sentences([sentence, underflow])
    everything = {leaf for affected in zero_leaves.values() for leaf in affected}
    stuck = frozenset(affected if nodes else everything if everything == leaves else ())
    finding = PassFinding(first, "zero", sentence, severity, zeros=zeros, nodes=nodes, advice=advice, leaves=stuck)
    is_reached = bool(nodes) and statistics.is_in_loss(row.own_node) and not _is_times_zero(statistics, row.own_node)
    return finding._replace(
        effects=_list_effects(zero_leaves),
        is_reached=is_reached and statistics.trace.losses.get(statistics.pass_id) == 0,
    )


def _make_cancelled(
    statistics: PassStatistics, first: int, zero_leaves: dict[int, list[int]], leaves: set[int]
) -> PassFinding:
    """The finding of gradients that cancel: a warning if no leaf gets anything else."""
    affected = list(dict.fromkeys(zero_leaves[first]))
    cancelled = describe_cancellation(statistics, first)
    behind = _describe_leaves(statistics, affected)
    severity = "warning" if len(affected) == len(leaves) > 1 else "remark"
    sentence = join_sentences([cancelled.sentence, behind])
    finding = PassFinding(first, "zero", sentence, severity, nodes=cancelled.nodes, advice=_(CANCELLED))
    return finding._replace(leaves=frozenset(affected), effects=_list_effects(zero_leaves))


def _list_effects(zero_leaves: dict[int, list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((step, leaf) for step, behind in zero_leaves.items() for leaf in behind)


def _rate(statistics: PassStatistics, step: int, affected: int, leaves: int) -> str:
    """Rate a step that gives ``affected`` of all ``leaves`` a gradient of 0."""
    row = statistics.trace.rows[step]
    if row.kind != "compute":
        return "warning" if _list_shared(statistics, step) else "remark"
    if statistics.is_in_loss(row.own_node) or _is_times_zero(statistics, row.own_node):
        return "remark"
    op, _ignored, more = statistics.trace.ops[row.own_node].partition("Backward")
    is_flat = op in _FLAT_OPS and "Backward" not in more  # the second derivative of ReLU is 0 everywhere
    is_everywhere = affected == leaves > 1
    return "warning" if is_everywhere or (is_flat and 2 * affected >= leaves) else "remark"


def _is_times_zero(statistics: PassStatistics, node: int) -> bool:
    """Whether an op multiplies by the plain number 0."""
    if not statistics.trace.ops[node].startswith("MulBackward"):
        return False
    rows = statistics.trace.lookup.saved(statistics.pass_id, node)
    values = (statistics.value(row.value) for row in rows if isinstance(row.value, int))
    return any(value.shape == () and value.min == value.max == 0 for value in values)


def _list_shared(statistics: PassStatistics, step: int) -> list[int]:
    """The nodes whose gradients became 0 because a hook, at ``step``, edited another one in the same memory."""
    rows = (row for _ignored, row in statistics.rows if row.kind == "aliased" and row.cause == step)
    return [row.own_node for row in rows if _has_zero_norm(statistics, row.after)]


# fmt: off
_FLAT_OPS = {
    "Relu", "Threshold", "LeakyRelu", "Prelu", "Elu", "Celu", "Selu", "Gelu", "Silu", "Mish", "Softplus",
    "Softshrink", "Hardshrink", "Hardtanh", "Hardswish", "Hardsigmoid", "Sigmoid", "LogSigmoid", "Tanh", "Clamp",
    "ClampMin", "ClampMax", "Softmax", "LogSoftmax", "NativeLayerNorm", "NativeGroupNorm", "NativeBatchNorm",
    "FusedRmsNorm", "Floor", "Ceil", "Round", "Trunc", "Sign",
}
# fmt: on
"""Ops that send zeros where their function is constant: a saturated or dead activation, a norm whose output does not
change the loss. Other ops send zeros because they multiply by zeros, such as a mask or a weight that starts at 0; that
may be intended, as in stochastic depth, which leaves out whole blocks."""


def _sends_rightful_zeros(op: str) -> bool:
    """Whether the zeros that a node sends say nothing of a trouble there.

    ``cat`` and ``stack`` send each input its part, which was 0 before: where it became so is not known. The second
    derivative of a ReLU, or of a leaky one, is 0 everywhere, as in each gradient penalty.
    """
    return op in ("CatBackward0", "StackBackward0") or op.endswith("BackwardBackward0")


_SENDING_KINDS = ("compute", "node_post_hook", "full_backward_hook", "backward_hook")
"""The kinds of step that hold the gradients that a node sends."""


def _targets_of_zeros(statistics: PassStatistics, row: StepRow) -> list[int]:
    """The nodes to which a node sends zeros."""
    slots = (slot for slot, value in enumerate(as_tuple(row.after)) if _has_zero_norm(statistics, value))
    places = (statistics.trace.edges.get((row.own_node, slot)) for slot in slots)
    return [place[0] for place in places if place is not None]


def _list_emptied(statistics: PassStatistics, index: int) -> list[int]:
    """List the nodes to which a node sends a gradient of 0, if it sends another one to others."""
    row = statistics.trace.rows[index]
    return _targets_of_zeros(statistics, row) if any(statistics.norms(row.after)) else []


def _has_zero_norm(statistics: PassStatistics, values: Any) -> bool:
    """Whether the norms of values are known and all 0."""
    norms = statistics.norms(values)
    return bool(norms) and not any(norms)


def _describe_leaves(statistics: PassStatistics, leaves: list[int]) -> str:
    """Say which leaves get a gradient of 0."""
    names = [statistics.trace.name(leaf, 0) for leaf in leaves]
    return _("Beyond it, a gradient of 0 goes to {on}.").format(on=join_first(names))


def _describe_zeros(statistics: PassStatistics, index: int, leaves: list[int]) -> str:
    """The sentence on a step that makes a gradient 0, and on the leaves behind it."""
    step, behind = statistics.trace.steps[index], _describe_leaves(statistics, leaves)
    if step.kind != "compute":
        here = _("The gradient becomes 0 here: {sentence} {behind}").format(sentence=step.sentence, behind=behind)
        shared = [statistics.describe_node(node) for node in _list_shared(statistics, index)]
        text = _(
            "The edit in place also set to 0 what shares the memory: the gradient of {on}. Return a new tensor from "
            "the hook instead."
        )
        return join_sentences([here, *([text.format(on=join_list(shared))] if shared else [])])
    node = step.row.own_node
    names = {"on": statistics.describe_node(node), "before": format_values(step.before), "behind": behind}
    sentence = _("The gradient becomes 0 at {on}: it takes {before} and sends zeros on. {behind}").format(**names)
    emptied = _list_emptied(statistics, index)
    if emptied:
        text = _("The gradient becomes 0 at {on}: it takes {before} and sends zeros to {to}. {behind}")
        sentence = text.format(to=join_list([statistics.describe_node(one) for one in emptied]), **names)
    causes = [*describe_zero_factors(statistics, node), *explain_zeros(statistics, node)]
    saved = describe_saved(statistics, node, lambda index: _has_zero_norm(statistics, index))
    return join_sentences([sentence, *(causes or saved)])
