"""The search index of a trace: named nodes, modules, hooks and passes, each with its picture and steps."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from hookviz.picture.grouping import BoxTree, Group, Views
from hookviz.picture.grouping.activity import PassActivity
from hookviz.player.payload import IndexChunk
from hookviz.trace import HOOK_KINDS, TraceData
from hookviz.trace.rows import renumber


class Entry(NamedTuple):
    """An entry of the search index."""

    kind: str
    """``node``, ``leaf``, ``module``, ``hook`` or ``pass``."""
    label: str
    note: str
    """More text to search: an op, a class, or what a hook is registered on."""
    number: int
    """The number of the node; -1 for other kinds."""
    view: str
    """The name of the picture that shows it on its own."""
    steps: list[int]
    """Steps in which gradients arrive at a node, or the first step of a module or hook; empty if there are none."""


def index_chunk(entries: Iterable[Entry]) -> IndexChunk:
    """Return ``entries`` as a column for each field.

    >>> index_chunk([Entry("leaf", "x", "AccumulateGrad", 3, "0/", [7])])["label"]
    ['x']
    """
    rows = list(entries)
    return {
        "kind": [row.kind for row in rows],
        "label": [row.label for row in rows],
        "note": [row.note for row in rows],
        "number": [row.number for row in rows],
        "view": [row.view for row in rows],
        "steps": [row.steps for row in rows],
    }


def search_entries(trace: TraceData, views: Views, activity: PassActivity) -> Iterator[Entry]:
    """Yield an entry for each module, hook and node of one pass."""
    yield from _module_entries(trace, views, activity)
    yield from _hook_entries(trace, views, activity)
    yield from _node_entries(trace, views, activity)


def _module_entries(trace: TraceData, views: Views, activity: PassActivity) -> Iterator[Entry]:
    for call, group in views.tree.calls.items():
        own = activity.calls[call].steps if call in activity.calls else []
        inside = (activity.nodes[node].steps for node in group.nodes if node in activity.nodes)
        first = islice(own or chain.from_iterable(inside), 1)
        kind = trace.modules[trace.calls[call].module].kind
        yield Entry("module", trace.call(call), kind, -1, views.view_name(group), list(first))
    idle = views.tree.graph.idle_calls
    steps = reversed(trace.lookup.steps(views.tree.pass_id) if idle else ())
    firsts = {trace.rows[step].call: step for step in steps}
    for call, around in idle.items():
        kind, view = trace.modules[trace.calls[call].module].kind, views.view_name(views.tree.calls[around])
        yield Entry("module", trace.call(call), kind, -1, view, [firsts[call]])


def _hook_entries(trace: TraceData, views: Views, activity: PassActivity) -> Iterator[Entry]:
    """Yield the hooks that fired, in the order of their first firing, then registered hooks that did not fire."""
    tree = views.tree
    first = _first_firings(trace, tree.pass_id)
    registered = trace.hooked[tree.pass_id] if tree.pass_id < len(trace.hooked) else []
    calls_of_modules = {trace.calls[call].module: call for call in reversed(tree.calls)}
    for index in dict.fromkeys([*first, *registered]):
        row, step = trace.hook_rows[index], first.get(index)
        node, call = row.node, renumber(calls_of_modules, row.module)
        if step is not None:
            node, call = trace.rows[step].node, trace.rows[step].call
        group = _group_of(tree, node, call)
        on = trace.call(call) if call is not None and call in tree.calls else trace.name(node, row.output)
        yield Entry(
            "hook", trace.hook_of_row(row, on).label, on, -1, views.view_name(group), [] if step is None else [step]
        )


def _group_of(tree: BoxTree, node: int | None, call: int | None) -> Group:
    """Return the group in whose picture a node or a module call is drawn."""
    group = None if call is None else tree.calls.get(call)
    if group is not None or node is None:
        return group or tree.root
    return tree.innermost_groups.get(tree.graph.boxes.get(node, node), tree.root)


def _first_firings(trace: TraceData, pass_id: int) -> dict[int, int]:
    first: dict[int, int] = {}
    for step in trace.lookup.steps_with_hooks(pass_id):
        row = trace.rows[step]
        if row.hook is not None and row.kind in HOOK_KINDS:
            first.setdefault(row.hook, step)
    return first


def _node_entries(trace: TraceData, views: Views, activity: PassActivity) -> Iterator[Entry]:
    """Yield the nodes: leaves by the names of their tensors, others by their ops and the names of their outputs."""
    tensors_of = trace.lookup.tensors
    innermost = views.tree.innermost_groups
    hidden = {node: innermost[box] for node, box in views.tree.graph.boxes.items()}
    for node, group in (innermost | hidden).items():
        is_leaf = trace.ops[node] == "AccumulateGrad"
        label = trace.name(node, 0 if is_leaf else None)
        tensors = tensors_of(views.tree.pass_id, node)
        names = dict.fromkeys(row.name for row in tensors if row.name) if tensors else {}
        notes = [trace.ops[node]] if is_leaf else [name for name in names if f"({name})" not in label]
        own = activity.nodes.get(node)
        steps = ([arrival.step for arrival in own.arrivals] or own.steps[:1]) if own else []
        yield Entry("leaf" if is_leaf else "node", label, ", ".join(notes), node, views.view_name(group), steps)
