"""Finds the dicts in which modules, parameters, optimizers and torch itself keep their hooks."""

from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, NamedTuple

import torch
import torch.nn.modules.module as torch_modules
import torch.optim.optimizer as torch_optimizers

from hookviz.autograd.module_tree import own_parameters
from hookviz.autograd.torch_internals import (
    ALWAYS_CALLED,
    GLOBAL_IS_FULL,
    GLOBAL_MODULE_HOOKS,
    GLOBAL_STEP_HOOKS,
    IS_FULL,
    MODULE_HOOKS,
    OPTIMIZER_HOOKS,
    REGISTRATION_HOOKS,
    SAVING_HOOKS,
    TENSOR_HOOKS,
    WITH_KWARGS,
)
from hookviz.recorder.hook_observer import Observer
from hookviz.support.messages import _

Dict = dict[Any, Callable[..., Any]]

_GLOBAL_MODULE_DICTS = {**GLOBAL_MODULE_HOOKS, **REGISTRATION_HOOKS}


class HookDict(NamedTuple):
    """A dict of hooks: their kind, the name of their owner, and the expression that reaches the dict."""

    kind: str
    on: str
    kept_in: str
    hooks: Dict
    flags: Mapping[str, Any]
    """Flag of a registration → the keys of the hooks that have it; None if all of them have it."""

    def flags_of(self, key: Any) -> tuple[str, ...]:
        """Return the flags with which the hook with this key was registered."""
        return tuple(flag for flag, keys in self.flags.items() if keys is None or key in keys)


def user_hook_entries(hooks: Any) -> list[tuple[Any, Any]]:
    """Return (key, function) of the user's hooks in a dict, in order; an empty list for None."""
    return [(key, hook) for key, hook in (hooks or {}).items() if not isinstance(hook, Observer)]


def module_hook_dicts(module: torch.nn.Module, name: str) -> Iterator[HookDict]:
    """Yield the hook dicts of a module and of its own parameters."""
    yield from module_own_hook_dicts(module, name)
    for path, parameter in own_parameters(module):
        yield from tensor_hook_dicts(parameter, f"{name}.{path}")


def module_own_hook_dicts(module: torch.nn.Module, name: str, *, empty: bool = False) -> Iterator[HookDict]:
    """Yield the hook dicts of a module, without those of its parameters; with ``empty``, also those without hooks."""
    return _hook_dicts(module, name, name, {**MODULE_HOOKS, **SAVING_HOOKS}, empty=empty)


def tensor_hook_dicts(tensor: torch.Tensor, name: str, *, empty: bool = False) -> Iterator[HookDict]:
    """Yield the hook dicts of a tensor; with ``empty``, also those without hooks."""
    return _hook_dicts(tensor, name, name, TENSOR_HOOKS, empty=empty)


def optimizer_hook_dicts(optimizer: torch.optim.Optimizer, name: str, *, empty: bool = False) -> Iterator[HookDict]:
    """Yield the hook dicts of an optimizer; with ``empty``, also those without hooks."""
    return _hook_dicts(optimizer, name, name, OPTIMIZER_HOOKS, empty=empty)


def global_module_hook_dicts() -> Iterator[HookDict]:
    """Yield the dicts whose hooks run for every module."""
    return _global_hook_dicts(torch_modules, _("all modules"), _GLOBAL_MODULE_DICTS)


def global_optimizer_hook_dicts() -> Iterator[HookDict]:
    """Yield the dicts whose hooks run for every optimizer."""
    return _global_hook_dicts(torch_optimizers, _("all optimizers"), GLOBAL_STEP_HOOKS)


def _global_hook_dicts(library: ModuleType, name: str, attributes: Mapping[str, str]) -> Iterator[HookDict]:
    if any(getattr(library, attribute, None) for attribute in attributes.values()):  # hardly anybody uses them
        yield from _hook_dicts(library, name, library.__name__, attributes, {"global": None})


def _hook_dicts(
    holder: Any,
    on: str,
    code: str,
    attributes: Mapping[str, str],
    flags: Mapping[str, Any] | None = None,
    *,
    empty: bool = False,
) -> Iterator[HookDict]:
    for kind, attribute in attributes.items():
        hooks = getattr(holder, attribute, None)
        if hooks or (empty and hooks is not None):
            registered = {
                "with_kwargs": getattr(holder, f"{attribute}{WITH_KWARGS}", ()),
                "always_call": getattr(holder, f"{attribute}{ALWAYS_CALLED}", ()),
            }
            yield HookDict(_exact_kind(kind, holder), on, f"{code}.{attribute}", hooks, {**(flags or {}), **registered})


def _exact_kind(kind: str, holder: Any) -> str:
    """Return the exact kind: a module keeps full and legacy backward hooks in one dict, and a flag tells which."""
    full = getattr(holder, IS_FULL, getattr(holder, GLOBAL_IS_FULL, None))
    return "backward_hook" if kind == "full_backward_hook" and full is False else kind
