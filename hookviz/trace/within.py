"""How the nodes and the calls of one pass lie to each other."""

from collections.abc import Iterable, Iterator

from hookviz.trace.trace import Trace


def below(trace: Trace, pass_id: int) -> Iterator[int]:
    """The nodes of a pass, nearest to the roots first."""
    following: dict[int, list[int]] = {}
    for (start, _), (end, _) in trace.edges.items():
        following.setdefault(start, []).append(end)
    queue = [node for node, _ in trace.roots[pass_id]] if pass_id < len(trace.roots) else []
    seen = dict.fromkeys(queue)
    queue = list(seen)
    for node in queue:  # grows while it is read
        for end in following.get(node, ()):
            if end not in seen:
                seen[end] = None
                queue.append(end)
    return iter(seen)


def chain(trace: Trace, call: int) -> Iterator[int]:
    """A call and those around it, the innermost first."""
    at: int | None = call
    while at is not None and at >= 0:
        yield at
        at = trace.calls[at].parent


def called(trace: Trace, pass_id: int) -> list[int]:
    """The calls that steps of a pass are about, and those around them."""
    steps = dict.fromkeys(row.call for row in trace.rows if row.pass_id == pass_id and row.call >= 0)
    return list(dict.fromkeys(at for call in steps for at in chain(trace, call)))


def makers(trace: Trace, nodes: Iterable[int]) -> dict[int, int]:
    """Node → the call in whose box it belongs: that which made it, or for a parameter's leaf, that which used it.

    A parameter is used in every call of its module: it belongs to the one among them that is in this picture. That of
    a module which was not called itself, as attention's ``out_proj``, belongs to the call around that used it.
    """
    made = {node: trace.owners[node] for node in nodes if node in trace.owners}
    names = {row.node: row.name for row in trace.tensors if row.leaf and row.name}
    used: dict[int, int] = {}
    for (start, _), (end, _) in trace.edges.items():
        if trace.ops[end] != "AccumulateGrad" or start not in made:
            continue
        if end in made:
            own = made[start] if trace.calls[made[start]].module == trace.calls[made[end]].module else None
        else:
            own = _around(trace, made[start], names.get(end, ""))
        if own is not None:
            used[end] = min(own, used.get(end, own))
    return made | used


def _around(trace: Trace, call: int, name: str) -> int | None:
    """The innermost call around ``call`` of a module that the parameter ``name`` is part of."""
    return next((at for at in chain(trace, call) if name.startswith(f"{trace.module(trace.calls[at].module)}.")), None)
