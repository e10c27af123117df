"""The dicts in which modules, parameters, optimizers and torch itself keep their hooks."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.modules.module as torch_modules
import torch.optim.optimizer as torch_optimizers

from hookviz.autograd.module_tree import own_parameters
from hookviz.recorder.hook_observer import Observer
from hookviz.support.messages import say

Dict = dict[Any, Callable[..., Any]]

_SAVING = ("state_dict_pre_hook", "state_dict_post_hook", "load_state_dict_pre_hook", "load_state_dict_post_hook")
_REGISTRATION = ("parameter_registration_hook", "buffer_registration_hook", "module_registration_hook")

CENSUS_KINDS = (*_SAVING, "step_pre_hook", "step_post_hook", *_REGISTRATION)
"""Kinds of hooks that are counted here, beside those that fire in a pass."""

_FORWARD = {
    "forward_pre_hook": "_forward_pre_hooks",
    "forward_hook": "_forward_hooks",
    "full_backward_pre_hook": "_backward_pre_hooks",
    "full_backward_hook": "_backward_hooks",
}
_MODULE = {
    **_FORWARD,
    **{kind: f"_{kind}s" for kind in _SAVING},
    "state_dict_post_hook": "_state_dict_hooks",
}
_OPTIMIZER = {kind: f"_optimizer_{kind}s" for kind in ("step_pre_hook", "step_post_hook", *_SAVING)}
_TENSOR = {"tensor_hook": "_backward_hooks", "post_accumulate_hook": "_post_accumulate_grad_hooks"}
_ALL_MODULES = {
    **{kind: f"_global{attribute}" for kind, attribute in _FORWARD.items()},
    **{kind: f"_global_{kind}s" for kind in _REGISTRATION},
}
_ALL_OPTIMIZERS = {"step_pre_hook": "_global_optimizer_pre_hooks", "step_post_hook": "_global_optimizer_post_hooks"}


class Kept(NamedTuple):
    """One hook dict: what kind of hooks it keeps, whose, and how one would write it."""

    kind: str
    on: str
    kept_in: str
    hooks: Dict
    flags: Mapping[str, Any]
    """A flag with which a hook can be registered → the keys of the hooks that were; None for all of them."""


def entries(hooks: Any) -> list[tuple[Any, Any]]:
    """(key, function) of the hooks that a person registered, in their order; of None, and of an empty dict, none."""
    return [(key, hook) for key, hook in (hooks or {}).items() if not isinstance(hook, Observer)]


def of_module(module: torch.nn.Module, name: str) -> Iterator[Kept]:
    """The dicts of a module, and of the parameters that are its own."""
    yield from _dicts(module, name, name, _MODULE)
    for path, parameter in own_parameters(module):
        yield from _dicts(parameter, f"{name}.{path}", f"{name}.{path}", _TENSOR)


def of_optimizer(optimizer: torch.optim.Optimizer, name: str) -> Iterator[Kept]:
    """The dicts of an optimizer."""
    return _dicts(optimizer, name, name, _OPTIMIZER)


def of_all_modules() -> Iterator[Kept]:
    """The dicts whose hooks run for every module."""
    return _dicts(torch_modules, say("name.modules"), torch_modules.__name__, _ALL_MODULES, {"global": None})


def of_all_optimizers() -> Iterator[Kept]:
    """The dicts whose hooks run for every optimizer."""
    return _dicts(
        torch_optimizers, say("name.optimizers"), torch_optimizers.__name__, _ALL_OPTIMIZERS, {"global": None}
    )


def _dicts(
    holder: Any, on: str, code: str, attributes: Mapping[str, str], flags: Mapping[str, Any] | None = None
) -> Iterator[Kept]:
    for kind, attribute in attributes.items():
        hooks = getattr(holder, attribute, None)
        if hooks:
            registered = {
                "with_kwargs": getattr(holder, f"{attribute}_with_kwargs", ()),
                "always_call": getattr(holder, f"{attribute}_always_called", ()),
            }
            yield Kept(_exact(kind, holder), on, f"{code}.{attribute}", hooks, {**(flags or {}), **registered})


def _exact(kind: str, holder: Any) -> str:
    """A module keeps full and legacy backward hooks in one dict, and notes in a flag of which kind they are."""
    full = getattr(holder, "_is_full_backward_hook", getattr(holder, "_global_is_full_backward_hook", None))
    return "backward_hook" if kind == "full_backward_hook" and full is False else kind
