"""Notifies a recording of each hook that is registered on a tensor, a node or a module."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch.utils.hooks import RemovableHandle

from hookviz.autograd.torch_internals import TENSOR_HOOKS
from hookviz.recorder.hook_observer import Observer
from hookviz.recorder.passes.node_observers import PROBE, NodeHookDict, ProbeResult
from hookviz.recorder.torch.function_replacement import ActiveFlag, Notify, make_notifier

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording

Here: TypeAlias = "Callable[[], Recording | None]"
"""Returns the recording to notify of what the calling thread does."""
Observing: TypeAlias = Callable[[Callable[..., Any], ActiveFlag], Any]
"""Makes the replacement of a function of torch's."""


def notify_registration(here: Here, notify: Callable[..., None]) -> Observing:
    """Make a registering function of torch's notify the recording of the object it registers on."""
    return make_notifier(here, _with_first_argument(notify))


def _with_first_argument(notify: Callable[..., None]) -> Notify:
    return lambda recording, _, *arguments: notify(recording, *arguments[:1])


def observe_handles(here: Here) -> Observing:
    """Observe the method that makes the handle of a new hook. It also runs in every call with full backward hooks."""

    def make(initialize: Callable[..., None], active: ActiveFlag) -> Callable[..., None]:
        @wraps(initialize)
        def make_handle(self: RemovableHandle, *arguments: Any, **options: Any) -> None:
            initialize(self, *arguments, **options)
            recording = here() if active.on else None
            if recording is not None:
                recording.hook_ledger.registered(self, sys._getframe(1))

        return make_handle

    return make


def observe_node_hooks(here: Here) -> Observing:
    """Observe the function that puts a hook into the dict of a node, and let observers of ours in without a handle."""

    def make(register: Callable[..., Any], active: ActiveFlag) -> Any:
        def register_node_hook(backward_hooks: Any, hook: Callable[..., Any]) -> Any:
            if hook is PROBE:
                raise ProbeResult(backward_hooks)
            if isinstance(hook, Observer):  # without a handle it uses up no hook id, so the user's hooks get theirs
                hooks = NodeHookDict() if backward_hooks is None else backward_hooks
                hooks[hook] = hook
                return hooks, hooks
            hooks, handle = register(backward_hooks, hook)
            recording = here() if active.on else None
            if recording is not None:
                recording.passes.late_hooks.node_hook_added(hooks)
            return hooks, handle

        return staticmethod(register_node_hook)

    return make


def tensor_hook_added(kind: str, recording: "Recording", tensor: torch.Tensor) -> None:
    """Notify a recording of a hook of a ``kind`` that was just added to a tensor."""
    hooks = getattr(tensor, TENSOR_HOOKS[kind])
    is_late = tensor.grad_fn is not None and recording.passes.numbering.find(tensor) is not None
    recording.hook_ledger.tensor_hook_added(kind, tensor, hooks, is_late=is_late)
    recording.passes.late_hooks.tensor_hook_added(tensor, kind, hooks)
