"""The backward passes of a recording: observers go into the graph before each pass, and come out after it."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

import torch

from hookviz.autograd import graph
from hookviz.autograd.graph_snapshot import GraphSnapshot, NodeFilter
from hookviz.autograd.node_numbers import NodeNumbers
from hookviz.autograd.tensor_statistics import fetch_pending, hidden_from_tools
from hookviz.autograd.torch_internals import DisableTorchFunction, next_sequence_number
from hookviz.recorder.call_tracker import CallTracker
from hookviz.recorder.distributed import RankTracker
from hookviz.recorder.fingerprint import Gradients
from hookviz.recorder.grad_scaler import ScaleTracker
from hookviz.recorder.late_hooks import LateHooks
from hookviz.recorder.node_observers import NodeObservers
from hookviz.recorder.notes import packed
from hookviz.recorder.observer_registry import ObserverRegistry
from hookviz.recorder.parameter_values import read_where_sick
from hookviz.recorder.pass_observer import SMALL
from hookviz.recorder.pass_sampler import outermost
from hookviz.recorder.retention import Retention
from hookviz.recorder.running_pass import RunningPass
from hookviz.recorder.saved_tensors import ROOM, SavedTensors
from hookviz.recorder.session import Session
from hookviz.support.interpreter import gc_paused
from hookviz.support.interrupts import Uninterrupted
from hookviz.trace import Note


class PassTracker:
    """Observes each backward pass of a recording from its beginning to its end. None of this may raise."""

    def __init__(
        self,
        session: Session,
        names: Mapping[str, torch.Tensor],
        calls: CallTracker,
        scales: ScaleTracker,
        ranks: RankTracker,
        retention: Retention,
    ) -> None:
        self.session, self.trace, self.names = session, session.trace, names
        self.calls, self.owners, self.module_filter = calls, calls.owners, calls.module_filter
        self.scales, self.ranks, self.retention = scales, ranks, retention
        self.numbering = NodeNumbers(session.trace)
        self.saved_tensors = SavedTensors()
        self.observers = ObserverRegistry(session, calls.owners)
        self.late_hooks = LateHooks(self.observers, session.passes)
        self.packs = packed()
        """Whether hooks may pack what nodes save."""
        self._fetched = 0
        """How many values of the trace are no longer on a device."""
        self._last_begun = 0
        """How many steps there were when the last pass began."""
        self._first_node: int = next_sequence_number()
        """The number of the first node that could be made while this records."""
        self._made = self._first_node
        """The number of the first node that could be made since the last pass began."""

    # -- a pass begins

    def begin(self, roots: Sequence[Any], gradients: Gradients, *flags: Any, **named: Any) -> RunningPass | None:
        """Put observers into the graph below ``roots``; None where the pass has to run unobserved."""
        self._end_interrupted()
        other_thread = threading.get_ident() != self.session.thread
        if not self.session.sampler.begin() or (other_thread and not self._concerns(roots)):
            return None
        inputs = flags[2] if len(flags) > 2 else named.get("inputs", ())
        running_pass = None
        try:
            with Uninterrupted(), self.session.lock:
                running_pass = self._open(roots, gradients, inputs or ())
        except BaseException:
            if running_pass is not None:
                self.end(running_pass)
            raise
        return running_pass

    def _end_interrupted(self) -> None:
        """Where an interrupt has kept a pass of this thread from being ended, end it before the next one begins."""
        if self.session.passes and outermost():
            for running_pass in self.session.passes.here():
                self.end(running_pass)

    def _concerns(self, roots: Sequence[Any]) -> bool:
        """Whether a pass in another thread goes through a model that was given."""
        with suppress(Exception), self.session.lock, DisableTorchFunction(), hidden_from_tools():
            nodes = graph.reachable_nodes([node for node, _ in map(graph.edge_of, roots) if node is not None])
            found = bool(self.owners.owners(nodes))
            graph.release(nodes)
            return found
        return False

    def _open(self, roots: Sequence[Any], gradients: Gradients, inputs: Sequence[Any]) -> RunningPass | None:
        node_observers = NodeObservers(self.session, self.observers, self.late_hooks)
        running_pass = RunningPass(self.trace, self.owners, self.numbering, node_observers)
        # The forward steps of a pass carry its number as soon as the pass before it has begun.
        running_pass.snapshot.first_row, self._last_begun = self._last_begun, len(self.trace.rows)
        running_pass.earlier_exception = self.session.exceptions.enter()
        self.retention.begins(running_pass.snapshot.pass_id)
        try:
            with DisableTorchFunction(), hidden_from_tools(), self._uncollected(running_pass):
                self._observe(running_pass, roots, gradients, inputs)
        except graph.TooDeep:
            self.end(running_pass)
            self.session.report_unobserved(Note.of("trace.deep", deepest=f"{graph.MAX_DEPTH:,}"))
            return None
        except Exception as error:
            self.end(running_pass)
            self.session.report_unobserved(Note.of("trace.trouble", error=f"{type(error).__name__}: {error}"))
            return None
        except BaseException:
            self.end(running_pass)
            raise
        return running_pass

    def _uncollected(self, running_pass: RunningPass) -> AbstractContextManager[None]:
        """Keeps the collector from running where a pass begins through many nodes, judged by their numbers."""
        made: int = next_sequence_number()
        running_pass.large, self._made = made - self._made > SMALL, made
        return gc_paused() if running_pass.large else nullcontext()

    def _observe(
        self, running_pass: RunningPass, roots: Sequence[Any], gradients: Gradients, inputs: Sequence[Any]
    ) -> None:
        """Write the graph into the trace, put the observers in place, and note what goes in at the roots."""
        snapshot, observer = running_pass.snapshot, running_pass.observer
        self.session.notes.add_saved_tensor_hooks()
        places = snapshot.capture(roots, self._names(), self._only)
        self.module_filter.nodes, self.module_filter.observed = snapshot.node_counts
        self.sweep()
        self.late_hooks.mark_retained(snapshot)
        observer.checks_each = len(snapshot.nodes) <= SMALL
        self.session.attempt(self.saved_tensors.capture, snapshot)
        self.session.attempt(self.scales.mark_pass, snapshot)
        self.session.attempt(self.ranks.pass_begins, running_pass)
        self.owners.write(snapshot)
        self._observe_hooks(running_pass)
        self.session.passes.add(running_pass)
        self.session.passes.nodes_got_hooks = False
        running_pass.inputs = [snapshot.place_of(*graph.edge_of(tensor)) for tensor in inputs]
        if running_pass.inputs:
            observer.targets = [place for place in running_pass.inputs if place is not None]
        for place, gradient in zip(places, gradients, strict=False):
            if place is not None:
                observer.seed(place, gradient)

    def _observe_hooks(self, running_pass: RunningPass) -> None:
        """Put observers between the hooks of tensors, behind the nodes, and between the hooks of modules."""
        snapshot = running_pass.snapshot
        unknown = self._may_have_unknown_hooks(snapshot)
        for found in snapshot.tensor_hook_dicts(self.late_hooks.dicts, search=unknown or self.packs):
            self.observers.observe(running_pass, *found)
        for hook in snapshot.unpack_hooks.values():
            self.session.notes.add_packing_hook(hook)
        everywhere = unknown or self._eliminates_no_node(snapshot)
        running_pass.node_observers.install(running_pass, everywhere=everywhere)
        self.observers.observe_modules(running_pass)

    @property
    def _only(self) -> NodeFilter | None:
        """What says which nodes are looked at, if not all are."""
        return None if self.module_filter.patterns is None else self.owners.chosen

    def _names(self) -> dict[str, torch.Tensor]:
        """Name → tensor: those given by hand, parameters under their modules' names, and variables."""
        found = graph.tensor_variables(graph.caller_frame())
        # Of two names for one tensor the first counts; of two tensors under one name, too. A loop over all parameters
        # leaves a variable behind that holds the last of them: the module's name says more.
        names = dict(self.names)
        for source in (self.ranks.names(), self.calls.modules.parameters(), found):
            for name, tensor in source.items():
                names.setdefault(name, tensor)
        return names

    def _may_have_unknown_hooks(self, snapshot: GraphSnapshot) -> bool:
        """Whether hooks may be there that were registered unseen: before the recording, or in a pass left out."""
        older = snapshot.lowest_sequence < self._first_node
        return older or self.session.sampler.every > 1 or self.owners.made.several()

    def _eliminates_no_node(self, snapshot: GraphSnapshot) -> bool:
        """Whether a node that fails could not be found by elimination: not all are seen, or several run at once."""
        on_devices: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        return len(snapshot.nodes) < len(snapshot.all_nodes) or on_devices or self.ranks.several()

    # -- a pass ends

    def returned(self, running_pass: RunningPass, gradients: Any) -> None:
        """The pass has run; ``autograd.grad`` has its result."""
        self.session.exceptions.leave(running_pass.earlier_exception)
        self.session.guard(self.ranks.pass_ended)
        inputs = running_pass.inputs
        if inputs and isinstance(gradients, tuple) and len(gradients) == len(inputs):
            self.session.guard(running_pass.observer.returned, inputs, gradients)

    def raised(self, running_pass: RunningPass, error: BaseException) -> None:
        """The pass has raised: what was seen of it stays, and the last step names what ended it."""
        with suppress(Exception), self.session.lock:
            if self.session.exceptions.is_new(error):
                running_pass.observer.failed(error)

    def end(self, running_pass: RunningPass) -> None:
        """Take every observer of this pass out and let go of its nodes."""
        with Uninterrupted(), self.session.lock, gc_paused() if running_pass.large else nullcontext():
            running_pass.node_observers.uninstall()
            self.observers.release(running_pass)
            running_pass.snapshot.release()
            running_pass.wake()
            self.session.passes.remove(running_pass)
        self.session.guard(self._ended, running_pass.snapshot)

    def _ended(self, snapshot: GraphSnapshot) -> None:
        self.session.attempt(self.fetch_values)
        self.session.attempt(read_where_sick, self.trace, snapshot)
        self.session.attempt(self.retention.check)

    def fetch_values(self) -> None:
        """Bring over the values that are still on a device."""
        self._fetched = fetch_pending(self.trace.values, self._fetched)

    # -- what is remembered of nodes and tensors

    def sweep(self) -> None:
        """Let go of what was stored on nodes that are gone."""
        for marks in (self.owners.made, self.scales, self.late_hooks):
            marks.sweep()

    def renumber(self, nodes: Mapping[int, int]) -> None:
        """Passes were dropped: the nodes that are left have new numbers (old → new)."""
        self.saved_tensors.room = ROOM
        self.numbering.renumber(nodes)
        self.late_hooks.forget()
        self._last_begun = 0
        self._fetched = 0  # values have moved up, also those that are still on a device

    def close(self) -> None:
        """End the passes that still run and leave no mark on any node."""
        for running_pass in reversed(list(self.session.passes)):
            self.end(running_pass)
        self.late_hooks.close()
        self.scales.close()
