"""Finds the hooks that no recording follows (on state_dict, load_state_dict and registration), and their owners."""

import weakref
from itertools import chain

import torch

from hookviz.autograd.module_tree import named_modules
from hookviz.recorder.hook_dicts import (
    CENSUS_KINDS,
    global_module_hook_dicts,
    module_hook_dicts,
    optimizer_hook_dicts,
    user_hook_entries,
)
from hookviz.recorder.module_registry import ModuleRegistry
from hookviz.recorder.notes import Notes
from hookviz.recorder.optimizer_steps import OptimizerTracker
from hookviz.support.messages import say
from hookviz.trace import STEP_HOOK_KINDS

MAX_NAMED = 3
"""How many modules or optimizers one note names."""


class UnobservedHooks:
    """Notes at the end which modules and optimizers have such hooks; whether they ran is unknown."""

    def __init__(
        self,
        notes: Notes,
        modules: ModuleRegistry,
        optimizers: OptimizerTracker,
        models: tuple[torch.nn.Module, ...],
    ) -> None:
        self.notes, self.modules, self.optimizers = notes, modules, optimizers
        self._models = [weakref.ref(model) for model in models]

    def add_notes(self) -> None:
        """Add a note for each kind of hook."""
        owners_by_kind: dict[str, list[str]] = {}
        optimizers = [optimizer_hook_dicts(optimizer, name) for name, optimizer in self.optimizers.alive_optimizers()]
        for hook_dict in chain(
            *(module_hook_dicts(*pair) for pair in self._modules()), *optimizers, global_module_hook_dicts()
        ):
            if (
                hook_dict.kind in CENSUS_KINDS
                and hook_dict.kind not in STEP_HOOK_KINDS
                and user_hook_entries(hook_dict.hooks)
            ):
                owners_by_kind.setdefault(hook_dict.kind, []).append(hook_dict.on)
        for kind, owners in owners_by_kind.items():
            on = ", ".join(owners[:MAX_NAMED] + ["…"] * (len(owners) > MAX_NAMED))
            self.notes.say("note.unfollowed", kind=say(f"census.{kind}"), on=on)

    def _modules(self) -> list[tuple[torch.nn.Module, str]]:
        """Return (module, name) for the modules that were called and all modules in the given models."""
        modules = self.modules
        modules_by_id = {id(module): (module, name) for name, module in modules.alive_modules()}
        models = (reference() for reference in self._models)
        for model in (model for model in models if model is not None):  # a model may be false because its length is 0
            root = modules.name_model(model)
            for path, module in named_modules(model):
                modules_by_id.setdefault(id(module), (module, f"{root}.{path}" if path else root))
        return list(modules_by_id.values())
