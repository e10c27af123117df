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
from torch.nn.modules.module import Module
from torch.utils.hooks import RemovableHandle

from hookviz.recorder import copies, scaling
from hookviz.recorder.opaque import DYNAMO, SWITCH, Regions, compiled, compiling, leave_alone
from hookviz.recorder.optimizers import Between, OnOptimizer, in_step
from hookviz.recorder.replaced import Live, Replacement, Tell, telling
from hookviz.recorder.stage import Observer
from hookviz.recorder.watched import engine_thread

if TYPE_CHECKING:
    from hookviz.recorder.recording import Recording

_current: dict[int, "Recording | None"] = {}
"""The recording of each thread: its own, or that of a model which it calls; None in a region that is compiled."""
_open: set["Recording"] = set()
"""Those that have begun and not ended. While there is one, torch's functions are replaced."""
_models: dict[int, "Recording"] = {}
"""``id`` of each module that was given to a recording → the recording."""
_lock = threading.Lock()

_COMPILER = DYNAMO.rpartition(".")[0]


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


def _observing_exit(leave: Callable[..., Any], live: Live) -> Callable[..., Any]:
    @wraps(leave)
    def seen_exit(self: Any, kind: Any, error: Any, traceback: Any) -> Any:
        recording = stepping_here() if live.on and in_step() else None
        if recording is not None:
            recording.carefully(recording.optimizers.end, error)
        return leave(self, kind, error, traceback)

    return seen_exit


# A bare ``raise`` adds no entry to a traceback: with its own entry cut off, a replaced function leaves no frame.


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


def _observing_call(run: Callable[..., Any], live: Live) -> Callable[..., Any]:
    def _seen_call(self: Module, *args: Any, **kwargs: Any) -> Any:
        recording = _recording_of(self) if live.on else None
        if recording is None or compiling() or compiled(self):
            try:
                return run(self, *args, **kwargs)
            except BaseException as error:
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise
        call, depth = None, recording.calls.depth()
        try:
            call = recording.called(self, args, kwargs)
            result = run(self, *args, **kwargs)
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

    return _seen_call


class OnModules:
    """Stands on the class of all modules for ``__call__``, and gives the compiler what stood there before.

    The compiler knows a module's call by torch's function, and treats any other as a user's that it has to trace.
    """

    def __init__(self, call: Callable[..., Any], live: Live) -> None:
        self.call, self.seen = call, _observing_call(call, live)

    def __get__(self, module: Module | None, owner: type) -> Any:
        """What calls ``module``: torch's own in a compiled region, and to the compiler as it loads or compiles."""
        asker = sys._getframe(1).f_globals.get("__name__", "")
        compiler = asker.startswith(_COMPILER) and not owner.__module__.startswith(_COMPILER)
        call = self.call if compiler or _asleep.get(threading.get_ident()) else self.seen
        return call if module is None else MethodType(call, module)


def _tell_elsewhere() -> None:
    """A pass runs in a thread of a person's that no recording follows: those that are open say so in the end."""
    if threading.get_ident() not in _current and not engine_thread():
        for recording in tuple(_open):
            recording.elsewhere = True


def _observing_backward(run: Callable[..., Any], live: Live) -> Callable[..., Any]:
    def _seen_backward(*arguments: Any, **named: Any) -> Any:
        recording = recording_here() if live.on and not compiling() else None
        watched = None
        try:
            if recording is not None:
                watched = recording.begin(*arguments, **named)
            elif live.on:
                _tell_elsewhere()
            result = run(*arguments, **named)
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

    return _seen_backward


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
    return telling(on_turn, _on_first(tell))


def _on_first(tell: Callable[..., None]) -> Tell:
    return lambda recording, _, *given: tell(recording, *given[:1])


def _on_tensor(recording: "Recording", tensor: torch.Tensor) -> None:
    recording.meanwhile.on_tensor(tensor, "tensor_hook", tensor._backward_hooks)


def _on_leaf(recording: "Recording", tensor: torch.Tensor) -> None:
    recording.meanwhile.on_tensor(tensor, "post_accumulate_hook", tensor._post_accumulate_grad_hooks)


def _observing_node_hook(register: Callable[..., Any], live: Live) -> Any:
    def seen_node_hook(backward_hooks: Any, hook: Callable[..., Any]) -> Any:
        if type(hook) is Observer:  # it needs no handle, and takes no number away from the hooks of the user's
            hooks = OrderedDict() if backward_hooks is None else backward_hooks
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

_regions = Regions()
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
        name = _regions.switch(sys._getframe(1)) if live.on else None
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
    with _lock:
        # Torch's tracers put a function of their own there for a while, and then what they got when they asked.
        if _open and vars(Module)["__call__"] in (_on_call.ours.call, _on_call.ours.seen):
            _on_call.put()
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


_on_call = Replacement(Module, "__call__", OnModules)
_REPLACED: tuple[Replacement, ...] = (
    Replacement(torch.autograd, "_engine_run_backward", _observing_backward),
    Replacement(torch.autograd.graph, "_engine_run_backward", _observing_backward),
    Replacement(torch.Tensor, "register_hook", _watched(_on_tensor)),
    Replacement(torch.Tensor, "register_post_accumulate_grad_hook", _watched(_on_leaf)),
    Replacement(torch.Tensor, "retain_grad", _watched(lambda recording, tensor: recording.meanwhile.retains(tensor))),
    Replacement(_HookMixin, "_register_hook", _observing_node_hook),
    _on_call,
    Replacement(Module, "__getstate__", _cleaning(copies.clean_module)),
    Replacement(RemovableHandle, "__getstate__", _cleaning(copies.clean_handle)),
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
    *scaling.replacements(on_turn, after_turn),
)
_in_place: list[Replacement] = []
"""Those that stand in torch now."""


def _replace() -> None:
    for replacement in _REPLACED:
        _put(replacement)
    _watch_dynamo()


def _put(replacement: Replacement) -> None:
    _in_place.append(replacement)
    replacement.put()


def _restore() -> None:
    while _in_place:
        _in_place.pop().take_back()
