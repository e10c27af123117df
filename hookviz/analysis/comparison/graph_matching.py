"""Match the nodes of two graphs that were recorded from the same program."""

from hookviz.support.messages import _
from hookviz.trace import NodeOutput, TraceData

_SKIPPED_OP = "BackwardHookFunctionBackward"
"""The node that torch puts around a module with full backward hooks; gradients pass through it unchanged."""


def match_graphs(this: TraceData, other: TraceData) -> list[dict[int, int]]:
    """For each pass, map the number of a node in ``other`` to its number in ``this``.

    Raises:
        ValueError: the graphs of the two traces differ; the message says where.
    """
    if len(this.roots) != len(other.roots):
        raise ValueError(
            _(
                "These traces are not of the same program: this one has {here} backward pass(es), the other {there}."
            ).format(here=len(this.roots), there=len(other.roots))
        )
    this_graph, other_graph = _Graph(this), _Graph(other)
    return [_match_pass(this_graph, other_graph, pass_id) for pass_id in range(len(this.roots))]


class _Graph:
    """The graph of a trace, without the nodes that torch puts around modules with full backward hooks."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._edges: dict[int, dict[int, NodeOutput]] = {}
        for (node, slot), place in trace.edges.items():
            self._edges.setdefault(node, {})[slot] = place

    def roots(self, pass_id: int) -> list[NodeOutput | None]:
        """The places where a pass starts."""
        return [self._skip_module_hooks(place) for place in self.trace.roots[pass_id]]

    def edges(self, node: int) -> dict[int, NodeOutput | None]:
        """Slot of a node → the place to which the gradient of that slot goes."""
        return {slot: self._skip_module_hooks(place) for slot, place in self._edges.get(node, {}).items()}

    def describe(self, place: NodeOutput | None) -> str:
        """The op at a place, for an error message."""
        if place is None:
            return _("nothing")
        op = self.trace.ops[place[0]]
        return op if place[1] == 0 else _("{op} (its output {output})").format(op=op, output=place[1] + 1)

    def _skip_module_hooks(self, place: NodeOutput | None) -> NodeOutput | None:
        while place is not None and self.trace.ops[place[0]] == _SKIPPED_OP:
            place = self._edges.get(place[0], {}).get(place[1])
        return place


def _match_pass(one: _Graph, two: _Graph, pass_id: int) -> dict[int, int]:
    """Map the number of a node in ``two`` to its number in ``one``, walking both graphs from the roots of a pass.

    Raises:
        ValueError: the walk reaches a place where the graphs differ; the message says which.
    """
    roots = one.roots(pass_id), two.roots(pass_id)
    if len(roots[0]) != len(roots[1]):
        raise ValueError(
            _(
                "These traces are not of the same program: pass {number} begins at {here} root(s) in this "
                "one, and at {there} in the other."
            ).format(number=pass_id + 1, here=len(roots[0]), there=len(roots[1]))
        )
    root = _("at the root of pass {number}").format(number=pass_id + 1)
    pairs: list[tuple[NodeOutput | None, NodeOutput | None, str]] = [(*pair, root) for pair in zip(*roots, strict=True)]
    numbers: dict[int, int] = {}
    taken: set[int] = set()
    for here, there, where in pairs:  # the loop appends the pairs that follow
        if here is None or there is None or one.describe(here) != two.describe(there):
            if here is None and there is None:
                continue
            raise ValueError(
                _(
                    "These traces are not of the same graph: {where}, this one has {here} and the other has {there}."
                ).format(where=where, here=one.describe(here), there=two.describe(there))
            )
        ours, theirs = here[0], there[0]
        if theirs in numbers or ours in taken:
            if numbers.get(theirs) != ours:
                raise ValueError(
                    _(
                        "These traces are not of the same graph: {where}, two paths meet in one {op} node in one of "
                        "them, and lead to separate nodes in the other."
                    ).format(where=where, op=one.describe(here))
                )
            continue
        numbers[theirs] = ours
        taken.add(ours)
        pairs += _pair_edges(one, two, ours, theirs)
    return numbers


def _pair_edges(
    one: _Graph, two: _Graph, ours: int, theirs: int
) -> list[tuple[NodeOutput | None, NodeOutput | None, str]]:
    """The ends of the edges of two matched nodes, slot by slot, each with a text that names the edge."""
    mine, yours = one.edges(ours), two.edges(theirs)
    on = one.trace.name(ours)
    slots = sorted(mine.keys() | yours.keys())
    return [
        (mine.get(slot), yours.get(slot), _("at slot {slot} of {on}").format(slot=slot + 1, on=on)) for slot in slots
    ]
