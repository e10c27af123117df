"""What a hook on a graph is: the function that a person registered, or what torch registered on their behalf."""

from typing import Any

import torch

from hookviz.autograd.torch_internals import OUTPUT_HOOK, LegacyModuleHook, ModuleBackwardHook
from hookviz.support.wrapped_functions import closure_variables


class UnwrappedHook:
    """A hook that a person registered directly on a tensor or a node."""

    kind: str | None = None
    """The kind of its steps, if it is not that of the dict that holds it."""
    is_of_module = False
    """Whether torch put it there for a hook of a module."""
    calls_others = False
    """Whether it runs functions of the user's that have observers of their own."""
    module: Any = None
    """The module that it was registered on, if torch keeps it."""
    state: Any = None
    """What the parts of a multi-grad hook share: its progress by graph task."""
    waits = False
    """Whether it runs only once all of its gradients have arrived."""

    def __init__(self, function: Any) -> None:
        self.function = function
        """The user's function."""

    def kind_in(self, kind: str) -> str:
        """Return the kind of its steps, in a dict of hooks of this kind."""
        return self.kind or kind

    def has_run(self, task: int, fired: set[int]) -> bool:
        """Return whether the user's function has run in this graph task, now that torch has called the hook.

        ``fired`` has the ids of what such hooks shared that have run in this pass.
        """
        return True


class LegacyHook(UnwrappedHook):
    """A hook of ``register_backward_hook``, on the node of the module's output."""

    kind = "backward_hook"
    is_of_module = True

    def __init__(self, hook: LegacyModuleHook) -> None:
        super().__init__(hook.hook)
        self.module = hook.module() if hook.with_module else None


class ModuleHooks(UnwrappedHook):
    """Torch's own hook that calls a module's full backward hooks; its function holds the lists of them."""

    kind = "module"
    is_of_module = True
    calls_others = True

    def __init__(self, owner: ModuleBackwardHook, at_output: bool) -> None:
        super().__init__(owner)
        self.module = owner.module
        self.at_output = at_output
        """Whether it is on the node of the module's output, rather than on the one of its inputs."""

    def has_run(self, task: int, fired: set[int]) -> bool:
        """Observers in the lists report each function."""
        return False


class MultiGradPart(UnwrappedHook):
    """What torch registers on each of a multi-grad hook's tensors."""

    kind = "multi_grad_hook"

    def __init__(self, function: Any, state: Any) -> None:
        super().__init__(function)
        self.state = state


class PartThatWaits(MultiGradPart):
    """A part of a multi-grad hook that runs at the last of its gradients."""

    waits = True

    def has_run(self, task: int, fired: set[int]) -> bool:
        """Torch drops the count after the last gradient."""
        return task not in self.state


class PartOfAny(MultiGradPart):
    """A part of a multi-grad hook that runs at the first of its gradients."""

    def has_run(self, task: int, fired: set[int]) -> bool:
        """The part that torch calls first runs the function."""
        is_first = id(self.state) not in fired
        fired.add(id(self.state))
        return is_first


def unwrap_hook(hook: Any) -> UnwrappedHook:
    """Find out what a hook on a graph is.

    >>> unwrap_hook(print).function is print
    True
    """
    if isinstance(hook, LegacyModuleHook):
        return LegacyHook(hook)
    name = getattr(getattr(hook, "__code__", None), "co_qualname", "")
    if name.startswith("BackwardHook."):
        owner = closure_variables(hook).get("self")
        if isinstance(owner, ModuleBackwardHook):
            return ModuleHooks(owner, name.startswith(f"BackwardHook.{OUTPUT_HOOK}"))
    if name.startswith("register_multi_grad_hook."):
        variables = closure_variables(hook)
        if "count" in variables:
            return PartThatWaits(variables["fn"], variables["count"])
        return PartOfAny(variables["fn"], variables["ran_hook"])
    return UnwrappedHook(hook)


def user_function(hook: Any) -> Any:
    """Return the user's function in a hook, also in one that torch registered on the user's behalf.

    >>> user_function(print) is print
    True
    """
    return unwrap_hook(hook).function


def is_multi_grad_part(hook: Any) -> bool:
    """Return whether a hook is one of the parts of a multi-grad hook, which torch registers on each of its tensors."""
    return isinstance(unwrap_hook(hook), MultiGradPart)


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
