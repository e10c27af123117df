"""Where a gradient becomes 0, so that what lies behind gets none."""

from typing import Any

from hookviz.analysis.findings.nonfinite import saved
from hookviz.analysis.findings.pass_statistics import CHANGING, Finding, PassStatistics
from hookviz.support.messages import join, say
from hookviz.trace import StepRow
from hookviz.trace.sentences import format_values


def zeros(of: PassStatistics) -> Finding | None:
    """The step that turns a gradient into zeros and by that leaves the most leaves with a gradient of 0.

    A warning, where an op that is flat does it to at least half of the leaves; else a remark (see ``_FLAT``).
    """
    culprits: dict[int, int] = {}
    """Node → the step at which what arrives there became 0."""
    killed: dict[int, list[int]] = {}
    leaves: set[int] = set()
    for index, row in of.rows:
        if row.subject == "gradient" and row.kind in ("compute", *CHANGING):
            ends = _numbed(of, row) if row.kind in _SENDING else [row.node] * _zero(of, row.after)
            culprit = culprits.get(row.node) if ends and _zero(of, row.before) else index
            if culprit is not None:
                culprits |= {end: culprit for end in ends if end not in culprits}
        elif culprits and row.kind == "arrive" and not _zero(of, row.after):
            culprits.pop(row.node, None)  # it comes by another way, too
        elif row.kind in ("accumulate", "returned"):
            leaves.add(row.node)
            if row.node in culprits:
                killed.setdefault(culprits[row.node], []).append(row.node)
    if not killed:
        return None
    first = max(killed, key=lambda step: (len(killed[step]), -step))
    behind = list(dict.fromkeys(killed[first]))
    row = of.trace.rows[first]
    flat = row.kind == "compute" and of.trace.ops[row.node].partition("Backward")[0] in _FLAT
    severity = "warning" if flat and 2 * len(behind) >= len(leaves) else "remark"
    return Finding(first, "zero", _told(of, first, behind), severity)


# fmt: off
_FLAT = {
    "Relu", "Threshold", "LeakyRelu", "Prelu", "Elu", "Celu", "Selu", "Gelu", "Silu", "Mish", "Softplus",
    "Softshrink", "Hardshrink", "Hardtanh", "Hardswish", "Hardsigmoid", "Sigmoid", "LogSigmoid", "Tanh", "Clamp",
    "ClampMin", "ClampMax", "Softmax", "LogSoftmax", "NativeLayerNorm", "NativeGroupNorm", "NativeBatchNorm",
    "FusedRmsNorm", "Floor", "Ceil", "Round", "Trunc", "Sign",
}
# fmt: on
"""Ops that send zeros where their function does not change: an activation that is saturated or dead, a norm whose
output does not change the loss. Other ops multiply by zeros, by a mask, by a weight that starts at 0; that may be
meant, as where stochastic depth leaves out a block."""

_SENDING = ("compute", "node_post_hook", "full_backward_hook", "backward_hook")
"""Steps about what a node sends."""


def _numbed(of: PassStatistics, row: StepRow) -> list[int]:
    """Where a node sends zeros, whatever it sends elsewhere."""
    if not isinstance(row.after, tuple):
        return of.ends(row.node) if _zero(of, row.after) else []
    places = (of.trace.edges.get((row.node, slot)) for slot, value in enumerate(row.after) if _zero(of, value))
    return [place[0] for place in places if place is not None]


def _zero(of: PassStatistics, kept: Any) -> bool:
    norms = of.norms(kept)
    return bool(norms) and not any(norms)


def _told(of: PassStatistics, index: int, leaves: list[int]) -> str:
    step, count = of.trace.steps[index], len(leaves)
    first = of.trace.name(leaves[0], 0)
    behind = say("trouble.behind" if count == 1 else "trouble.behind.many", on=first, count=f"{count - 1:,}")
    if step.kind != "compute":
        return say("trouble.zero.here", told=step.sentence, behind=behind)
    told = say("trouble.zero", on=of.named(step.node), before=format_values(step.before), behind=behind)
    return join("join.sentences", [told, *saved(of, step.node, lambda index: _zero(of, index))])
