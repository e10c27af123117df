"""What is in the tables of a trace, by pass, node and call: each table is read once, however many passes there are."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from hookviz.trace.rows import HookPlace, HookRow, SavedRow, ScaleRow, TensorRow

if TYPE_CHECKING:
    from hookviz.trace.tables import TraceTables

TableSizes = tuple[int, ...]


class PassHooks(NamedTuple):
    """The hooks that were registered on the graph of one pass, by their places in ``hook_rows``."""

    of_node: Mapping[int, Sequence[int]]
    """Node → its hooks, in order."""
    of_module: Mapping[int, Sequence[int]]
    """Module → its hooks, in order."""
    places: Mapping[int, HookPlace]
    """Hook → its place among those of its dict."""


def table_sizes(trace: "TraceTables") -> TableSizes:
    """How much each table of ``trace`` holds: while a recording runs they grow, and what was looked up grows old."""
    tables = (trace.ops, trace.edges, trace.owners, trace.tensors, trace.scales, trace.rows, trace.roots)
    return tuple(map(len, (*tables, trace.saved, trace.hook_rows, trace.hooked)))


class Lookup:
    """Answers by pass, node and call what the tables of a trace hold in one row after the other.

    It holds the tables, not the trace: a trace that nobody needs any more goes at once.
    """

    def __init__(self, trace: "TraceTables") -> None:
        self.size = table_sizes(trace)
        self._ops, self._edges, self._rows = trace.ops, trace.edges, trace.rows
        self._tensors, self._roots, self._hooked = trace.tensors, trace.roots, trace.hooked
        self._hook_rows, self._scales, self._owners = trace.hook_rows, trace.scales, trace.owners
        self._saved = trace.saved
        self._hooks: dict[int, PassHooks] = {}

    # -- names

    @cached_property
    def leaf_names(self) -> dict[int, str]:
        """Node of a leaf → the last name that was found for it."""
        return {row.node: row.name for row in self._tensors if row.leaf and row.name}

    # -- the graph

    @cached_property
    def following(self) -> dict[int, list[tuple[int, int]]]:
        """Node → (its input, the node there) for each way that its gradients take."""
        found: dict[int, list[tuple[int, int]]] = {}
        for (start, slot), (end, _) in self._edges.items():
            found.setdefault(start, []).append((slot, end))
        return found

    @cached_property
    def _edge_places(self) -> dict[int, int]:
        """Node → its place among the nodes that have edges, in the order in which these were found."""
        return {node: place for place, node in enumerate(self.following)}

    def ways(self, nodes: Iterable[int]) -> list[tuple[int, int, int]]:
        """(node, its input, the node there) for each way from ``nodes``, in the order in which edges were found."""
        places, following = self._edge_places, self.following
        starts = sorted(places.keys() & set(nodes), key=places.__getitem__)
        return [(node, slot, end) for node in starts for slot, end in following[node]]

    @cached_property
    def outputs(self) -> dict[int, list[int]]:
        """Node → its outputs to which an edge leads, or at which a pass begins."""
        found: dict[int, set[int]] = {}
        starts = (place for places in self._roots for place in places)
        for places in (self._edges.values(), starts):
            for node, output in places:
                found.setdefault(node, set()).add(output)
        return {node: sorted(outputs) for node, outputs in found.items()}

    # -- passes

    @cached_property
    def _steps(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for index, row in enumerate(self._rows):
            found.setdefault(row.pass_id, []).append(index)
        return found

    @property
    def passes(self) -> list[int]:
        """The passes in which something happened."""
        return sorted(self._steps)

    def steps(self, pass_id: int) -> Sequence[int]:
        """The steps of a pass, in order."""
        return self._steps.get(pass_id, ())

    @cached_property
    def _tensors_at(self) -> dict[tuple[int, int], list[TensorRow]]:
        found: dict[tuple[int, int], list[TensorRow]] = {}
        for row in self._tensors:
            found.setdefault((row.pass_id, row.node), []).append(row)
        return found

    def tensors(self, pass_id: int, node: int) -> list[TensorRow]:
        """The tensors that stood at a node when a pass began."""
        return self._tensors_at.get((pass_id, node), [])

    @cached_property
    def _tensors_of(self) -> dict[int, list[TensorRow]]:
        found: dict[int, list[TensorRow]] = {}
        for row in self._tensors:
            found.setdefault(row.node, []).append(row)
        return found

    def tensors_before(self, pass_id: int, node: int) -> list[TensorRow]:
        """The tensors that stood at a node when earlier passes began, the last one at the end."""
        rows = self._tensors_of.get(node, [])
        return rows[: bisect_left(rows, pass_id, key=attrgetter("pass_id"))]

    @cached_property
    def _saved_at(self) -> dict[tuple[int, int], list[SavedRow]]:
        found: dict[tuple[int, int], list[SavedRow]] = {}
        for row in self._saved:
            found.setdefault((row.pass_id, row.node), []).append(row)
        return found

    def saved(self, pass_id: int, node: int) -> list[SavedRow]:
        """What a node had saved for its formula when a pass began."""
        return self._saved_at.get((pass_id, node), [])

    @cached_property
    def computed(self) -> dict[tuple[int, int], int]:
        """(pass, node) → the last step in which the node computed."""
        return {(row.pass_id, row.node): step for step, row in enumerate(self._rows) if row.kind == "compute"}

    @cached_property
    def _scales_of(self) -> dict[int, list[ScaleRow]]:
        found: dict[int, list[ScaleRow]] = {}
        for row in self._scales:
            found.setdefault(row.pass_id, []).append(row)
        return found

    def scales(self, pass_id: int) -> list[ScaleRow]:
        """What a GradScaler has multiplied the gradients of a pass by."""
        return self._scales_of.get(pass_id, [])

    @cached_property
    def optimizer_steps(self) -> list[int]:
        """The steps in which an optimizer changed its parameters."""
        return [step for step, row in enumerate(self._rows) if row.kind == "optimizer_step"]

    @cached_property
    def made(self) -> dict[int, list[int]]:
        """Module call → the nodes that it made itself, not through a module inside it."""
        found: dict[int, list[int]] = {}
        for node, call in self._owners.items():
            found.setdefault(call, []).append(node)
        return found

    # -- hooks

    @cached_property
    def fired(self) -> dict[tuple[int, int], list[int]]:
        """(pass, module call) → the hooks that ran in it or ended it, each once."""
        found: dict[tuple[int, int], dict[int, None]] = {}
        for row in self._rows:
            if row.hook is not None and row.call >= 0:
                found.setdefault((row.pass_id, row.call), {})[row.hook] = None
        return {where: list(hooks) for where, hooks in found.items()}

    @cached_property
    def _hook_steps(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for step, row in enumerate(self._rows):
            if row.hook is not None:
                found.setdefault(row.pass_id, []).append(step)
        return found

    def hook_steps(self, pass_id: int) -> Sequence[int]:
        """The steps of a pass that are about a hook: those in which it ran, or raised."""
        return self._hook_steps.get(pass_id, ())

    @cached_property
    def last_passes(self) -> dict[int, int]:
        """Hook → the last pass on whose graph it was registered."""
        return {hook: pass_id for pass_id, hooks in enumerate(self._hooked) for hook in hooks}

    def hooks(self, pass_id: int | None) -> PassHooks:
        """The hooks that were registered on the graph of a pass; of all passes together for None."""
        key = -1 if pass_id is None else pass_id
        if key not in self._hooks:
            known = self._hooked[key] if 0 <= key < len(self._hooked) else ()
            self._hooks[key] = _group_hooks(self._hook_rows, range(len(self._hook_rows)) if pass_id is None else known)
        return self._hooks[key]


def _group_hooks(rows: Sequence[HookRow], known: Sequence[int]) -> PassHooks:
    of_node: dict[int, list[int]] = {}
    of_module: dict[int, list[int]] = {}
    peers: dict[object, list[int]] = {}
    for index in known:
        row = rows[index]
        if row.node >= 0:
            of_node.setdefault(row.node, []).append(index)
        elif row.module >= 0:
            of_module.setdefault(row.module, []).append(index)
        peers.setdefault(row.dict, []).append(index)
    places = {index: HookPlace(place, len(them)) for them in peers.values() for place, index in enumerate(them)}
    return PassHooks(of_node, of_module, places)
