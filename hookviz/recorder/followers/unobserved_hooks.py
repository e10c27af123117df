"""Finds the hooks that no recording follows (on state_dict, load_state_dict and registration), and their owners."""

from itertools import chain

from hookviz.recorder.follower import Follower
from hookviz.recorder.followers.optimizer_steps import OptimizerTracker
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.recorder.notes import Notes
from hookviz.recorder.torch.hook_dicts import (
    CENSUS_KINDS,
    global_module_hook_dicts,
    module_hook_dicts,
    optimizer_hook_dicts,
    user_hook_entries,
)
from hookviz.trace import STEP_HOOK_KINDS

MAX_NAMED = 3
"""How many modules or optimizers one note names."""


class UnobservedHooks(Follower):
    """Notes at the end which modules and optimizers have such hooks; whether they ran is unknown."""

    def __init__(self, notes: Notes, modules: ModuleRegistry, optimizers: OptimizerTracker) -> None:
        self.notes, self.modules, self.optimizers = notes, modules, optimizers

    def close(self) -> None:
        """Add a note for each kind of hook."""
        owners_by_kind: dict[str, list[str]] = {}
        optimizers = [optimizer_hook_dicts(optimizer, name) for name, optimizer in self.optimizers.alive_optimizers()]
        modules = [module_hook_dicts(module, name) for name, module in self.modules.called_or_given_modules()]
        for hook_dict in chain(*modules, *optimizers, global_module_hook_dicts()):
            if (
                hook_dict.kind in CENSUS_KINDS
                and hook_dict.kind not in STEP_HOOK_KINDS
                and user_hook_entries(hook_dict.hooks)
            ):
                owner = "torch.nn.Module" if "global" in hook_dict.flags else hook_dict.on
                owners_by_kind.setdefault(hook_dict.kind, []).append(owner)
        for kind, owners in owners_by_kind.items():
            on = ", ".join(owners[:MAX_NAMED] + ["…"] * (len(owners) > MAX_NAMED))
            self.notes.say("unfollowed", kind=kind, on=on)
