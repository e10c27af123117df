"""What is registered while a recording is open: hooks, and tensors that keep their gradients."""

import weakref
from collections.abc import Iterable
from typing import Any

import torch

from hookviz.autograd.graph_snapshot import GraphSnapshot, HookDicts
from hookviz.autograd.node_marks import NodeMarks
from hookviz.recorder.observer_registry import ObserverRegistry
from hookviz.recorder.running_passes import RunningPasses
from hookviz.support.interrupts import Uninterrupted


class LateHooks:
    """Remembers where hooks were put, since by the time of the pass their tensors may be gone."""

    def __init__(self, registry: ObserverRegistry, passes: RunningPasses) -> None:
        self.registry, self.passes = registry, passes
        self.dicts: HookDicts = NodeMarks()
        """For the node of each tensor that got a hook: which of its outputs that was, and its dict of hooks."""
        self._on_nodes: dict[int, weakref.ref[Any]] = {}
        """By their ``id``, the dicts of hooks that nodes got."""
        self._retaining: list[weakref.ref[torch.Tensor]] = []

    def on_tensor(self, tensor: torch.Tensor, kind: str, hooks: Any) -> None:
        """A hook was added to ``tensor``; remember where, since the tensor itself may soon be gone."""
        if self.registry.is_observed(hooks):
            self.registry.reinstall(hooks)
            return
        with Uninterrupted():
            self._remember(tensor, hooks)
        for running_pass in self.passes:
            place = running_pass.snapshot.place_of_tensor(tensor)
            if place is not None:
                self.registry.observe(running_pass, kind, hooks, *place)
                running_pass.node_observers.wake(running_pass)

    def on_dict(self, hooks: Any) -> None:
        """A hook was added to a dict: observers in it are installed anew. Stages already running are unaffected.

        If none stand there, it is that of a node, in front of it or behind it: torch does not show which one.
        """
        self._on_nodes[id(hooks)] = weakref.ref(hooks)
        if self.registry.is_observed(hooks):
            self.registry.reinstall(hooks)
        else:
            self.registry.registered(hooks)

    def unexplained(self, found: Iterable[Any]) -> bool:
        """Whether a node got hooks that are not among those ``found`` behind the nodes of a graph."""
        known = {id(hooks) for hooks in found}
        self._on_nodes = {key: reference for key, reference in self._on_nodes.items() if reference()}
        return not self._on_nodes.keys() <= known

    def retains(self, tensor: torch.Tensor) -> None:
        """``tensor`` keeps its gradient from now on; nobody else may know of it by the time that it does."""
        if tensor.is_leaf:
            return  # it does so anyway
        self._retaining.append(weakref.ref(tensor))
        for running_pass in self.passes:
            running_pass.snapshot.add_retained(tensor)

    def mark_retained(self, snapshot: GraphSnapshot) -> None:
        """Note in the graph of a pass that begins which tensors are known to keep their gradients."""
        self._retaining = [reference for reference in self._retaining if reference() is not None]
        for reference in self._retaining:
            snapshot.add_retained(reference())

    def _remember(self, tensor: torch.Tensor, hooks: Any) -> None:
        if tensor.grad_fn is None:
            return
        known = self.dicts.get(tensor.grad_fn) or ()
        if all(reference() is not hooks for _, reference in known):
            self.dicts.put(tensor.grad_fn, (*known, (tensor.output_nr, weakref.ref(hooks))))

    def forget(self) -> None:
        """Passes were dropped: hooks that are gone with their tensors need no mark any more."""
        self.dicts.keep(key for key, known in self.dicts.items() if any(hooks() is not None for _, hooks in known))

    def sweep(self) -> None:
        """Forget the nodes that are gone."""
        self.dicts.sweep()

    def close(self) -> None:
        """Forget all."""
        self.dicts.clear()
