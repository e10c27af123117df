"""One recording: lays observers into a graph before each backward pass, and takes every one of them off again."""

import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import torch

from hookviz.api.trace import Trace
from hookviz.autograd import graph
from hookviz.autograd.graph_snapshot import GraphSnapshot, Only
from hookviz.autograd.node_numbers import NodeNumbers
from hookviz.autograd.tensor_statistics import fetch_pending, hidden_from_tools
from hookviz.recorder.call_tracker import CallTracker
from hookviz.recorder.distributed import RankTracker
from hookviz.recorder.fingerprint import Gradients
from hookviz.recorder.grad_scaler import ScaleTracker
from hookviz.recorder.late_hooks import LateHooks
from hookviz.recorder.module_call import Call
from hookviz.recorder.module_filter import ModuleFilter
from hookviz.recorder.node_observers import NodeObservers
from hookviz.recorder.notes import packed
from hookviz.recorder.observer_registry import ObserverRegistry
from hookviz.recorder.optimizer_steps import OptimizerTracker
from hookviz.recorder.parameter_values import read_where_sick
from hookviz.recorder.pass_observer import SMALL, PassObserver
from hookviz.recorder.pass_sampler import outermost
from hookviz.recorder.retention import Retention
from hookviz.recorder.running_pass import RunningPass, engine_thread
from hookviz.recorder.saved_tensors import ROOM, SavedTensors
from hookviz.recorder.session import Session
from hookviz.recorder.unobserved_hooks import UnobservedHooks
from hookviz.support.interpreter import gc_paused
from hookviz.support.interrupts import Uninterrupted
from hookviz.trace import Note
from hookviz.trace.dropped_passes import Renumbered


class Recording(Session):
    """Observes the backward passes of one thread into one trace."""

    def __init__(
        self,
        trace: Trace,
        names: Mapping[str, torch.Tensor],
        models: Sequence[torch.nn.Module] = (),
        keep: int | None = None,
        only: tuple[str, ...] | None = None,
        every: int = 1,
    ) -> None:
        super().__init__(trace, every)
        self.names = names
        self.within: weakref.ref[object] | None = None
        """The ``with`` statement whose block this records: once it is gone, the recording is over."""
        self.running: list[RunningPass] = []
        self.numbering = NodeNumbers(trace)
        self.chosen = ModuleFilter(models, only)
        self.calls = CallTracker(self, models, self.chosen)
        self.optimizers = OptimizerTracker(self)
        self.scales, self.ranks = ScaleTracker(self, self.optimizers), RankTracker(self, self.calls)
        self._unfollowed = UnobservedHooks(self.notices, self.calls.modules, self.optimizers, tuple(models))
        self.bound = Retention(trace, keep, self.notices, idle=self._idle, moved=self._moved)
        self.saved = SavedTensors()
        self.stages = ObserverRegistry(self, self.calls, self.running)
        self.meanwhile = LateHooks(self.stages, self.running)
        self.elsewhere = False
        """Whether a pass ran in a thread that no recording followed."""
        self._settled = 0
        """So many values of the trace are no longer on a device."""
        self._last_begun = 0
        """How many steps there were when the last pass began."""
        self._first: int = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]
        """The number of the first node that could be made while this records."""
        self._made = self._first
        """The number of the first node that could be made since the last pass began."""
        self.packs = packed()
        """Whether hooks may pack what nodes save."""

    # -- a module is called; none of this may raise

    def called(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call | None:
        """``module`` is called; None where the call cannot be observed."""
        try:
            with self.lock, torch._C.DisableTorchFunction(), hidden_from_tools():
                self.notices.saved_hooks()
                self.ranks.called()
                return self.calls.begin(module, args, kwargs)
        except Exception as error:
            self.trouble(error, self.calls.modules.label(module))
            return None

    def answered(self, call: Call, result: Any) -> None:
        """The call returns ``result``."""
        self.carefully(self.calls.returned, call, result)

    def broke(self, call: Call, error: BaseException) -> None:
        """An exception leaves the call."""
        self.carefully(self.calls.broke, call, error)

    def left(self, call: Call | None, depth: int) -> None:
        """The call is over; so many are around it. Of one that could not be observed nothing stays."""
        self.carefully(self._left, call, depth)

    def _left(self, call: Call | None, depth: int) -> None:
        self.attempt(self.calls.end, call, depth)
        if not depth:
            self.bound.called()
            self.attempt(self._sweep)
        if call is not None:
            self.attempt(self.bound.check)

    def _sweep(self) -> None:
        """Let go of what was stored on nodes that are gone."""
        for kept in (self.calls.makers, self.scales, self.meanwhile):
            kept.sweep()

    # -- a pass begins and ends; none of this may raise

    def begin(self, roots: Sequence[Any], gradients: Gradients, *flags: Any, **named: Any) -> RunningPass | None:
        """Lay observers into the graph below ``roots``; None where the pass has to run unobserved."""
        self._heal()
        if not self.turns.begin() or (threading.get_ident() != self.thread and not self._concerns(roots)):
            return None
        inputs = flags[2] if len(flags) > 2 else named.get("inputs", ())
        watched = None
        try:
            with Uninterrupted(), self.lock:
                watched = self._open(roots, gradients, inputs or ())
        except BaseException:
            if watched is not None:
                self.end(watched)
            raise
        return watched

    def _heal(self) -> None:
        """Where an interrupt has kept a pass of this thread from being ended, end it before the next one begins."""
        if self.running and outermost():
            for watched in [one for one in self.running if one.thread == threading.get_ident()]:
                self.end(watched)

    def _open(self, roots: Sequence[Any], gradients: Gradients, inputs: Sequence[Any]) -> RunningPass | None:
        watched = RunningPass(self, self.calls, self.numbering, NodeObservers(self, self.stages, self.meanwhile))
        # The forward steps of a pass carry its number as soon as the pass before it has begun.
        watched.survey.first_row, self._last_begun = self._last_begun, len(self.trace.rows)
        watched.raised = self.raised.enter()
        self.bound.begins(watched.survey.pass_id)
        try:
            with torch._C.DisableTorchFunction(), hidden_from_tools(), self._uncollected(watched):
                self._begin(watched, roots, gradients, inputs)
        except graph.TooDeep:
            self.end(watched)
            self._unobserved(Note.of("trace.deep", deepest=f"{graph.DEEPEST:,}"))
            return None
        except Exception as error:
            self.end(watched)
            self._unobserved(Note.of("trace.trouble", error=f"{type(error).__name__}: {error}"))
            return None
        except BaseException:
            self.end(watched)
            raise
        return watched

    def _uncollected(self, watched: RunningPass) -> AbstractContextManager[None]:
        """Keeps the collector from running where a pass begins through many nodes, as far as their numbers tell."""
        made: int = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]
        watched.large, self._made = made - self._made > SMALL, made
        return gc_paused() if watched.large else nullcontext()

    def _concerns(self, roots: Sequence[Any]) -> bool:
        """Whether a pass in another thread goes through a model that was given."""
        with suppress(Exception), self.lock, torch._C.DisableTorchFunction(), hidden_from_tools():
            nodes = graph.walk([node for node, _ in map(graph.edge_of, roots) if node is not None])
            found = bool(self.calls.owners(nodes))
            graph.release(nodes)
            return found
        return False

    def returned(self, watched: RunningPass, gradients: Any) -> None:
        """The pass has run; ``autograd.grad`` has its result."""
        self.raised.leave(watched.raised)
        self.carefully(self.ranks.ended)
        if watched.inputs and isinstance(gradients, tuple) and len(gradients) == len(watched.inputs):
            self.carefully(watched.seen.returned, watched.inputs, gradients)

    def failed(self, watched: RunningPass, error: BaseException) -> None:
        """The pass has raised: what was seen of it stays, and the last step says what ended it."""
        with suppress(Exception), self.lock:
            if self.raised.first(error):
                watched.seen.failed(error)

    def end(self, watched: RunningPass) -> None:
        """Take off every observer of this pass and let go of its nodes."""
        with Uninterrupted(), self.lock, gc_paused() if watched.large else nullcontext():
            watched.nodes.lift()
            self.stages.release(watched)
            watched.survey.release()
            watched.wake()
            if watched in self.running:
                self.running.remove(watched)
        self.carefully(self._ended, watched.survey)

    def _ended(self, survey: GraphSnapshot) -> None:
        self.attempt(self._settle)
        self.attempt(read_where_sick, self.trace, survey)
        self.attempt(self.bound.check)

    def _settle(self) -> None:
        self._settled = fetch_pending(self.trace.values, self._settled)

    def close(self) -> None:
        """End what is still open and leave no mark on any node."""
        for watched in reversed(self.running[:]):
            self.end(watched)
        self.meanwhile.close()
        self.scales.close()
        self.turns.tell(self.notices)
        if self.elsewhere:
            self.notices.say("note.elsewhere")
        if not self.trace.rows and not self.trace.remarks:
            self.notices.say("trace.empty")
        if self.trace.statistics == "norm":
            self.notices.say("note.statistics")
        self.carefully(self._close)
        self.trace.put_away()

    def _close(self) -> None:
        for act in (self.ranks.tell, self.calls.close, self._unfollowed.tell, self._settle):
            self.attempt(act)
        self.attempt(lambda: self.bound.check(last=True))

    def settle_down(self) -> None:
        """Stand in front of every node of the passes that run, since hooks have come up on the way."""
        self.stages.settle_down()

    def _idle(self) -> bool:
        """Whether neither a pass nor a module call is running, in whatever thread."""
        return not self.running and not self.calls.busy()

    def _moved(self, moved: Renumbered) -> None:
        """Passes were let go of: what is left has new numbers."""
        self.saved.room = ROOM
        self.numbering.renumber(moved.nodes)
        self.calls.renumber(moved.calls, moved.hooks)
        self.meanwhile.forget()
        self._last_begun = 0
        self._settled = 0  # values have moved up, also those that are still on a device

    def forget(self, tensors: Iterable[torch.Tensor]) -> None:
        """Refer to none of ``tensors`` any longer: what they are to hold next is not what was seen."""
        for tensor in tensors:
            self.numbering.forget(tensor)
            self.calls.forget(tensor)

    # -- laying observers

    def _begin(self, watched: RunningPass, roots: Sequence[Any], gradients: Gradients, inputs: Sequence[Any]) -> None:
        survey, seen = watched.survey, watched.seen
        self.notices.saved_hooks()
        places = survey.take(roots, self._names(), self._only)
        self.chosen.nodes, self.chosen.seen = survey.counts
        self._sweep()
        self.meanwhile.tell(survey)
        seen.careful = len(survey.nodes) <= SMALL
        self.attempt(self.saved.capture, survey)
        self.attempt(self.scales.claim, survey)
        self.attempt(self.ranks.begins, watched)
        self.calls.claim(survey)
        untold = self._untold(survey)
        for kept in survey.hooks_of_tensors(self.meanwhile.dicts, search=untold or self.packs):
            self.stages.observe(watched, *kept)
        for hook in survey.unpack_hooks.values():
            self.notices.packing(hook)
        watched.nodes.lay(watched, everywhere=untold or self._eliminates_no_node(survey))
        self.stages.observe_modules(watched)
        self.running.append(watched)
        self.disturbed = False
        watched.inputs = [survey.place_of(*graph.edge_of(tensor)) for tensor in inputs]
        if watched.inputs:
            seen.targets = [place for place in watched.inputs if place is not None]
        for place, gradient in zip(places, gradients, strict=False):
            if place is not None:
                seen.seed(place, gradient)

    @property
    def _only(self) -> Only | None:
        """What says which nodes are looked at, if not all are."""
        return None if self.chosen.patterns is None else self.calls.chosen_of

    def _names(self) -> dict[str, torch.Tensor]:
        """Name → tensor: those given by hand, parameters as the modules that hold them are called, and variables."""
        found = graph.variables(graph.caller())
        # Of two names for one tensor the first counts; of two tensors under one name, too. A loop over all parameters
        # leaves a variable behind that holds the last of them: the module's name says more.
        names = dict(self.names)
        for source in (self.ranks.names(), self.calls.modules.parameters(), found):
            for name, tensor in source.items():
                names.setdefault(name, tensor)
        return names

    def _untold(self, survey: GraphSnapshot) -> bool:
        """Whether hooks may be on this graph that nobody told of: those from before, or of passes left out."""
        return survey.oldest < self._first or self.turns.every > 1 or self.calls.makers.several()

    def _eliminates_no_node(self, survey: GraphSnapshot) -> bool:
        """Whether a node that fails could not be found by elimination: not all are seen, or several run at once."""
        on_devices: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        return len(survey.nodes) < len(survey.walked) or on_devices or self.ranks.several()

    def current(self) -> PassObserver | None:
        """The pass of this recording in which the calling hook runs."""
        task = torch._C._current_graph_task_id()
        for watched in reversed(self.running):
            if watched.seen.task == task:
                return watched.seen
        here = None if engine_thread() else threading.get_ident()
        for watched in reversed(self.running):
            if watched.seen.task is None and here in (None, watched.thread):
                watched.seen.task = task
                return watched.seen
        return None
