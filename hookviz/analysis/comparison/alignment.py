"""Several traces of one program in the numbers of the first, row beside row: one picture and one timeline serve all."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from difflib import SequenceMatcher
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

from hookviz.analysis.comparison.graph_matching import matched
from hookviz.trace import CallRow, HookRow, ModuleRow, ScaleRow, StepRow, TraceData

ABSENT = "absent"
"""The kind of a row that stands where other traces have a step and this one has none."""

Key = tuple[Any, ...]


class _Numbers(NamedTuple):
    """What a trace's own numbers are in the numbers of all."""

    nodes: dict[int, int]
    modules: dict[int, int]
    calls: dict[int, int]
    optimizers: dict[int, int]
    hooks: dict[int, int]


def align(traces: Sequence[TraceData], known: Sequence[Mapping[int, Hashable]] | None = None) -> list[TraceData]:
    """``traces`` of one program in common numbers, each with a row in every place where one of them has a step.

    Nodes are matched by their places in the graph, as ``Trace.diff`` does; where the graphs differ, the places of
    tensors of the same name are one, and all else is not. Hooks are matched by where they are kept and what they are
    called; ``known`` says of each trace which hook (its row) is which (anything hashable), where that is known better.
    The first trace keeps its numbers. Where a trace has nothing to show in a place, its row's kind is ``ABSENT``.
    """
    return [trace for trace, _ in joined(traces, known or [{} for _ in traces])]


def joined(
    traces: Sequence[TraceData], known: Sequence[Mapping[int, Hashable]], *, apart: bool = False
) -> list[tuple[TraceData, dict[int, Hashable]]]:
    """As ``align``, and which of the hooks of all are each trace's own, with what is ``known`` of each.

    ``apart``, no pass has hooks that only other traces have.
    """
    common = _Common(traces[0])
    moved = [common.move(trace, hooks) for trace, hooks in zip(traces, known, strict=True)]
    keys = [_keys(trace) for trace, _ in moved]
    order = _merged(keys)
    for trace, _ in moved:
        common.finish(trace, apart=apart)
    return [(_spread(trace, theirs, order), own) for (trace, own), theirs in zip(moved, keys, strict=True)]


class _Common:
    """The numbers that all traces share; it grows as traces bring more."""

    def __init__(self, first: TraceData) -> None:
        self.first = first
        self.ops = list(first.ops)
        self.hook_rows: list[HookRow] = []
        self.modules: list[ModuleRow] = []
        self.optimizers: list[ModuleRow] = []
        self.calls: list[CallRow] = []
        self._call_places: dict[CallRow, int] = {}
        self._hooks: dict[Key, int] = {}
        self._nodes: dict[Key, int] = {}
        self.hooked: dict[int, dict[int, None]] = {}
        """For each pass, the hooks that were there or ran in one of the traces; also where no backward has begun."""

    def move(self, trace: TraceData, known: Mapping[int, Hashable]) -> tuple[TraceData, dict[int, Hashable]]:
        """``trace`` in the numbers of all, and the numbers of its hooks, each with what is known of it."""
        numbers = self._numbers(trace, known)
        ran = [(row.pass_id, [row.hook]) for row in trace.rows if row.hook is not None]
        for pass_id, there in [*enumerate(trace.hooked), *ran]:
            self.hooked.setdefault(pass_id, {}).update((numbers.hooks[hook], None) for hook in there)
        nodes = numbers.nodes
        moved = replace(
            trace,
            hooked=[[numbers.hooks[hook] for hook in there] for there in trace.hooked],
            edges={(nodes[start], slot): (nodes[end], output) for (start, slot), (end, output) in trace.edges.items()},
            saved=[row._replace(node=nodes[row.node]) for row in trace.saved],
            tensors=[row._replace(node=nodes[row.node]) for row in trace.tensors],
            rows=[_step(row, numbers) for row in trace.rows],
            outside={nodes[node] for node in trace.outside},
            scales=[_scale(row, nodes) for row in trace.scales],
            owners={nodes[node]: numbers.calls[call] for node, call in trace.owners.items()},
            roots=[[(nodes[node], output) for node, output in places] for places in trace.roots],
        )
        return moved, {number: known.get(index) for index, number in numbers.hooks.items()}

    def finish(self, trace: TraceData, *, apart: bool) -> None:
        """Give ``trace`` the tables of all, once they are complete; and unless it is to stay ``apart``, all hooks."""
        trace.ops, trace.hook_rows = list(self.ops), list(self.hook_rows)
        trace.modules, trace.calls, trace.optimizers = list(self.modules), list(self.calls), list(self.optimizers)
        if not apart:
            trace.hooked = [list(self.hooked.get(pass_id, ())) for pass_id in range(1 + max(self.hooked, default=-1))]
        trace.clear_caches()

    def _numbers(self, trace: TraceData, known: Mapping[int, Hashable]) -> _Numbers:
        modules = _places(self.modules, trace.modules)
        calls = self._calls(trace, modules)
        optimizers = _places(self.optimizers, trace.optimizers)
        nodes = self._match(trace, calls)
        moved = _Numbers(nodes, modules, calls, optimizers, {})
        seen: Counter[Key] = Counter()
        for index, row in enumerate(trace.hook_rows):
            row = _hook(row, moved)
            identity = known.get(index), *row.dict, row.name, row.file, row.line
            seen[identity] += 1
            key = (*identity, seen[identity])
            if key not in self._hooks:
                self._hooks[key] = len(self.hook_rows)
                self.hook_rows.append(row)
            moved.hooks[index] = self._hooks[key]
        return moved

    def _match(self, trace: TraceData, calls: Mapping[int, int]) -> dict[int, int]:
        """Number of a node in ``trace`` → its number in all traces; the first keeps its own."""
        if trace is self.first:
            return {node: node for node in range(len(trace.ops))}
        try:
            pairs = {pair for numbers in matched(self.first, trace) for pair in numbers.items()}
        except ValueError:  # a hook can make another graph, as one that replaces a module's output does
            pairs = set()
        found = _one_to_one(pairs)
        if len(found) < len(pairs) or not pairs:  # or it leads a later pass to another node than the first trace's
            found = _by_name(self.first, trace)
        owners = {node: calls[call] for node, call in trace.owners.items()}
        _grow(self.first, trace, owners, found)
        if _in_calls(self.first, trace, owners, found):
            _grow(self.first, trace, owners, found)
        self._add(trace, owners, found)
        return found

    def _add(self, trace: TraceData, owners: Mapping[int, int], found: dict[int, int]) -> None:
        """Give new numbers to the nodes that the first trace has not; traces share one for what computes the same."""
        below = _below(trace)
        names = {row.node: row.name for row in trace.tensors}
        ends = {node: {end for _, end, _ in below.get(node, ())} for node in range(len(trace.ops))}
        seen: Counter[Key] = Counter()
        for node in TopologicalSorter(ends).static_order():  # from the leaves on
            if node in found:
                continue
            goes = sorted((slot, found[end], output) for slot, end, output in below.get(node, ()))
            key = (trace.ops[node], owners.get(node, -1), names.get(node, ""), *goes)
            seen[key] += 1
            found[node] = self._nodes.setdefault((*key, seen[key]), len(self.ops))
            if found[node] == len(self.ops):
                self.ops.append(trace.ops[node])

    def _calls(self, trace: TraceData, modules: Mapping[int, int]) -> dict[int, int]:
        found: dict[int, int] = {}
        for index, row in enumerate(trace.calls):
            parent = None if row.parent is None else found[row.parent]
            moved = row._replace(module=modules[row.module], parent=parent)
            found[index] = self._call_places.setdefault(moved, len(self.calls))
            if found[index] == len(self.calls):
                self.calls.append(moved)
        return found


def _places(common: list[ModuleRow], rows: Iterable[ModuleRow]) -> dict[int, int]:
    """Where each of ``rows`` is in ``common``, to which new ones are added."""
    known = {row: place for place, row in reversed([*enumerate(common)])}
    found = {}
    for index, row in enumerate(rows):
        if row not in known:
            known[row] = len(common)
            common.append(row)
        found[index] = known[row]
    return found


def _by_name(first: TraceData, trace: TraceData) -> dict[int, int]:
    """The nodes at which tensors of the same name and op stand, where no other pair claims one of them."""
    known: dict[Key, list[int]] = {}
    for ours in first.tensors:
        known.setdefault(ours[:1] + ours[2:5], []).append(ours.node)
    named = (theirs for theirs in trace.tensors if theirs.name)
    pairs = {(theirs.node, ours) for theirs in named for ours in known.get(theirs[:1] + theirs[2:5], ())}
    return _one_to_one({pair for pair in pairs if trace.ops[pair[0]] == first.ops[pair[1]]})


def _one_to_one(pairs: Set[tuple[int, int]]) -> dict[int, int]:
    """Those of ``pairs`` of which no other pair claims a side."""
    count = Counter(node for pair in pairs for node in (("theirs", pair[0]), ("ours", pair[1])))
    return {theirs: ours for theirs, ours in pairs if count["theirs", theirs] == count["ours", ours] == 1}


def _grow(first: TraceData, trace: TraceData, owners: Mapping[int, int], found: dict[int, int]) -> None:
    """Match, from the leaves on, what computes the same from what is matched already, where it is the only one.

    ``owners`` says in which call of a module, in common numbers, each node of ``trace`` was made: it must be the same.
    """
    ours, theirs = _below(first), _below(trace)
    taken = set(found.values())
    while True:
        free: dict[Key, list[int]] = {}
        for node in ours.keys() - taken:
            free.setdefault((first.ops[node], first.owners.get(node, -1), *sorted(ours[node])), []).append(node)
        new = {}
        for node in sorted(theirs.keys() - found.keys()):
            ends = {(slot, found.get(end, -1), output) for slot, end, output in theirs[node]}
            same = free.get((trace.ops[node], owners.get(node, -1), *sorted(ends)), [])
            if len(same) == 1:
                new[node] = same.pop()
        if not new:
            return
        found |= new
        taken |= set(new.values())


def _in_calls(first: TraceData, trace: TraceData, owners: Mapping[int, int], found: dict[int, int]) -> bool:
    """Match what is the only one of its op in the same call of a module; whether there was any."""
    ours, theirs = _alone(first.ops, first.owners), _alone(trace.ops, owners)
    taken = set(found.values())
    new = {
        theirs[key]: ours[key]
        for key in theirs.keys() & ours.keys()
        if theirs[key] not in found and ours[key] not in taken
    }
    found |= new
    return bool(new)


def _alone(ops: Sequence[str], owners: Mapping[int, int]) -> dict[Key, int]:
    """(op, number of a call) → the node, where the call has no other of that op."""
    count = Counter((ops[node], call) for node, call in owners.items())
    return {(ops[node], call): node for node, call in owners.items() if count[ops[node], call] == 1}


def _below(trace: TraceData) -> dict[int, set[tuple[int, int, int]]]:
    """For each node that sends gradients: (which of its edges, to which node, to which of its outputs)."""
    ends: dict[int, set[tuple[int, int, int]]] = {}
    for (start, slot), (end, output) in trace.edges.items():
        ends.setdefault(start, set()).add((slot, end, output))
    return ends


def _hook(row: HookRow, numbers: _Numbers) -> HookRow:
    holders = numbers.optimizers if row.kind in ("step_pre_hook", "step_post_hook") else numbers.modules
    return row._replace(node=numbers.nodes.get(row.node, -1), module=holders.get(row.module, -1))


def _scale(row: ScaleRow, nodes: Mapping[int, int]) -> ScaleRow:
    at, others = (tuple(nodes[node] for node in there) for there in (row.at, row.others))
    return row._replace(at=at, others=others)


def _step(row: StepRow, numbers: _Numbers) -> StepRow:
    return row._replace(
        node=numbers.nodes.get(row.node, -1),
        hook=None if row.hook is None else numbers.hooks[row.hook],
        parts=tuple((numbers.nodes.get(node, -1), slot, value) for node, slot, value in row.parts),
        call=numbers.calls.get(row.call, -1),
        optimizer=numbers.optimizers.get(row.optimizer, -1),
    )


# -- one timeline


def _keys(trace: TraceData) -> list[Key]:
    """What tells each step of a trace in common numbers from the others."""
    seen: Counter[Key] = Counter()
    keys = []
    for row in trace.rows:
        key = (row.pass_id, row.kind, row.node, row.output, row.hook, row.call, row.optimizer)
        seen[key] += 1
        keys.append((*key, seen[key]))
    return keys


def _merged(lists: Sequence[Sequence[Key]]) -> list[Key]:
    """One order in which every key of every list has a place; keys whose order is not the same have several."""
    order = list(lists[0])
    for keys in lists[1:]:
        merged: list[Key] = []
        for kind, i, j, k, m in SequenceMatcher(None, order, keys, autojunk=False).get_opcodes():
            merged += order[i:j]
            if kind != "equal":
                merged += keys[k:m]
        order = merged
    return order


def _spread(trace: TraceData, keys: Sequence[Key], order: Sequence[Key]) -> TraceData:
    """``trace`` with its rows in their places among those of all."""
    places = _placed(keys, order)
    rows = [StepRow(pass_id=key[0], kind=ABSENT, node=key[2], output=key[3], call=key[5]) for key in order]
    for row, place in zip(trace.rows, places, strict=True):
        rows[place] = row._replace(cause=None if row.cause is None else places[row.cause])
    trace.rows = rows
    if trace.explained:
        known = dict(zip(places, trace.explained, strict=True))
        trace.explained = [known.get(place) for place in range(len(order))]
    trace.clear_caches()
    return trace


def _placed(keys: Sequence[Key], order: Sequence[Key]) -> list[int]:
    """The place of each key in the merged order, of which the keys are a part in the same order."""
    places, at = [], 0
    for key in keys:
        while order[at] != key:
            at += 1
        places.append(at)
        at += 1
    return places
