"""Where the whole gradient of a pass goes by: the places at which its size can be compared."""

import math
from typing import NamedTuple

from hookviz.analysis.findings.pass_statistics import PassStatistics

_NEAR = 3
"""Within this many nodes of a leaf, next to a way that goes on, a weight is transposed, cast or expanded."""


class Gate(NamedTuple):
    """A node that every way from the losses to the deepest node passes, and the gradient that arrives there."""

    node: int
    norm: float
    size: int
    """How many numbers the gradient has."""
    between: tuple[int, ...]
    """The nodes from this one to the next gate, without that."""

    @property
    def rms(self) -> float:
        """The root of the mean square of the numbers: the norm, made independent of how many there are."""
        return self.norm / math.sqrt(self.size)


def gates(of: PassStatistics) -> list[Gate]:
    """The gates of a pass, from the losses down; a gradient whose size is not known, or is 0, makes no gate.

    In a chain of layers each node is a gate. In a residual net the gates are where the branches have come together
    again: inside a branch there is only a part of the gradient, which may be small without any harm. Parameters branch
    off, too: no leaf is a gate, nor a node that only transposes, casts or expands one.
    """
    order = [node for node in of.computed if of.trace.ops[node] != "AccumulateGrad"]
    ends = {node: of.ends(node) for node in order}
    trunk = _trunk(order, ends)
    found: list[Gate] = []
    between: list[int] = []
    passed = _passed_by_all(trunk, ends)
    for node in reversed(trunk):
        between.append(node)
        gate = _gate(of, node, tuple(reversed(between))) if node in passed else None
        if gate is not None:
            found.append(gate)
            between = []
    return found[::-1]


def _trunk(order: list[int], ends: dict[int, list[int]]) -> list[int]:
    """The nodes that lie on a way to the deepest node, in the order in which they compute."""
    height: dict[int, int] = {}
    highest: dict[int, int] = {}
    for node in reversed(order):
        highest[node] = 0
        for end in ends[node]:
            if height.get(end, 0) > highest[node]:
                highest[node] = height[end]
        height[node] = 1 + highest[node]
    depth = dict.fromkeys(order, 0)
    for node in order:
        for end in ends[node]:
            # A short way next to one that goes on is that of a parameter: it is not followed.
            followed = end in depth and (height[end] > _NEAR or height[end] == highest[node])
            if followed and depth[end] <= depth[node]:
                depth[end] = depth[node] + 1
    deepest = max(order, key=depth.__getitem__, default=None)
    on_way = {deepest}
    trunk = []
    for node in reversed(order):
        if node == deepest or not on_way.isdisjoint(ends[node]):
            on_way.add(node)
            trunk.append(node)
    return trunk[::-1]


def _passed_by_all(trunk: list[int], ends: dict[int, list[int]]) -> set[int]:
    """Those nodes of a trunk that no edge leads past."""
    place = {node: i for i, node in enumerate(trunk)}
    furthest = 0
    found = set()
    for i, node in enumerate(trunk):
        if furthest <= i:
            found.add(node)
        furthest = max([furthest, *[place[end] for end in ends[node] if end in place]])
    return found


def _gate(of: PassStatistics, node: int, between: tuple[int, ...]) -> Gate | None:
    step = of.arrived.get(node)
    if step is None:
        return None
    index = of.trace.rows[step].after
    norm = of.norm(index)
    size = math.prod(of.trace.values[index][0])
    return Gate(node, norm, size, between) if norm is not None and 0 < norm < math.inf else None
