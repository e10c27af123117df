"""Indexes of the tables of a trace by pass, node and call. Each index is built once, in one run through its table."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from hookviz.support.groups import group
from hookviz.trace.columns import HookKey
from hookviz.trace.hook_facts import MODULE_HOOK_KINDS
from hookviz.trace.rows import HookPlace, HookRow, SavedRow, ScaleRow, StepRow, TensorRow
from hookviz.trace.tables import TraceTables
from hookviz.trace.training_rows import UpdateRow
from hookviz.trace.unfired_rows import identity_of
from hookviz.trace.value_rows import get_stored_rows

TableSizes = tuple[int, ...]
_FREQUENT = frozenset({"seed", "arrive", "compute", "accumulate", "returned", "call", "forward"})
"""The kinds of most steps: of nodes, gradients and module calls."""
_AT_UPDATES = ("optimizer_step", "step_pre_hook", "step_post_hook", "unscale", "rescale")
"""The kinds of steps around an optimizer step."""


class PassHooks(NamedTuple):
    """The hooks that were registered on the graph of one pass, as indexes of ``hook_rows``."""

    by_node: Mapping[int, Sequence[int]]
    """Node → its hooks, in order."""
    by_module: Mapping[int, Sequence[int]]
    """Module → its hooks, in order."""
    places: Mapping[int, HookPlace]
    """Hook → its place in its hook dict."""


def table_sizes(trace: TraceTables) -> TableSizes:
    """Return the sizes of the tables of ``trace``: if one changes, as during a recording, the indexes are outdated."""
    tables = (trace.ops, trace.edges, trace.owners, trace.tensors, trace.scales, trace.rows, trace.roots)
    return tuple(map(len, (*tables, trace.saved, trace.hook_rows, trace.hooked, trace.unfired_rows, trace.updates)))


class Lookup:
    """Finds the rows of a trace by pass, node and call.

    It refers to the tables, not to the trace: without a reference cycle, an unused trace is freed at once.
    """

    def __init__(self, trace: TraceTables) -> None:
        self.size = table_sizes(trace)
        self._ops, self._edges, self._rows = trace.ops, trace.edges, trace.rows
        self._tensors, self._roots, self._hooked = trace.tensors, trace.roots, trace.hooked
        self._hook_rows, self._scales, self._owners = trace.hook_rows, trace.scales, trace.owners
        self._saved, self._unfired_rows, self._updates = trace.saved, trace.unfired_rows, trace.updates
        self._hooks: dict[int | None, PassHooks] = {}

    # -- names

    @cached_property
    def leaf_names(self) -> dict[int, str]:
        """Leaf node → the last name that was found for it."""
        return {row.node: row.name for row in self._tensors if row.leaf and row.name}

    # -- gradients at optimizer steps

    @cached_property
    def updates(self) -> dict[int, UpdateRow]:
        """Step of an optimizer → what it was given, and how far it moved its parameters."""
        return {row.step: row for row in self._updates}

    @cached_property
    def _gradients(self) -> dict[str, list[tuple[int, int]]]:
        """Name of a leaf → the steps that wrote to its ``.grad``, and its value after each."""
        names = self.leaf_names
        return group(
            (names[row.node], (step, row.after))
            for step, row in enumerate(self._rows)
            if row.kind == "accumulate" and row.node in names and isinstance(row.after, int)
        )

    def find_gradient_before(self, names: Sequence[str], step: int) -> int | None:
        """Return the last value that a pass left in the ``.grad`` of a leaf, which has these names, before a step."""
        written = next((self._gradients[name] for name in names if name in self._gradients), [])
        position = bisect_left(written, (step,))
        return written[position - 1][1] if position else None

    @cached_property
    def steps_around_updates(self) -> dict[int, int]:
        """Step of an optimizer → the step of the backward hook that took it, and that ended after it."""
        pairs = ((step, _find_hook_around(self._rows, step)) for step in self.steps_of_kinds("optimizer_step"))
        return {step: around for step, around in pairs if around is not None}

    # -- the graph

    @cached_property
    def next_nodes(self) -> dict[int, list[tuple[int, int]]]:
        """Node → (slot, next node) for each of its edges."""
        return group((start, (slot, end)) for (start, slot), (end, _) in self._edges.items())

    @cached_property
    def _edge_order(self) -> dict[int, int]:
        """Node → its position among the nodes with edges, in the order of the recording."""
        return {node: position for position, node in enumerate(self.next_nodes)}

    def out_edges(self, nodes: Iterable[int]) -> list[tuple[int, int, int]]:
        """Return (node, slot, next node) for each edge from ``nodes``, in the order of the recording."""
        order, next_nodes = self._edge_order, self.next_nodes
        starts = sorted(order.keys() & set(nodes), key=order.__getitem__)
        return [(node, slot, end) for node in starts for slot, end in next_nodes[node]]

    @cached_property
    def outputs(self) -> dict[int, list[int]]:
        """Node → its outputs to which an edge leads, or at which a pass begins."""
        index = group(chain(self._edges.values(), *self._roots))
        return {node: sorted(set(outputs)) for node, outputs in index.items()}

    # -- passes

    @cached_property
    def _steps(self) -> dict[int, list[int]]:
        return group((row.pass_id, step) for step, row in enumerate(self._rows))

    @cached_property
    def passes(self) -> list[int]:
        """The passes that have steps."""
        return sorted(self._steps)

    def steps(self, pass_id: int) -> Sequence[int]:
        """Return the steps of a pass, in order."""
        return self._steps.get(pass_id, ())

    @cached_property
    def _tensors_at(self) -> dict[tuple[int, int], list[TensorRow]]:
        return group(((row.pass_id, row.node), row) for row in self._tensors)

    def tensors(self, pass_id: int, node: int) -> list[TensorRow]:
        """Return the tensors of a node, as they were when a pass began."""
        return self._tensors_at.get((pass_id, node), [])

    @cached_property
    def _tensors_of(self) -> dict[int, list[TensorRow]]:
        return group((row.node, row) for row in self._tensors)

    def tensors_before(self, pass_id: int, node: int) -> list[TensorRow]:
        """Return the tensors of a node in earlier passes, the latest pass last."""
        rows = self._tensors_of.get(node, [])
        return rows[: bisect_left(rows, pass_id, key=attrgetter("pass_id"))]

    @cached_property
    def _saved_at(self) -> dict[tuple[int, int], list[SavedRow]]:
        return group(((row.pass_id, row.node), row) for row in self._saved)

    def saved(self, pass_id: int, node: int) -> list[SavedRow]:
        """Return what a node had saved for its formula when a pass began."""
        return self._saved_at.get((pass_id, node), [])

    @cached_property
    def compute_steps(self) -> dict[tuple[int, int], int]:
        """(pass, node) → the last step in which the node computed."""
        return {(row.pass_id, row.own_node): step for step, row in enumerate(self._rows) if row.kind == "compute"}

    @cached_property
    def _scales_of(self) -> dict[int, list[ScaleRow]]:
        return group((row.pass_id, row) for row in self._scales)

    def scales(self, pass_id: int) -> list[ScaleRow]:
        """Return the scales by which a GradScaler multiplied the gradients of a pass."""
        return self._scales_of.get(pass_id, [])

    @cached_property
    def _steps_by_kind(self) -> dict[str, list[int]]:
        """Kind → its steps, without the frequent kinds: most rows need no call of ours."""
        stored = enumerate(get_stored_rows(self._rows, 0))
        return group((row.kind, step) for step, row in stored if row.__class__ is StepRow and row.kind not in _FREQUENT)

    def steps_of_kinds(self, *kinds: str) -> list[int]:
        """Return the steps of some kinds, in order; the frequent kinds are not in this index."""
        assert _FREQUENT.isdisjoint(kinds)
        return sorted(step for kind in kinds for step in self._steps_by_kind.get(kind, ()))

    @cached_property
    def nodes_by_call(self) -> dict[int, list[int]]:
        """Module call → the nodes that it made itself, not those of module calls inside it."""
        return group((call, node) for node, call in self._owners.items())

    # -- hooks

    @cached_property
    def module_hooks(self) -> dict[HookKey, int]:
        """Key → the first module hook with it: torch gives each hook a key of its own, but a copied one keeps its."""
        rows = [(row.key, index) for index, row in enumerate(self._hook_rows) if row.kind in MODULE_HOOK_KINDS]
        return dict(reversed(rows))

    @cached_property
    def hooks_that_ran(self) -> list[int]:
        """The hooks that steps refer to, in ascending order."""
        return sorted({row.hook for row in self._rows if row.hook is not None})

    @cached_property
    def fired_hooks(self) -> dict[tuple[int, int], list[int]]:
        """(pass, module call) → the hooks that ran or raised in it, each once."""
        index = group(
            ((row.pass_id, row.call), row.hook) for row in self._rows if row.hook is not None and row.call is not None
        )
        return {key: list(dict.fromkeys(hooks)) for key, hooks in index.items()}

    @cached_property
    def _steps_with_hooks(self) -> dict[int, list[int]]:
        return group((row.pass_id, step) for step, row in enumerate(self._rows) if row.hook is not None)

    def steps_with_hooks(self, pass_id: int) -> Sequence[int]:
        """Return the steps of a pass in which a hook ran or raised."""
        return self._steps_with_hooks.get(pass_id, ())

    @cached_property
    def last_passes(self) -> dict[int, int]:
        """Hook → the last pass on whose graph it was registered."""
        return {hook: pass_id for pass_id, hooks in enumerate(self._hooked) for hook in hooks}

    @cached_property
    def unfired_rows_of_hooks(self) -> dict[int, int]:
        """Hook that did not fire → the index of its row among the unfired rows."""
        rows = {(row.kind, identity_of(row)): index for index, row in enumerate(self._unfired_rows)}
        keys = ((row.kind, identity_of(row)) for row in self._hook_rows)
        return {hook: rows[key] for hook, key in enumerate(keys) if key in rows} if rows else {}

    def hooks(self, pass_id: int | None) -> PassHooks:
        """Return the hooks that were registered on the graph of a pass; those of all passes if it is None."""
        if pass_id not in self._hooks:
            if pass_id is None:
                indexes: Sequence[int] = range(len(self._hook_rows))
            else:
                indexes = self._hooked[pass_id] if pass_id < len(self._hooked) else ()
            self._hooks[pass_id] = _group_hooks(self._hook_rows, indexes)
        return self._hooks[pass_id]


def _group_hooks(rows: Sequence[HookRow], indexes: Sequence[int]) -> PassHooks:
    """Group the hooks ``indexes`` by node and by module, and find their places in their dicts."""
    chosen = [(index, rows[index]) for index in indexes]
    by_node = group((row.node, index) for index, row in chosen if row.node is not None)
    by_module = group((row.module, index) for index, row in chosen if row.node is None and row.module is not None)
    places: dict[int, HookPlace] = {}
    for hooks in group((row.dict, index) for index, row in chosen).values():
        places.update((index, HookPlace(position, len(hooks))) for position, index in enumerate(hooks))
    return PassHooks(by_node, by_module, places)


def _find_hook_around(rows: Sequence[StepRow], step: int) -> int | None:
    """Return the step of the backward hook that took the step of an optimizer; None if none did."""
    later = range(step + 1, len(rows))
    following = next((index for index in later if rows[index].kind not in _AT_UPDATES), step)
    row = rows[following]
    # A pass that goes on after the step was running during it.
    is_around = row.hook is not None and row.node is not None and row.pass_id == rows[step].pass_id
    return following if is_around else None
