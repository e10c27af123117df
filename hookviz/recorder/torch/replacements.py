"""What stands in for functions of torch during a recording: it tells of hooks, and hides observers."""

import copy
import sys
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import torch
from torch.amp.grad_scaler import GradScaler
from torch.nn.modules.module import Module
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle

from hookviz.autograd.torch_internals import TENSOR_HOOKS
from hookviz.recorder.hook_observer import Observer
from hookviz.recorder.open_recordings import recording_here
from hookviz.recorder.passes.node_observers import ProbeResult, probe
from hookviz.recorder.torch.function_replacement import ActiveFlag

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording

# -- a hook is registered on a tensor, a node or a module


def observe_handles(initialize: Callable[..., None], active: ActiveFlag) -> Callable[..., None]:
    """Observe the method that makes the handle of a new hook. It also runs in every call with full backward hooks."""

    @wraps(initialize)
    def make_handle(self: RemovableHandle, *arguments: Any, **options: Any) -> None:
        initialize(self, *arguments, **options)
        recording = recording_here() if active.on else None
        if recording is not None:
            recording.hook_ledger.registered(self, sys._getframe(1))

    return make_handle


def observe_node_hooks(register: Callable[..., Any], active: ActiveFlag) -> Any:
    """Observe the function that puts a hook into the dict of a node, and let observers of ours in without a handle."""

    def register_node_hook(backward_hooks: Any, hook: Callable[..., Any]) -> Any:
        if hook is probe:
            raise ProbeResult(backward_hooks)
        if isinstance(hook, Observer):  # without a handle it uses up no hook id, so the user's hooks get theirs
            hooks = OrderedDict() if backward_hooks is None else backward_hooks
            hooks[hook] = hook
            return hooks, hooks
        hooks, handle = register(backward_hooks, hook)
        recording = recording_here() if active.on else None
        if recording is not None:
            recording.passes.late_hooks.node_hook_added(hooks)
        return hooks, handle

    return staticmethod(register_node_hook)


# -- after a call of a function of torch: each gets the recording, the result of the call, and its arguments


def tensor_hook_added(kind: str, recording: "Recording", _handle: Any, tensor: torch.Tensor, *_hook: Any) -> None:
    """Notify a recording of a hook of a ``kind`` that was just added to a tensor."""
    hooks = getattr(tensor, TENSOR_HOOKS[kind])
    is_late = tensor.grad_fn is not None and recording.passes.numbering.find(tensor) is not None
    recording.hook_ledger.tensor_hook_added(kind, tensor, hooks, is_late=is_late)
    recording.passes.late_hooks.tensor_hook_added(tensor, kind, hooks)


def retain_grad_called(recording: "Recording", _result: None, tensor: torch.Tensor) -> None:
    """Notify a recording of a tensor that keeps its gradient from now on."""
    recording.passes.late_hooks.retain_grad_called(tensor)


def forward_hook_added(recording: "Recording", _handle: Any, module: Module, *_hook: Any) -> None:
    """Notify a recording of a forward hook that was just added to a module."""
    recording.calls.hook_registered(module)


def global_forward_hook_added(recording: "Recording", _handle: Any, *_hook: Any) -> None:
    """Notify a recording of a forward hook that was just added to all modules."""
    recording.calls.hook_registered(None)


def param_group_added(recording: "Recording", _result: None, optimizer: Optimizer, *_group: Any) -> None:
    """Notify a recording of an optimizer that got parameters."""
    recording.groups.add(optimizer)


def loss_scaled(recording: "Recording", scaled: Any, scaler: GradScaler, *_losses: Any) -> None:
    """Notify a recording of losses that a scaler has just scaled."""
    recording.scales.loss_scaled(scaler, scaled)


def gradients_unscaled(recording: "Recording", _result: None, scaler: GradScaler, optimizer: Optimizer) -> None:
    """Notify a recording of gradients that a scaler has divided by its scale."""
    recording.scales.gradients_unscaled(scaler, optimizer)


def scale_updated(recording: "Recording", _result: None, scaler: GradScaler, *_scale: Any) -> None:
    """Notify a recording of a scaler that may have another scale now."""
    recording.scales.scale_updated(scaler)


# -- copies and pickles are made while a module call runs: observers are kept out of them

_cleaned: dict[int, OrderedDict[Any, Any]] = {}
"""``id`` of a dict with observers → a copy without them, which a module and its handles share."""


def forget_copies() -> None:
    """Forget the copies, because no recording is open."""
    _cleaned.clear()


def clean_module(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a module without observers; leave that of a shallow copy, which shares the dicts."""
    if not _is_shallow_copy():
        state.update((name, without_observers(hooks)) for name, hooks in list(state.items()) if "hooks" in name)
    return state


def clean_handle(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the state of a handle without observers in the dicts that hold its hook."""
    if _is_shallow_copy():
        return state
    hooks, number, *more = state
    return (without_observers(hooks), number, *(tuple(map(without_observers, dicts)) for dicts in more))


def _is_shallow_copy() -> bool:
    """Return whether ``copy.copy`` requested the state."""
    return sys._getframe(3).f_code is copy.copy.__code__


def without_observers(hooks: Any) -> Any:
    """Return a hook dict without observers: a copy, or the dict itself if it has none."""
    if not isinstance(hooks, OrderedDict) or not any(isinstance(key, Observer) for key in hooks):
        return hooks
    user_hooks = OrderedDict((key, hook) for key, hook in hooks.items() if not isinstance(key, Observer))
    copied = _cleaned.get(id(hooks))
    if copied is None or list(copied.items()) != list(user_hooks.items()):
        copied = _cleaned[id(hooks)] = user_hooks
    return copied


def leaving_observers_out(clean: Callable[[Any], Any]) -> Callable[[Any, ActiveFlag], Any]:
    """Wrap a method that returns the state to pickle, to leave out our observers."""

    def make(state: Callable[[Any], Any], _: ActiveFlag) -> Callable[[Any], Any]:
        @wraps(state)
        def state_without_observers(self: Any) -> Any:
            return clean(state(self))

        return state_without_observers

    return make
