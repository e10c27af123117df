"""Calls of torch's own recurrent modules, whose many ops nobody wrote: in a picture, one box stands for all of them."""

from collections.abc import Collection, Mapping

from hookviz.trace import TraceData

RECURRENT_MODULES = frozenset({"RNN", "LSTM", "GRU"})
"""Classes of torch.nn whose calls make some ops for each step of a sequence."""

MAX_OPS = 12
"""A call of at most this many ops, as of a short sequence or of one kernel for all of it, is drawn as it is."""


def join_recurrent_calls(
    trace: TraceData, calls: Mapping[int, int], nodes: Collection[int], observed: Collection[int]
) -> dict[int, int]:
    """Return node → the node of the same call whose box stands for it, for the calls of recurrent modules.

    Args:
        trace: the trace.
        calls: node → the call that it belongs to.
        nodes: the nodes of the picture, those nearest to the roots first.
        observed: the nodes that keep boxes of their own, such as those of results with names.
    """
    made: dict[int, list[int]] = {call: [] for call in set(calls.values()) if _is_recurrent(trace, call)}
    for node in nodes if made else ():
        if calls.get(node) in made and trace.ops[node] != "AccumulateGrad":
            made[calls[node]].append(node)
    joined: dict[int, int] = {}
    for ops in made.values():
        inside = [node for node in ops if node not in observed]
        inside.sort(key=lambda node: trace.ops[node] == "BackwardHookFunctionBackward")
        if len(ops) > MAX_OPS and not _leads_back(trace, inside, ops):
            joined |= dict.fromkeys(inside, inside[0])
    return joined


def _is_recurrent(trace: TraceData, call: int) -> bool:
    """Whether a call is one of torch's own module: others may have classes of the same name."""
    if trace.modules[trace.calls[call].module].kind not in RECURRENT_MODULES:
        return False
    name = trace.plain_call(call)
    return {f"{name}.weight_ih_l0", f"{name}.weight_hh_l0"}.issubset(trace.lookup.leaf_names.values())


def _leads_back(trace: TraceData, inside: Collection[int], ops: Collection[int]) -> bool:
    """Whether an edge leads from a joined node to another of the call: its box would be on both sides of that."""
    return any(end in set(ops).difference(inside) for _start, _slot, end in trace.lookup.out_edges(inside))
