"""The few functions of torch that are replaced while something is being recorded, and put back afterwards."""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from types import MethodType
from typing import TYPE_CHECKING, Any

import torch
import torch.autograd.graph
import torch.autograd.profiler as profiler
import torch.nn.modules.module as torch_modules
import torch.optim.optimizer as torch_optimizer
from torch.autograd.function import _HookMixin
from torch.utils.hooks import RemovableHandle

from hookviz.recorder import copies, scaling
from hookviz.recorder.opaque import DYNAMO, SWITCH, Regions, compiled, compiling, leave_alone
from hookviz.recorder.optimizers import Between, OnOptimizer, in_step
from hookviz.recorder.replaced import told
from hookviz.recorder.stage import Observer

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording

_current: dict[int, "Recording | None"] = {}
"""The recording of each thread: its own, or that of a model which it calls; None in a region that is compiled."""
_open: set["Recording"] = set()
"""Those that have begun and not ended. While there is one, torch's functions are replaced."""
_models: dict[int, "Recording"] = {}
"""``id`` of each module that was given to a recording → the recording."""
_lock = threading.Lock()

_run_backward: Callable[..., Any] = torch.autograd.graph._engine_run_backward
_tensor_hook: Callable[..., Any] = torch.Tensor.register_hook
_retain: Callable[..., Any] = torch.Tensor.retain_grad
_leaf_hook: Callable[..., Any] = torch.Tensor.register_post_accumulate_grad_hook
_node_hook: Callable[..., Any] = _HookMixin._register_hook
_call: Callable[..., Any] = torch.nn.Module.__call__
_forward_hook: Callable[..., Any] = torch.nn.Module.register_forward_hook
_all_forward_hook: Callable[..., Any] = torch_modules.register_module_forward_hook
_exit: Callable[..., Any] = profiler.record_function.__exit__
_compile: Callable[..., Any] = torch.compile
_COMPILER = DYNAMO.rpartition(".")[0]
_module_state: Callable[..., Any] = torch.nn.Module.__getstate__
_handle_state: Callable[..., Any] = RemovableHandle.__getstate__


def recording_here() -> "Recording | None":
    """The recording of the calling thread."""
    return _current.get(threading.get_ident())


def start(recording: "Recording") -> None:
    """Let ``recording`` see what its thread does; the first one replaces torch's functions."""
    with _lock:
        if not _open:
            _replace()
        _open.add(recording)
        _current[recording.thread] = recording
        _models.update(dict.fromkeys(recording.calls.follows, recording))


def stop(recording: "Recording") -> None:
    """The last recording to end puts torch's functions back."""
    with _lock:
        for where in (_current, _models):
            for key in [key for key, other in where.items() if other is recording]:
                del where[key]
        _current.pop(recording.thread, None)
        _open.discard(recording)
        if not _open:
            _current.clear()  # a thread may still be in a compiled region, or just leave one
            _asleep.clear()
            _restore()
            copies.forget()


def _follow(recording: "Recording", *, asleep: bool = False) -> bool:
    """Let ``recording`` see what the calling thread does, or be ``asleep`` there, unless it has ended meanwhile."""
    with _lock:
        if recording in _open:
            _current[threading.get_ident()] = None if asleep else recording
        return recording in _open


def begun_here() -> "Recording | None":
    """The recording that the calling thread began, rather than one of a model that it calls."""
    recording = recording_here()
    return recording if recording is not None and recording.thread == threading.get_ident() else None


def stepping_here() -> "Recording | None":
    """The recording that follows an optimizer's step in the calling thread."""
    recording = begun_here()
    return recording if recording is not None and recording.optimizers.follows() else None


# For good, since a handle made meanwhile points to these: to everybody but a step they are the dicts that torch made.
_all_pre = Between("step_pre_hook", torch_optimizer._global_optimizer_pre_hooks, stepping_here, shared=True)
_all_post = Between("step_post_hook", torch_optimizer._global_optimizer_post_hooks, stepping_here, shared=True)
_own_pre = OnOptimizer("_optimizer_step_pre_hooks", "step_pre_hook", stepping_here)
_own_post = OnOptimizer("_optimizer_step_post_hooks", "step_post_hook", stepping_here)


@wraps(_exit)
def _seen_exit(self: Any, kind: Any, error: Any, traceback: Any) -> Any:
    recording = stepping_here() if in_step() else None
    if recording is not None:
        recording.carefully(recording.optimizers.end, error)
    return _exit(self, kind, error, traceback)


# A bare ``raise`` adds no entry to a traceback: with its own entry cut off, a replaced function leaves no frame.


def _recording_of(module: torch.nn.Module) -> "Recording | None":
    """The recording that follows ``module``; a thread that calls a model which was given to one joins it."""
    here = threading.get_ident()
    if here in _current:
        recording = _current[here]
        followed = recording is not None and (not recording.calls.follows or id(module) in recording.calls.follows)
    else:
        recording = _models.get(id(module))
        followed = recording is not None and _follow(recording)
    return recording if followed and recording is not None and recording.turns.on() else None


def _seen_call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    recording = _recording_of(self)
    if recording is None or compiling() or compiled(self):
        try:
            return _call(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
    call, depth = None, recording.calls.depth()
    try:
        call = recording.called(self, args, kwargs)
        result = _call(self, *args, **kwargs)
        if call is not None:
            recording.answered(call, result)
        return result
    except BaseException as error:
        if call is not None:
            recording.broke(call, error)
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        raise
    finally:
        recording.left(call, depth)


class OnModules:
    """Stands on the class of all modules for ``__call__``, and gives the compiler torch's own.

    The compiler knows a module's call by torch's function, and treats any other as a user's that it has to trace.
    """

    def __get__(self, module: torch.nn.Module | None, owner: type) -> Any:
        """What calls ``module``: torch's own in a compiled region, and to the compiler as it loads or compiles."""
        asker = sys._getframe(1).f_globals.get("__name__", "")
        compiler = asker.startswith(_COMPILER) and not owner.__module__.startswith(_COMPILER)
        call = _call if compiler or _asleep.get(threading.get_ident()) else _seen_call
        return call if module is None else MethodType(call, module)


_on_modules = OnModules()


def _seen_backward(*arguments: Any, **named: Any) -> Any:
    recording = None if compiling() else recording_here()
    watched = None
    try:
        if recording is not None:
            watched = recording.begin(*arguments, **named)
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
            try:
                recording.end(watched)
            except KeyboardInterrupt:  # it may have come before the first line
                recording.end(watched)
                raise


def on_turn() -> "Recording | None":
    """The recording that follows what the calling thread does before a pass."""
    recording = recording_here()
    return recording if recording is not None and recording.turns.on() else None


def after_turn() -> "Recording | None":
    """The recording that follows what the calling thread does after a pass."""
    recording = recording_here()
    return recording if recording is not None and recording.turns.after() else None


def _watched(register: Callable[..., Any], tell: Callable[..., None]) -> Callable[..., Any]:
    """A function of torch that registers something, which also tells the recording on whose it did."""
    return told(register, on_turn, lambda recording, _, *given: tell(recording, *given[:1]))


def _on_tensor(recording: "Recording", tensor: torch.Tensor) -> None:
    recording.meanwhile.on_tensor(tensor, "tensor_hook", tensor._backward_hooks)


def _on_leaf(recording: "Recording", tensor: torch.Tensor) -> None:
    recording.meanwhile.on_tensor(tensor, "post_accumulate_hook", tensor._post_accumulate_grad_hooks)


def _seen_node_hook(backward_hooks: Any, hook: Callable[..., Any]) -> Any:
    if type(hook) is Observer:  # it needs no handle, and takes no number away from the hooks of the user's
        hooks = OrderedDict() if backward_hooks is None else backward_hooks
        hooks[hook] = hook
        return hooks, hooks
    hooks, handle = _node_hook(backward_hooks, hook)
    recording = recording_here()
    if recording is not None:
        recording.meanwhile.on_dict(hooks)
    return hooks, handle


@wraps(_module_state)
def _seen_module_state(self: torch.nn.Module) -> Any:
    return copies.clean_module(_module_state(self))


@wraps(_handle_state)
def _seen_handle_state(self: RemovableHandle) -> Any:
    return copies.clean_handle(_handle_state(self))


# -- regions that are compiled: nothing inside them is seen

_regions = Regions()
_asleep: dict[int, list["Recording | None"]] = {}
"""For each thread in compiled regions, the recording that it had before each."""


@wraps(_compile)
def _seen_compile(*given: Any, **options: Any) -> Any:
    result = _compile(*given, **options)
    with _lock:
        if _open:
            _watch_dynamo()  # it may have been loaded just now
    return result


def _watch_dynamo() -> None:
    dynamo: Any = sys.modules.get(DYNAMO)
    switch = getattr(dynamo, SWITCH, None)
    if switch is None or any(owner is dynamo for owner, _, _ in _kept):
        return
    leave_alone(__name__.partition(".")[0])

    def seen_switch(callback: Any) -> Any:
        # All of this comes before the switch: afterwards torch would compile it.
        name = _regions.switch(sys._getframe(1))
        if name is not None:
            _sleep(name)
        return switch(callback)

    _put(dynamo, SWITCH, seen_switch)


def _sleep(name: str) -> None:
    """A compiled region begins, or ends if it has no name."""
    here = threading.get_ident()
    with _lock:
        # Torch's tracers put a function of their own there for a while, and then what they got when they asked.
        if _open and vars(torch.nn.Module)["__call__"] in (_call, _seen_call):
            setattr(torch.nn.Module, "__call__", _on_modules)  # noqa: B010
    if not name:
        asleep = _asleep.get(here)  # gone with the last recording
        before = asleep.pop() if asleep else None
        if before is not None and _follow(before):
            before.carefully(before.calls.resumed)
        return
    recording = _current.get(here)
    _asleep.setdefault(here, []).append(recording)
    if recording is not None:
        if recording.turns.on():
            recording.carefully(recording.calls.compiled, name)
        _follow(recording, asleep=True)


_ABSENT = object()
_REPLACED: tuple[tuple[Any, str, Any], ...] = (
    (torch.autograd, "_engine_run_backward", _seen_backward),
    (torch.autograd.graph, "_engine_run_backward", _seen_backward),
    (torch.Tensor, "register_hook", _watched(_tensor_hook, _on_tensor)),
    (torch.Tensor, "register_post_accumulate_grad_hook", _watched(_leaf_hook, _on_leaf)),
    (torch.Tensor, "retain_grad", _watched(_retain, lambda recording, tensor: recording.meanwhile.retains(tensor))),
    (_HookMixin, "_register_hook", staticmethod(_seen_node_hook)),
    (torch.nn.Module, "__call__", _on_modules),
    (torch.nn.Module, "__getstate__", _seen_module_state),
    (RemovableHandle, "__getstate__", _seen_handle_state),
    (
        torch.nn.Module,
        "register_forward_hook",
        _watched(_forward_hook, lambda recording, module: recording.calls.registered(module)),
    ),
    (
        torch_modules,
        "register_module_forward_hook",
        _watched(_all_forward_hook, lambda recording, *_: recording.calls.registered(None)),
    ),
    (torch_optimizer, "_global_optimizer_pre_hooks", _all_pre),
    (torch_optimizer, "_global_optimizer_post_hooks", _all_post),
    (torch_optimizer.Optimizer, _own_pre.name, _own_pre),
    (torch_optimizer.Optimizer, _own_post.name, _own_post),
    (profiler.record_function, "__exit__", _seen_exit),
    (torch, "compile", _seen_compile),
    *scaling.replacements(on_turn, after_turn),
)
"""(where, name, what stands there while something is recorded)"""
_kept: list[tuple[Any, str, Any]] = []
"""(where, name, what stood there before)"""


def _replace() -> None:
    for replaced in _REPLACED:
        _put(*replaced)
    _watch_dynamo()


def _put(owner: Any, name: str, ours: Any) -> None:
    _kept.append((owner, name, vars(owner).get(name, _ABSENT)))
    setattr(owner, name, ours)


def _restore() -> None:
    while _kept:
        owner, name, theirs = _kept.pop()
        if theirs is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, theirs)
