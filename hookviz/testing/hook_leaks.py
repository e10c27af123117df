"""Find the hooks that a test leaves behind, on everything that outlives it."""

import gc
import weakref
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import torch
from torch.nn import Module
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from hookviz.autograd import module_tree
from hookviz.autograd.torch_internals import DisableTorchFunction
from hookviz.hook_listing import hooks_in_dicts, list_live
from hookviz.recorder.torch.hook_dicts import (
    HookDict,
    global_module_hook_dicts,
    global_optimizer_hook_dicts,
    module_hook_dicts,
    optimizer_hook_dicts,
    tensor_hook_dicts,
)
from hookviz.support.messages import _
from hookviz.trace import Hook
from hookviz.trace.hook_facts import name_of_kind

_HOLDERS = (Module, Optimizer, torch.Tensor)
"""The classes whose objects keep hooks."""


class LeakWatch:
    """Remembers what exists when a test begins, and finds the hooks registered on it since.

    Torch numbers all hooks in one sequence, so a hook is new if its number is. A test that registers nothing costs
    one search of the heap, at its begin. Objects that the test itself makes do not count, even if they outlive it: a
    failed test, an instance of a test class and pytest's own lists keep many of them alive.

    >>> layer = torch.nn.Linear(1, 1)
    >>> watch = LeakWatch()
    >>> handle = layer.register_forward_hook(print)
    >>> [(hook.on, hook.name) for hook in watch.find({"layer": layer})]
    [('layer', 'print')]
    """

    def __init__(self) -> None:
        self._first: int = RemovableHandle.next_id
        self._exempt: list[range] = []
        """The numbers of hooks that fixtures of several tests registered."""
        self._known = _Population()
        self._before_setup: list[tuple[int, _Population]] = []
        """For each fixture of several tests being set up: the next number, and what existed."""

    def count_from_first_hook(self) -> None:
        """Treat all hooks as new: torch was not loaded when the test began."""
        self._first = 0
        self._known = _Population(())

    def shared_setup_begins(self) -> None:
        """From now on hooks and objects belong to a fixture of several tests."""
        self._before_setup.append((RemovableHandle.next_id, _Population()))

    def shared_setup_ends(self) -> None:
        """Exempt the hooks that were registered during the set-up, and count the objects it made as known."""
        first, before = self._before_setup.pop()
        self._exempt.append(range(first, RemovableHandle.next_id))
        self._known.add(holder for holder in list_live(_HOLDERS) if holder not in before)

    def report(self, names: Mapping[str, object]) -> str:
        """Describe the hooks left behind, one a line; an empty text if there are none."""
        left = self.find(names)
        if not left:
            return ""
        listed = [f"  {describe_hook(hook)}" for hook in left]
        head = (
            _("This test left a hook behind:")
            if len(left) == 1
            else _("This test left {count} hooks behind:").format(count=len(left))
        )
        return "\n".join(
            [
                head,
                *listed,
                _(
                    "A hook that stays also runs in the tests that follow. Keep the handle that the registration "
                    'returns and call remove() on it, or register the hook in a "with" statement. If the hook is '
                    "meant to stay, mark the test with @pytest.mark.hookviz_leaks(False)."
                ),
            ]
        )

    def find(self, names: Mapping[str, object]) -> list[Hook]:
        """List the hooks left behind; ``names`` are the variables after which their owners are named."""
        if RemovableHandle.next_id == self._first:
            return []
        found = self._find_registered(names)
        if found:
            gc.collect()  # a cycle may keep an object that nothing else refers to
            found = self._find_registered(names)
        return found

    def _find_registered(self, names: Mapping[str, object]) -> list[Hook]:
        found: dict[tuple[int, Any], Hook] = {}  # a parameter is found by itself and in its module
        with DisableTorchFunction():
            dicts = chain(global_module_hook_dicts(), global_optimizer_hook_dicts(), self._dicts_of_holders(names))
            for identity, hook in hooks_in_dicts(dicts):
                if self._is_new(identity.key):
                    found.setdefault((id(identity.dict()), identity.key), hook)
        return list(found.values())

    def _dicts_of_holders(self, names: Mapping[str, object]) -> Iterator[HookDict]:
        """Yield the hook dicts of known objects that have new hooks; modules first, since they name parameters."""
        holders = sorted(filter(self._known.__contains__, list_live(_HOLDERS)), key=lambda x: not isinstance(x, Module))
        hooked = [holder for holder in holders if any(self._has_new_hook(kept) for kept in _dicts_of(holder, ""))]
        owners = _OwnerNames(names) if hooked else None
        for holder in hooked:
            yield from _dicts_of(holder, owners.find(holder) if owners else "")

    def _has_new_hook(self, kept: HookDict) -> bool:
        return any(map(self._is_new, kept.hooks))

    def _is_new(self, number: Any) -> bool:
        return isinstance(number, int) and number >= self._first and not any(number in span for span in self._exempt)


def describe_hook(hook: Hook) -> str:
    """Describe a hook on one line: its kind, its name, its owner, and where it is defined."""
    place = _(" (defined at {where})").format(where=hook.where) if hook.where else ""
    return _("{kind} {hook} on {on}").format(kind=name_of_kind(hook.kind), hook=hook.label, on=hook.on) + place


def _dicts_of(holder: Any, name: str) -> Iterator[HookDict]:
    if isinstance(holder, Module):
        return module_hook_dicts(holder, name)
    return optimizer_hook_dicts(holder, name) if isinstance(holder, Optimizer) else tensor_hook_dicts(holder, name)


class _Population:
    """A set of modules, optimizers and tensors that keeps none of them alive.

    Tensors are known by their ``id`` alone: ``torch.utils.swap_tensors`` refuses a tensor with a weak reference.
    """

    def __init__(self, holders: Iterable[Any] | None = None) -> None:
        self._references: dict[int, weakref.ref[Any] | None] = {}
        self.add(list_live(_HOLDERS) if holders is None else holders)

    def add(self, holders: Iterable[Any]) -> None:
        """Add objects to the set."""
        for holder in holders:
            self._references[id(holder)] = None if isinstance(holder, torch.Tensor) else weakref.ref(holder)

    def __contains__(self, holder: Any) -> bool:
        missing = weakref.ref(self)
        reference = self._references.get(id(holder), missing)
        return reference is None or reference() is holder


class _OwnerNames:
    """Names the owners of hooks after variables: ``model.layers.0``, ``model.layers.0.weight``."""

    def __init__(self, variables: Mapping[str, object]) -> None:
        self._names: dict[int, str] = {}
        for name, value in variables.items():
            self._add_tree(name, value)
        modules = list_live((Module,))
        inner = {id(child) for module in modules for _ignored, child in module_tree.children(module)}
        for module in modules:
            if id(module) not in inner:
                self._add_tree(type(module).__name__, module)

    def _add_tree(self, name: str, value: object) -> None:
        """Name a module with all that is in it, or another object by itself; the first name counts."""
        if not isinstance(value, Module):
            self._names.setdefault(id(value), name)
            return
        for path, module in module_tree.named_modules(value):
            full = f"{name}.{path}" if path else name
            self._names.setdefault(id(module), full)
            for own, parameter in module_tree.own_parameters(module):
                self._names.setdefault(id(parameter), f"{full}.{own}")

    def find(self, holder: Any) -> str:
        """Return the name of an owner; its class, or the shape of a tensor, if no variable leads to it."""
        if id(holder) in self._names:
            return self._names[id(holder)]
        if isinstance(holder, torch.Tensor):
            return _("a tensor of shape ({shape})").format(shape=", ".join(map(str, holder.shape)))
        return type(holder).__name__
