"""Which node of one graph is which of another, where both are graphs of the same program."""

from hookviz.support.messages import say
from hookviz.trace import NodeOutput, TraceData

_SEEN_THROUGH = "BackwardHookFunctionBackward"
"""The node that torch puts around a module with full backward hooks; gradients pass through it as they are."""


def matched(this: TraceData, other: TraceData) -> list[dict[int, int]]:
    """For each pass: number of a node in ``other`` → its number in ``this``.

    Raises:
        ValueError: the traces are not of the same graph; the message says where they part.
    """
    if len(this.roots) != len(other.roots):
        raise ValueError(say("error.diff.passes", here=len(this.roots), there=len(other.roots)))
    one, two = _Graph(this), _Graph(other)
    return [_match(one, two, pass_id) for pass_id in range(len(this.roots))]


class _Graph:
    """The graph of a trace, without the nodes that torch puts around modules with full backward hooks."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._slots: dict[int, dict[int, NodeOutput]] = {}
        for (node, slot), place in trace.edges.items():
            self._slots.setdefault(node, {})[slot] = place

    def roots(self, pass_id: int) -> list[NodeOutput | None]:
        """Where a pass starts."""
        return [self._through(place) for place in self.trace.roots[pass_id]]

    def below(self, node: int) -> dict[int, NodeOutput | None]:
        """Where the gradients that a node computes go, by their slots."""
        return {slot: self._through(place) for slot, place in self._slots.get(node, {}).items()}

    def end(self, place: NodeOutput | None) -> str:
        """What stands at a place, in words."""
        if place is None:
            return say("diff.nothing")
        op = self.trace.ops[place[0]]
        return op if place[1] == 0 else say("diff.output", op=op, output=place[1] + 1)

    def _through(self, place: NodeOutput | None) -> NodeOutput | None:
        while place is not None and self.trace.ops[place[0]] == _SEEN_THROUGH:
            place = self._slots.get(place[0], {}).get(place[1])
        return place


def _match(one: _Graph, two: _Graph, pass_id: int) -> dict[int, int]:
    """Number of a node in ``two`` → its number in ``one``, by a walk from the roots of one pass in step.

    Raises:
        ValueError: the walk comes to a place where the graphs are not alike; which one, in words.
    """
    roots = one.roots(pass_id), two.roots(pass_id)
    if len(roots[0]) != len(roots[1]):
        raise ValueError(say("error.diff.roots", number=pass_id + 1, here=len(roots[0]), there=len(roots[1])))
    root = say("diff.root", number=pass_id + 1)
    pairs: list[tuple[NodeOutput | None, NodeOutput | None, str]] = [(*pair, root) for pair in zip(*roots, strict=True)]
    numbers: dict[int, int] = {}
    taken: set[int] = set()
    for here, there, where in pairs:  # the list grows while it is gone through
        if here is None or there is None or one.end(here) != two.end(there):
            if here is None and there is None:
                continue
            raise ValueError(say("error.diff.shape", where=where, here=one.end(here), there=two.end(there)))
        ours, theirs = here[0], there[0]
        if theirs in numbers or ours in taken:
            if numbers.get(theirs) != ours:
                raise ValueError(say("error.diff.shared", where=where, op=one.end(here)))
            continue
        numbers[theirs] = ours
        taken.add(ours)
        pairs += _next(one, two, ours, theirs)
    return numbers


def _next(one: _Graph, two: _Graph, ours: int, theirs: int) -> list[tuple[NodeOutput | None, NodeOutput | None, str]]:
    mine, yours = one.below(ours), two.below(theirs)
    on = one.trace.name(ours)
    slots = sorted(mine.keys() | yours.keys())
    return [(mine.get(slot), yours.get(slot), say("diff.slot", slot=slot + 1, on=on)) for slot in slots]
