"""In which order the engine takes the nodes of a graph, as far as a recording has to know it."""

from collections.abc import Container, Sequence

from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.trace import Place


def next_node(
    snapshot: GraphSnapshot, ran: Container[int], sent: Container[int], targets: Sequence[Place] | None
) -> int:
    """The node that the engine takes after those that ``ran``: of the ready ones, that with the highest number.

    ``sent`` are those to which a gradient is on its way: to a leaf's node at least one is. ``targets`` are the
    places at which gradients were asked for, if only some were: what leads to none does not run. -1 where no node
    is ready, or where several have the same number, as leaves have.
    """
    needed = snapshot.out_edges.keys() if targets is None else _nodes_leading_to(snapshot, targets)
    waited = {place[0] for node in needed if node not in ran for place in snapshot.out_edges[node] if place is not None}
    ready = [
        (node._sequence_nr(), number)
        for node in snapshot.nodes
        if (number := snapshot.numbers[id(node)]) in needed and number not in ran and number not in waited
        if number in sent or number not in snapshot.leaves
    ]
    first = max(ready, default=(0, -1))
    return first[1] if sum(number == first[0] for number, _ in ready) == 1 else -1


def _nodes_leading_to(snapshot: GraphSnapshot, targets: Sequence[Place]) -> set[int]:
    """The nodes of which an edge leads to one of ``targets``, or to such a node."""
    wanted = {node for node, _ in targets}
    above: dict[int, list[int]] = {}
    for node, edges in snapshot.out_edges.items():
        for place in edges:
            if place is not None:
                above.setdefault(place[0], []).append(node)
    found: set[int] = set()
    queue = [node for target in wanted for node in above.get(target, ())]
    while queue:
        node = queue.pop()
        if node not in found:
            found.add(node)
            queue += above.get(node, ())
    return found
