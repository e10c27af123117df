"""The few functions of torch that are replaced while something is being recorded, and put back afterwards."""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
import torch.autograd.graph
import torch.autograd.profiler as profiler
import torch.nn.modules.module as torch_modules
import torch.optim.optimizer as torch_optimizer
from torch.nn.modules.module import Module
from torch.utils.hooks import RemovableHandle

from hookviz.autograd.torch_internals import (
    COMPILE_SWITCH,
    DYNAMO,
    GLOBAL_STEP_HOOKS,
    NODE_REGISTRATION,
    OPTIMIZER_HOOKS,
    begin_saving,
    call_module,
    global_step_post_hooks,
    global_step_pre_hooks,
    remove_handle,
    run_engine,
    swap_tensors,
)
from hookviz.recorder import grad_scaler, pickling
from hookviz.recorder.compiled_regions import entered_region, is_compiled, is_compiling, skip_package
from hookviz.recorder.hook_dicts import user_hook_entries
from hookviz.recorder.hook_observer import Observer
from hookviz.recorder.instrumentation import Instrumented
from hookviz.recorder.node_observers import PROBE, ProbeResult
from hookviz.recorder.optimizer_steps import ObservedStepHooks, OptimizerTracker, StepHooksDescriptor, is_called_by_step
from hookviz.recorder.recursion_limit import ROOM
from hookviz.recorder.replacement import ActiveFlag, Notify, Replacement, notifier
from hookviz.recorder.running_passes import is_engine_thread

if TYPE_CHECKING:
    from hookviz.recorder.module_call import ModuleCall
    from hookviz.recorder.recording import Recording
    from hookviz.recorder.running_pass import RunningPass

_current: dict[int, "Recording | None"] = {}
"""The recording of each thread: its own, or that of a model which it calls; None in a region that is compiled."""
_open: set["Recording"] = set()
"""Those that have begun and not ended. While there is one, torch's functions are replaced."""
_models: dict[int, "Recording"] = {}
"""``id`` of each module that was given to a recording → the recording."""
_lock = threading.Lock()

_Followed: TypeAlias = "tuple[Recording, ModuleCall | None, int] | None"
"""A module's call: whose it is, what it is to that (None if it could not be observed), and how many are around it."""
_Running: TypeAlias = "tuple[Recording, RunningPass, AbstractContextManager[Any]] | None"
"""A backward pass, whose it is, and the room on the stack that it has taken; None where nobody follows it."""


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
        _models.update(dict.fromkeys(recording.calls.followed, recording))


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
            _before_compiled.clear()
            _restore()
            pickling.clear_cache()


def _attach(recording: "Recording", *, compiled: bool = False) -> bool:
    """Let ``recording`` see what the calling thread does, or nothing in a ``compiled`` region, unless it has ended."""
    with _lock:
        if recording in _open:
            _current[threading.get_ident()] = None if compiled else recording
        return recording in _open


def begun_here() -> "Recording | None":
    """The recording that the calling thread began, rather than one of a model that it calls."""
    recording = recording_here()
    return recording if recording is not None and recording.thread == threading.get_ident() else None


def stepping_here() -> OptimizerTracker | None:
    """What follows an optimizer's step in the calling thread."""
    recording = begun_here()
    return recording.optimizers if recording is not None and recording.optimizers.follows() else None


# For good, since a handle made during a recording points to these: outside of steps they are the dicts of torch.
_all_pre = ObservedStepHooks("step_pre_hook", global_step_pre_hooks, stepping_here, shared=True)
_all_post = ObservedStepHooks("step_post_hook", global_step_post_hooks, stepping_here, shared=True)
_own_pre = StepHooksDescriptor(OPTIMIZER_HOOKS["step_pre_hook"], "step_pre_hook", stepping_here)
_own_post = StepHooksDescriptor(OPTIMIZER_HOOKS["step_post_hook"], "step_post_hook", stepping_here)


def _observing_exit(leave: Callable[..., Any], live: ActiveFlag) -> Callable[..., Any]:
    @wraps(leave)
    def seen_exit(self: Any, kind: Any, error: Any, traceback: Any) -> Any:
        steps = stepping_here() if live.on and is_called_by_step() else None
        if steps is not None:
            steps.session.guard(steps.end, error)
        return leave(self, kind, error, traceback)

    return seen_exit


def _recording_of(module: Module) -> "Recording | None":
    """The recording that follows ``module``; a thread that calls a model which was given to one joins it."""
    here = threading.get_ident()
    if here in _current:
        recording = _current[here]
        followed = recording is not None and (not recording.calls.followed or id(module) in recording.calls.followed)
    else:
        recording = _models.get(id(module))
        followed = recording is not None and _attach(recording)
    return recording if followed and recording is not None and recording.sampler.on() else None


class _CallWatcher:
    """Notifies the recording of a module of each call: what goes in, what comes out, what is raised."""

    def enter(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Followed:
        """``module`` is called; None where nobody follows it."""
        recording = _recording_of(module)
        if recording is None or is_compiling() or is_compiled(module):
            return None
        with ROOM.where_needed():
            depth = recording.calls.depth()
            return recording, recording.begin_call(module, args, kwargs), depth

    def answer(self, followed: _Followed, result: Any) -> Any:
        """The call returns ``result``."""
        if followed is not None and followed[1] is not None:
            with ROOM.where_needed():
                recording, call, _ = followed
                recording.guard(recording.calls.returned, call, result)
        return result

    def fail(self, followed: _Followed, error: BaseException) -> None:
        """An exception leaves the call."""
        if followed is not None and followed[1] is not None:
            with ROOM.where_needed():
                recording, call, _ = followed
                recording.guard(recording.calls.raised, call, error)

    def leave(self, followed: _Followed) -> None:
        """The call is over."""
        if followed is not None:
            recording, call, depth = followed
            with ROOM.where_needed():
                recording.end_call(call, depth)


class _PassWatcher:
    """Notifies the recording of a thread of each backward pass."""

    def enter(self, roots: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Running:
        """The engine is about to run; None where the pass is not recorded."""
        running, room = None, ROOM.where_needed()
        room.__enter__()  # until the pass is over, since the engine calls our observers
        try:
            recording = None if is_compiling() else self._recording()
            running_pass = None if recording is None else recording.passes.begin(roots, *arguments, **named)
            if recording is not None and running_pass is not None:
                running = recording, running_pass, room
        finally:
            if running is None:
                room.__exit__(None, None, None)
        return running

    def _recording(self) -> "Recording | None":
        """The recording of this thread; where there is none, those that are open say that they missed a pass."""
        recording = recording_here()
        if recording is None and threading.get_ident() not in _current and not is_engine_thread():
            for other in tuple(_open):
                other.missed_passes = True
        return recording

    def answer(self, running: _Running, result: Any) -> Any:
        """The pass has run; ``autograd.grad`` has its result."""
        if running is not None:
            recording, running_pass, _ = running
            recording.passes.returned(running_pass, result)
        return result

    def fail(self, running: _Running, error: BaseException) -> None:
        """The pass has raised."""
        if running is not None:
            recording, running_pass, _ = running
            recording.passes.raised(running_pass, error)

    def leave(self, running: _Running) -> None:
        """The pass is over."""
        if running is not None:
            recording, running_pass, room = running
            try:
                recording.passes.end(running_pass)
            finally:
                room.__exit__(None, None, None)


class _Listener:
    """Watches a function that is only listened to: what is needed of it is overridden."""

    def answer(self, _: Any, result: Any) -> Any:
        """It is about to return ``result``."""
        return result

    def fail(self, _: Any, error: BaseException) -> None:
        """It has raised."""

    def leave(self, _: Any) -> None:
        """It is over."""


class _SavingWatcher(_Listener):
    """Notifies all recordings that what nodes save is packed by hooks from now on, for as long as such a node lives."""

    def enter(self, _: Any) -> None:
        """``saved_tensors_hooks`` begins."""
        for recording in tuple(_open):
            recording.passes.packs = True


class _RemovalWatcher(_Listener):
    """Notifies all recordings that a hook was removed from a dict."""

    def enter(self, handle: RemovableHandle) -> Any:
        """``handle.remove`` is called; gives the dict that the handle is for."""
        return handle.hooks_dict_ref()

    def leave(self, hooks: Any) -> None:
        """It is over."""
        for recording in tuple(_open) if hooks else ():
            recording.guard(recording.calls.observers.removed, hooks)


class _ExchangeWatcher(_Listener):
    """Notifies all recordings that two tensors change places, which torch refuses if weak references lead to one."""

    def enter(self, one: torch.Tensor, other: torch.Tensor) -> None:
        """``swap_tensors`` is called, as by ``module.to`` where parameters are of a subclass."""
        for recording in tuple(_open):
            recording.guard(recording.forget, (one, other))


def recording_before_pass() -> "Recording | None":
    """The recording that follows what the calling thread does before a pass."""
    recording = recording_here()
    return recording if recording is not None and recording.sampler.on() else None


def recording_after_pass() -> "Recording | None":
    """The recording that follows what the calling thread does after a pass."""
    recording = recording_here()
    return recording if recording is not None and recording.sampler.after() else None


def _notifying(notify: Callable[..., None]) -> Callable[[Any, ActiveFlag], Any]:
    """Makes a function of torch's that registers something notify the recording of what it registers on."""
    return notifier(recording_before_pass, _on_first(notify))


def _on_first(notify: Callable[..., None]) -> Notify:
    return lambda recording, _, *given: notify(recording, *given[:1])


def _on_tensor(recording: "Recording", tensor: torch.Tensor) -> None:
    recording.passes.late_hooks.on_tensor(tensor, "tensor_hook", tensor._backward_hooks)


def _on_leaf(recording: "Recording", tensor: torch.Tensor) -> None:
    recording.passes.late_hooks.on_tensor(tensor, "post_accumulate_hook", tensor._post_accumulate_grad_hooks)


class _NodeHookDict(dict[Any, Any]):
    """A node's dict of hooks as torch makes it, in half the time: handles refer to it weakly."""

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> tuple[Any, ...]:
        """What stays of it on a graph is copied, and pickled with a handle, as torch's own."""
        return OrderedDict, (user_hook_entries(self),)


def _observing_node_hook(register: Callable[..., Any], live: ActiveFlag) -> Any:
    def seen_node_hook(backward_hooks: Any, hook: Callable[..., Any]) -> Any:
        if hook is PROBE:
            raise ProbeResult(backward_hooks)
        if isinstance(hook, Observer):  # it needs no handle, and takes no number away from the hooks of the user's
            hooks = _NodeHookDict() if backward_hooks is None else backward_hooks
            hooks[hook] = hook
            return hooks, hooks
        hooks, handle = register(backward_hooks, hook)
        recording = recording_here() if live.on else None
        if recording is not None:
            recording.passes.late_hooks.on_dict(hooks)
        return hooks, handle

    return staticmethod(seen_node_hook)


def _cleaning(clean: Callable[[Any], Any]) -> Callable[[Any, ActiveFlag], Any]:
    """Of a method that gives the state to pickle: one that leaves our observers out of it."""

    def make(state: Callable[[Any], Any], _: ActiveFlag) -> Callable[[Any], Any]:
        @wraps(state)
        def seen_state(self: Any) -> Any:
            return clean(state(self))

        return seen_state

    return make


# -- regions that are compiled: nothing inside them is seen

_before_compiled: dict[int, list["Recording | None"]] = {}
"""For each thread in compiled regions, the recording that it had before each."""


def _observing_compile(compile_: Callable[..., Any], live: ActiveFlag) -> Callable[..., Any]:
    @wraps(compile_)
    def seen_compile(*given: Any, **options: Any) -> Any:
        result = compile_(*given, **options)
        with _lock:
            if live.on and _open:
                _watch_dynamo()  # it may have been loaded just now
        return result

    return seen_compile


def _observing_switch(switch: Callable[..., Any], live: ActiveFlag) -> Callable[..., Any]:
    def seen_switch(callback: Any) -> Any:
        # All of this comes before the switch: afterwards torch would compile it.
        name = entered_region(sys._getframe(1)) if live.on else None
        if name is not None:
            _compiled_region(name)
        return switch(callback)

    return seen_switch


def _watch_dynamo() -> None:
    dynamo: Any = sys.modules.get(DYNAMO)
    if not hasattr(dynamo, COMPILE_SWITCH) or any(replacement.owner is dynamo for replacement in _in_place):
        return
    skip_package(__name__.partition(".")[0])
    _put(Replacement(dynamo, COMPILE_SWITCH, _observing_switch))


def _compiled_region(name: str) -> None:
    """A compiled region begins, or ends if it has no name."""
    here = threading.get_ident()
    if not name:
        asleep = _before_compiled.get(here)  # gone with the last recording
        before = asleep.pop() if asleep else None
        with _lock:
            if _open and not any(_before_compiled.values()):
                _put_inside()
        if before is not None and _attach(before):
            before.guard(before.calls.observers.resume_shared)
        return
    recording = _current.get(here)
    with _lock:
        _before_compiled.setdefault(here, []).append(recording)
        _take_inside_back()  # the compiler reads the code of what it compiles, and compiles anew where it has changed
        for other in _open - {recording}:
            other.session.notes.say("note.compiled.elsewhere")
    if recording is not None:
        if recording.sampler.on():
            recording.guard(recording.calls.compiled_region_begins, name)
        _attach(recording, compiled=True)


_INSIDE = (
    Instrumented(call_module, _CallWatcher()),
    Instrumented(run_engine, _PassWatcher()),
    Instrumented(begin_saving, _SavingWatcher()),
    Instrumented(remove_handle, _RemovalWatcher()),
    Instrumented(swap_tensors, _ExchangeWatcher()),
)
"""What runs a person's code, a module's or a hook's: there nothing of ours may be on the stack."""
_REPLACED: tuple[Replacement, ...] = (
    Replacement(torch.Tensor, "register_hook", _notifying(_on_tensor)),
    Replacement(torch.Tensor, "register_post_accumulate_grad_hook", _notifying(_on_leaf)),
    Replacement(
        torch.Tensor, "retain_grad", _notifying(lambda recording, tensor: recording.passes.late_hooks.retains(tensor))
    ),
    Replacement(NODE_REGISTRATION, "_register_hook", _observing_node_hook),
    Replacement(Module, "__getstate__", _cleaning(pickling.clean_module)),
    Replacement(RemovableHandle, "__getstate__", _cleaning(pickling.clean_handle)),
    Replacement(
        Module, "register_forward_hook", _notifying(lambda recording, module: recording.calls.hook_registered(module))
    ),
    Replacement(
        torch_modules,
        "register_module_forward_hook",
        _notifying(lambda recording, *_: recording.calls.hook_registered(None)),
    ),
    Replacement(torch_optimizer, GLOBAL_STEP_HOOKS["step_pre_hook"], lambda *_: _all_pre),
    Replacement(torch_optimizer, GLOBAL_STEP_HOOKS["step_post_hook"], lambda *_: _all_post),
    Replacement(torch_optimizer.Optimizer, _own_pre.name, lambda *_: _own_pre),
    Replacement(torch_optimizer.Optimizer, _own_post.name, lambda *_: _own_post),
    Replacement(profiler.record_function, "__exit__", _observing_exit),
    Replacement(torch, "compile", _observing_compile),
    *grad_scaler.replacements(recording_before_pass, recording_after_pass),
)
_in_place: list[Replacement] = []
"""Those that stand in torch now."""


def _replace() -> None:
    for replacement in _REPLACED:
        _put(replacement)
    _put_inside()
    _watch_dynamo()


def _put_inside() -> None:
    for inside in _INSIDE:
        inside.put()


def _take_inside_back() -> None:
    for inside in _INSIDE:
        inside.take_back()


def _put(replacement: Replacement) -> None:
    _in_place.append(replacement)
    replacement.put()


def _restore() -> None:
    ROOM.close()
    _take_inside_back()
    while _in_place:
        _in_place.pop().take_back()
