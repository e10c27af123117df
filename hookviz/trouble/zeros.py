"""Where a gradient becomes 0, so that what lies behind gets none."""

from typing import Any

from hookviz.sentences import brief
from hookviz.trouble.looks import Found, Pass
from hookviz.trouble.strange import CHANGING
from hookviz.words import say


def zeros(of: Pass) -> Found | None:
    """The first step that makes zeros of a gradient that is none, and leaves leaves with a gradient of 0."""
    culprits: dict[int, int] = {}
    """Node → the step at which what arrives there became 0."""
    killed: dict[int, list[int]] = {}
    for index, row in of.rows:
        if row.of is None and row.kind in ("compute", *CHANGING):
            if not _zero(of, row.after):
                continue
            culprit = culprits.get(row.node) if _zero(of, row.before) else index
            if culprit is None:
                continue
            if row.kind not in _AFTER:
                culprits[row.node] = culprit
            if row.kind in ("compute", *_AFTER):
                culprits |= {end: culprit for end in of.ends(row.node) if end not in culprits}
        elif culprits and row.kind == "arrive" and not _zero(of, row.after):
            culprits.pop(row.node, None)  # it comes by another way, too
        elif row.node in culprits and row.kind in ("accumulate", "returned"):
            killed.setdefault(culprits[row.node], []).append(row.node)
    if not killed:
        return None
    first = min(killed)
    return Found(first, "zero", _told(of, first, list(dict.fromkeys(killed[first]))))


_AFTER = ("node_post_hook", "full_backward_hook", "backward_hook")
"""Hooks of what a node sends."""


def _zero(of: Pass, kept: Any) -> bool:
    norms = of.norms(kept)
    return bool(norms) and not any(norms)


def _told(of: Pass, index: int, leaves: list[int]) -> str:
    step, count = of.trace.steps[index], len(leaves)
    first = of.trace.name(leaves[0], 0)
    behind = say("trouble.behind" if count == 1 else "trouble.behind.many", on=first, count=f"{count - 1:,}")
    if step.kind != "compute":
        return say("trouble.zero.here", told=step.sentence, behind=behind)
    return say("trouble.zero", on=of.named(step.node), before=brief(step.before), behind=behind)
