"""Finds at the end of a recording the hooks that are older than it, on what it knows and in the caller's variables."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch.nn import Module

from hookviz.autograd import module_tree, variable_names
from hookviz.autograd.torch_internals import MODULE_HOOKS, TENSOR_HOOKS
from hookviz.recorder.followers.parameter_ledger import ParameterLedger
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.recorder.torch.compiled_regions import is_compile_wrapper
from hookviz.recorder.torch.hook_dicts import (
    HookDict,
    global_module_hook_dicts,
    global_optimizer_hook_dicts,
    module_own_hook_dicts,
    optimizer_hook_dicts,
    tensor_hook_dicts,
)
from hookviz.trace import HOOK_KINDS


class OwnedDict(NamedTuple):
    """A hook dict with the module, tensor or optimizer that owns it; None if all modules or optimizers do."""

    place: HookDict
    owner: Any


class OlderHooks:
    """Finds the hook dicts of the given models, of what was called, and of what has to do with it in variables."""

    def __init__(
        self,
        modules: ModuleRegistry,
        parameters: ParameterLedger,
        variables: Mapping[str, Any],
        is_needed: Callable[[Any], bool],
    ) -> None:
        self._registry, self._parameters, self._variables = modules, parameters, variables
        self._is_needed = is_needed
        """Whether a dict may have a hook that did not fire; a cheap question, since most hooks have fired."""
        self._called = [module for _, module in modules.alive_modules()]

    def dicts(self, optimizers: Iterator[tuple[str, torch.optim.Optimizer]], has_passes: bool) -> Iterator[OwnedDict]:
        """Yield the hook dicts, with the names of their owners."""
        visited: set[int] = set()
        for root in [*self._registry.given_models(), *self._models(has_passes), *self._called]:
            yield from self._dicts_of_model(root, visited)
        for name, tensor in variable_names.tensors_among(self._variables, with_modules=False).items():
            if id(tensor) not in visited and self._has_needed_hooks(tensor):
                visited.add(id(tensor))
                yield from _owned(tensor_hook_dicts(tensor, name, empty=True), tensor)
        named = ((name, one) for name, one in self._variables.items() if isinstance(one, torch.optim.Optimizer))
        for name, optimizer in chain(optimizers, named):
            yield from _owned(optimizer_hook_dicts(optimizer, name, empty=True), optimizer)
        yield from _owned(chain(global_module_hook_dicts(), global_optimizer_hook_dicts()), None)

    def _dicts_of_model(self, root: Module, visited: set[int]) -> Iterator[OwnedDict]:
        for module in module_tree.all_modules(root) if id(root) not in visited else ():
            if id(module) in visited:
                continue
            visited.add(id(module))
            state = vars(module)
            if any(self._is_needed(state.get(attribute)) for attribute in MODULE_HOOKS.values()):
                name = self._registry.name_within(root, module)
                yield from _owned(module_own_hook_dicts(module, name, empty=True), module)
            for name, parameter in module_tree.own_parameters(module):
                if self._has_needed_hooks(parameter):
                    path = f"{self._registry.name_within(root, module)}.{name}"
                    yield from _owned(tensor_hook_dicts(parameter, path, empty=True), parameter)

    def _has_needed_hooks(self, tensor: torch.Tensor) -> bool:
        return any(self._is_needed(getattr(tensor, attribute)) for attribute in TENSOR_HOOKS.values())

    def _models(self, has_passes: bool) -> Iterator[Module]:
        """Yield the models in variables to look at: a notebook may hold many that were not used here."""
        if not (self._called or self._parameters.has_entries) and has_passes:
            return
        classes = {type(module) for module in self._called}
        given = {id(model) for model in self._registry.given_models()}
        roots = {id(one): one for one in self._variables.values() if isinstance(one, Module) and id(one) not in given}
        for root in _sort_outermost_first(list(roots.values())):
            is_candidate = type(root) in classes or not self._registry.given
            if is_candidate and self._is_related(root, has_passes):
                yield root

    def _is_related(self, root: Module, has_passes: bool) -> bool:
        """Return whether a model was called, or used without a call, or may be a copy of one that was."""
        called = {id(module) for module in self._called}
        twins = (module for module in self._called if type(module) is type(root))
        return (
            not (self._called or has_passes)
            or any(id(module) in called for module in module_tree.all_modules(root))
            or any(_classes_in(module) == _classes_in(root) for module in twins)
            or self._parameters.count_uses(module_tree.all_parameters(root)) is not None
        )


def _owned(places: Iterator[HookDict], owner: Any) -> Iterator[OwnedDict]:
    return (OwnedDict(place, owner) for place in places if place.kind in HOOK_KINDS)


def _classes_in(model: Module) -> list[type]:
    """Return the classes of the modules in a model, in order: a copy of it has the same."""
    return [type(module) for module in module_tree.all_modules(model)]


def _sort_outermost_first(models: list[Module]) -> list[Module]:
    """Put the modules that others hold behind those, which give them their names."""
    if len(models) < 2:
        return models
    held = {id(child) for root in models for child in module_tree.all_modules(root) if child is not root}
    held |= {id(root) for root in models if is_compile_wrapper(root)}
    return sorted(models, key=lambda module: id(module) in held)
