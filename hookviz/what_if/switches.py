"""Hooks that can be switched off: while a function runs, the registration of some hooks is not carried out."""

import sys
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterator
from functools import wraps
from types import FrameType
from typing import Any

import torch
import torch.nn.modules.module as torch_modules
import torch.optim.optimizer as torch_optimizer
from torch.utils.hooks import RemovableHandle

from hookviz.autograd.torch_internals import NODE_REGISTRATION
from hookviz.recorder.hook_observer import Observer
from hookviz.recorder.unwrapped_hooks import unwrap_hook
from hookviz.support.interrupts import Uninterrupted
from hookviz.support.source_code import describe_function

HookId = tuple[Any, ...]
"""What tells a registration from the others in the same function: how, of what, where, and the how-manieth such one."""

_RUNS = f"{__package__}.runs"
"""The module that calls the function: who called that tells nothing of a registration."""

_METHODS = (
    (torch.Tensor, "register_hook"),
    (torch.Tensor, "register_post_accumulate_grad_hook"),
    (torch.nn.Module, "register_forward_pre_hook"),
    (torch.nn.Module, "register_forward_hook"),
    (torch.nn.Module, "register_full_backward_pre_hook"),
    (torch.nn.Module, "register_full_backward_hook"),
    (torch.nn.Module, "register_backward_hook"),
    (torch.optim.Optimizer, "register_step_pre_hook"),
    (torch.optim.Optimizer, "register_step_post_hook"),
)
"""Called as (whose, hook)."""
_FUNCTIONS = (
    (torch_modules, "register_module_forward_pre_hook"),
    (torch_modules, "register_module_forward_hook"),
    (torch_modules, "register_module_full_backward_pre_hook"),
    (torch_modules, "register_module_full_backward_hook"),
    (torch_modules, "register_module_backward_hook"),
    (torch_optimizer, "register_optimizer_step_pre_hook"),
    (torch_optimizer, "register_optimizer_step_post_hook"),
)
"""Called as (hook)."""


class Switches:
    """What was registered while a function ran, and what of it was switched off."""

    def __init__(self, off: Collection[HookId] = ()) -> None:
        self.off = off
        self.thread = threading.get_ident()
        """Only registrations of this thread go through the switches."""
        self.signs: dict[int, HookId] = {}
        """A handle's number, which is the hook's key in its dict → which registration it was."""
        self._handles: list[Any] = []
        self._count: Counter[HookId] = Counter()
        self._groups: dict[int, tuple[Any, HookId]] = {}
        """``id`` of what the parts of a multi-grad hook share → it and its sign."""
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        """(where, name, what stands there now, what stood there before), in the order in which they were replaced."""

    def replace(self) -> None:
        """Replace torch's registration functions; to be called while recording, whose own functions come first."""
        with Uninterrupted():
            for owner, name, ours in _replacements(self):
                self._replaced.append((owner, name, ours, vars(owner)[name]))
                setattr(owner, name, ours)

    def restore(self) -> None:
        """Put torch's functions back; what user code has put in place of ours stays. Calling it twice does no harm."""
        with Uninterrupted():
            while self._replaced:
                owner, name, ours, theirs = self._replaced.pop()
                if vars(owner).get(name) is ours:
                    setattr(owner, name, theirs)

    def wants(self, hook: Any) -> bool:
        """Whether the registration of ``hook`` can be switched: it is the user's, in our thread, while we replace."""
        return bool(self._replaced) and threading.get_ident() == self.thread and _users(hook)

    def sign(self, how: str, hook: Any) -> HookId:
        """Which registration this is. All parts of a multi-grad hook are one."""
        found = unwrap_hook(hook)
        if found is not None and id(found.state) in self._groups:
            return self._groups[id(found.state)][1]
        described = describe_function(hook if found is None else found.function)
        same = (how, *described[:3], _way())
        self._count[same] += 1
        sign = (*same, self._count[same])
        if found is not None:
            self._groups[id(found.state)] = found.state, sign
        return sign

    def registers(self, how: str, hook: Any, register: Callable[[], Any]) -> Any:
        """Carry the registration out, or hand out a handle that holds nothing."""
        sign = self.sign(how, hook)
        if sign in self.off:
            return RemovableHandle(OrderedDict())
        with Uninterrupted():  # a hook that stands on a model but not in our list would stay there
            handle = register()
            self.signs[handle.id] = sign
            self._handles.append(handle)
        return handle

    def clear(self) -> None:
        """Remove what is still registered, as on a model from outside the function: the next run registers its own."""
        with Uninterrupted():
            for handle in self._handles:
                handle.remove()


def _way() -> tuple[tuple[str, int], ...]:
    """The lines of the user's code that led here: a hook that registers others must not be mistaken for the function.

    Torch's own lines are left out, since they depend on which other hooks there are.
    """
    lines: list[tuple[str, int]] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != _RUNS:
        if frame.f_globals.get("__name__", "").partition(".")[0] not in ("torch", "hookviz"):
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back
    return tuple(lines)


def _replacements(switches: Switches) -> Iterator[tuple[Any, str, Any]]:
    for owners, position in ((_METHODS, 1), (_FUNCTIONS, 0)):
        for owner, name in owners:
            yield owner, name, _seen(switches, name, vars(owner)[name], position)
    register = NODE_REGISTRATION._register_hook
    yield NODE_REGISTRATION, "_register_hook", staticmethod(_seen_node(switches, register))


def _seen(switches: Switches, name: str, register: Callable[..., Any], position: int) -> Callable[..., Any]:
    @wraps(register)
    def registered(*given: Any, **options: Any) -> Any:
        hook = given[position] if len(given) > position else options.get("hook")
        if not switches.wants(hook):
            return register(*given, **options)
        return switches.registers(name, hook, lambda: register(*given, **options))

    return registered


def _seen_node(switches: Switches, register: Callable[..., Any]) -> Callable[..., Any]:
    """Torch hands over the dict of a node, or None, and wants the dict back beside the handle."""

    def registered(hooks: Any, hook: Any) -> Any:
        if isinstance(hook, Observer) or not switches.wants(hook):
            return register(hooks, hook)
        kept = hooks

        def carry_out() -> Any:
            nonlocal kept
            kept, handle = register(hooks, hook)
            return handle

        handle = switches.registers("register_node_hook", hook, carry_out)
        return OrderedDict() if kept is None else kept, handle

    return registered


def _users(hook: Any) -> bool:
    """Whether a person registers ``hook``, rather than torch to call the hooks of a module."""
    found = unwrap_hook(hook)
    return found is None or found.kind == "multi_grad_hook"
