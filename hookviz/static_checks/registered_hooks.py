"""The hooks of a model with the functions and the objects that they are registered on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import Module

from hookviz.autograd import module_tree
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.recorder.torch.hook_dicts import module_hook_dicts, user_hook_entries
from hookviz.recorder.torch.unwrapped_hooks import is_multi_grad_part, user_function
from hookviz.support.source_code import describe_function
from hookviz.trace import TraceData


@dataclass(frozen=True)
class RegisteredHook:
    """A hook that is registered now. It refers to live objects, so it is kept only while the rules run."""

    kind: str
    on: str
    """The name of the owner."""
    owner: Module | torch.nn.Parameter
    function: Any
    """The function of the user."""
    with_kwargs: bool
    dict_id: int
    """Identifies the dict that keeps it."""

    @property
    def label(self) -> str:
        """The short name of its function."""
        return describe_function(self.function).label


class NamedModel:
    """A model, its modules by the names that a recording gives them, and its hooks."""

    def __init__(self, root: Module) -> None:
        registry = ModuleRegistry(TraceData())
        registry.name_model(root)
        self.modules = [
            (registry.trace.module(registry.number(module)), module) for module in module_tree.all_modules(root)
        ]
        self.parameter_count = len({id(parameter) for parameter in module_tree.all_parameters(root)})
        self.hooks = list(self._list_hooks())

    def _list_hooks(self) -> Iterator[RegisteredHook]:
        seen: set[int] = set()
        for name, module in self.modules:
            owners = {f"{name}.{own}": parameter for own, parameter in module_tree.own_parameters(module)}
            for kept in module_hook_dicts(module, name):
                if id(kept.hooks) in seen:  # of a parameter with two names
                    continue
                seen.add(id(kept.hooks))
                for key, hook in user_hook_entries(kept.hooks):
                    kind = "multi_grad_hook" if is_multi_grad_part(hook) else kept.kind
                    owner = owners.get(kept.on, module)
                    function, takes_kwargs = user_function(hook), "with_kwargs" in kept.flags_of(key)
                    yield RegisteredHook(kind, kept.on, owner, function, takes_kwargs, id(kept.hooks))
