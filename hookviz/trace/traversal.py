"""Select the nodes and module calls of a pass, and find out how they contain and reach each other."""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from hookviz.trace.trace import TraceData

MAX_UNREACHED_NODES = 100
"""A picture shows at most this many nodes that the pass did not reach: a small pass may begin in a very large graph."""


def list_pass_nodes(trace: TraceData, pass_id: int) -> list[int]:
    """Return all nodes of the graph of a pass, those nearest to the roots first."""
    return _search_breadth_first(trace, pass_id, set(), len(trace.ops))


def list_pictured_nodes(trace: TraceData, pass_id: int) -> list[int]:
    """Return the nodes of a pass that a picture shows, those nearest to the roots first.

    These are all nodes that the pass reached, and the ``MAX_UNREACHED_NODES`` others that are nearest to the roots.
    """
    reached_nodes = (trace.rows[step].node for step in trace.lookup.steps(pass_id))
    reached = {node for node in reached_nodes if node is not None}
    nodes = _search_breadth_first(trace, pass_id, reached, MAX_UNREACHED_NODES)
    # A pass reaches a node only through other nodes that it reached. Should a trace differ, all nodes are shown.
    return nodes if reached.issubset(nodes) else list_pass_nodes(trace, pass_id)


def _search_breadth_first(trace: TraceData, pass_id: int, reached: Collection[int], most_others: int) -> list[int]:
    """Return the nodes of a pass, nearest to the roots first: those in ``reached`` and at most ``most_others`` others.

    The search does not go beyond nodes that it leaves out.
    """
    next_nodes = trace.lookup.next_nodes
    roots = [node for node, _ in trace.roots[pass_id]] if pass_id < len(trace.roots) else []
    visited = dict.fromkeys(roots)
    queue = list(visited)
    for node in queue:  # the loop body appends to the queue
        for _, end in next_nodes.get(node, ()):
            if end not in visited and (end in reached or most_others):
                most_others -= end not in reached
                visited[end] = None
                queue.append(end)
    return queue


def leads_outside(edges: Iterable[tuple[int, int, int]], nodes: Collection[int]) -> bool:
    """Whether some of ``edges`` (node, slot, next node), which begin at ``nodes``, lead to other nodes."""
    return not {end for _, _, end in edges} <= set(nodes)


def iter_enclosing_calls(trace: TraceData, call: int | None) -> Iterator[int]:
    """Yield a call and the calls around it, the innermost first; nothing for None."""
    current = call
    while current is not None:
        yield current
        current = trace.calls[current].parent


def find_calls_in_graphs(trace: TraceData) -> set[int]:
    """Return the calls that made nodes of the graph of a pass, with all calls around them; a leaf counts for none."""
    makers = {call for node, call in trace.owners.items() if trace.ops[node] != "AccumulateGrad"}
    return {outer for call in makers for outer in iter_enclosing_calls(trace, call)}


def list_extra_runs(trace: TraceData, calls: Iterable[int]) -> set[int]:
    """Return those of ``calls`` that are one of the two runs of a checkpoint, while the other one made the graph."""
    runs = {call for call in calls if trace.calls[call].recomputed or trace.calls[call].mode == "checkpoint"}
    return runs - find_calls_in_graphs(trace) if runs else runs


def name_last_root(trace: TraceData) -> str:
    """Return the name of the tensor at which the last pass began; empty if there is no pass."""
    root = next((row for row in reversed(trace.rows) if row.kind == "seed"), None)
    return "" if root is None else trace.name(root.node, root.output)


def list_pass_calls(trace: TraceData, pass_id: int) -> list[int]:
    """Return the module calls that steps of a pass are about, and the calls around them."""
    calls = dict.fromkeys(trace.rows[step].call for step in trace.lookup.steps(pass_id))
    return list(dict.fromkeys(outer for call in calls for outer in iter_enclosing_calls(trace, call)))


def find_first_runs(trace: TraceData, pass_id: int, calls: Collection[int]) -> dict[int, int]:
    """Return call that checkpointing made, not inside another one → the call among ``calls`` that it recomputes.

    Of several calls of the module, it is the only one with equal inputs; if there is no such call, none is returned.
    """
    plain: dict[tuple[int, str], list[int]] = {}
    recomputed = []
    for call in calls:
        row = trace.calls[call]
        if not row.recomputed:
            plain.setdefault((row.module, row.path), []).append(call)
        elif row.parent is None or not trace.calls[row.parent].recomputed:
            recomputed.append(call)
    inputs = _list_inputs(trace, pass_id) if recomputed else {}
    found: dict[int, int] = {}
    for call in recomputed:
        first_runs = plain.get((trace.calls[call].module, trace.calls[call].path), [])
        if len(first_runs) > 1:
            first_runs = [first for first in first_runs if inputs.get(first) == inputs.get(call)]
        if len(first_runs) == 1:
            found[call] = first_runs[0]
    return found


def find_first_of_several(trace: TraceData, pass_id: int) -> set[int]:
    """Return the calls of a pass that are the first of their modules, of those that are called again in it."""
    calls = dict.fromkeys(trace.rows[step].call for step in trace.lookup.steps(pass_id))
    counts: dict[tuple[int, str], list[int]] = {}
    for call in calls:
        if call is not None and not trace.calls[call].recomputed:
            counts.setdefault((trace.calls[call].module, trace.calls[call].path), []).append(call)
    firsts = (min(several) for several in counts.values() if len(several) > 1)
    return {call for call in firsts if (trace.calls[call].nth or trace.calls[call].number) == 1}


def _list_inputs(trace: TraceData, pass_id: int) -> dict[int, list[tuple[Any, ...] | None]]:
    """Return call → the rows of the values that it was given in a pass."""
    rows = (trace.rows[step] for step in trace.lookup.steps(pass_id))
    inputs = ((row.own_call, row.after) for row in rows if row.kind == "call")
    return {
        call: [
            None if index is None else trace.values[index] for index in (after if isinstance(after, tuple) else [after])
        ]
        for call, after in inputs
    }


def assign_nodes_to_calls(trace: TraceData, nodes: Iterable[int]) -> dict[int, int]:
    """Return node → the call in whose box it is drawn: the call that made it or, for a parameter's leaf, that used it.

    Every call of a module uses its parameters: their leaves belong to the first call among those that made ``nodes``. A
    module that was not called itself, such as ``out_proj`` of attention, has its leaves in the call around that used
    them.
    """
    made_by = {node: trace.owners[node] for node in nodes if node in trace.owners}
    used_by: dict[int, int] = {}
    for start, _, end in trace.lookup.out_edges(made_by):
        if trace.ops[end] != "AccumulateGrad":
            continue
        call = made_by[start]
        if end in made_by:
            user = call if trace.calls[call].module == trace.calls[made_by[end]].module else None
        else:
            user = _find_enclosing_call(trace, call, trace.lookup.leaf_names.get(end, ""))
        if user is not None:
            used_by[end] = min(user, used_by.get(end, user))
    return made_by | used_by


def _find_enclosing_call(trace: TraceData, call: int, parameter: str) -> int | None:
    """Return the innermost call, from ``call`` outward, of a module that contains the parameter with this name."""
    for outer in iter_enclosing_calls(trace, call):
        if parameter.startswith(f"{trace.plain_call(outer)}."):
            return outer
    return None


def list_outer_paths(path: str) -> list[str]:
    """List the paths around the path of a module or parameter, the outermost first.

    >>> list_outer_paths("net.body.0")
    ['net', 'net.body']
    """
    return [path[:end] for end, letter in enumerate(path) if letter == "."]
