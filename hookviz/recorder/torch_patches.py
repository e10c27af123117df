"""Replaces or instruments a few functions of torch while a recording is open, and restores them afterwards."""

import sys
import threading
from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch
import torch.autograd.graph
import torch.autograd.profiler as profiler
import torch.export
import torch.nn.modules.module as torch_modules
import torch.optim.optimizer as torch_optimizer
from torch.amp.grad_scaler import GradScaler
from torch.nn.modules.module import Module
from torch.utils.hooks import RemovableHandle

from hookviz.autograd.torch_internals import (
    COMPILE_SWITCH,
    DYNAMO,
    GLOBAL_STEP_HOOKS,
    NODE_REGISTRATION,
    PROFILER_STARTS,
    PYTHON_TRACER,
    TENSOR_HOOKS,
    begin_saving,
    call_module,
    clip_norm,
    clip_value,
    global_step_post_hooks,
    global_step_pre_hooks,
    remove_handle,
    run_engine,
    swap_tensors,
)
from hookviz.recorder.followers.gradient_edits import ClipWatcher
from hookviz.recorder.followers.optimizer_steps import ObservedStepHooks, StepHooksDescriptor, is_called_by_step
from hookviz.recorder.open_recordings import (
    open_recordings,
    optimizer_tracker_here,
    own_recording,
    recording_after_pass,
    recording_before_pass,
    recording_here,
    recordings_by_thread,
)
from hookviz.recorder.session import is_engine_thread
from hookviz.recorder.torch.compiled_regions import (
    EXPORT,
    RegionSwitch,
    is_compiled,
    is_compiling,
    read_region_switch,
    skip_package,
)
from hookviz.recorder.torch.event_watchers import RemovalWatcher, SavingWatcher, SwapWatcher
from hookviz.recorder.torch.function_replacement import ActiveFlag, Here, Notify, Replacement, make_notifier
from hookviz.recorder.torch.instrumentation import Instrumented, Watcher
from hookviz.recorder.torch.replacements import (
    clean_handle,
    clean_module,
    forget_copies,
    forward_hook_added,
    global_forward_hook_added,
    gradients_unscaled,
    leaving_observers_out,
    loss_scaled,
    observe_handles,
    observe_node_hooks,
    param_group_added,
    retain_grad_called,
    scale_updated,
    tensor_hook_added,
)
from hookviz.support.interpreter import Uninterrupted, state_lock
from hookviz.trace import Note
from hookviz.trace.hook_facts import HOOK_FACTS

if TYPE_CHECKING:
    from hookviz.recorder.modules.module_call import ModuleCall
    from hookviz.recorder.passes.pass_observer import RunningPass
    from hookviz.recorder.recording import Recording

_ObservedCall: TypeAlias = "tuple[Recording, ModuleCall | None, int] | None"
"""A module call: its recording, the call (None if it could not be observed), and the number of calls around it."""
_ObservedPass: TypeAlias = "tuple[Recording, RunningPass] | None"
"""A backward pass and its recording; None if it is not recorded."""


def start_observing(recording: "Recording") -> None:
    """Start observing the thread of ``recording``. The first recording replaces torch's functions.

    While a profiler follows each Python call, nothing is observed. If this raises or is interrupted, the caller must
    stop the recording.
    """
    with Uninterrupted():
        if _follows_python_calls():
            recording.session.note_unobserved(Note.of("profiled"))
            return
        recording.followers.tell("recording_begins")
        with state_lock:
            if not open_recordings:
                _replace_functions()
            open_recordings.add(recording)
            recordings_by_thread[recording.thread] = recording


def stop_observing(recording: "Recording") -> None:
    """Stop observing for ``recording``, and close it. The last recording restores torch's functions.

    Calling it twice is safe.
    """
    with Uninterrupted():
        recording.followers.tell("recording_ends")
        with state_lock:
            recordings_by_thread.pop(recording.thread, None)
            open_recordings.discard(recording)
            if not open_recordings:
                recordings_by_thread.clear()  # a thread may still be in a compiled region, or just leave one
                _open_regions.clear()
                _restore_functions()
                forget_copies()
        recording.close()


def _pause_or_resume(recording: "Recording", *, compiled: bool) -> bool:
    """Pause ``recording`` in a ``compiled`` region, or resume it; return False if it has ended."""
    with state_lock:
        if recording in open_recordings:
            recordings_by_thread[recording.thread] = None if compiled else recording
        return recording in open_recordings


# These live forever, since a handle made during a recording refers to them. Outside of steps they act as torch's dicts.
_global_pre_hooks = ObservedStepHooks("step_pre_hook", global_step_pre_hooks, shared=True)
_global_post_hooks = ObservedStepHooks("step_post_hook", global_step_post_hooks, shared=True)
_own_pre_hooks = StepHooksDescriptor("step_pre_hook")
_own_post_hooks = StepHooksDescriptor("step_post_hook")


def _observing_exit(leave: Callable[..., Any], active: ActiveFlag) -> Callable[..., Any]:
    @wraps(leave)
    def observed_exit(self: Any, kind: Any, error: Any, traceback: Any) -> Any:
        tracker = optimizer_tracker_here() if active.on and is_called_by_step() else None
        if tracker is not None:
            tracker.session.guard(tracker.end, error)
        return leave(self, kind, error, traceback)

    return observed_exit


def _recording_of(module: Module) -> "Recording | None":
    """Return the recording that follows ``module`` in the calling thread."""
    recording = recording_here()
    if recording is None or module not in recording.calls.followed:
        return None
    return recording if recording.sampler.is_recording() else None


def _note_missed_call(module: Module) -> None:
    """Note a call that no recording follows: of a module that was not given, or in another thread."""
    recording = recording_here()
    if recording is not None:
        recording.calls.followed.other_called(module)
        recording.guard(recording.hook_ledger.unfollowed_call, module)
    elif threading.get_ident() not in recordings_by_thread and not is_engine_thread():
        for other in tuple(open_recordings):
            is_followed = module in other.calls.followed
            other.missed_calls |= is_followed
            if other.hook_ledger.entries and not is_followed:
                other.guard(other.hook_ledger.unfollowed_call, module)


class _CallWatcher(Watcher):
    """Notifies the recording of a module of each call: its arguments, its result, its exception."""

    def enter(self, module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _ObservedCall:
        """Begin a call of ``module``; return None if no recording follows it."""
        recording = _recording_of(module)
        if recording is None:
            _note_missed_call(module)
        if recording is None or is_compiling() or is_compiled(module):
            return None
        depth = recording.calls.depth()
        return recording, recording.begin_call(module, args, kwargs), depth

    def returning(self, observed_call: _ObservedCall, result: Any) -> Any:
        """Record that the call returns ``result``."""
        if observed_call is not None and observed_call[1] is not None and observed_call[0] in open_recordings:
            recording, call, _ = observed_call
            recording.guard(recording.calls.call_returned, call, result)
        return result

    def fail(self, observed_call: _ObservedCall, error: BaseException) -> None:
        """Record that an exception leaves the call."""
        if observed_call is not None and observed_call[1] is not None and observed_call[0] in open_recordings:
            recording, call, _ = observed_call
            recording.guard(recording.calls.call_raised, call, error)

    def leave(self, observed_call: _ObservedCall) -> None:
        """End the call."""
        if observed_call is not None and observed_call[0] in open_recordings:
            recording, call, depth = observed_call
            recording.end_call(call, depth)


class _PassWatcher(Watcher):
    """Notifies the recording of a thread of each backward pass."""

    def enter(self, roots: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> _ObservedPass:
        """Begin a pass, before the engine runs; return None if the pass is not recorded."""
        recording = None if is_compiling() else self._recording()
        running_pass = None if recording is None else recording.passes.begin(roots, *arguments, **named)
        return None if recording is None or running_pass is None else (recording, running_pass)

    def _recording(self) -> "Recording | None":
        """Return the recording of this thread. If there is none, the open recordings note that they missed a pass."""
        recording = recording_here()
        if recording is None and threading.get_ident() not in recordings_by_thread and not is_engine_thread():
            for other in tuple(open_recordings):
                other.missed_passes = True
        return recording

    def returning(self, observed_pass: _ObservedPass, result: Any) -> Any:
        """Record that the pass has run; the result of ``autograd.grad`` is ``result``."""
        if observed_pass is not None and observed_pass[0] in open_recordings:
            recording, running_pass = observed_pass
            recording.passes.pass_returned(running_pass, result)
        return result

    def fail(self, observed_pass: _ObservedPass, error: BaseException) -> None:
        """Record that the pass has raised."""
        if observed_pass is not None and observed_pass[0] in open_recordings:
            recording, running_pass = observed_pass
            recording.passes.pass_raised(running_pass, error)

    def leave(self, observed_pass: _ObservedPass) -> None:
        """End the pass."""
        if observed_pass is not None and observed_pass[0] in open_recordings:
            recording, running_pass = observed_pass
            recording.passes.end(running_pass)
            recording.stop_if_needed()


# -- compiled regions, inside which nothing is observed


class _OpenRegion(NamedTuple):
    """A compiled function that runs."""

    recording: "Recording | None"
    """The recording that its thread had before it, which is paused until the function returns."""
    is_eager: bool
    """Whether it runs eagerly: then nothing is paused."""


_open_regions: dict[int, list[_OpenRegion]] = {}
"""Thread → its nested compiled regions."""


def _observing_compile(compile_: Callable[..., Any], active: ActiveFlag) -> Callable[..., Any]:
    @wraps(compile_)
    def observed_compile(*arguments: Any, **options: Any) -> Any:
        result = compile_(*arguments, **options)
        with state_lock:
            if active.on and open_recordings:
                _watch_dynamo()  # ``torch.compile`` may just have loaded dynamo
        return result

    return observed_compile


def _observing_export(export: Callable[..., Any], active: ActiveFlag) -> Callable[..., Any]:
    @wraps(export)
    def observed_export(*arguments: Any, **options: Any) -> Any:
        if not active.on:
            return export(*arguments, **options)
        _switch_region(RegionSwitch(EXPORT))
        try:
            return export(*arguments, **options)
        finally:
            _switch_region(RegionSwitch())

    return observed_export


def _observing_switch(switch: Callable[..., Any], active: ActiveFlag) -> Callable[..., Any]:
    def observed_switch(callback: Any) -> Any:
        # This has to run before the switch: afterwards torch would compile it.
        region = read_region_switch(sys._getframe(1)) if active.on else None
        if region is not None:
            _switch_region(region)
        return switch(callback)

    return observed_switch


def _watch_dynamo() -> None:
    dynamo: Any = sys.modules.get(DYNAMO)
    if not hasattr(dynamo, COMPILE_SWITCH) or any(replacement.owner is dynamo for replacement in _installed):
        return
    skip_package(__name__.partition(".")[0])
    _install(Replacement(dynamo, COMPILE_SWITCH, _observing_switch))


def _instrument_again() -> None:
    """Instrument torch's functions again that were restored, unless nothing is replaced now."""
    with state_lock:
        if _installed:
            _instrument_functions()


def _switch_region(region: RegionSwitch) -> None:
    """Begin a compiled region, or end it."""
    thread = threading.get_ident()
    if not region.name:
        _leave_region(thread)
        return
    recording = recordings_by_thread.get(thread)
    with state_lock:
        _open_regions.setdefault(thread, []).append(_OpenRegion(recording, region.is_eager))
    if region.is_eager:
        if recording is not None:
            recording.guard(recording.followers.tell, "eager_region_begins")
        return
    with state_lock:
        # The compiler reads the code of what it compiles, and recompiles where that has changed.
        _restore_instrumented()
        for other in open_recordings - {recording, *(one.recording for one in _open_regions[thread])}:
            other.session.notes.say("compiled.elsewhere")
    if recording is not None:
        if recording.sampler.is_recording():
            recording.guard(recording.calls.compiled_region_begins, region)
        recording.guard(recording.followers.tell, "region_begins")
        _pause_or_resume(recording, compiled=True)


def _leave_region(thread: int) -> None:
    regions = _open_regions.get(thread)  # cleared when the last recording ended
    left = regions.pop() if regions else _OpenRegion(None, is_eager=False)
    if left.is_eager:
        return
    _instrument_again()
    recording = left.recording
    if recording is not None and _pause_or_resume(recording, compiled=False):
        recording.guard(recording.calls.observers.resume)
        recording.guard(recording.calls.compiled.end)
        recording.guard(recording.followers.tell, "region_ended")


# -- profilers that follow each Python call: a frame of ours would be an event before any code of ours could prevent it


def _follows_python_calls() -> bool:
    """Return whether a profiler of torch's follows each Python call of this thread."""
    return type(sys.getprofile()).__name__ == PYTHON_TRACER


def _observing_profiler(start: Callable[[], None], active: ActiveFlag) -> Callable[[], None]:
    """Observe what torch calls before a profiler starts, when it does not profile: what runs here is in no profile."""

    @wraps(start)
    def observed_start() -> None:
        settings: Any = sys._getframe(1).f_locals.get("self")
        if active.on and getattr(settings, "with_stack", False):
            _end_before_profile()
        start()

    return observed_start


def _end_before_profile() -> None:
    """End all recordings before such a profiler starts; a call or pass that is running is recorded no further."""
    with Uninterrupted():
        for recording in tuple(open_recordings):
            recording.session.note_unobserved(Note.of("profiled"))
            stop_observing(recording)


_INSTRUMENTED = (
    Instrumented(call_module, _CallWatcher()),
    Instrumented(run_engine, _PassWatcher()),
    Instrumented(begin_saving, SavingWatcher()),
    Instrumented(remove_handle, RemovalWatcher()),
    Instrumented(swap_tensors, SwapWatcher()),
    Instrumented(clip_norm, ClipWatcher("clip_grad_norm_")),
    Instrumented(clip_value, ClipWatcher("clip_grad_value_")),
)
"""Functions that are observed in their own frame.

The first two run the user's code, and no frame of ours may be on the stack there. A program may hold one of the others
already (``remove = handle.remove``): a replacement would not reach that.
"""
_NOTIFYING: tuple[tuple[Any, str, Here, Notify], ...] = (
    *(
        (torch.Tensor, HOOK_FACTS[kind].method, recording_before_pass, partial(tensor_hook_added, kind))
        for kind in TENSOR_HOOKS
    ),
    (torch.Tensor, "retain_grad", recording_before_pass, retain_grad_called),
    (Module, "register_forward_hook", recording_before_pass, forward_hook_added),
    (torch_modules, "register_module_forward_hook", recording_before_pass, global_forward_hook_added),
    (torch_optimizer.Optimizer, "add_param_group", own_recording, param_group_added),
    (GradScaler, "scale", recording_before_pass, loss_scaled),
    (GradScaler, "unscale_", recording_after_pass, gradients_unscaled),
    (GradScaler, "update", recording_after_pass, scale_updated),
)
"""Owner and name of each function that notifies a recording after a call: which recording, and what it tells it."""
_REPLACEMENTS: tuple[Replacement, ...] = (
    *(Replacement(owner, name, make_notifier(here, notify)) for owner, name, here, notify in _NOTIFYING),
    Replacement(profiler, PROFILER_STARTS, _observing_profiler),
    Replacement(RemovableHandle, "__init__", observe_handles),
    Replacement(NODE_REGISTRATION, "_register_hook", observe_node_hooks),
    Replacement(Module, "__getstate__", leaving_observers_out(clean_module)),
    Replacement(RemovableHandle, "__getstate__", leaving_observers_out(clean_handle)),
    Replacement(torch_optimizer, GLOBAL_STEP_HOOKS["step_pre_hook"], lambda *_: _global_pre_hooks),
    Replacement(torch_optimizer, GLOBAL_STEP_HOOKS["step_post_hook"], lambda *_: _global_post_hooks),
    Replacement(torch_optimizer.Optimizer, _own_pre_hooks.name, lambda *_: _own_pre_hooks),
    Replacement(torch_optimizer.Optimizer, _own_post_hooks.name, lambda *_: _own_post_hooks),
    Replacement(profiler.record_function, "__exit__", _observing_exit),
    Replacement(torch, "compile", _observing_compile),
    Replacement(torch.export, "export", _observing_export),
)
_installed: list[Replacement] = []
"""The replacements that are installed now."""


def _replace_functions() -> None:
    for replacement in _REPLACEMENTS:
        _install(replacement)
    _instrument_functions()
    _watch_dynamo()


def _instrument_functions() -> None:
    """Instrument functions of torch, unless a compiled region runs."""
    is_in_compiled_code = any(not region.is_eager for regions in _open_regions.values() for region in regions)
    for instrumented in () if is_in_compiled_code else _INSTRUMENTED:
        instrumented.install()


def _restore_instrumented() -> None:
    for instrumented in _INSTRUMENTED:
        instrumented.restore()


def _install(replacement: Replacement) -> None:
    _installed.append(replacement)
    replacement.install()


def _restore_functions() -> None:
    _restore_instrumented()
    while _installed:
        _installed.pop().restore()
