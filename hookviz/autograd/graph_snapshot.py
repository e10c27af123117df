"""Write a graph with its tensors and hooks, as they are right now, into the rows of a trace."""

import cmath
import weakref
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import isfinite
from typing import Any, TypeAlias

import torch
from torch.autograd.graph import GradientEdge, Node

from hookviz.autograd import graph, tensor_statistics
from hookviz.autograd.graph import NodeMarks
from hookviz.autograd.graph_tensors import GraphTensors, PlacedHookDict
from hookviz.autograd.node_numbering import NodeNumbers
from hookviz.autograd.packed_tensors import saved_tensors
from hookviz.autograd.tensor_types import has_few_numbers, is_tensor, runs_user_code
from hookviz.autograd.torch_internals import TENSOR_HOOKS
from hookviz.support.source_code import describe_function
from hookviz.trace import HookRow, NodeOutput, TraceData

HookDicts: TypeAlias = NodeMarks[tuple[tuple[int, Any], ...]]
"""Node → pairs (output of the node, weak reference to the hook dict of that tensor); the tensor itself may be gone."""

NodeFilter = Callable[[Sequence[Node]], Container[int]]
"""Takes all nodes of a graph and returns the ``id`` of those to observe."""


class GraphSnapshot:
    """One graph at one moment. Holds its nodes until ``release``, its tensors until the pass has begun."""

    def __init__(self, trace: TraceData, numbering: NodeNumbers) -> None:
        self.trace, self.pass_id = trace, len(trace.roots)
        self.first_row = 0
        """The index in ``trace.rows`` from which on the rows of this pass lie, with those of passes inside it."""
        self.tensors = GraphTensors(trace, self.pass_id)
        self.nodes: list[Node] = []
        """The observed nodes: only some of ``all_nodes`` if a part of the pass is recorded."""
        self.all_nodes: list[Node] = []
        """All nodes of the graph."""
        self.root_nodes: list[Node] = []
        """The nodes at which the pass begins."""
        self.numbers: dict[int, int] = {}
        """``id(node)`` → its number, valid while ``nodes`` holds them."""
        self.leaf_numbers: dict[int, int] = {}
        """``id(leaf)`` → the number of its AccumulateGrad."""
        self.leaves: dict[int, weakref.ref[torch.Tensor]] = {}
        """The number of an AccumulateGrad → its leaf."""
        self.out_edges: dict[int, tuple[NodeOutput | None, ...]] = {}
        """The number of an observed node → where each of its edges leads."""
        self.partly_observed: set[NodeOutput] = set()
        """The places to which edges of unobserved nodes lead."""
        self.summing_nodes: set[int] = set()
        """The numbers of the nodes to which several edges lead."""
        self.unpack_hooks: dict[int, Any] = {}
        """``id`` → hook that unpacks a saved tensor; filled in by ``tensor_hook_dicts``."""
        self._numbering = numbering
        trace.roots.append([])
        trace.hooked.append([])

    def capture(
        self, roots: Sequence[Any], names: Mapping[str, torch.Tensor], select: NodeFilter | None = None
    ) -> list[NodeOutput | None]:
        """Write the graph below ``roots`` into the trace, and return the place of each root.

        ``select`` chooses the nodes to observe; of the others, only the ops of their direct successors are written.

        Raises:
            TooDeep: the graph is too deep to be held.
        """
        edges = [graph.edge_of(root) for root in roots]
        self.root_nodes = [node for node, _ in edges if node is not None]
        self.nodes = self.all_nodes = graph.reachable_nodes(self.root_nodes)
        if select is not None:
            selected = select(self.all_nodes)
            self.nodes = [node for node in self.all_nodes if id(node) in selected]
        self.numbers = self._numbering.number(self._nodes_to_number())
        self._add_nodes()
        self._add_unobserved()
        self._add_tensors(names)
        self._add_nonfinite_roots(roots)
        loss = _read_loss(roots)
        if loss is not None:
            self.trace.losses[self.pass_id] = loss if isfinite(loss) else None
        places = [self.place_of(*edge) for edge in edges]
        observed = [place if place is not None and place[0] in self.out_edges else None for place in places]
        self.trace.roots[self.pass_id] = [
            place for place in (*observed, *sorted(self.partly_observed)) if place is not None
        ]
        return observed

    def _nodes_to_number(self) -> list[Node]:
        """The observed nodes and their direct successors."""
        if len(self.nodes) == len(self.all_nodes):
            return self.nodes
        numbered = {id(node) for node in self.nodes}
        numbered |= {id(following) for node in self.nodes for following, _ in node.next_functions}
        return [node for node in self.all_nodes if id(node) in numbered]

    def _add_unobserved(self) -> None:
        """Write the ops of unobserved successors, and note the places to which unobserved nodes lead."""
        for node in self.all_nodes if len(self.nodes) < len(self.all_nodes) else ():
            number = self.numbers.get(id(node))
            if number in self.out_edges:
                continue
            if number is not None:
                self._write_op(node, number)
                self.trace.outside.add(number)
            places = (self.place_of(*edge) for edge in node.next_functions)
            self.partly_observed.update(place for place in places if place is not None and place[0] in self.out_edges)

    @cached_property
    def lowest_sequence(self) -> int:
        """The smallest sequence number of an observed node; AccumulateGrad nodes have the largest possible one."""
        return min((node._sequence_nr() for node in self.nodes), default=0)

    def place_of(self, node: Node | None, output: int) -> NodeOutput | None:
        """The place where a gradient for output ``output`` of ``node`` arrives; None outside this graph."""
        number = None if node is None else self.numbers.get(id(node))
        return None if number is None else (number, output)

    def place_of_input(self, target: torch.Tensor | GradientEdge) -> NodeOutput | None:
        """Return the place where the gradient arrives that ``autograd.grad`` is asked for; None outside this graph."""
        if isinstance(target, GradientEdge):
            return self.place_of(target.node, target.output_nr)
        return self.place_of_tensor(target)

    def place_of_tensor(self, tensor: torch.Tensor) -> NodeOutput | None:
        """The place where the gradient of ``tensor`` arrives; None if the tensor is not in this graph.

        None also where torch does not give out the history, as of a stale output of unbind.
        """
        if id(tensor) in self.leaf_numbers:
            return self.leaf_numbers[id(tensor)], 0
        try:
            return self.place_of(tensor.grad_fn, tensor.output_nr) if tensor.requires_grad else None
        except RuntimeError:
            return None

    def release(self) -> None:
        """Drop the nodes, and all else that only a running pass needs."""
        self.trace.forget_listed_hooks(self.pass_id)
        self.nodes, self.root_nodes = [], []
        graph.release(self.all_nodes)
        self.numbers.clear()
        self.unpack_hooks.clear()

    def _write_op(self, node: Node, number: int) -> torch.Tensor | None:
        """Write the op of a node into the trace, and return the leaf of an AccumulateGrad."""
        self.trace.ops[number] = graph.op_of(node)
        leaf = graph.leaf_of(node)
        if leaf is not None:
            self.leaf_numbers[id(leaf)] = number
        return leaf

    def _add_nodes(self) -> None:
        """Write the observed nodes and their edges into the trace."""
        numbers, edges, ops = self.numbers, self.trace.edges, self.trace.ops
        ops.extend([""] * (max(numbers.values(), default=-1) + 1 - len(ops)))
        reached: set[int] = set()
        for node in self.nodes:
            number, op = numbers[id(node)], type(node).__name__
            if op == graph.LEAF_OP:
                leaf = self._write_op(node, number)
                if leaf is not None:
                    self.leaves[number] = weakref.ref(leaf)
                self.out_edges[number] = ()
                continue
            ops[number] = op
            next_places = tuple([None if n is None else (numbers[id(n)], output) for n, output in node.next_functions])
            self.out_edges[number] = next_places
            for slot, place in enumerate(next_places):
                if place is not None:
                    edges[number, slot] = place
                    if place[0] in reached:
                        self.summing_nodes.add(place[0])
                    else:
                        reached.add(place[0])
        if self.trace.outside:
            self.trace.outside.difference_update(self.out_edges)

    def _add_tensors(self, names: Mapping[str, torch.Tensor]) -> None:
        """Add a row for each tensor of this graph that has a name, and for each leaf."""
        unnamed = [("", leaf) for reference in self.leaves.values() if (leaf := reference()) is not None]
        taken: set[NodeOutput] = set()
        for name, tensor in [*names.items(), *unnamed]:
            place = self.place_of_tensor(tensor)
            if place is not None and place not in taken:
                taken.add(place)
                self.tensors.add(name, tensor, place)

    def _add_nonfinite_roots(self, roots: Sequence[Any]) -> None:
        """Add a row for each small root without a name that contains NaN or Inf, so that its origin can be found.

        A root on a device is left out: reading it would wait for the device.
        """
        for root in roots:
            if not is_tensor(root) or runs_user_code(root) or tensor_statistics.reading_waits(root):
                continue
            if root.is_nested or not has_few_numbers(root):
                continue
            place = self.place_of_tensor(root)
            with suppress(RuntimeError, NotImplementedError):  # functorch, sparse, float8, a stale output of unbind
                is_new = place is not None and not root.is_leaf and not self.tensors.has_row(place)
                if place is not None and is_new and not _is_finite(root.detach()):
                    self.tensors.add("", root, place)

    def add_retained(self, tensor: torch.Tensor | None) -> None:
        """Add a row for ``tensor``, which may have no name, since it retains its gradient."""
        place = None if tensor is None or tensor.is_leaf else self.place_of_tensor(tensor)
        if tensor is not None and place is not None and place not in self.tensors.retained:
            self.tensors.add("", tensor, place)

    def tensor_hook_dicts(self, recorded: HookDicts, *, search: bool) -> Iterator[PlacedHookDict]:
        """Yield the hook dicts of tensors: of named ones, of leaves, and of those that only nodes still hold.

        ``recorded`` has the dicts of the last kind that got hooks during a recording. A ``search`` finds more of them
        among the tensors that nodes saved, and collects the hooks that unpack those.
        """
        yield from self.tensors.hook_dicts
        for number, reference in self.leaves.items():
            leaf = reference()
            if leaf is not None:
                for kind, attribute in TENSOR_HOOKS.items():
                    yield kind, getattr(leaf, attribute), number, 0
        for node in self.nodes if search or recorded else ():
            number = self.numbers[id(node)]
            for _name, tensor, unpack, _problem in saved_tensors(node, results=False) if search else ():
                if unpack is not None:
                    self.unpack_hooks[id(unpack)] = unpack
                elif (
                    tensor is not None
                    and tensor._backward_hooks
                    and not tensor.is_leaf
                    and (place := self.place_of_tensor(tensor)) is not None
                ):
                    yield "tensor_hook", tensor._backward_hooks, *place
            for output, reference in recorded.get(node) or ():
                yield "tensor_hook", reference(), number, output


def add_hook_row(
    trace: TraceData,
    pass_id: int | None,
    kind: str,
    node: int | None,
    output: int | None,
    key: int,
    hook: Any,
    **more: Any,
) -> int:
    """Add a row for a hook, unless ``trace`` has it, and note it for the pass, if any; return the number of the row."""
    row = HookRow(kind, node, output, key, *describe_function(hook), **more)
    index = trace.get_hook_index(row)
    if pass_id is not None:
        trace.list_hook(pass_id, index)
    return index


def _is_finite(tensor: torch.Tensor) -> bool:
    """Whether a small tensor contains neither NaN nor Inf; most are a loss, whose single number is quickly read."""
    return cmath.isfinite(tensor.item()) if tensor.numel() == 1 else bool(tensor.isfinite().all())


def _read_loss(roots: Sequence[Any]) -> float | None:
    """Return the number of a root, if it is the only one, and on no device, where reading it would wait."""
    root = roots[0] if len(roots) == 1 else None
    if not is_tensor(root) or runs_user_code(root) or tensor_statistics.reading_waits(root) or root.is_nested:
        return None
    with suppress(RuntimeError, NotImplementedError):  # functorch, sparse, float8
        if root.numel() == 1 and root.is_floating_point():
            return float(root.detach())
    return None
