"""Drop the oldest passes of a trace, so that a long recording does not grow without end."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from hookviz.trace.code_rows import LineRow
from hookviz.trace.compact_rows import StepRows, ValueRows
from hookviz.trace.rows import SavedRow, ScaleRow, StepRow, TensorRow, renumber
from hookviz.trace.trace import TraceData
from hookviz.trace.training_rows import UpdateRow

RowT = TypeVar("RowT")
NumberMap = dict[int, int]
"""Old index → new index; indexes that were dropped are missing."""


class NewNumbers(NamedTuple):
    """The new indexes of nodes, calls and hooks after passes were dropped."""

    nodes: NumberMap
    calls: NumberMap
    hooks: NumberMap


def drop_passes(trace: TraceData, count: int) -> NewNumbers:
    """Remove the first ``count`` passes from ``trace``, with all steps, nodes, values and hooks that only they need.

    The result is a trace whose recording began with the next pass: ``pass_id``, steps and nodes are counted from 0
    again, and ``trace.dropped`` grows by ``count``. Modules keep their indexes; ``trace.pass_numbers`` and
    ``CallRow.number`` still count all passes and calls.
    """
    rows = [row for row in trace.rows if row.pass_id >= count]
    tensors = [row for row in trace.tensors if row.pass_id >= count]
    saved = [row for row in trace.saved if row.pass_id >= count]
    scales = [row for row in trace.scales if row.pass_id >= count]
    trace.owners = _reassign_leaves(trace, rows)
    registered = {hook for hooks in trace.hooked[count:] for hook in hooks}
    hooks = _number_anew(registered | {row.hook for row in rows})
    needed_nodes = {row.node for row in rows} | {row.node for row in tensors} | {trace.hook_rows[i].node for i in hooks}
    needed_nodes |= {node for roots in trace.roots[count:] for node, _ in roots}
    needed_nodes |= {part[0] for row in rows for part in row.parts}
    nodes = _number_anew(_find_reachable_nodes(trace, needed_nodes))
    values = {i for row in rows for i in _iter_value_indexes(row)} | {i for row in saved for i in _as_tuple(row.value)}
    renumberer = _Renumberer(
        count,
        nodes,
        hooks=hooks,
        calls=_number_anew(_find_needed_calls(trace, rows, nodes)),
        values=_number_anew(values | {i for row in tensors for i in (row.data, row.grad)}),
        steps=_number_anew(i for i, row in enumerate(trace.rows) if row.pass_id >= count),
    )
    trace.rows = StepRows(renumberer.step(row) for row in rows)
    trace.tensors = [renumberer.tensor(row) for row in tensors]
    trace.saved = [renumberer.saved(row) for row in saved]
    trace.scales = [renumberer.scale(row) for row in scales]
    renumberer.apply_to_other_tables(trace)
    trace.dropped += count
    trace.clear_caches()
    return NewNumbers(nodes, renumberer.calls, renumberer.hooks)


def _number_anew(indexes: Iterable[Any]) -> NumberMap:
    """Number the remaining ``indexes`` from 0 on, in order; None is ignored."""
    return {old: new for new, old in enumerate(sorted(i for i in indexes if i is not None))}


def _find_reachable_nodes(trace: TraceData, starts: Iterable[int | None]) -> set[int]:
    """Return ``starts`` and all nodes that can be reached from them; None is ignored."""
    next_nodes: dict[int, list[int]] = {}
    for (start, _), (end, _) in trace.edges.items():
        next_nodes.setdefault(start, []).append(end)
    reached: set[int] = set()
    queue = list(starts)
    while queue:
        node = queue.pop()
        if node is not None and node not in reached:
            reached.add(node)
            queue += next_nodes.get(node, ())
    return reached


def _reassign_leaves(trace: TraceData, rows: list[StepRow]) -> dict[int, int]:
    """Return the owners of all nodes, with each leaf assigned to the first remaining call of its module."""
    first_calls: dict[int, int] = {}
    for row in rows:
        if row.call is not None:
            first_calls.setdefault(trace.calls[row.call].module, row.call)
    owners = {}
    for node, call in trace.owners.items():
        is_leaf = trace.ops[node] == "AccumulateGrad"
        owners[node] = first_calls.get(trace.calls[call].module, call) if is_leaf else call
    return owners


def _find_needed_calls(trace: TraceData, rows: list[StepRow], nodes: NumberMap) -> set[int]:
    """Return the calls of the steps ``rows``, the calls that made ``nodes``, and all calls around these."""
    needed: set[int] = set()
    queue = [row.call for row in rows] + [call for node, call in trace.owners.items() if node in nodes]
    while queue:
        call = queue.pop()
        if call is not None and call not in needed:
            needed.add(call)
            parent = trace.calls[call].parent
            if parent is not None:
                queue.append(parent)
    return needed


def _iter_value_indexes(row: StepRow) -> Iterator[int | None]:
    for values in (row.before, row.after):
        yield from _as_tuple(values)
    for _, _, value in row.parts:
        yield value


def _as_tuple(values: Any) -> tuple[int | None, ...]:
    return values if isinstance(values, tuple) else (values,)


class _Renumberer(NamedTuple):
    """Replaces old indexes by new ones. Each field but the first maps the indexes of one table."""

    dropped_passes: int
    nodes: NumberMap
    calls: NumberMap
    hooks: NumberMap
    values: NumberMap
    steps: NumberMap

    def step(self, row: StepRow) -> StepRow:
        """Return a step with new indexes; a cause that was dropped becomes None."""
        return row._replace(
            pass_id=row.pass_id - self.dropped_passes,
            node=renumber(self.nodes, row.node),
            call=renumber(self.calls, row.call),
            hook=None if row.hook is None else self.hooks[row.hook],
            before=self.value(row.before),
            after=self.value(row.after),
            parts=tuple((renumber(self.nodes, node), slot, self.value(value)) for node, slot, value in row.parts),
            cause=None if row.cause is None else self.steps.get(row.cause),
        )

    def value(self, index: Any) -> Any:
        """Return the new index of a value, or those of a tuple of values."""
        if isinstance(index, tuple):
            return tuple(self.value(i) for i in index)
        return None if index is None else self.values[index]

    def tensor(self, row: TensorRow) -> TensorRow:
        """Return a tensor with new indexes."""
        pass_id, data, grad = row.pass_id - self.dropped_passes, self.value(row.data), self.value(row.grad)
        return row._replace(pass_id=pass_id, node=self.nodes[row.node], data=data, grad=grad)

    def saved(self, row: SavedRow) -> SavedRow:
        """Return a saved value with new indexes."""
        pass_id, value = row.pass_id - self.dropped_passes, self.value(row.value)
        return row._replace(pass_id=pass_id, node=self.nodes[row.node], value=value)

    def scale(self, row: ScaleRow) -> ScaleRow:
        """Return a scale with new indexes, without the nodes that were dropped."""
        at = tuple(self.nodes[node] for node in row.at if node in self.nodes)
        others = tuple(self.nodes[node] for node in row.others if node in self.nodes)
        return row._replace(pass_id=row.pass_id - self.dropped_passes, at=at, others=others)

    def update(self, row: UpdateRow) -> UpdateRow | None:
        """Return what an optimizer step was given with the new index of the step; None if the step was dropped."""
        return row._replace(step=self.steps[row.step]) if row.step in self.steps else None

    def line(self, row: LineRow) -> LineRow | None:
        """Return the line of a pass or call with new indexes; None if that was dropped."""
        if row.call is not None:
            return row._replace(call=self.calls[row.call]) if row.call in self.calls else None
        pass_id = (row.pass_id or 0) - self.dropped_passes
        return row._replace(pass_id=pass_id) if pass_id >= 0 else None

    def apply_to_other_tables(self, trace: TraceData) -> None:
        """Renumber the tables without a pass: of hooks, calls, edges, nodes and values, and the lists per pass."""
        nodes, calls, hooks = self.nodes, self.calls, self.hooks
        trace.pass_numbers = trace.pass_numbers[self.dropped_passes :]
        trace.roots = [
            [(nodes[node], output) for node, output in roots] for roots in trace.roots[self.dropped_passes :]
        ]
        trace.hooked = [[hooks[i] for i in registered] for registered in trace.hooked[self.dropped_passes :]]
        trace.hook_rows = [row._replace(node=renumber(nodes, row.node)) for row in _select_rows(trace.hook_rows, hooks)]
        call_rows = _select_rows(trace.calls, calls)
        trace.calls = [row._replace(parent=None if row.parent is None else calls[row.parent]) for row in call_rows]
        lines = (self.line(row) for row in trace.lines)
        trace.lines = [row for row in lines if row is not None]
        trace.nonfinite = [row._replace(call=calls[row.call]) for row in trace.nonfinite if row.call in calls]
        updates = (self.update(row) for row in trace.updates)
        trace.updates = [row for row in updates if row is not None]
        edges = ((start, slot, end) for (start, slot), end in trace.edges.items() if start in nodes)
        trace.edges = {(nodes[start], slot): (nodes[end], output) for start, slot, (end, output) in edges}
        trace.owners = {nodes[node]: calls[call] for node, call in trace.owners.items() if node in nodes}
        trace.outside = {nodes[node] for node in trace.outside if node in nodes}
        trace.ops, trace.values = _select_rows(trace.ops, nodes), ValueRows(_select_rows(trace.values, self.values))


def _select_rows(rows: list[RowT], numbers: NumberMap) -> list[RowT]:
    return [row for i, row in enumerate(rows) if i in numbers]
