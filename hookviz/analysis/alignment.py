"""Align traces of the same program: equal nodes, modules and hooks get equal numbers, equal steps the same row.

Aligned traces can share one picture and one timeline.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from difflib import SequenceMatcher
from graphlib import TopologicalSorter
from typing import Any

from hookviz.support.messages import _, pluralize
from hookviz.trace import CallRow, HookRow, ModuleRow, NodeOutput, StepRow, TraceData
from hookviz.trace.cells import make_renumbering, renumber_tables

ABSENT = "absent"
"""The kind of a placeholder row: other traces have a step here, this one has none."""

Key = tuple[Any, ...]
"""Identifies a node, a hook or a step among all traces."""


NumberMaps = dict[str, dict[int, int]]
"""Table → a trace's own indexes of its rows → the common ones of all traces."""
_SKIPPED_OP = "BackwardHookFunctionBackward"
"""The node that torch puts around a module with full backward hooks; gradients pass through it unchanged."""


def align(traces: Sequence[TraceData], hook_ids: Sequence[Mapping[int, Hashable]] | None = None) -> list[TraceData]:
    """Renumber traces of the same program to common numbers, and give each a row for every step that one of them has.

    Nodes are matched by their places in the graph, as ``Trace.diff`` does; if the graphs differ, first by the names of
    tensors, then by their op and the nodes to which they send. Hooks are matched by the dict that holds them and by
    name. If the caller knows better, ``hook_ids`` has for each trace: index of a hook's row → an id that is equal for
    equal hooks. The first trace keeps its numbers. The kind of a row for a step that a trace lacks is ``ABSENT``.
    """
    return [trace for trace, _ in align_with_hooks(traces, hook_ids or [{} for _ in traces])]


def align_with_hooks(
    traces: Sequence[TraceData], hook_ids: Sequence[Mapping[int, Hashable]], *, own_hooks: bool = False
) -> list[tuple[TraceData, dict[int, Hashable]]]:
    """Align traces, and return with each the common number of each of its own hooks → its id, None if it has none.

    With ``own_hooks``, the passes of a trace list only the hooks that this trace has itself.
    """
    common = _CommonTables(traces[0])
    renumbered = [common.renumber(trace, ids) for trace, ids in zip(traces, hook_ids, strict=True)]
    keys = [_step_keys(trace) for trace, _ignored in renumbered]
    order = _merge_orders(keys)
    for trace, _ignored in renumbered:
        common.copy_to(trace, own_hooks=own_hooks)
    return [(_spread_rows(trace, theirs, order), ids) for (trace, ids), theirs in zip(renumbered, keys, strict=True)]


class _CommonTables:
    """The tables that all traces share; each trace adds the rows that are new."""

    def __init__(self, first: TraceData) -> None:
        self.first = first
        self.ops = list(first.ops)
        self.hook_rows: list[HookRow] = []
        self.modules: list[ModuleRow] = []
        self.optimizers: list[ModuleRow] = []
        self.calls: list[CallRow] = []
        self._call_numbers: dict[tuple[int, int, int | None, bool], int] = {}
        self._hooks: dict[Key, int] = {}
        self._nodes: dict[Key, int] = {}
        self.hooked: dict[int, dict[int, None]] = {}
        """Pass → the hooks that were registered or ran in any of the traces, as an ordered set."""

    def renumber(self, trace: TraceData, hook_ids: Mapping[int, Hashable]) -> tuple[TraceData, dict[int, Hashable]]:
        """Copy ``trace`` with common numbers; also return the common number of each of its hooks → its id."""
        numbers = self._map_numbers(trace)
        hooks = numbers["hook_rows"] = self._map_hooks(trace, hook_ids, numbers)
        ran = [(row.pass_id, [row.hook]) for row in trace.rows if row.hook is not None]
        for pass_id, of_pass in [*enumerate(trace.hooked), *ran]:
            self.hooked.setdefault(pass_id, {}).update((hooks[hook], None) for hook in of_pass)
        renumbered = replace(trace)
        renumber_tables(renumbered, numbers)
        return renumbered, {number: hook_ids.get(index) for index, number in hooks.items()}

    def copy_to(self, trace: TraceData, *, own_hooks: bool) -> None:
        """Copy the complete tables to ``trace``; unless it keeps ``own_hooks``, also the hooks of all passes."""
        trace.ops, trace.hook_rows = list(self.ops), list(self.hook_rows)
        trace.modules, trace.calls, trace.optimizers = list(self.modules), list(self.calls), list(self.optimizers)
        if not own_hooks:
            trace.hooked = [list(self.hooked.get(pass_id, ())) for pass_id in range(1 + max(self.hooked, default=-1))]
        trace.clear_caches()

    def _map_numbers(self, trace: TraceData) -> NumberMaps:
        """Find the common numbers of what ``trace`` holds, without its hooks; new rows are added to the tables."""
        modules = _map_modules(self.modules, trace.modules)
        calls = self._map_calls(trace, modules)
        optimizers = _map_modules(self.optimizers, trace.optimizers)
        return {"modules": modules, "calls": calls, "optimizers": optimizers, "ops": self._map_nodes(trace, calls)}

    def _map_hooks(self, trace: TraceData, ids: Mapping[int, Hashable], numbers: NumberMaps) -> dict[int, int]:
        """Map the index of each hook to its common index; new hooks are added to the common table."""
        counts: Counter[Key] = Counter()
        common: dict[int, int] = {}
        renumber = make_renumbering(HookRow, numbers)
        for index, row in enumerate(map(renumber, trace.hook_rows)):
            identity = ids.get(index), *row.dict, row.name, row.file, row.line
            counts[identity] += 1
            key = (*identity, counts[identity])
            if key not in self._hooks:
                self._hooks[key] = len(self.hook_rows)
                self.hook_rows.append(row)
            common[index] = self._hooks[key]
        return common

    def _map_nodes(self, trace: TraceData, calls: Mapping[int, int]) -> dict[int, int]:
        """Map the number of a node in ``trace`` to its common number; the first trace keeps its own numbers."""
        if trace is self.first:
            return {node: node for node in range(len(trace.ops))}
        try:
            pairs = {pair for in_pass in match_graphs(self.first, trace).values() for pair in in_pass.items()}
        except ValueError:  # a hook can change the graph, for example by replacing the output of a module
            pairs = set()
        numbers = _keep_one_to_one(pairs)
        if len(numbers) < len(pairs) or not pairs:  # or a hook made two passes disagree about a node
            numbers = _match_by_name(self.first, trace)
        owners = {node: calls[call] for node, call in trace.owners.items()}
        _extend_match(self.first, trace, owners, numbers)
        if _match_within_calls(self.first, trace, owners, numbers):
            _extend_match(self.first, trace, owners, numbers)
        self._number_new_nodes(trace, owners, numbers)
        return numbers

    def _number_new_nodes(self, trace: TraceData, owners: Mapping[int, int], numbers: dict[int, int]) -> None:
        """Give new numbers to the nodes that the first trace lacks; later traces share them for equal nodes."""
        edges = _edges_by_node(trace)
        names = {row.node: row.name for row in trace.tensors}
        ends = {node: {end for _, end, _ in edges.get(node, ())} for node in range(len(trace.ops))}
        counts: Counter[Key] = Counter()
        for node in TopologicalSorter(ends).static_order():  # starting at the leaves
            if node in numbers:
                continue
            targets = sorted((slot, numbers[end], output) for slot, end, output in edges.get(node, ()))
            key = (trace.ops[node], owners.get(node, -1), names.get(node, ""), *targets)
            counts[key] += 1
            numbers[node] = self._nodes.setdefault((*key, counts[key]), len(self.ops))
            if numbers[node] == len(self.ops):
                self.ops.append(trace.ops[node])

    def _map_calls(self, trace: TraceData, modules: Mapping[int, int]) -> dict[int, int]:
        """Map the number of a module call to its common number; new calls are added to the common table."""
        numbers: dict[int, int] = {}
        for index, row in enumerate(trace.calls):
            parent = None if row.parent is None else numbers[row.parent]
            common_row = row._replace(module=modules[row.module], parent=parent)
            # Whether its tensors require grad does not identify a call: a hook that is off may change that.
            identity = common_row.module, common_row.number, parent, common_row.recomputed
            numbers[index] = self._call_numbers.setdefault(identity, len(self.calls))
            if numbers[index] == len(self.calls):
                self.calls.append(common_row)
        return numbers


def _map_modules(common: list[ModuleRow], rows: Iterable[ModuleRow]) -> dict[int, int]:
    """Map the index of each row to its index in ``common``; new rows are appended to ``common``."""
    known = {row: number for number, row in reversed([*enumerate(common)])}
    numbers = {}
    for index, row in enumerate(rows):
        if row not in known:
            known[row] = len(common)
            common.append(row)
        numbers[index] = known[row]
    return numbers


def _match_by_name(first: TraceData, trace: TraceData) -> dict[int, int]:
    """Match nodes of the same op whose tensors have the same name, if only one pair is possible."""
    known: dict[Key, list[int]] = {}
    for ours in first.tensors:
        known.setdefault(ours[:1] + ours[2:5], []).append(ours.node)
    named = (theirs for theirs in trace.tensors if theirs.name)
    pairs = {(theirs.node, ours) for theirs in named for ours in known.get(theirs[:1] + theirs[2:5], ())}
    return _keep_one_to_one({pair for pair in pairs if trace.ops[pair[0]] == first.ops[pair[1]]})


def _keep_one_to_one(pairs: Set[tuple[int, int]]) -> dict[int, int]:
    """The pairs whose two nodes are in no other pair."""
    counts = Counter(node for pair in pairs for node in (("theirs", pair[0]), ("ours", pair[1])))
    return {theirs: ours for theirs, ours in pairs if counts["theirs", theirs] == counts["ours", ours] == 1}


def _extend_match(first: TraceData, trace: TraceData, owners: Mapping[int, int], matched: dict[int, int]) -> None:
    """Match, starting at the leaves, nodes with the same op and the same matched targets, if only one pair is possible.

    Both nodes must belong to the same module call: ``owners`` maps the nodes of ``trace`` to the calls that made them,
    in common numbers. The pairs are added to ``matched``.
    """
    ours, theirs = _edges_by_node(first), _edges_by_node(trace)
    taken = set(matched.values())
    while True:
        free: dict[Key, list[int]] = {}
        for node in ours.keys() - taken:
            free.setdefault((first.ops[node], first.owners.get(node, -1), *sorted(ours[node])), []).append(node)
        new = {}
        for node in sorted(theirs.keys() - matched.keys()):
            targets = {(slot, matched.get(end, -1), output) for slot, end, output in theirs[node]}
            candidates = free.get((trace.ops[node], owners.get(node, -1), *sorted(targets)), [])
            if len(candidates) == 1:
                new[node] = candidates.pop()
        if not new:
            return
        matched |= new
        taken |= set(new.values())


def _match_within_calls(first: TraceData, trace: TraceData, owners: Mapping[int, int], matched: dict[int, int]) -> bool:
    """Match nodes that are the only ones of their op in the same module call; return whether there were any."""
    ours, theirs = _only_nodes_of_op(first.ops, first.owners), _only_nodes_of_op(trace.ops, owners)
    taken = set(matched.values())
    new = {
        theirs[key]: ours[key]
        for key in theirs.keys() & ours.keys()
        if theirs[key] not in matched and ours[key] not in taken
    }
    matched |= new
    return bool(new)


def _only_nodes_of_op(ops: Sequence[str], owners: Mapping[int, int]) -> dict[Key, int]:
    """(op, number of a module call) → the node, if the call has no other node of that op."""
    counts = Counter((ops[node], call) for node, call in owners.items())
    return {(ops[node], call): node for node, call in owners.items() if counts[ops[node], call] == 1}


def _edges_by_node(trace: TraceData) -> dict[int, set[tuple[int, int, int]]]:
    """Node → its outgoing edges as (slot, target node, output of the target node)."""
    ends: dict[int, set[tuple[int, int, int]]] = {}
    for (start, slot), (end, output) in trace.edges.items():
        ends.setdefault(start, set()).add((slot, end, output))
    return ends


# -- one timeline


def _step_keys(trace: TraceData) -> list[Key]:
    """A unique key for each step of a trace that has common numbers."""
    counts: Counter[Key] = Counter()
    keys = []
    for row in trace.rows:
        key = (row.pass_id, row.kind, row.node, row.output, row.hook, row.call, row.optimizer)
        counts[key] += 1
        keys.append((*key, counts[key]))
    return keys


def _merge_orders(lists: Sequence[Sequence[Key]]) -> list[Key]:
    """Merge lists into one that contains each as a subsequence; a key whose order differs between lists is repeated."""
    order = list(lists[0])
    for keys in lists[1:]:
        merged: list[Key] = []
        for kind, i, j, k, m in SequenceMatcher(None, order, keys, autojunk=False).get_opcodes():
            merged += order[i:j]
            if kind != "equal":
                merged += keys[k:m]
        order = merged
    return order


def _spread_rows(trace: TraceData, keys: Sequence[Key], order: Sequence[Key]) -> TraceData:
    """Move the rows of ``trace`` to their places in the common order, with ``ABSENT`` rows between them."""
    places = _locate_keys(keys, order)
    renumber_tables(trace, {"rows": dict(enumerate([*places, len(order)]))})
    kind: Any = ABSENT  # no kind of a recorded step: only these rows have it
    rows = [StepRow(pass_id=key[0], kind=kind, node=key[2], output=key[3], call=key[5]) for key in order]
    for row, place in zip(trace.rows, places, strict=True):
        rows[place] = row
    trace.rows = rows
    trace.clear_caches()
    return trace


def _locate_keys(keys: Sequence[Key], order: Sequence[Key]) -> list[int]:
    """The place of each key in ``order``, which contains ``keys`` as a subsequence."""
    places, place = [], 0
    for key in keys:
        while order[place] != key:
            place += 1
        places.append(place)
        place += 1
    return places


def match_graphs(this: TraceData, other: TraceData) -> dict[tuple[int, int], dict[int, int]]:
    """For each pass that both traces have, map the number of a node in ``other`` to its number in ``this``.

    The keys are the indexes of the pass in the two traces.

    Raises:
        ValueError: no pass is in both traces, or their graphs differ; the message says where.
    """
    pairs = _pair_passes(this, other)
    if not pairs and (this.roots or other.roots):
        raise ValueError(
            _("No backward pass is in both traces: this one has {here}, the other {there}.").format(
                here=pluralize(len(this.roots), _("{count} backward pass"), _("{count} backward passes")),
                there=f"{len(other.roots):,}",
            )
        )
    this_graph, other_graph = _Graph(this), _Graph(other)
    return {pair: _match_pass(this_graph, other_graph, *pair) for pair in pairs}


def _pair_passes(this: TraceData, other: TraceData) -> list[tuple[int, int]]:
    """List the passes of equal place or, if one trace has fewer passes, of equal number in their recordings."""
    if len(this.roots) == len(other.roots):
        return [(pass_id, pass_id) for pass_id in range(len(this.roots))]
    theirs = {other.pass_number(pass_id): pass_id for pass_id in range(len(other.roots))}
    numbers = ((pass_id, this.pass_number(pass_id)) for pass_id in range(len(this.roots)))
    return [(pass_id, theirs[number]) for pass_id, number in numbers if number in theirs]


class _Graph:
    """The graph of a trace, without the nodes that torch puts around modules with full backward hooks."""

    def __init__(self, trace: TraceData) -> None:
        self.trace = trace
        self._edges: dict[int, dict[int, NodeOutput]] = {}
        for (node, slot), place in trace.edges.items():
            self._edges.setdefault(node, {})[slot] = place

    def roots(self, pass_id: int) -> list[NodeOutput | None]:
        """The places where a pass starts."""
        return [self._skip_module_hooks(place) for place in self.trace.roots[pass_id]]

    def edges(self, node: int) -> dict[int, NodeOutput | None]:
        """Slot of a node → the place to which the gradient of that slot goes."""
        return {slot: self._skip_module_hooks(place) for slot, place in self._edges.get(node, {}).items()}

    def describe(self, place: NodeOutput | None) -> str:
        """The op at a place, for an error message."""
        if place is None:
            return _("nothing")
        op = self.trace.ops[place[0]]
        return op if place[1] == 0 else _("{op} (its output {output})").format(op=op, output=place[1] + 1)

    def _skip_module_hooks(self, place: NodeOutput | None) -> NodeOutput | None:
        while place is not None and self.trace.ops[place[0]] == _SKIPPED_OP:
            place = self._edges.get(place[0], {}).get(place[1])
        return place


def _match_pass(one: _Graph, two: _Graph, pass_id: int, other_pass_id: int) -> dict[int, int]:
    """Map the number of a node in ``two`` to its number in ``one``, walking both graphs from the roots of a pass.

    Raises:
        ValueError: the walk reaches a place where the graphs differ; the message says which.
    """
    roots = one.roots(pass_id), two.roots(other_pass_id)
    if len(roots[0]) != len(roots[1]):
        text = _(
            "These traces are not of the same program: pass {number} begins at {here} roots here, there at {there}."
        )
        raise ValueError(text.format(number=pass_id + 1, here=len(roots[0]), there=len(roots[1])))
    root = _("at the root of pass {number}").format(number=pass_id + 1)
    pairs: list[tuple[NodeOutput | None, NodeOutput | None, str]] = [(*pair, root) for pair in zip(*roots, strict=True)]
    numbers: dict[int, int] = {}
    taken: set[int] = set()
    for here, there, where in pairs:  # the loop appends the pairs that follow
        if here is None or there is None or one.describe(here) != two.describe(there):
            if here is None and there is None:
                continue
            raise ValueError(
                _(
                    "These traces are not of the same graph: {where}, this one has {here} and the other has {there}."
                ).format(where=where, here=one.describe(here), there=two.describe(there))
            )
        ours, theirs = here[0], there[0]
        if theirs in numbers or ours in taken:
            if numbers.get(theirs) != ours:
                raise ValueError(
                    _(
                        "These traces are not of the same graph: {where}, two paths meet in one {op} node in one of "
                        "them, and lead to separate nodes in the other."
                    ).format(where=where, op=one.describe(here))
                )
            continue
        numbers[theirs] = ours
        taken.add(ours)
        pairs += _pair_edges(one, two, ours, theirs)
    return numbers


def _pair_edges(
    one: _Graph, two: _Graph, ours: int, theirs: int
) -> list[tuple[NodeOutput | None, NodeOutput | None, str]]:
    """The ends of the edges of two matched nodes, slot by slot, each with a text that names the edge."""
    mine, yours = one.edges(ours), two.edges(theirs)
    on = one.trace.name(ours)
    slots = sorted(mine.keys() | yours.keys())
    return [
        (mine.get(slot), yours.get(slot), _("at slot {slot} of {on}").format(slot=slot + 1, on=on)) for slot in slots
    ]
