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
from torch.autograd.function import _HookMixin
from torch.nn.modules.module import Module
from torch.utils.hooks import RemovableHandle

from hookviz.recorder import grad_scaler, pickling
from hookviz.recorder.compiled_regions import DYNAMO, SWITCH, is_compiled, is_compiling, leave_alone, switched
from hookviz.recorder.hook_dicts import entries
from hookviz.recorder.hook_observer import Observer
from hookviz.recorder.instrumentation import Instrumented
from hookviz.recorder.node_observers import PROBE, Probed
from hookviz.recorder.optimizer_steps import Between, OnOptimizer, OptimizerTracker, in_step
from hookviz.recorder.recursion_limit import ROOM
from hookviz.recorder.replacement import Live, Replacement, Tell, notifier
from hookviz.recorder.running_pass import engine_thread

if TYPE_CHECKING:
    from hookviz.recorder.module_call import Call
    from hookviz.recorder.recording import Recording
    from hookviz.recorder.running_pass import RunningPass

_current: dict[int, "Recording | None"] = {}
"""The recording of each thread: its own, or that of a model which it calls; None in a region that is compiled."""
_open: set["Recording"] = set()
"""Those that have begun and not ended. While there is one, torch's functions are replaced."""
_models: dict[int, "Recording"] = {}
"""``id`` of each module that was given to a recording → the recording."""
_lock = threading.Lock()

_Followed: TypeAlias = "tuple[Recording, Call | None, int] | None"
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
            pickling.forget()


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


def stepping_here() -> OptimizerTracker | None:
    """What follows an optimizer's step in the calling thread."""
    recording = begun_here()
    return recording.optimizers if recording is not None and recording.optimizers.follows() else None


# For good, since a handle made meanwhile points to these: to everybody but a step they are the dicts that torch made.
_all_pre = Between("step_pre_hook", torch_optimizer._global_optimizer_pre_hooks, stepping_here, shared=True)
_all_post = Between("step_post_hook", torch_optimizer._global_optimizer_post_hooks, stepping_here, shared=True)
_own_pre = OnOptimizer("_optimizer_step_pre_hooks", "step_pre_hook", stepping_here)
_own_post = OnOptimizer("_optimizer_step_post_hooks", "step_post_hook", stepping_here)


def _observing_exit(leave: Callable[..., Any], live: Live) -> Callable[..., Any]:
    @wraps(leave)
    def seen_exit(self: Any, kind: Any, error: Any, traceback: Any) -> Any:
        steps = stepping_here() if live.on and in_step() else None
        if steps is not None:
            steps.session.carefully(steps.end, error)
        return leave(self, kind, error, traceback)

    return seen_exit


def _recording_of(module: Module) -> "Recording | None":
    """The recording that follows ``module``; a thread that calls a model which was given to one joins it."""
    here = threading.get_ident()
    if here in _current:
        recording = _current[here]
        followed = recording is not None and (not recording.calls.follows or id(module) in recording.calls.follows)
    else:
        recording = _models.get(id(module))
        followed = recording is not None and _follow(recording)
    return recording if followed and recording is not None and recording.turns.on() else None


class _CallWatcher:
    """Tells the recording of a module of each call: what goes in, what comes out, what is raised."""

    def enter(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Followed:
        """``module`` is called; None where nobody follows it."""
        recording = _recording_of(module)
        if recording is None or is_compiling() or is_compiled(module):
            return None
        with ROOM.where_needed():
            depth = recording.calls.depth()
            return recording, recording.called(module, args, kwargs), depth

    def answer(self, followed: _Followed, result: Any) -> Any:
        """The call returns ``result``."""
        if followed is not None and followed[1] is not None:
            with ROOM.where_needed():
                followed[0].answered(followed[1], result)
        return result

    def fail(self, followed: _Followed, error: BaseException) -> None:
        """An exception leaves the call."""
        if followed is not None and followed[1] is not None:
            with ROOM.where_needed():
                followed[0].broke(followed[1], error)

    def leave(self, followed: _Followed) -> None:
        """The call is over."""
        if followed is not None:
            recording, call, depth = followed
            with ROOM.where_needed():
                recording.left(call, depth)


class _PassWatcher:
    """Tells the recording of a thread of each backward pass."""

    def enter(self, roots: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Running:
        """The engine is about to run; None where the pass is not recorded."""
        running, room = None, ROOM.where_needed()
        room.__enter__()  # until the pass is over, since the engine calls our observers
        try:
            recording = None if is_compiling() else self._recording()
            watched = None if recording is None else recording.begin(roots, *arguments, **named)
            if recording is not None and watched is not None:
                running = recording, watched, room
        finally:
            if running is None:
                room.__exit__(None, None, None)
        return running

    def _recording(self) -> "Recording | None":
        """The recording of this thread; where there is none, those that are open say that they missed a pass."""
        recording = recording_here()
        if recording is None and threading.get_ident() not in _current and not engine_thread():
            for other in tuple(_open):
                other.elsewhere = True
        return recording

    def answer(self, running: _Running, result: Any) -> Any:
        """The pass has run; ``autograd.grad`` has its result."""
        if running is not None:
            recording, watched, _ = running
            recording.returned(watched, result)
        return result

    def fail(self, running: _Running, error: BaseException) -> None:
        """The pass has raised."""
        if running is not None:
            recording, watched, _ = running
            recording.failed(watched, error)

    def leave(self, running: _Running) -> None:
        """The pass is over."""
        if running is not None:
            recording, watched, room = running
            try:
                recording.end(watched)
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
    """Tells all recordings that what nodes save is packed by hooks from now on, for as long as such a node lives."""

    def enter(self, _: Any) -> None:
        """``saved_tensors_hooks`` begins."""
        for recording in tuple(_open):
            recording.packs = True


class _RemovalWatcher(_Listener):
    """Tells all recordings that a hook was removed from a dict."""

    def enter(self, handle: RemovableHandle) -> Any:
        """``handle.remove`` is called; gives the dict that the handle is for."""
        return handle.hooks_dict_ref()

    def leave(self, hooks: Any) -> None:
        """It is over."""
        for recording in tuple(_open) if hooks else ():
            recording.carefully(recording.calls.removed, hooks)


class _ExchangeWatcher(_Listener):
    """Tells all recordings that two tensors change places, which torch refuses where anybody refers to one weakly."""

    def enter(self, one: torch.Tensor, other: torch.Tensor) -> None:
        """``swap_tensors`` is called, as by ``module.to`` where parameters are of a subclass."""
        for recording in tuple(_open):
            recording.carefully(recording.forget, (one, other))


def on_turn() -> "Recording | None":
    """The recording that follows what the calling thread does before a pass."""
    recording = recording_here()
    return recording if recording is not None and recording.turns.on() else None


def after_turn() -> "Recording | None":
    """The recording that follows what the calling thread does after a pass."""
    recording = recording_here()
    return recording if recording is not None and recording.turns.after() else None


def _watched(tell: Callable[..., None]) -> Callable[[Any, Live], Any]:
    """Of a function of torch that registers something: one that also tells the recording on whose it did."""
    return notifier(on_turn, _on_first(tell))


def _on_first(tell: Callable[..., None]) -> Tell:
    return lambda recording, _, *given: tell(recording, *given[:1])


def _on_tensor(recording: "Recording", tensor: torch.Tensor) -> None:
    recording.meanwhile.on_tensor(tensor, "tensor_hook", tensor._backward_hooks)


def _on_leaf(recording: "Recording", tensor: torch.Tensor) -> None:
    recording.meanwhile.on_tensor(tensor, "post_accumulate_hook", tensor._post_accumulate_grad_hooks)


class _Hooks(dict[Any, Any]):
    """A node's dict of hooks as torch makes it, in half the time: handles refer to it weakly."""

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> tuple[Any, ...]:
        """What stays of it on a graph is copied, and pickled with a handle, as torch's own."""
        return OrderedDict, (entries(self),)


def _observing_node_hook(register: Callable[..., Any], live: Live) -> Any:
    def seen_node_hook(backward_hooks: Any, hook: Callable[..., Any]) -> Any:
        if hook is PROBE:
            raise Probed(backward_hooks)
        if isinstance(hook, Observer):  # it needs no handle, and takes no number away from the hooks of the user's
            hooks = _Hooks() if backward_hooks is None else backward_hooks
            hooks[hook] = hook
            return hooks, hooks
        hooks, handle = register(backward_hooks, hook)
        recording = recording_here() if live.on else None
        if recording is not None:
            recording.meanwhile.on_dict(hooks)
        return hooks, handle

    return staticmethod(seen_node_hook)


def _cleaning(clean: Callable[[Any], Any]) -> Callable[[Any, Live], Any]:
    """Of a method that gives the state to pickle: one that leaves our observers out of it."""

    def make(state: Callable[[Any], Any], _: Live) -> Callable[[Any], Any]:
        @wraps(state)
        def seen_state(self: Any) -> Any:
            return clean(state(self))

        return seen_state

    return make


# -- regions that are compiled: nothing inside them is seen

_asleep: dict[int, list["Recording | None"]] = {}
"""For each thread in compiled regions, the recording that it had before each."""


def _observing_compile(compile_: Callable[..., Any], live: Live) -> Callable[..., Any]:
    @wraps(compile_)
    def seen_compile(*given: Any, **options: Any) -> Any:
        result = compile_(*given, **options)
        with _lock:
            if live.on and _open:
                _watch_dynamo()  # it may have been loaded just now
        return result

    return seen_compile


def _observing_switch(switch: Callable[..., Any], live: Live) -> Callable[..., Any]:
    def seen_switch(callback: Any) -> Any:
        # All of this comes before the switch: afterwards torch would compile it.
        name = switched(sys._getframe(1)) if live.on else None
        if name is not None:
            _sleep(name)
        return switch(callback)

    return seen_switch


def _watch_dynamo() -> None:
    dynamo: Any = sys.modules.get(DYNAMO)
    if not hasattr(dynamo, SWITCH) or any(replacement.owner is dynamo for replacement in _in_place):
        return
    leave_alone(__name__.partition(".")[0])
    _put(Replacement(dynamo, SWITCH, _observing_switch))


def _sleep(name: str) -> None:
    """A compiled region begins, or ends if it has no name."""
    here = threading.get_ident()
    if not name:
        asleep = _asleep.get(here)  # gone with the last recording
        before = asleep.pop() if asleep else None
        with _lock:
            if _open and not any(_asleep.values()):
                _put_inside()
        if before is not None and _follow(before):
            before.carefully(before.calls.resumed)
        return
    recording = _current.get(here)
    with _lock:
        _asleep.setdefault(here, []).append(recording)
        _take_inside_back()  # the compiler reads the code of what it compiles, and compiles anew where it has changed
        for other in _open - {recording}:
            other.notices.say("note.compiled.elsewhere")
    if recording is not None:
        if recording.turns.on():
            recording.carefully(recording.calls.compiled, name)
        _follow(recording, asleep=True)


_INSIDE = (
    Instrumented(Module._wrapped_call_impl, _CallWatcher()),
    Instrumented(torch.autograd.graph._engine_run_backward, _PassWatcher()),
    Instrumented(torch.autograd.graph.saved_tensors_hooks.__enter__, _SavingWatcher()),
    Instrumented(RemovableHandle.remove, _RemovalWatcher()),
    Instrumented(torch.utils.swap_tensors, _ExchangeWatcher()),
)
"""What runs a person's code, a module's or a hook's: there nothing of ours may be on the stack."""
_REPLACED: tuple[Replacement, ...] = (
    Replacement(torch.Tensor, "register_hook", _watched(_on_tensor)),
    Replacement(torch.Tensor, "register_post_accumulate_grad_hook", _watched(_on_leaf)),
    Replacement(torch.Tensor, "retain_grad", _watched(lambda recording, tensor: recording.meanwhile.retains(tensor))),
    Replacement(_HookMixin, "_register_hook", _observing_node_hook),
    Replacement(Module, "__getstate__", _cleaning(pickling.clean_module)),
    Replacement(RemovableHandle, "__getstate__", _cleaning(pickling.clean_handle)),
    Replacement(
        Module, "register_forward_hook", _watched(lambda recording, module: recording.calls.registered(module))
    ),
    Replacement(
        torch_modules,
        "register_module_forward_hook",
        _watched(lambda recording, *_: recording.calls.registered(None)),
    ),
    Replacement(torch_optimizer, "_global_optimizer_pre_hooks", lambda *_: _all_pre),
    Replacement(torch_optimizer, "_global_optimizer_post_hooks", lambda *_: _all_post),
    Replacement(torch_optimizer.Optimizer, _own_pre.name, lambda *_: _own_pre),
    Replacement(torch_optimizer.Optimizer, _own_post.name, lambda *_: _own_post),
    Replacement(profiler.record_function, "__exit__", _observing_exit),
    Replacement(torch, "compile", _observing_compile),
    *grad_scaler.replacements(on_turn, after_turn),
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
