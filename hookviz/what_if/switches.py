"""Switch hooks off: while a function runs, the registration of some hooks is skipped."""

import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator
from functools import partial, wraps
from types import FrameType
from typing import Any

import torch
import torch.nn.modules.module as torch_modules
import torch.optim.optimizer as torch_optimizer
from torch.utils.hooks import RemovableHandle

from hookviz.autograd.torch_internals import NODE_REGISTRATION
from hookviz.recorder.hook_observer import Observer
from hookviz.recorder.torch.function_replacement import ActiveFlag, Replacement
from hookviz.recorder.torch.unwrapped_hooks import unwrap_hook
from hookviz.support.interpreter import Uninterrupted
from hookviz.support.source_code import describe_function
from hookviz.trace.hook_facts import HOOK_FACTS, MODULE_HOOK_KINDS, STEP_HOOK_KINDS, TENSOR_HOOK_KINDS

HookId = tuple[Any, ...]
"""Identifies a registration within a function: (method, description of the hook, lines of the user's code, count)."""

_RUNNER_MODULE = f"{__package__}.runs"
"""The module that calls the function: frames above it do not belong to a registration."""

_METHODS = (
    *((torch.Tensor, HOOK_FACTS[kind].method) for kind in TENSOR_HOOK_KINDS),
    *((torch.nn.Module, HOOK_FACTS[kind].method) for kind in MODULE_HOOK_KINDS),
    *((torch.optim.Optimizer, HOOK_FACTS[kind].method) for kind in STEP_HOOK_KINDS),
)
"""Called with (owner, hook)."""
_FUNCTIONS = (
    *((torch_modules, f"register_module_{kind}") for kind in MODULE_HOOK_KINDS),
    *((torch_optimizer, f"register_optimizer_{kind}") for kind in STEP_HOOK_KINDS),
)
"""Called with (hook)."""


class Switches:
    """The hooks that were registered while a function ran, and those that were switched off."""

    def __init__(self, off: Collection[HookId]) -> None:
        self.off = off
        self.thread = threading.get_ident()
        """Only registrations of this thread go through the switches."""
        self.hook_ids: dict[int, HookId] = {}
        """A handle's number, which is the hook's key in its dict → the id of the registration."""
        self._handles: list[Any] = []
        self._occurrences: Counter[HookId] = Counter()
        self._multi_grad_ids: dict[int, tuple[Any, HookId]] = {}
        """``id`` of the state that the parts of a multi-grad hook share → the state and the hook id."""
        self._replaced: list[Replacement] = []
        """In the order in which they were installed."""

    def replace(self) -> None:
        """Replace torch's registration functions. Call it while recording: ours then wrap those of the recording."""
        with Uninterrupted():
            for replacement in _replacements(self):
                self._replaced.append(replacement)
                replacement.install()

    def restore(self) -> None:
        """Restore torch's functions, except where user code has replaced ours. Calling it twice is safe."""
        with Uninterrupted():
            while self._replaced:
                self._replaced.pop().restore()

    def can_switch(self, hook: Any) -> bool:
        """Whether a registration can be switched: of a user's hook, in our thread, while functions are replaced."""
        return bool(self._replaced) and threading.get_ident() == self.thread and _is_user_hook(hook)

    def identify(self, method: str, hook: Any) -> HookId:
        """Make the id of this registration; all parts of a multi-grad hook share one."""
        unwrapped = unwrap_hook(hook)
        if id(unwrapped.state) in self._multi_grad_ids:
            return self._multi_grad_ids[id(unwrapped.state)][1]
        described = describe_function(unwrapped.function)
        same = (method, *described[:3], _user_lines())
        self._occurrences[same] += 1
        hook_id = (*same, self._occurrences[same])
        if unwrapped.state is not None:
            self._multi_grad_ids[id(unwrapped.state)] = unwrapped.state, hook_id
        return hook_id

    def register_unless_off(self, method: str, hook: Any, register: Callable[[], Any]) -> Any:
        """Register the hook, or return an empty handle if the hook is off."""
        hook_id = self.identify(method, hook)
        if hook_id in self.off:
            return RemovableHandle(OrderedDict())
        with Uninterrupted():  # a hook that is registered but not in our list would stay on a model
            handle = register()
            self.hook_ids[handle.id] = hook_id
            self._handles.append(handle)
        return handle

    def clear(self) -> None:
        """Remove hooks that are still registered, such as on a model from outside: the next run registers its own."""
        with Uninterrupted():
            for handle in self._handles:
                handle.remove()


def _user_lines() -> tuple[tuple[str, int], ...]:
    """The lines of the user's code on the stack: they distinguish registrations by the function and by a hook in it.

    Torch's own lines are left out, since they depend on the other hooks.
    """
    lines: list[tuple[str, int]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != _RUNNER_MODULE:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in ("torch", "hookviz"):
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)


def _replacements(switches: Switches) -> Iterator[Replacement]:
    """Yield the replacement of each of torch's registration functions."""
    for owners, position in ((_METHODS, 1), (_FUNCTIONS, 0)):
        for owner, name in owners:
            yield Replacement(owner, name, partial(_switchable_registration, switches, name, position))
    yield Replacement(NODE_REGISTRATION, "_register_hook", partial(_switchable_node_registration, switches))


def _switchable_registration(
    switches: Switches, name: str, position: int, register: Callable[..., Any], _active: ActiveFlag
) -> Callable[..., Any]:
    """Wrap a registration function; its argument at ``position`` is the hook."""

    @wraps(register)
    def registered(*given: Any, **options: Any) -> Any:
        hook = given[position] if len(given) > position else options.get("hook")
        if not switches.can_switch(hook):
            return register(*given, **options)
        return switches.register_unless_off(name, hook, lambda: register(*given, **options))

    return registered


def _switchable_node_registration(switches: Switches, register: Callable[..., Any], _active: ActiveFlag) -> Any:
    """Wrap the registration on nodes: it takes the dict of a node, or None, and returns (dict, handle)."""

    def registered(hooks: Any, hook: Any) -> Any:
        if isinstance(hook, Observer) or not switches.can_switch(hook):
            return register(hooks, hook)
        result = hooks

        def register_on_node() -> Any:
            nonlocal result
            result, handle = register(hooks, hook)
            return handle

        handle = switches.register_unless_off("register_node_hook", hook, register_on_node)
        return OrderedDict() if result is None else result, handle

    return staticmethod(registered)


def _is_user_hook(hook: Any) -> bool:
    """Whether the user registers ``hook``, not torch to call the hooks of a module."""
    return not unwrap_hook(hook).is_of_module
