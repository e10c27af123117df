"""Finds the user's function in a hook that torch registers on the user's behalf."""

from typing import Any, NamedTuple

from hookviz.autograd.torch_internals import OUTPUT_HOOK, LegacyModuleHook, ModuleBackwardHook
from hookviz.support.wrapped_functions import closure_variables


class UnwrappedHook(NamedTuple):
    """The user's function in one of torch's own hooks, and what torch keeps with it."""

    kind: str
    """A kind of step; "module" for the hook that calls a module's full backward hooks."""
    function: Any
    """The user's function; for "module", torch's ``BackwardHook``, which holds the lists of them."""
    module: Any = None
    state: Any = None
    """For a multi-grad hook: its progress by graph task."""
    waits: bool = False
    """For a multi-grad hook: whether it waits for all of its gradients, or runs at the first of them."""
    at_output: bool = False
    """For "module": whether it is on the node of the module's output, rather than on the one of its inputs."""


def unwrap_hook(hook: Any) -> UnwrappedHook | None:
    """Unwrap ``hook``; return None for a hook that a person registered directly.

    >>> unwrap_hook(print) is None
    True
    """
    if isinstance(hook, LegacyModuleHook):
        return UnwrappedHook("backward_hook", hook.hook, hook.module() if hook.with_module else None)
    name = getattr(getattr(hook, "__code__", None), "co_qualname", "")
    if name.startswith("BackwardHook."):
        owner = closure_variables(hook).get("self")
        at_output = name.startswith(f"BackwardHook.{OUTPUT_HOOK}")
        return (
            UnwrappedHook("module", owner, owner.module, at_output=at_output)
            if isinstance(owner, ModuleBackwardHook)
            else None
        )
    if name.startswith("register_multi_grad_hook."):
        variables = closure_variables(hook)
        waits = "count" in variables
        return UnwrappedHook(
            "multi_grad_hook", variables["fn"], None, variables["count" if waits else "ran_hook"], waits
        )
    return None


def user_function(hook: Any) -> Any:
    """Return the user's function in a hook, also in one that torch registered on the user's behalf.

    >>> user_function(print) is print
    True
    """
    unwrapped = unwrap_hook(hook)
    return hook if unwrapped is None else unwrapped.function


def is_multi_grad_part(hook: Any) -> bool:
    """Return whether a hook is one of the parts of a multi-grad hook, which torch registers on each of its tensors."""
    unwrapped = unwrap_hook(hook)
    return unwrapped is not None and unwrapped.kind == "multi_grad_hook"
