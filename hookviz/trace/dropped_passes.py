"""Drop the oldest passes of a trace, so that a long recording does not grow without end."""

from collections.abc import Container, Iterable, Iterator
from typing import Any

from hookviz.support.groups import group
from hookviz.trace.cells import Numbers, renumber_tables
from hookviz.trace.rows import StepRow
from hookviz.trace.trace import TraceData
from hookviz.trace.traversal import iter_enclosing_calls
from hookviz.trace.values import as_tuple


def drop_passes(trace: TraceData, count: int) -> Numbers:
    """Remove the first ``count`` passes from ``trace``, with all steps, nodes, values and hooks that only they need.

    The result is a trace whose recording began with the next pass: ``pass_id``, steps and nodes are counted from 0
    again, and ``trace.dropped`` grows by ``count``. Modules keep their indexes; ``trace.pass_numbers`` and
    ``CallRow.number`` still count all passes and calls. Returns the new indexes.
    """
    numbers = _find_new_numbers(trace, count)
    # What a pass, node, call, hook or value has, and what it is, goes with it.
    for name in ("roots", "hooked", "pass_numbers"):
        setattr(trace, name, getattr(trace, name)[count:])
    for name in ("ops", "calls", "hook_rows", "values"):
        table = getattr(trace, name)
        setattr(trace, name, type(table)([row for index, row in enumerate(table) if index in numbers[name]]))
    renumber_tables(trace, numbers)
    trace.lines = [row for row in trace.lines if row.pass_id is not None or row.call is not None]
    trace.dropped += count
    return numbers


def _find_new_numbers(trace: TraceData, count: int) -> Numbers:
    """Return the new indexes of what is left of each table without the first ``count`` passes."""
    rows, tensors, saved = (_after(table, count) for table in (trace.rows, trace.tensors, trace.saved))
    trace.owners = _reassign_leaves(trace, rows)
    registered = {hook for hooks in trace.hooked[count:] for hook in hooks}
    hooks = _number_anew(registered | {row.hook for row in rows})
    needed_nodes = {row.node for row in rows} | {row.node for row in tensors} | {trace.hook_rows[i].node for i in hooks}
    needed_nodes |= {node for roots in trace.roots[count:] for node, _ in roots}
    needed_nodes |= {part[0] for row in rows for part in row.parts}
    nodes = _number_anew(_find_reachable_nodes(trace, needed_nodes))
    values = {i for row in rows for i in _iter_value_indexes(row)} | {i for row in saved for i in as_tuple(row.value)}
    steps = [i for i, row in enumerate(trace.rows) if row.pass_id >= count]
    updates = (row for row in trace.updates if trace.rows[row.step].pass_id >= count)
    values |= {value for row in updates for _parameter, value in row.regraded}
    return {
        "roots": _number_anew(range(count, len(trace.roots) + 1)),
        "ops": nodes,
        "hook_rows": hooks,
        "calls": _number_anew(_find_needed_calls(trace, rows, nodes)),
        "values": _number_anew(values | {i for row in tensors for i in (row.data, row.grad)}),
        "rows": _number_anew([*steps, len(trace.rows)]),
    }


def _after(rows: Iterable[Any], count: int) -> list[Any]:
    """Return the rows that belong to no pass before ``count``."""
    return [row for row in rows if row.pass_id >= count]


def _number_anew(indexes: Iterable[Any]) -> dict[int, int]:
    """Number the remaining ``indexes`` from 0 on, in order; None is ignored."""
    return {old: new for new, old in enumerate(sorted(i for i in indexes if i is not None))}


def _find_reachable_nodes(trace: TraceData, starts: Iterable[int | None]) -> set[int]:
    """Return ``starts`` and all nodes that can be reached from them; None is ignored."""
    next_nodes = group((start, end) for (start, _), (end, _) in trace.edges.items())
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


def _find_needed_calls(trace: TraceData, rows: list[StepRow], nodes: Container[int]) -> set[int]:
    """Return the calls of the steps ``rows``, the calls that made ``nodes``, and all calls around these."""
    needed = {row.call for row in rows} | {call for node, call in trace.owners.items() if node in nodes}
    return {outer for call in needed for outer in iter_enclosing_calls(trace, call)}


def _iter_value_indexes(row: StepRow) -> Iterator[int | None]:
    for values in (row.before, row.after):
        yield from as_tuple(values)
    for _, _, value in row.parts:
        yield value
