"""Keeps the observed hook dicts of a recording's passes, and tracks what is registered while it is open."""

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from hookviz.autograd.graph import NodeMarks
from hookviz.autograd.graph_snapshot import GraphSnapshot, HookDicts
from hookviz.recorder.hook_observer import (
    HookDictObserver,
    HookListObserver,
    Observer,
    TensorDictObserver,
    release_observers,
)
from hookviz.recorder.modules.graph_owners import GraphOwners
from hookviz.recorder.passes.pass_observer import RunningPass
from hookviz.recorder.session import PassStack, Session
from hookviz.recorder.torch.hook_dicts import user_hook_entries
from hookviz.support.interpreter import Uninterrupted


class ObserverRegistry:
    """Puts observers between the hooks of running passes. Passes through the same graph share them."""

    def __init__(self, session: Session, owners: GraphOwners) -> None:
        self.session, self.owners = session, owners
        self._observers_by_dict: dict[Any, HookDictObserver] = {}
        """``id`` of a dict or list of hooks → its observer."""
        self._first_key = RemovableHandle.next_id

    def observe(self, running_pass: RunningPass, kind: str, hooks: Any, node: int, output: int | None) -> None:
        """Put observers between the hooks in ``hooks``, unless it is None or empty."""
        if not hooks or node not in running_pass.snapshot.out_edges:
            return
        dict_observer = self._observers_by_dict.get(id(hooks))
        if dict_observer is None:
            observer_class = HookDictObserver if output is None else TensorDictObserver
            dict_observer = self._observers_by_dict[id(hooks)] = observer_class(self.session, kind, hooks, node, output)
            if any(node in other.snapshot.out_edges for other in self.session.passes):
                self._note_unseen_firings(hooks)
            dict_observer.install()
        elif not dict_observer.is_installed():  # a hook in it starts this pass
            dict_observer.install()
        self._use(running_pass, dict_observer)

    def _note_unseen_firings(self, hooks: Any) -> None:
        """Note that a running pass through the same node did not know the older hooks and may have called them."""
        keys = (key for key, _ in user_hook_entries(hooks) if isinstance(key, int) and key < self._first_key)
        self.session.unseen_firings.update((key, None) for key in keys)

    def add_registered(self, running_pass: RunningPass, dict_observer: HookDictObserver, observer: Observer) -> None:
        """Add an ``observer`` that was registered on a node, where an enclosing pass may observe the dict already."""
        registered = self._observers_by_dict.setdefault(id(dict_observer.dict), dict_observer)
        if registered is not dict_observer:
            del dict_observer.dict[observer]
        elif len(dict_observer.dict) > 1:
            dict_observer.install()
        self._use(running_pass, registered)

    def observe_modules(self, running_pass: RunningPass) -> None:
        """Put observers into the lists of full backward hooks, which torch calls at two nodes of each module call."""
        ends: dict[Any, dict[bool, HookDictObserver]] = {}
        node_post_hooks = [
            dict_observer
            for dict_observer in running_pass.dict_observers
            if dict_observer.kind == "node_post_hook" and len(dict_observer.dict) > 1
        ]
        # In the order of the nodes, so that hooks have the same numbers each time that a program runs.
        for dict_observer in sorted(node_post_hooks, key=lambda observer: observer.node):
            for _, hook in dict_observer.user_hooks():
                unwrapped = running_pass.observer.hooks.unwrap(hook)
                # The compiler makes such a hook without a module, for one that it compiled.
                if unwrapped.calls_others and unwrapped.module is not None:
                    ends.setdefault(unwrapped.function, {})[unwrapped.at_output] = dict_observer
        for hook, dict_observers in ends.items():
            # If no input requires a gradient, there is no node at the inputs, and both lists run at the output.
            at_output = dict_observers.get(True, dict_observers.get(False))
            at_input = dict_observers.get(False, dict_observers.get(True))
            for kind, hooks, end in (
                ("full_backward_pre_hook", hook.user_pre_hooks, at_output),
                ("full_backward_hook", hook.user_hooks, at_input),
            ):
                if hooks and end is not None:
                    self._observe_list(running_pass, kind, hooks, hook.module, end.node)

    def _observe_list(
        self, running_pass: RunningPass, kind: str, hooks: list[Any], module: torch.nn.Module, node: int
    ) -> None:
        dict_observer, call = self._observers_by_dict.get(id(hooks)), self.owners.call_at_node(module, node)
        if dict_observer is None:
            dict_observer = self._observers_by_dict[id(hooks)] = HookListObserver(self.session, kind, hooks, node, call)
            dict_observer.install()
        self._use(running_pass, dict_observer)

    def _use(self, running_pass: RunningPass, dict_observer: HookDictObserver) -> None:
        if dict_observer not in running_pass.dict_observers:
            running_pass.dict_observers.add(dict_observer)
            dict_observer.users += 1
        for entry in dict_observer.user_hooks() if len(dict_observer.dict) > 1 else ():
            running_pass.observer.checks_each_gradient = True
            running_pass.observer.hooks.add(dict_observer, entry)

    # -- hooks that are registered during a pass

    def is_observed(self, hooks: Any) -> bool:
        """Return whether there are observers in the dict ``hooks``."""
        return id(hooks) in self._observers_by_dict

    def reinstall(self, hooks: Any) -> None:
        """Reinstall the observers in a dict that got a hook. Iterations that are running are not affected."""
        with Uninterrupted():
            self._observers_by_dict[id(hooks)].install()
        for running_pass in self.session.passes:
            running_pass.observer.checks_each_gradient = True

    def release(self, running_pass: RunningPass) -> None:
        """Remove the observers that no other pass uses, at the end of a pass."""
        release_observers(running_pass.dict_observers, self._observers_by_dict)


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
                running_pass.observe_all_nodes()

    def node_hook_added(self, hooks: Any) -> None:
        """Track a hook that was added to a node's dict, and reinstall the observers in it if there are any.

        torch does not show whether the dict is the one in front of the node or behind it. Iterations that are running
        are not affected.
        """
        self._node_dicts[id(hooks)] = weakref.ref(hooks)
        if self.registry.is_observed(hooks):
            self.registry.reinstall(hooks)
            return
        with Uninterrupted():
            for running_pass in self.passes:
                running_pass.node_observers.hook_registered(running_pass, hooks)

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
