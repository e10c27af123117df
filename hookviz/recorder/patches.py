"""The few functions of torch that are replaced while something is being recorded, and put back afterwards."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import torch
import torch.autograd.graph
from torch.autograd.function import _HookMixin

from hookviz.recorder.stage import Observer

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording

_current: dict[int, "Recording"] = {}
"""The recording of each thread: its own, or that of a model which it calls."""
_models: dict[int, "Recording"] = {}
"""``id`` of each module that was given to a recording → the recording."""
_lock = threading.Lock()

_run_backward: Callable[..., Any] = torch.autograd.graph._engine_run_backward
_tensor_hook: Callable[..., Any] = torch.Tensor.register_hook
_leaf_hook: Callable[..., Any] = torch.Tensor.register_post_accumulate_grad_hook
_node_hook: Callable[..., Any] = _HookMixin._register_hook
_call: Callable[..., Any] = torch.nn.Module.__call__


def recording_here() -> "Recording | None":
    """The recording of the calling thread."""
    return _current.get(threading.get_ident())


def start(recording: "Recording") -> None:
    """Let ``recording`` see what its thread does; the first one replaces torch's functions."""
    with _lock:
        if not _current:
            _replace(_seen_call, _seen_backward, _seen_tensor_hook, _seen_leaf_hook, _seen_node_hook)
        _current[recording.thread] = recording
        _models.update(dict.fromkeys(recording.calls.follows, recording))


def stop(recording: "Recording") -> None:
    """The last recording to end puts torch's functions back."""
    with _lock:
        for where in (_current, _models):
            for key in [key for key, other in where.items() if other is recording]:
                del where[key]
        if not _current:
            _replace(_call, _run_backward, _tensor_hook, _leaf_hook, _node_hook)


def _replace(call: Callable[..., Any], backward: Callable[..., Any], *hooks: Callable[..., Any]) -> None:
    torch.nn.Module.__call__ = call  # type: ignore[method-assign]
    torch.autograd._engine_run_backward = torch.autograd.graph._engine_run_backward = backward  # type: ignore[attr-defined]
    tensor_hook, leaf_hook, node_hook = hooks
    torch.Tensor.register_hook = tensor_hook  # type: ignore[method-assign]
    torch.Tensor.register_post_accumulate_grad_hook = leaf_hook  # type: ignore[method-assign]
    _HookMixin._register_hook = staticmethod(node_hook)  # type: ignore[method-assign]


# A bare ``raise`` adds no entry to a traceback: with its own entry cut off, a replaced function leaves no frame.


def _recording_of(module: torch.nn.Module) -> "Recording | None":
    """The recording that follows ``module``; a thread that calls a model which was given to one joins it."""
    recording = recording_here()
    if recording is not None:
        return recording if not recording.calls.follows or id(module) in recording.calls.follows else None
    recording = _models.get(id(module))
    if recording is not None:
        with _lock:
            _current[threading.get_ident()] = recording
    return recording


def _seen_call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    if torch.compiler.is_compiling() or torch._C._get_tracing_state():
        return _call(self, *args, **kwargs)
    recording = _recording_of(self)
    call = None if recording is None else recording.called(self, args, kwargs)
    try:
        result = _call(self, *args, **kwargs)
        if recording is not None and call is not None:
            recording.answered(call, result)
        return result
    except BaseException as error:
        if recording is not None and call is not None:
            recording.broke(call, error)
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        raise
    finally:
        if recording is not None and call is not None:
            recording.left(call)


def _seen_backward(*arguments: Any, **named: Any) -> Any:
    recording = recording_here()
    watched = None if recording is None else recording.begin(*arguments, **named)
    try:
        result = _run_backward(*arguments, **named)
        if recording is not None and watched is not None:
            recording.returned(watched, result)
        return result
    except BaseException as error:
        if recording is not None and watched is not None:
            recording.failed(watched, error)
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        raise
    finally:
        if recording is not None and watched is not None:
            recording.end(watched)


def _watched(register: Callable[..., Any], kind: str, attribute: str) -> Callable[..., Any]:
    """``Tensor.register_…hook``, which also tells the recording in which dict the new hook is kept."""

    @wraps(register)
    def registered(self: torch.Tensor, hook: Callable[..., Any]) -> Any:
        try:
            handle = register(self, hook)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        recording = recording_here()
        if recording is not None:
            recording.registered_on_tensor(self, kind, getattr(self, attribute))
        return handle

    return registered


_seen_tensor_hook = _watched(_tensor_hook, "tensor_hook", "_backward_hooks")
_seen_leaf_hook = _watched(_leaf_hook, "post_accumulate_hook", "_post_accumulate_grad_hooks")


def _seen_node_hook(backward_hooks: Any, hook: Callable[..., Any]) -> Any:
    if type(hook) is Observer:  # it needs no handle, and takes no number away from the hooks of the user's
        hooks = OrderedDict() if backward_hooks is None else backward_hooks
        hooks[hook] = hook
        return hooks, hooks
    hooks, handle = _node_hook(backward_hooks, hook)
    recording = recording_here()
    if recording is not None:
        recording.registered_on_dict(hooks)
    return hooks, handle
