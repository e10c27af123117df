"""How the nodes and the calls of one pass lie to each other."""

from collections.abc import Collection, Iterable, Iterator

from hookviz.trace.trace import TraceData

MAX_UNREACHED_NODES = 100
"""A picture has so many nodes that the pass did not reach: a small pass may begin in a very large graph."""


def list_pass_nodes(trace: TraceData, pass_id: int) -> list[int]:
    """The nodes of a pass, nearest to the roots first."""
    return _search_breadth_first(trace, pass_id, set(), len(trace.ops))


def list_pictured_nodes(trace: TraceData, pass_id: int) -> list[int]:
    """The nodes of a pass as ``below``, but of those that it did not reach only the ``UNREACHED`` nearest to roots."""
    reached = {trace.rows[step].node for step in trace.lookup.steps(pass_id)} - {-1}
    found = _search_breadth_first(trace, pass_id, reached, MAX_UNREACHED_NODES)
    # What was reached lies below others that were; if it ever should not, all is pictured.
    return found if reached.issubset(found) else list_pass_nodes(trace, pass_id)


def _search_breadth_first(trace: TraceData, pass_id: int, reached: Collection[int], room: int) -> list[int]:
    """The nodes of a pass, nearest to the roots first: those in ``reached``, and at most ``room`` others."""
    following = trace.lookup.following
    queue = [node for node, _ in trace.roots[pass_id]] if pass_id < len(trace.roots) else []
    seen = dict.fromkeys(queue)
    queue = list(seen)
    for node in queue:  # grows while it is read
        for _, end in following.get(node, ()):
            if end not in seen and (end in reached or room):
                room -= end not in reached
                seen[end] = None
                queue.append(end)
    return queue


def leads_outside(ways: Iterable[tuple[int, int, int]], nodes: Collection[int]) -> bool:
    """Whether some of ``ways``, which begin at ``nodes``, lead to other nodes."""
    return not {end for _, _, end in ways} <= set(nodes)


def iter_enclosing_calls(trace: TraceData, call: int) -> Iterator[int]:
    """A call and those around it, the innermost first."""
    at: int | None = call
    while at is not None and at >= 0:
        yield at
        at = trace.calls[at].parent


def list_pass_calls(trace: TraceData, pass_id: int) -> list[int]:
    """The calls that steps of a pass are about, and those around them."""
    calls = dict.fromkeys(trace.rows[step].call for step in trace.lookup.steps(pass_id))
    return list(dict.fromkeys(at for call in calls for at in iter_enclosing_calls(trace, call)))


def assign_nodes_to_calls(trace: TraceData, nodes: Iterable[int]) -> dict[int, int]:
    """Node → the call in whose box it belongs: that which made it, or for a parameter's leaf, that which used it.

    A parameter is used in every call of its module: it belongs to the one among them that is in this picture. That of
    a module which was not called itself, as attention's ``out_proj``, belongs to the call around that used it.
    """
    made = {node: trace.owners[node] for node in nodes if node in trace.owners}
    used: dict[int, int] = {}
    for start, _, end in trace.lookup.ways(made):
        if trace.ops[end] != "AccumulateGrad":
            continue
        call = made[start]
        if end in made:
            own = call if trace.calls[call].module == trace.calls[made[end]].module else None
        else:
            own = _find_enclosing_call(trace, call, trace.lookup.leaf_names.get(end, ""))
        if own is not None:
            used[end] = min(own, used.get(end, own))
    return made | used


def _find_enclosing_call(trace: TraceData, call: int, name: str) -> int | None:
    """The innermost call around ``call`` of a module that the parameter ``name`` is part of."""
    return next(
        (at for at in iter_enclosing_calls(trace, call) if name.startswith(f"{trace.module(trace.calls[at].module)}.")),
        None,
    )
