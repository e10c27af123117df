"""A graph and the tensors and hooks on it, as they are right now, written into a trace's rows."""

import weakref
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import torch
from torch.autograd.graph import Node
from torch.utils.hooks import RemovableHandle

from hookviz.autograd import graph
from hookviz.autograd.graph_tensors import GraphTensors, HookDictAt
from hookviz.autograd.node_marks import NodeMarks
from hookviz.autograd.node_numbers import NodeNumbers
from hookviz.support.source_code import describe_function
from hookviz.trace import HookRow, NodeOutput, TraceData

HookDicts: TypeAlias = NodeMarks[tuple[tuple[int, Any], ...]]
"""For a node: (which of its outputs, a weak reference to that tensor's dict of hooks), for tensors that may be gone."""

Only = Callable[[Sequence[Node]], Container[int]]
"""Says by their ``id`` which of the nodes of a graph are looked at."""


class GraphSnapshot:
    """One graph, looked at once. Holds its nodes until ``release``, its tensors until the pass has begun."""

    def __init__(self, trace: TraceData, numbering: NodeNumbers) -> None:
        self.trace, self.pass_id = trace, len(trace.roots)
        self.first_row = 0
        """Where the rows of this pass can begin among ``trace.rows``; between them come those of passes inside it."""
        self.tensors = GraphTensors(trace, self.pass_id)
        self.nodes: list[Node] = []
        """Those that are looked at: of a pass of which a part is recorded, not all."""
        self.walked: list[Node] = []
        """All."""
        self.starts: list[Node] = []
        """Those at which the pass begins."""
        self.numbers: dict[int, int] = {}
        """``id(node)`` → its number, valid while ``nodes`` holds them."""
        self.leaf_numbers: dict[int, int] = {}
        """``id(leaf)`` → the number of its AccumulateGrad."""
        self.leaves: dict[int, weakref.ref[torch.Tensor]] = {}
        """The number of an AccumulateGrad → its leaf."""
        self.out_edges: dict[int, tuple[NodeOutput | None, ...]] = {}
        """The number of a node that is looked at → where each of its edges leads."""
        self.partly_observed: set[NodeOutput] = set()
        """Places to which nodes lead that are not looked at."""
        self.summing: set[int] = set()
        """The nodes to which several edges lead."""
        self.unpack_hooks: dict[int, Any] = {}
        """``id`` → hook: those that will unpack what the nodes saved; known once ``hooks_of_tensors`` has gone by."""
        self._numbering = numbering
        trace.roots.append([])
        trace.hooked.append([])

    def take(
        self, roots: Sequence[Any], names: Mapping[str, torch.Tensor], only: Only | None = None
    ) -> list[NodeOutput | None]:
        """Write the graph below ``roots`` into the trace; where each root stands in it.

        ``only`` says which of the nodes are looked at; of the others those are named to which these lead.

        Raises:
            TooDeep: the graph is too deep to be held.
        """
        edges = [graph.edge_of(root) for root in roots]
        self.starts = [node for node, _ in edges if node is not None]
        self.nodes = self.walked = graph.walk(self.starts)
        if only is not None:
            kept = only(self.walked)
            self.nodes = [node for node in self.walked if id(node) in kept]
        self.numbers = self._numbering.number(self._near())
        self._add_nodes()
        self._add_outside()
        self._add_tensors(names)
        places = [self.place_of(*edge) for edge in edges]
        inside = [place if place is not None and place[0] in self.out_edges else None for place in places]
        self.trace.roots[self.pass_id] = [
            place for place in (*inside, *sorted(self.partly_observed)) if place is not None
        ]
        return inside

    def _near(self) -> list[Node]:
        """The nodes that are looked at, and those to which they lead."""
        if len(self.nodes) == len(self.walked):
            return self.nodes
        near = {id(node) for node in self.nodes}
        near |= {id(following) for node in self.nodes for following, _ in node.next_functions}
        return [node for node in self.walked if id(node) in near]

    def _add_outside(self) -> None:
        """Name the nodes near by that are not looked at, and note to where such nodes lead."""
        for node in self.walked if len(self.nodes) < len(self.walked) else ():
            number = self.numbers.get(id(node))
            if number in self.out_edges:
                continue
            if number is not None:
                self._name(node, number)
                self.trace.outside.add(number)
            ends = (self.place_of(*following) for following in node.next_functions)
            self.partly_observed.update(place for place in ends if place is not None and place[0] in self.out_edges)

    @property
    def oldest(self) -> int:
        """The smallest sequence number of a node; those of leaves' nodes have the largest that there is."""
        return min((node._sequence_nr() for node in self.nodes), default=0)

    @property
    def counts(self) -> tuple[int, int]:
        """How many nodes the graph has, and how many of them are looked at."""
        return len(self.walked), len(self.nodes)

    def place_of(self, node: Node | None, output: int) -> NodeOutput | None:
        """Where a gradient for output ``output`` of ``node`` arrives; None outside this graph."""
        number = None if node is None else self.numbers.get(id(node))
        return None if number is None else (number, output)

    def find(self, tensor: torch.Tensor) -> NodeOutput | None:
        """Where the gradient of ``tensor`` arrives; None if the tensor is not in this graph.

        A variable whose history torch refuses to tell (a stale output of unbind, say) is nowhere.
        """
        if id(tensor) in self.leaf_numbers:
            return self.leaf_numbers[id(tensor)], 0
        try:
            return self.place_of(tensor.grad_fn, tensor.output_nr) if tensor.requires_grad else None
        except RuntimeError:
            return None

    def release(self) -> None:
        """Let go of the nodes, and of what only a running pass needs."""
        self.trace.forget_listed_hooks(self.pass_id)
        self.nodes, self.starts = [], []
        graph.release(self.walked)
        self.numbers.clear()
        self.unpack_hooks.clear()

    def _name(self, node: Node, number: int) -> torch.Tensor | None:
        """Write down the op of a node; the leaf that it writes to, if it writes to one."""
        self.trace.ops[number] = graph.op_of(node)
        leaf = graph.leaf_of(node)
        if leaf is not None:
            self.leaf_numbers[id(leaf)] = number
        return leaf

    def _add_nodes(self) -> None:
        """Write down the nodes that are looked at, and their edges."""
        numbers, edges, ops = self.numbers, self.trace.edges, self.trace.ops
        ops.extend([""] * (max(numbers.values(), default=-1) + 1 - len(ops)))
        reached: set[int] = set()
        for node in self.nodes:
            number, op = numbers[id(node)], type(node).__name__
            if op == graph.LEAVES:
                leaf = self._name(node, number)
                if leaf is not None:
                    self.leaves[number] = weakref.ref(leaf)
                self.out_edges[number] = ()
                continue
            ops[number] = op
            ways = tuple([None if n is None else (numbers[id(n)], output) for n, output in node.next_functions])
            self.out_edges[number] = ways
            for slot, place in enumerate(ways):
                if place is not None:
                    edges[number, slot] = place
                    if place[0] in reached:
                        self.summing.add(place[0])
                    else:
                        reached.add(place[0])
        if self.trace.outside:
            self.trace.outside.difference_update(self.out_edges)

    def _add_tensors(self, names: Mapping[str, torch.Tensor]) -> None:
        """A row for each tensor of this graph that has a name, and for each leaf."""
        unnamed = [("", leaf) for reference in self.leaves.values() if (leaf := reference()) is not None]
        taken: set[NodeOutput] = set()
        for name, tensor in [*names.items(), *unnamed]:
            place = self.find(tensor)
            if place is not None and place not in taken:
                taken.add(place)
                self.tensors.add(name, tensor, place)

    def retains(self, tensor: torch.Tensor | None) -> None:
        """Note that ``tensor``, which may have no name, keeps its gradient."""
        place = None if tensor is None or tensor.is_leaf else self.find(tensor)
        if tensor is not None and place is not None and place not in self.tensors.retained:
            self.tensors.add("", tensor, place)

    def hooks_of_tensors(self, remembered: HookDicts, *, search: bool) -> Iterator[HookDictAt]:
        """The dicts with hooks of tensors: named ones, leaves, and those that only nodes still hold.

        Of the last, those are ``remembered`` that got hooks while something was recorded. A ``search`` finds others by
        what the nodes saved, and the hooks that will unpack it.
        """
        yield from self.tensors.hook_dicts
        for number, reference in self.leaves.items():
            leaf = reference()
            if leaf is not None:
                yield "tensor_hook", leaf._backward_hooks, number, 0
                yield "post_accumulate_hook", leaf._post_accumulate_grad_hooks, number, 0
        for node in self.nodes if search or remembered else ():
            number = self.numbers[id(node)]
            for tensor, unpack in graph.saved_tensors(node) if search else ():
                if tensor is None:
                    self.unpack_hooks[id(unpack)] = unpack
                elif tensor._backward_hooks and not tensor.is_leaf and (place := self.find(tensor)) is not None:
                    yield "tensor_hook", tensor._backward_hooks, *place
            for output, reference in remembered.get(node) or ():
                yield "tensor_hook", reference(), number, output


def shared_dict(handle: RemovableHandle) -> dict[Any, Callable[..., Any]]:
    """The dict in which a handle's hook is kept, as long as the handle's owner lives."""
    hooks: Any = handle.hooks_dict_ref()
    return cast("dict[Any, Callable[..., Any]]", hooks)


def hook_row(
    trace: TraceData, pass_id: int | None, kind: str, node: int, output: int, key: int, hook: Any, **more: Any
) -> int:
    """The number of a hook's row in ``trace``, added if it is not there yet, and noted for the pass if there is one."""
    row = HookRow(kind, node, output, key, *describe_function(hook), **more)
    index = trace.get_hook_index(row)
    if pass_id is not None:
        trace.list_hook(pass_id, index)
    return index
