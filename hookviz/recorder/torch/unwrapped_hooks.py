"""What a hook on a graph is: the function that a person registered, or what torch registered on their behalf."""

from typing import Any, NamedTuple

import torch

from hookviz.autograd.torch_internals import OUTPUT_HOOK, LegacyModuleHook, ModuleBackwardHook
from hookviz.support.wrapped_functions import closure_variables


class UnwrappedHook(NamedTuple):
    """A hook of a tensor or a node: registered by a person, or by torch on their behalf."""

    function: Any
    """The user's function; of torch's own hook that calls a module's full backward hooks what holds the lists of them.
    """
    kind: str | None = None
    """The kind of its steps, if it is not that of the dict that holds it."""
    module: Any = None
    """The module that it was registered on, if torch keeps it."""
    is_of_module: bool = False
    """Whether torch put it there for a hook of a module."""
    calls_others: bool = False
    """Whether it runs functions of the user's that have observers of their own: full backward hooks of a module."""
    at_output: bool = False
    """Whether such a hook is on the node of the module's output, rather than on the one of its inputs."""
    state: Any = None
    """What the parts of a multi-grad hook share: its progress by graph task."""
    waits: bool = False
    """Whether it runs only once all of its gradients have arrived."""

    def has_run(self, task: int, fired: set[int]) -> bool:
        """Return whether the user's function has run in this graph task, now that torch has called the hook.

        ``fired`` has the ids of what the parts of multi-grad hooks share that have run in this pass.
        """
        if self.calls_others:
            return False  # observers in the lists report each function
        if self.waits:
            return task not in self.state  # torch drops the count after the last gradient
        is_known = self.state is not None and id(self.state) in fired
        fired.add(id(self.state))
        return not is_known  # of several parts, the one that torch calls first runs the function


def unwrap_hook(hook: Any) -> UnwrappedHook:
    """Find out what a hook on a graph is.

    >>> unwrap_hook(print).function is print
    True
    """
    if isinstance(hook, LegacyModuleHook):
        return UnwrappedHook(hook.hook, "backward_hook", hook.module() if hook.with_module else None, is_of_module=True)
    name = getattr(getattr(hook, "__code__", None), "co_qualname", "")
    if name.startswith("BackwardHook."):
        owner = closure_variables(hook).get("self")
        if isinstance(owner, ModuleBackwardHook):
            at_output = name.startswith(f"BackwardHook.{OUTPUT_HOOK}")
            return UnwrappedHook(owner, "module", owner.module, True, True, at_output)
    if name.startswith("register_multi_grad_hook."):
        variables = closure_variables(hook)
        waits = "count" in variables
        state = variables["count" if waits else "ran_hook"]
        return UnwrappedHook(variables["fn"], "multi_grad_hook", state=state, waits=waits)
    return UnwrappedHook(hook)


def user_function(hook: Any) -> Any:
    """Return the user's function in a hook, also in one that torch registered on the user's behalf.

    >>> user_function(print) is print
    True
    """
    return unwrap_hook(hook).function


def is_multi_grad_part(hook: Any) -> bool:
    """Return whether a hook is one of the parts of a multi-grad hook, which torch registers on each of its tensors."""
    return unwrap_hook(hook).state is not None


def tensor_index(hook: Any) -> int | None:
    """Return the index of the tensor that a part of a multi-grad hook is on; None in mode "any"."""
    index = closure_variables(hook).get("idx")
    return index if isinstance(index, int) else None


def collected_gradients(hook: Any, task: int) -> tuple[int, list[torch.Tensor | None]] | None:
    """Return the index of a part's tensor, and the gradients that torch has collected for the other tensors.

    The gradients are complete when the hook is about to run; None stands for a gradient that has not arrived or never
    will. Before that, and in mode "any", the result is None.
    """
    variables = closure_variables(hook)
    try:
        arrived = variables["count"].get(task, 0)
        if arrived and arrived != variables["nb_calls"] - 1:
            return None
        return variables["idx"], list(variables["buffer"].get(task) or [None] * variables["len_tensors"])
    except KeyError:  # mode "any", or a torch that keeps the gradients elsewhere
        return None
