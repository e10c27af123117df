"""Find the nodes that the whole gradient of a pass goes through, where its size can be compared."""

import math
from typing import Any, NamedTuple

from hookviz.analysis.findings.values.pass_statistics import PassStatistics

_PARAMETER_DISTANCE = 3
"""A path to a leaf that is no longer than this, beside a longer path, only transposes, casts or expands a parameter."""


class Gate(NamedTuple):
    """A node on every path from the losses to the deepest node, and the gradient that arrives there."""

    node: int
    norm: float
    size: int
    """The number of elements of the gradient."""
    nodes_to_next: tuple[int, ...]
    """The nodes from this one to the next gate, without the next gate."""

    @property
    def rms(self) -> float:
        """The root mean square of the elements: the norm, made independent of their number."""
        return self.norm / math.sqrt(self.size)


def find_gates(statistics: PassStatistics) -> list[Gate]:
    """Find the gates of a pass, from the losses to the leaves.

    In a chain of layers each node is a gate. In a residual net the gates are the nodes where branches have joined
    again: a branch carries only a part of the gradient, which may be small without any harm. Parameters are branches,
    too: neither a leaf nor a node that computes a weight from one is a gate, since the gradient of a weight is a sum
    over the batch. A node is also no gate if the norm of its gradient is unknown, 0 or not finite.
    """
    order = [node for node in statistics.compute_steps if statistics.trace.ops[node] != "AccumulateGrad"]
    targets = {node: statistics.targets(node) for node in order}
    trunk = _leave_out_weights(statistics, _find_trunk(order, targets))
    gates: list[Gate] = []
    nodes_to_next: list[int] = []
    bottlenecks = _find_bottlenecks(trunk, targets)
    for node in reversed(trunk):
        nodes_to_next.append(node)
        gate = _make_gate(statistics, node, tuple(reversed(nodes_to_next))) if node in bottlenecks else None
        if gate is not None:
            gates.append(gate)
            nodes_to_next = []
    return gates[::-1]


def _find_trunk(order: list[int], targets: dict[int, list[int]]) -> list[int]:
    """The nodes on paths to the deepest node, in the order in which they compute."""
    height: dict[int, int] = {}
    highest: dict[int, int] = {}
    for node in reversed(order):
        highest[node] = 0
        for target in targets[node]:
            if height.get(target, 0) > highest[node]:
                highest[node] = height[target]
        height[node] = 1 + highest[node]
    depth = dict.fromkeys(order, 0)
    for node in order:
        for target in targets[node]:
            # A short path beside a longer one leads to a parameter: it is not followed.
            is_followed = target in depth and (height[target] > _PARAMETER_DISTANCE or height[target] == highest[node])
            if is_followed and depth[target] <= depth[node]:
                depth[target] = depth[node] + 1
    deepest = max(order, key=depth.__getitem__, default=None)
    on_path = {deepest}
    trunk = []
    for node in reversed(order):
        if node == deepest or not on_path.isdisjoint(targets[node]):
            on_path.add(node)
            trunk.append(node)
    return trunk[::-1]


_INPUT_SLOTS = {
    "AddmmBackward0": 1,
    "ConvolutionBackward0": 0,
    "LinearBackward0": 0,
    "MkldnnConvolutionBackward0": 0,
    "MmBackward0": 0,
}
"""Product of an input and a weight → the slot of the input."""
_TRANSPOSES = ("TBackward0", "PermuteBackward0", "TransposeBackward0")


def _leave_out_weights(statistics: PassStatistics, trunk: list[int]) -> list[int]:
    """Leave out what the layer that takes the data computes its weight with: there the trunk goes on to a parameter."""
    ops = statistics.trace.ops
    products = (i for i, node in enumerate(trunk) if ops[node] in _INPUT_SLOTS and _takes_data(statistics, node))
    start = next(products, None)
    if start is None:
        return trunk
    call = statistics.trace.owners.get(trunk[start])
    rest = [node for node in trunk[start + 1 :] if call is not None and call not in statistics.enclosing_calls(node)]
    return [*trunk[: start + 1], *rest]


def _takes_data(statistics: PassStatistics, node: int) -> bool:
    """Whether a product multiplies a weight by something without a gradient, or by a leaf."""
    ops, edges = statistics.trace.ops, statistics.trace.edges
    slot = _INPUT_SLOTS[ops[node]]
    place, weight = edges.get((node, slot)), edges.get((node, slot + 1))
    if ops[node] == "MmBackward0" and (weight is None or ops[weight[0]] not in _TRANSPOSES):
        return False  # a constant may stand before a product, such as the edges of a graph network
    return place is None or ops[place[0]] == "AccumulateGrad"


def _find_bottlenecks(trunk: list[int], targets: dict[int, list[int]]) -> set[int]:
    """The nodes of a trunk that no edge bypasses."""
    position = {node: i for i, node in enumerate(trunk)}
    furthest = 0
    bottlenecks = set()
    for i, node in enumerate(trunk):
        if furthest <= i:
            bottlenecks.add(node)
        furthest = max([furthest, *[position[target] for target in targets[node] if target in position]])
    return bottlenecks


def _make_gate(statistics: PassStatistics, node: int, nodes_to_next: tuple[int, ...]) -> Gate | None:
    """The gate at ``node``; None if the norm of its gradient is unknown, 0 or not finite."""
    step = statistics.arrival_steps.get(node)
    if step is None:
        return None
    index: Any = statistics.trace.rows[step].after
    norm = statistics.norm(index)
    size = math.prod(statistics.trace.values[index][0])
    return Gate(node, norm, size, nodes_to_next) if norm is not None and 0 < norm < math.inf else None
