"""Predicts in which order the engine runs the nodes of a graph, as far as a recording needs it."""

from collections.abc import Container, Sequence

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.trace import NodeOutput


def next_node(
    snapshot: GraphSnapshot, ran: Container[int], sent: Container[int], targets: Sequence[NodeOutput] | None
) -> int | None:
    """Return the node that the engine runs after the nodes in ``ran``.

    Of the ready nodes the engine takes the one with the highest sequence number. ``sent`` holds the nodes to which a
    gradient has been sent: the node of a leaf is ready only if it is among them. ``targets`` holds the places whose
    gradients were requested, if only some were: nodes that lead to no target do not run. The result is None if no node
    is ready, or if several have the same sequence number, as leaves have.
    """
    needed = snapshot.out_edges.keys() if targets is None else _nodes_leading_to(snapshot, targets)
    waiting = {
        place[0] for node in needed if node not in ran for place in snapshot.out_edges[node] if place is not None
    }
    ready = [
        (node._sequence_nr(), number)
        for node in snapshot.nodes
        if (number := snapshot.numbers[id(node)]) in needed and number not in ran and number not in waiting
        if number in sent or number not in snapshot.leaves
    ]
    best = max(ready, default=(0, None))
    return best[1] if sum(number == best[0] for number, _ in ready) == 1 else None


def _nodes_leading_to(snapshot: GraphSnapshot, targets: Sequence[NodeOutput]) -> set[int]:
    """Return the nodes from which a path leads to one of ``targets``."""
    target_nodes = {node for node, _ in targets}
    predecessors: dict[int, list[int]] = {}
    for node, edges in snapshot.out_edges.items():
        for place in edges:
            if place is not None:
                predecessors.setdefault(place[0], []).append(node)
    leading: set[int] = set()
    queue = [node for target in target_nodes for node in predecessors.get(target, ())]
    while queue:
        node = queue.pop()
        if node not in leading:
            leading.add(node)
            queue += predecessors.get(node, ())
    return leading
