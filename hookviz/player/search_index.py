"""What can be searched for in a trace: what each thing is called, and where and when it is seen."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import NamedTuple

from hookviz.picture.grouping import Views
from hookviz.picture.grouping.activity import PassActivity
from hookviz.player.payload import IndexPart
from hookviz.player.wording import Wording
from hookviz.support.source_code import Source
from hookviz.trace import HOOK_KINDS, TraceData


class Entry(NamedTuple):
    """A thing that has a name."""

    kind: str
    """``node``, ``leaf``, ``module``, ``hook`` or ``pass``."""
    label: str
    note: str
    """What else it goes by: an op, a class, what a hook is on."""
    number: int
    """A node's; else -1."""
    view: str
    """The name of the picture in which it stands for itself, or of the box that it is."""
    steps: list[int]
    """When gradients arrive at a node; when a module or hook first has its turn; none where nothing happens."""


def index_part(entries: Iterable[Entry], wording: Wording) -> IndexPart:
    """``entries`` as a column for each of their fields.

    >>> index_part([Entry("leaf", "x", "AccumulateGrad", 3, "0/", [7])], Wording())["label"]
    ['x']
    """
    rows = list(entries)
    return {
        "kind": [row.kind for row in rows],
        "label": [wording(row.label) for row in rows],
        "note": [wording(row.note) for row in rows],
        "number": [row.number for row in rows],
        "view": [row.view for row in rows],
        "steps": [row.steps for row in rows],
        "words": wording.words,
    }


def entries(trace: TraceData, views: Views, happened: PassActivity) -> Iterator[Entry]:
    """All that has a name in one pass."""
    yield from _modules(trace, views, happened)
    yield from _hooks(trace, views, happened)
    yield from _nodes(trace, views, happened)


def _modules(trace: TraceData, views: Views, happened: PassActivity) -> Iterator[Entry]:
    for call, fold in views.tree.calls.items():
        own = happened.calls[call].steps if call in happened.calls else []
        within = (happened.nodes[node].steps for node in fold.nodes if node in happened.nodes)
        first = islice(own or chain.from_iterable(within), 1)
        kind = trace.modules[trace.calls[call].module].kind
        yield Entry("module", trace.call(call), kind, -1, views.view_name(fold), list(first))


def _hooks(trace: TraceData, views: Views, happened: PassActivity) -> Iterator[Entry]:
    """Those that fired, by their first firing; and those that were registered and did not."""
    tree = views.tree
    first = _first_firings(trace, tree.pass_id)
    registered = trace.hooked[tree.pass_id] if tree.pass_id < len(trace.hooked) else []
    calls = {trace.calls[call].module: call for call in reversed(tree.calls)}
    for index in dict.fromkeys([*first, *registered]):
        row, step = trace.hook_rows[index], first.get(index)
        node, call = row.node, calls.get(row.module, -1) if row.node < 0 else -1
        if step is not None:
            node, call = trace.rows[step].node, trace.rows[step].call
        fold = tree.calls.get(call) or tree.innermost_groups.get(node, tree.root)
        on = trace.call(call) if call in tree.calls else trace.name(node, row.output)
        label = Source(row.name, row.file, row.line, row.text, row.mark).label
        yield Entry("hook", label, on, -1, views.view_name(fold), [] if step is None else [step])


def _first_firings(trace: TraceData, pass_id: int) -> dict[int, int]:
    first: dict[int, int] = {}
    for step in trace.lookup.hook_steps(pass_id):
        row = trace.rows[step]
        if row.hook is not None and row.kind in HOOK_KINDS:
            first.setdefault(row.hook, step)
    return first


def _nodes(trace: TraceData, views: Views, happened: PassActivity) -> Iterator[Entry]:
    """A leaf under its own name, another node under its op's; with the names of what it computed."""
    tensors_at = trace.lookup.tensors
    for node, fold in views.tree.innermost_groups.items():
        leaf = trace.ops[node] == "AccumulateGrad"
        label = trace.name(node, 0 if leaf else -1)
        there = tensors_at(views.tree.pass_id, node)
        names = dict.fromkeys(row.name for row in there if row.name) if there else {}
        notes = [trace.ops[node]] if leaf else [name for name in names if f"({name})" not in label]
        of = happened.nodes.get(node)
        steps = ([arrival.step for arrival in of.arrivals] or of.steps[:1]) if of else []
        yield Entry("leaf" if leaf else "node", label, ", ".join(notes), node, views.view_name(fold), steps)
