"""Finds the models that have to do with what ran, or that got a hook during the recording."""

from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

import torch

from hookviz.autograd import module_tree
from hookviz.recorder.followers.hook_log import HookLog
from hookviz.recorder.followers.hooked_objects import HookedModel, sort_outermost_first
from hookviz.recorder.modules.module_registry import ModuleRegistry


class RelatedModels:
    """Finds at the end of a recording the models whose hooks are looked at."""

    def __init__(
        self,
        log: HookLog,
        registry: ModuleRegistry,
        variables: Mapping[str, Any],
        removed_from: Collection[int],
        fired: Mapping[Any, Collection[int]],
    ) -> None:
        self._log, self._registry, self._variables, self._removed_from = log, registry, variables, removed_from
        self._called = [module for _, module in registry.alive_modules()]
        self._has_passes = bool(log.trace.roots)
        self._registered = {id(owner): owner for owner in self._list_registered(fired) if owner is not None}
        """``id`` → a module or parameter with a hook that was registered in the recording and did not fire."""

    def find(self) -> list[HookedModel]:
        """Return the models with their hooks: given ones, those in variables, others that were called or hooked."""
        visited: set[int] = set()
        wanted = self._removed_from
        given = self._registry.given_models()
        models = [HookedModel(root, visited, wanted) for root in given if id(root) not in visited]
        candidates = (HookedModel(root, visited, wanted) for root in self._candidates())
        models += [model for model in candidates if self._is_related(model)]
        others = [*self._called, *(owner for owner in self._registered.values() if isinstance(owner, torch.nn.Module))]
        return models + [HookedModel(module, visited, wanted) for module in others if id(module) not in visited]

    def _list_registered(self, fired: Mapping[Any, Collection[int]]) -> Iterator[Any]:
        """Yield the owners, None if gone, of hooks that were registered in the recording and did not fire."""
        for key, module in self._log.on_modules.items():
            if key not in fired:
                yield module.module()
        for key, tensor in self._log.on_tensors.items():
            if (key, None) not in self._log.fired and tensor.tensor is not None:
                yield tensor.tensor()

    def _holds_registered(self, root: torch.nn.Module) -> bool:
        """Return whether a module or parameter in ``root`` has a hook that was registered and did not fire."""
        parts = chain(module_tree.all_modules(root), module_tree.all_parameters(root))
        return bool(self._registered) and any(id(part) in self._registered for part in parts)

    def _candidates(self) -> Iterator[torch.nn.Module]:
        """Yield the modules in variables to look at: a notebook may hold many models that were not used here."""
        if not (self._called or self._registered or self._log.modules.has_parameters) and self._has_passes:
            return
        classes = {type(module) for module in self._called}
        variables = {id(value): value for value in self._variables.values() if isinstance(value, torch.nn.Module)}
        given = {id(model) for model in self._registry.given_models()}
        candidates = (root for root in variables.values() if id(root) not in given)
        if self._registry.given:
            candidates = (root for root in candidates if type(root) in classes or self._holds_registered(root))
        yield from sort_outermost_first(list(candidates))

    def _is_related(self, model: HookedModel) -> bool:
        """Return whether a model was called, or used without a call, or may be a copy of one that was."""
        is_called = not {id(module) for module in self._called}.isdisjoint(map(id, module_tree.all_modules(model.root)))
        twins = (module for module in self._called if type(module) is type(model.root))
        is_twin = any(_classes_in(module) == _classes_in(model.root) for module in twins)
        is_used = self._log.modules.are_used(module_tree.all_parameters(model.root)) is not None
        is_idle = not (self._called or self._has_passes)
        return is_called or is_twin or is_used or is_idle or self._holds_registered(model.root)


def _classes_in(model: torch.nn.Module) -> list[type]:
    """Return the classes of the modules in a model, in order: a copy of it has the same."""
    return [type(module) for module in module_tree.all_modules(model)]
