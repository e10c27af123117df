"""Tracks what is registered while a recording is open: hooks, and ``retain_grad()``."""

import weakref
from collections.abc import Iterable
from typing import Any

import torch

from hookviz.autograd.graph_snapshot import GraphSnapshot, HookDicts
from hookviz.autograd.node_marks import NodeMarks
from hookviz.recorder.pass_stack import PassStack
from hookviz.recorder.passes.observer_registry import ObserverRegistry
from hookviz.support.interpreter import Uninterrupted


class LateHooks:
    """Remembers where hooks were registered, since their tensors may no longer exist when the pass begins."""

    def __init__(self, registry: ObserverRegistry, passes: PassStack) -> None:
        self.registry, self.passes = registry, passes
        self.dicts: HookDicts = NodeMarks()
        """Node of each tensor that got a hook → (which of its outputs the tensor is, the tensor's hook dict)."""
        self._node_dicts: dict[int, weakref.ref[Any]] = {}
        """``id`` of a hook dict → the dict, for hooks that were registered on nodes."""
        self._retaining_tensors: list[weakref.ref[torch.Tensor]] = []

    def tensor_hook_added(self, tensor: torch.Tensor, kind: str, hooks: Any) -> None:
        """Track a hook that was added to ``tensor``. Remember where, since the tensor itself may soon be freed."""
        if self.registry.is_observed(hooks):
            self.registry.reinstall(hooks)
            return
        with Uninterrupted():
            self._remember(tensor, hooks)
        for running_pass in self.passes:
            place = running_pass.snapshot.place_of_tensor(tensor)
            if place is not None:
                self.registry.observe(running_pass, kind, hooks, *place)
                running_pass.node_observers.observe_all_nodes(running_pass)

    def node_hook_added(self, hooks: Any) -> None:
        """Track a hook that was added to a node's dict, and reinstall the observers in it if there are any.

        torch does not show whether the dict is the one in front of the node or behind it. Iterations that are running
        are not affected.
        """
        self._node_dicts[id(hooks)] = weakref.ref(hooks)
        if self.registry.is_observed(hooks):
            self.registry.reinstall(hooks)
        else:
            self.registry.node_hook_added(hooks)

    def has_unknown_node_hooks(self, hook_dicts: Iterable[Any]) -> bool:
        """Return whether a node got hooks that are not among ``hook_dicts``, the dicts behind the nodes of a graph."""
        known_ids = {id(hooks) for hooks in hook_dicts}
        self._node_dicts = {key: reference for key, reference in self._node_dicts.items() if reference()}
        return not self._node_dicts.keys() <= known_ids

    def retain_grad_called(self, tensor: torch.Tensor) -> None:
        """Remember that ``tensor`` retains its gradient. By the time of the pass, nothing else may hold it."""
        if tensor.is_leaf:
            return  # a leaf keeps its gradient anyway
        self._retaining_tensors.append(weakref.ref(tensor))
        for running_pass in self.passes:
            running_pass.snapshot.add_retained(tensor)

    def mark_retained(self, snapshot: GraphSnapshot) -> None:
        """Mark in the graph of a pass that begins which tensors retain their gradients."""
        self._retaining_tensors = [reference for reference in self._retaining_tensors if reference() is not None]
        for reference in self._retaining_tensors:
            snapshot.add_retained(reference())

    def _remember(self, tensor: torch.Tensor, hooks: Any) -> None:
        if tensor.grad_fn is None:
            return
        tensor_dicts = self.dicts.get(tensor.grad_fn) or ()
        if all(reference() is not hooks for _, reference in tensor_dicts):
            self.dicts.put(tensor.grad_fn, (*tensor_dicts, (tensor.output_nr, weakref.ref(hooks))))

    def close(self) -> None:
        """Forget all nodes."""
        self.dicts.clear()
