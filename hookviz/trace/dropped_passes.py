"""Letting go of the oldest passes of a trace, so that a long recording does not grow without end."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from hookviz.trace.folded_rows import StepRows, ValueRows
from hookviz.trace.rows import CallRow, SavedRow, ScaleRow, StepRow, TensorRow
from hookviz.trace.trace import TraceData

RowT = TypeVar("RowT")
NumberMap = dict[int, int]
"""The number that something had → the number that it has now; what was let go of is not in it."""


class NewNumbers(NamedTuple):
    """What became of the numbers in a trace."""

    nodes: NumberMap
    calls: NumberMap
    hooks: NumberMap


def drop_passes(trace: TraceData, count: int) -> NewNumbers:
    """Let go of the first ``count`` passes and of all that only they need: their steps, graphs, values and hooks.

    What is left is a trace as if the recording had begun with the next pass: passes, steps and nodes are counted from
    0 again, and ``trace.dropped`` says how many passes there were before. Modules keep their numbers, and calls of a
    module the count of all calls.
    """
    rows = [row for row in trace.rows if row.pass_id >= count]
    tensors = [row for row in trace.tensors if row.pass_id >= count]
    saved = [row for row in trace.saved if row.pass_id >= count]
    trace.owners = _reassign_leaves(trace, rows)
    hooked = {i for there in trace.hooked[count:] for i in there}
    hooks = _number_anew(hooked | {row.hook for row in rows})
    named = {row.node for row in rows} | {row.node for row in tensors} | {trace.hook_rows[i].node for i in hooks}
    scales = [row for row in trace.scales if row.pass_id >= count]
    starts = {node for places in trace.roots[count:] for node, _ in places}
    nodes = _number_anew(_find_needed_nodes(trace, named | starts | {part[0] for row in rows for part in row.parts}))
    told = {i for row in rows for i in _iter_value_indexes(row)} | {i for row in saved for i in _as_tuple(row.value)}
    move = _Renumberer(
        count,
        nodes,
        hooks=hooks,
        calls=_number_anew(_find_needed_calls(trace, rows, nodes)),
        values=_number_anew(told | {i for t in tensors for i in (t.data, t.grad)}),
        steps=_number_anew(i for i, row in enumerate(trace.rows) if row.pass_id >= count),
    )
    trace.rows = StepRows(move.step(row) for row in rows)
    trace.tensors = [move.tensor(row) for row in tensors]
    trace.saved = [move.saved(row) for row in saved]
    trace.scales = [move.scale(row) for row in scales]
    move.rest(trace)
    trace.dropped += count
    trace.forget()
    return NewNumbers(nodes, move.calls, move.hooks)


def _number_anew(kept: Iterable[Any]) -> NumberMap:
    return {old: new for new, old in enumerate(sorted(i for i in kept if i is not None))}


def _find_needed_nodes(trace: TraceData, needed: set[int]) -> set[int]:
    """The nodes that are needed, and the graphs below them."""
    following: dict[int, list[int]] = {}
    for (start, _), (end, _) in trace.edges.items():
        following.setdefault(start, []).append(end)
    found: set[int] = set()
    queue = list(needed)
    while queue:
        node = queue.pop()
        if node >= 0 and node not in found:
            found.add(node)
            queue += following.get(node, ())
    return found


def _reassign_leaves(trace: TraceData, rows: list[StepRow]) -> dict[int, int]:
    """Who made each node; a leaf belongs to the first call of its module, and now that is the first that is kept."""
    first: dict[int, int] = {}
    for row in rows:
        if row.call >= 0:
            first.setdefault(trace.calls[row.call].module, row.call)
    leaves = {node for node in trace.owners if trace.ops[node] == "AccumulateGrad"}
    modules = {node: trace.calls[call].module for node, call in trace.owners.items()}
    return {node: first.get(modules[node], call) if node in leaves else call for node, call in trace.owners.items()}


def _find_needed_calls(trace: TraceData, rows: list[StepRow], nodes: NumberMap) -> set[int]:
    """The calls that the steps speak of, those that made the nodes, and those around them."""
    found: set[int] = set()
    queue = [row.call for row in rows] + [call for node, call in trace.owners.items() if node in nodes]
    while queue:
        call = queue.pop()
        if call >= 0 and call not in found:
            found.add(call)
            queue += [parent for parent in (trace.calls[call].parent,) if parent is not None]
    return found


def _iter_value_indexes(row: StepRow) -> Iterator[int | None]:
    for values in (row.before, row.after):
        yield from _as_tuple(values)
    for _, _, value in row.parts:
        yield value


def _as_tuple(values: Any) -> tuple[int | None, ...]:
    return values if isinstance(values, tuple) else (values,)


class _Renumberer(NamedTuple):
    """Puts the new numbers in place of the old ones."""

    passes: int
    nodes: NumberMap
    calls: NumberMap
    hooks: NumberMap
    values: NumberMap
    steps: NumberMap

    def step(self, row: StepRow) -> StepRow:
        """A step with its new numbers; a cause that was let go of is no longer known."""
        return row._replace(
            pass_id=row.pass_id - self.passes,
            node=self.nodes.get(row.node, -1),
            call=self.calls.get(row.call, -1),
            hook=None if row.hook is None else self.hooks[row.hook],
            before=self.value(row.before),
            after=self.value(row.after),
            parts=tuple((self.nodes.get(node, -1), slot, self.value(value)) for node, slot, value in row.parts),
            cause=None if row.cause is None else self.steps.get(row.cause),
        )

    def value(self, index: Any) -> Any:
        """One value, or several."""
        if isinstance(index, tuple):
            return tuple(self.value(i) for i in index)
        return None if index is None else self.values[index]

    def tensor(self, row: TensorRow) -> TensorRow:
        """A tensor with its new numbers."""
        data, grad = self.value(row.data), self.value(row.grad)
        return row._replace(pass_id=row.pass_id - self.passes, node=self.nodes[row.node], data=data, grad=grad)

    def saved(self, row: SavedRow) -> SavedRow:
        """What a node saved, with its new numbers."""
        return row._replace(pass_id=row.pass_id - self.passes, node=self.nodes[row.node], value=self.value(row.value))

    def scale(self, row: ScaleRow) -> ScaleRow:
        """A scale with its new numbers."""
        at, others = (tuple(self.nodes[node] for node in there if node in self.nodes) for there in (row.at, row.others))
        return row._replace(pass_id=row.pass_id - self.passes, at=at, others=others)

    def rest(self, trace: TraceData) -> None:
        """Everything that is kept because a step, a tensor or a graph needs it."""
        nodes, calls, hooks = self.nodes, self.calls, self.hooks
        roots, hooked = trace.roots[self.passes :], trace.hooked[self.passes :]
        trace.roots = [[(nodes[node], output) for node, output in places] for places in roots]
        trace.hooked = [[hooks[i] for i in there] for there in hooked]
        trace.hook_rows = [row._replace(node=nodes.get(row.node, -1)) for row in _select_rows(trace.hook_rows, hooks)]
        trace.calls = [row._replace(parent=calls.get(_parent(row), None)) for row in _select_rows(trace.calls, calls)]
        ends = ((start, slot, end) for (start, slot), end in trace.edges.items() if start in nodes)
        trace.edges = {(nodes[start], slot): (nodes[end], output) for start, slot, (end, output) in ends}
        trace.owners = {nodes[node]: calls[call] for node, call in trace.owners.items() if node in nodes}
        trace.outside = {nodes[node] for node in trace.outside if node in nodes}
        trace.ops, trace.values = _select_rows(trace.ops, nodes), ValueRows(_select_rows(trace.values, self.values))


def _select_rows(rows: list[RowT], kept: NumberMap) -> list[RowT]:
    return [row for i, row in enumerate(rows) if i in kept]


def _parent(row: CallRow) -> int:
    return -1 if row.parent is None else row.parent
