"""Follows a tensor through the views in front of it, which hold the same numbers."""

from collections.abc import Collection

from hookviz.trace import NodeOutput, TraceData

VIEWS = frozenset({"Permute", "Reshape", "T", "Transpose", "UnsafeView", "Unsqueeze", "View"})
"""Ops whose result has the numbers of their input, each once."""


def follow_views(trace: TraceData, node: int, slot: int, more: Collection[str]) -> NodeOutput | None:
    """Return the tensor that an op takes in a slot, behind all views; ``more`` are ops that count as views, too."""
    place = trace.edges.get((node, slot))
    while place is not None and trace.ops[place[0]].partition("Backward")[0] in (*VIEWS, *more):
        place = trace.edges.get((place[0], 0))
    return place
