"""Finds the modules, tensors and optimizers that have hooks, among those that a recording knows."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch.nn import Module

from hookviz.autograd import module_tree, variable_names
from hookviz.autograd.torch_internals import MODULE_HOOKS
from hookviz.recorder.torch.compiled_regions import is_compile_wrapper
from hookviz.recorder.torch.hook_dicts import HookDict, module_own_hook_dicts, optimizer_hook_dicts, tensor_hook_dicts
from hookviz.trace import HOOK_KINDS

_ATTRIBUTES = _PRE, _POST, _BACKWARD_PRE, _BACKWARD = tuple(MODULE_HOOKS.values())


IsNeeded = Callable[[Any, Any], bool]
"""Whether a dict of an owner is of interest; a cheap question, since most hooks have fired."""


class OwnedDict(NamedTuple):
    """A hook dict with the module, tensor or optimizer that owns it."""

    place: HookDict
    owner: Any


class HookedModel:
    """A model with its modules and parameters that have hooks, found in one quick walk: most have none."""

    def __init__(self, root: Module, visited: set[int], wanted: Container[int] = ()) -> None:
        self.root = root
        self.modules: list[Module] = []
        self.parameters: list[tuple[Module, str, torch.Tensor]] = []
        self.parameter_ids: set[int] = set()
        self._walk(visited, wanted)

    def _walk(self, visited: set[int], wanted: Container[int]) -> None:
        """Look at all modules that are not in ``visited``.

        ``wanted`` has the ``id`` of dicts whose owners count as well, though the dicts may be empty now.
        """
        stack = [self.root]
        while stack:
            module = stack.pop()
            if id(module) in visited:
                continue
            visited.add(id(module))
            state = vars(module)
            has_hooks = state.get(_PRE) or state.get(_POST) or state.get(_BACKWARD_PRE) or state.get(_BACKWARD)
            if has_hooks or (wanted and any(id(state.get(attribute)) in wanted for attribute in _ATTRIBUTES)):
                self.modules.append(module)
            for name, parameter in module_tree.own_parameters(module):
                self.parameter_ids.add(id(parameter))
                if has_tensor_hooks(parameter) or (wanted and id(parameter._backward_hooks) in wanted):
                    self.parameters.append((module, name, parameter))
            stack += [child for _, child in module_tree.children(module)]

    @property
    def has_hooks(self) -> bool:
        """Whether anything was found."""
        return bool(self.modules or self.parameters)

    @cached_property
    def _modules_by_path(self) -> dict[str, Module]:
        return dict(module_tree.named_modules(self.root))

    @cached_property
    def _paths(self) -> dict[int, str]:
        return {id(module): path for path, module in self._modules_by_path.items()}

    def modules_around(self, module: Module) -> list[Module]:
        """Return the modules of this model that hold ``module``, the innermost first."""
        path = self._paths.get(id(module), "")
        prefixes = [path.rsplit(".", count)[0] for count in range(1, path.count(".") + 1)]
        modules = self._modules_by_path
        return [modules[prefix] for prefix in (*prefixes, "") if path and prefix in modules]

    def dicts(self, label: Callable[[Module], str], is_needed: IsNeeded) -> Iterator[OwnedDict]:
        """Yield the hook dicts that are needed, of those that were found; ``label`` names a module."""
        for module in self.modules:
            if any(is_needed(module, vars(module).get(attribute)) for attribute in _ATTRIBUTES):
                places = module_own_hook_dicts(module, label(module), empty=True)
                yield from (OwnedDict(place, module) for place in places if place.kind in HOOK_KINDS)
        for module, name, parameter in self.parameters:
            if _is_tensor_needed(parameter, is_needed):
                yield from _dicts_of_tensor(parameter, f"{label(module)}.{name}")


def _is_tensor_needed(tensor: torch.Tensor, is_needed: IsNeeded) -> bool:
    return is_needed(tensor, tensor._backward_hooks) or is_needed(tensor, tensor._post_accumulate_grad_hooks)


def _dicts_of_tensor(tensor: torch.Tensor, name: str) -> Iterator[OwnedDict]:
    return (OwnedDict(place, tensor) for place in tensor_hook_dicts(tensor, name, empty=True))


def has_tensor_hooks(tensor: torch.Tensor) -> bool:
    """Return whether hooks are registered on a tensor."""
    return bool(tensor._backward_hooks or tensor._post_accumulate_grad_hooks)


def dicts_in_variables(variables: Mapping[str, Any], is_needed: IsNeeded) -> Iterator[OwnedDict]:
    """Yield the hook dicts that are needed, of the tensors and optimizers in variables."""
    for name, tensor in variable_names.tensors_among(variables, with_modules=False).items():
        if _is_tensor_needed(tensor, is_needed):
            yield from _dicts_of_tensor(tensor, name)
    for name, value in variables.items():
        if isinstance(value, torch.optim.Optimizer):
            yield from dicts_of_optimizer(value, name)


def dicts_of_optimizer(optimizer: torch.optim.Optimizer, name: str) -> Iterator[OwnedDict]:
    """Yield the dicts of the step hooks of an optimizer."""
    places = optimizer_hook_dicts(optimizer, name, empty=True)
    return (OwnedDict(place, optimizer) for place in places if place.kind in HOOK_KINDS)


def sort_outermost_first(models: Sequence[Module]) -> Sequence[Module]:
    """Put the modules that others hold behind those, which give them their names."""
    if len(models) < 2:
        return models
    held = {id(child) for root in models for child in module_tree.all_modules(root) if child is not root}
    held |= {id(root) for root in models if is_compile_wrapper(root)}
    return sorted(models, key=lambda module: id(module) in held)
