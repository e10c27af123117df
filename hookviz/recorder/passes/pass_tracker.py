"""Tracks the backward passes of a recording.

Observers are put into the graph before each pass and removed after it.
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any

import torch

from hookviz.autograd import graph, variable_names
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.node_numbering import NodeNumbers
from hookviz.autograd.tensor_statistics import fetch_pending, hidden_from_tools
from hookviz.autograd.torch_internals import DisableTorchFunction, next_sequence_number, saved_tensor_hooks
from hookviz.recorder.fingerprint import Gradients
from hookviz.recorder.follower import Followers, PassStart
from hookviz.recorder.followers.distributed import RankTracker
from hookviz.recorder.modules.call_tracker import CallTracker
from hookviz.recorder.nonfinite_values import measure_unread_leaves
from hookviz.recorder.passes.node_observers import NodeObservers
from hookviz.recorder.passes.observer_registry import LateHooks, ObserverRegistry
from hookviz.recorder.passes.pass_observer import SMALL_GRAPH, RunningPass
from hookviz.recorder.passes.saved_tensors import SavedTensors
from hookviz.recorder.session import Session, is_outermost
from hookviz.recorder.torch.compiled_regions import is_backward_compiled
from hookviz.support.interpreter import Uninterrupted, gc_paused
from hookviz.trace import Note


def _describe_unobserved(error: Exception) -> Note:
    """Return the note about a pass that runs unobserved because of this exception."""
    if isinstance(error, graph.TooDeep):
        return Note.of("trace.deep", deepest=f"{graph.MAX_DEPTH:,}")
    return Note.of("trace.trouble", error=f"{type(error).__name__}: {error}")


class PassTracker:
    """Observes each backward pass from begin to end. None of its methods may raise."""

    def __init__(
        self,
        session: Session,
        names: Mapping[str, torch.Tensor],
        calls: CallTracker,
        ranks: RankTracker,
        followers: Followers,
    ) -> None:
        self.session, self.trace, self.names = session, session.trace, names
        self.calls, self.owners, self.followed = calls, calls.owners, calls.followed
        self.ranks, self.followers = ranks, followers
        self.numbering, self.saved_tensors = NodeNumbers(session.trace), SavedTensors()
        self.observers = ObserverRegistry(session, calls.owners)
        self.late_hooks = LateHooks(self.observers, session.passes)
        self.packs_saved_tensors = saved_tensor_hooks(True) is not None
        """Whether hooks may pack the tensors that nodes save."""
        self._fetched = 0
        """Number of values at the start of the trace that are no longer on a device."""
        self._last_begun = 0
        """Number of steps when the last pass began."""
        self._first_node: int = next_sequence_number()
        """Sequence number of the first node of which all hooks were seen: made since the recording began."""
        self._next_node = self._first_node
        """Sequence number of the first node that could be made since the last pass began."""

    # -- a pass begins

    def begin(self, roots: Sequence[Any], gradients: Gradients, *flags: Any, **named: Any) -> RunningPass | None:
        """Put observers into the graph below ``roots``; return None if the pass has to run unobserved."""
        self._end_interrupted()
        if not self.session.sampler.begin():
            return None
        if is_backward_compiled():
            self.session.note_unobserved(Note.of("trace.compiled"))
            return None
        inputs = flags[2] if len(flags) > 2 else named.get("inputs", ())
        running_pass = None
        try:
            with Uninterrupted(), self.session.lock:
                running_pass = self._open_pass(roots, gradients, inputs or ())
        except BaseException:
            if running_pass is not None:
                self.end(running_pass)
            raise
        return running_pass

    def _end_interrupted(self) -> None:
        """End a pass of this thread that an interrupt has kept from being ended, before the next pass begins."""
        if self.session.passes and is_outermost():
            here = threading.get_ident()
            for running_pass in [one for one in self.session.passes if one.thread == here]:
                self.end(running_pass)

    def _open_pass(self, roots: Sequence[Any], gradients: Gradients, inputs: Sequence[Any]) -> RunningPass | None:
        node_observers = NodeObservers(self.session, self.observers, self.late_hooks)
        running_pass = RunningPass(self.trace, self.owners, self.numbering, node_observers)
        self.trace.pass_numbers.append(self.session.sampler.pass_count)
        if is_outermost():
            self.session.last_pass = running_pass.snapshot.pass_id
            self.session.limit_statistics()
        # Forward steps get the number of the next pass as soon as the previous pass has begun.
        running_pass.snapshot.first_row, self._last_begun = self._last_begun, len(self.trace.rows)
        running_pass.earlier_exception = self.session.exceptions.enter()
        self.followers.tell("pass_opened", running_pass.snapshot.pass_id)
        try:
            with DisableTorchFunction(), hidden_from_tools(), self._gc_paused_if_large(running_pass):
                self._observe_graph(running_pass, roots, gradients, inputs)
        except Exception as error:
            self.end(running_pass)
            self.session.report_unobserved(_describe_unobserved(error))
            return None
        except BaseException:
            self.end(running_pass)
            raise
        return running_pass

    def _gc_paused_if_large(self, running_pass: RunningPass) -> AbstractContextManager[None]:
        """Pause the garbage collector while a pass with many nodes begins; their sequence numbers tell how many."""
        next_node: int = next_sequence_number()
        running_pass.is_large, self._next_node = next_node - self._next_node > SMALL_GRAPH, next_node
        return gc_paused() if running_pass.is_large else nullcontext()

    def _observe_graph(
        self, running_pass: RunningPass, roots: Sequence[Any], gradients: Gradients, inputs: Sequence[Any]
    ) -> None:
        """Write the graph into the trace, install the observers, and record the seeds."""
        snapshot, observer = running_pass.snapshot, running_pass.observer
        self.session.notes.add_saved_tensor_hooks()
        names = self._tensor_names()
        select = self.owners.followed_nodes if self.followed.are_part else None
        places = snapshot.capture(roots, names, select)
        self.followers.tell("pass_begins", PassStart(running_pass, roots, names, inputs))
        self.late_hooks.mark_retained(snapshot)
        observer.on_accumulate = partial(self.followers.tell, "accumulated")
        observer.checks_each_gradient = len(snapshot.nodes) <= SMALL_GRAPH
        self.session.attempt(self.saved_tensors.capture, snapshot)
        self.owners.write_owners(snapshot)
        self._observe_hooks(running_pass)
        self.session.passes.append(running_pass)
        self.session.passes.nodes_got_hooks = False
        running_pass.inputs = [snapshot.place_of_input(target) for target in inputs]
        if running_pass.inputs:
            observer.targets = [place for place in running_pass.inputs if place is not None]
        for place, gradient in zip(places, gradients, strict=False):
            if place is not None:
                observer.seed(place, gradient)

    def _observe_hooks(self, running_pass: RunningPass) -> None:
        """Put observers between the hooks of tensors, behind the nodes, and between the hooks of modules."""
        snapshot = running_pass.snapshot
        unknown = self._may_have_unknown_hooks(snapshot)
        for hook_dict in snapshot.tensor_hook_dicts(self.late_hooks.dicts, search=unknown or self.packs_saved_tensors):
            self.observers.observe(running_pass, *hook_dict)
        for hook in snapshot.unpack_hooks.values():
            self.session.notes.add_packing_hook(hook)
        everywhere = unknown or self._cannot_eliminate_nodes(snapshot)
        running_pass.node_observers.install(running_pass, everywhere=everywhere)
        self.observers.observe_modules(running_pass)

    def _tensor_names(self) -> dict[str, torch.Tensor]:
        """Return name → tensor, from the given names, the modules' parameters and the caller's variables."""
        variables = variable_names.tensor_variables(variable_names.caller_frame())
        # The first of two names for one tensor counts, and the first of two tensors with one name. A loop over all
        # parameters leaves a variable behind that holds the last of them: the name from the module is better.
        names = dict(self.names)
        for source in (self.ranks.gathered_parameters(), self.calls.modules.named_parameters(), variables):
            for name, tensor in source.items():
                names.setdefault(name, tensor)
        return names

    def _may_have_unknown_hooks(self, snapshot: GraphSnapshot) -> bool:
        """Return whether hooks may have been registered unseen, before the recording or in a pass left out."""
        return snapshot.lowest_sequence < self._first_node or self.session.sampler.every > 1

    def _cannot_eliminate_nodes(self, snapshot: GraphSnapshot) -> bool:
        """Return whether elimination cannot find a failing node.

        That is so if not all nodes are observed, or if several run at once.
        """
        on_devices: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        return len(snapshot.nodes) < len(snapshot.all_nodes) or on_devices or self.ranks.is_distributed()

    # -- a pass ends

    def pass_returned(self, running_pass: RunningPass, gradients: Any) -> None:
        """Record that the pass has returned; the result of ``autograd.grad`` is ``gradients``."""
        self.session.exceptions.leave(running_pass.earlier_exception)
        self.session.guard(self.followers.tell, "pass_returned")
        inputs = running_pass.inputs
        if inputs and isinstance(gradients, tuple) and len(gradients) == len(inputs):
            self.session.guard(running_pass.observer.log_returned, inputs, gradients)

    def pass_raised(self, running_pass: RunningPass, error: BaseException) -> None:
        """Record that the pass has raised ``error``. The last step names the hook or node that did."""
        with suppress(Exception), self.session.lock:
            if self.session.exceptions.is_new(error):
                running_pass.observer.log_failure(error)
            else:
                running_pass.observer.note_unreported_failure()

    def end(self, running_pass: RunningPass) -> None:
        """Remove all observers of this pass and release its nodes."""
        with Uninterrupted(), self.session.lock, gc_paused() if running_pass.is_large else nullcontext():
            running_pass.node_observers.uninstall()
            self.observers.release(running_pass)
            running_pass.snapshot.release()
            running_pass.resume()
            if running_pass in self.session.passes:
                self.session.passes.remove(running_pass)
        self.session.guard(self._after_pass, running_pass.snapshot)

    def _after_pass(self, snapshot: GraphSnapshot) -> None:
        self.session.attempt(self.fetch_values)
        self.session.attempt(measure_unread_leaves, self.trace, snapshot)
        self.followers.tell("pass_ended", snapshot)
        self.followers.tell("rows_may_move", False)

    # -- values, and the end of the recording

    def fetch_values(self) -> None:
        """Fetch the values that are still on a device."""
        self._fetched = fetch_pending(self.trace.values, self._fetched)

    def renumber(self, nodes: Mapping[int, int]) -> None:
        """Renumber the nodes (old → new), because passes were dropped."""
        self.saved_tensors.renew()
        self.numbering.renumber(nodes)
        self._last_begun = self._fetched = 0  # values moved, including those that are still on a device

    def close(self) -> None:
        """End the passes that still run, and remove all marks from nodes."""
        for running_pass in reversed(list(self.session.passes)):
            self.end(running_pass)
        self.late_hooks.dicts.clear()
