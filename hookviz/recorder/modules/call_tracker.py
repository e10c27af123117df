"""Tracks the module calls of a recording: which ones run in each thread, their arguments and outputs."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from hookviz.autograd import module_tree
from hookviz.recorder.follower import Followers
from hookviz.recorder.modules.arguments import ArgumentProbe, labelled_arguments, labelled_leaves, list_edited_values
from hookviz.recorder.modules.compiled_runs import CompiledRuns
from hookviz.recorder.modules.followed_modules import FollowedModules
from hookviz.recorder.modules.graph_owners import GraphOwners
from hookviz.recorder.modules.module_call import CallLog, Module, ModuleCall
from hookviz.recorder.modules.module_hooks import ModuleObserverRegistry
from hookviz.recorder.modules.module_registry import ModuleRegistry, SharedPaths
from hookviz.recorder.modules.tensor_flow import Sources, TensorFlow
from hookviz.recorder.nonfinite_values import NonfiniteParameters
from hookviz.recorder.session import Session, is_outermost
from hookviz.recorder.torch.compiled_regions import RegionSwitch, is_recomputing
from hookviz.recorder.torch.grad_modes import grad_mode, is_transformed, requires_grad
from hookviz.support.user_objects import own_attributes
from hookviz.trace import CallRow

_ENCODER_LAYER = torch.nn.TransformerEncoderLayer.forward
"""This ``forward`` calls other modules unless it takes the fast path."""


class CallTracker:
    """Follows module calls from begin to end. None of its methods may raise into the user's forward."""

    def __init__(self, session: Session, models: Sequence[Module], followers: Followers) -> None:
        self.session, self.trace = session, session.trace
        self.followed = FollowedModules(models)
        self.followers = followers
        self.modules = ModuleRegistry(session.trace, models)
        self.owners = GraphOwners(session.trace, self.modules, self.followed)
        self.probe = ArgumentProbe(session.trace)
        self.nonfinite = NonfiniteParameters(session.trace, self.modules)
        self.log = CallLog(session, self.modules, self.probe, self.owners.outputs)
        self.observers = ModuleObserverRegistry(session, self.innermost)
        self.shared = SharedPaths(session.trace, self.modules)
        self.flow = TensorFlow()
        self._counts: Counter[int] = Counter()
        self._running: dict[int, list[ModuleCall]] = {}
        """The running calls of each thread, the innermost last."""
        self.compiled = CompiledRuns(session.trace, self.modules)
        self._models = [
            (self.modules.name_model(model), {id(module) for module in module_tree.all_modules(model)})
            for model in models
        ]

    # -- a call begins and ends

    def begin(self, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ModuleCall:
        """Begin a call of ``module``: put observers around its hooks, until ``end`` removes them.

        If this raises, it leaves nothing behind.
        """
        stack = self._running.setdefault(threading.get_ident(), [])
        number, depth = self.modules.number(module), len(stack)
        if not depth:
            self.session.limit_statistics()
        labelled = list(labelled_arguments(module, args, kwargs))
        measured = self.probe.measure(labelled)
        parameters = [parameter for _, parameter in module_tree.own_parameters(module)]
        call = ModuleCall(self.log, self.observers, module, len(self.trace.calls))
        call.given = measured
        try:
            self.observers.observe(module, call.dict_observers)
            self._push(call, stack, number, labelled)
            self.owners.add_parameters(parameters, call.index)
            self.log.add_step("call", call.index, after=measured)
        except BaseException:
            self.end(call, depth)
            raise
        return call

    def _push(self, call: ModuleCall, stack: list[ModuleCall], number: int, labelled: list[tuple[str, Any]]) -> None:
        """Make ``call`` the innermost call of its thread."""
        call.earlier_exception = self.session.exceptions.enter()
        self._counts[number] += 1
        parent = stack[-1].index if stack else None
        if stack:
            stack[-1].has_children = True
        call.in_backward = not is_outermost()
        recomputed = call.in_backward and is_recomputing()
        row = CallRow(
            number,
            self._counts[number],
            parent,
            recomputed,
            grad_mode(),
            transformed=is_transformed(),
            evaluates=own_attributes(call.module).get("training") is False,
        )
        items = [item for _, item in labelled]
        takes_grad = None if row.transformed else requires_grad(items)
        sources = self.flow.find_sources(items) if self._follows_tensors(call, row) else Sources()
        row = self.shared.add_path(row, call.module, stack[-1].module if stack else None)
        self.trace.calls.append(row._replace(takes_grad=takes_grad, fed_by=sources.calls, cut_from=sources.cut_calls))
        self.followers.tell("call_written", call.index, call.module)
        if self._follows_tensors(call, row):
            self.followers.tell("call_takes", call.index, items)
        stack.append(call)
        self.owners.node_owners.note_call(call.index)

    def _follows_tensors(self, call: ModuleCall, row: CallRow) -> bool:
        """Return whether the tensors of a call tell where they are from.

        In a transform they are wrapped. The gradients of a pass are left alone.
        """
        return not call.in_backward and not row.transformed

    def call_returned(self, call: ModuleCall, result: Any) -> None:
        """Record that ``call`` returns ``result``."""
        if getattr(type(call.module), "forward", None) is _ENCODER_LAYER and not call.has_children:
            self.log.add_step("fast_path", call.index)
        in_hooks = bool(call.running)
        outputs = (
            self.probe.measure(labelled_leaves("output", result), again=in_hooks)
            if in_hooks or not call.forward_logged
            else []
        )
        if not call.forward_logged:
            call.log_forward(outputs)
            if self.depth() == 1:
                self.session.attempt(
                    self.nonfinite.check, call.module, call.index, [leaf.value for leaf in call.given], outputs
                )
        call.finish_hooks(outputs)
        labelled = list(labelled_leaves("output", result))
        self.owners.outputs.note(call.index, labelled)
        items = [item for _, item in labelled]
        self.followers.tell("call_returned", len(self.trace.rows) - 1, items)
        self._note_result(call, result, items)
        if self._follows_tensors(call, self.trace.calls[call.index]):
            self.flow.note(call.index, items)
            edits = list_edited_values(call.given, items)
            if edits:
                self.trace.calls[call.index] = self.trace.calls[call.index]._replace(edits=edits)
        self.session.exceptions.leave(call.earlier_exception)

    def _note_result(self, call: ModuleCall, result: Any, items: Sequence[Any]) -> None:
        """Note whether what a call returned requires grad, and its class if torch runs no backward hooks there."""
        returned = None if issubclass(type(result), (torch.Tensor, tuple)) else type(result).__name__
        row = self.trace.calls[call.index]
        gives_grad = None if row.transformed else requires_grad(items)
        is_without_graph = gives_grad is False and row.mode == "grad" and not row.takes_grad
        frozen = is_without_graph and not requires_grad(module_tree.all_parameters(call.module))
        self.trace.calls[call.index] = row._replace(gives_grad=gives_grad, returned=returned, frozen=frozen)

    def count_calls(self, number: int) -> int:
        """Return how often the module with this number was called in the whole recording."""
        return self._counts[number]

    def call_raised(self, call: ModuleCall, error: BaseException) -> None:
        """Record that an exception leaves the call. Hooks with ``always_call=True`` have run by now."""
        call.log_exception(error)
        if call.is_failing:
            call.finish_always_called()

    def end(self, call: ModuleCall | None, depth: int) -> None:
        """End a call, however it ended: remove its observers. ``depth`` is the number of calls around it.

        ``call`` is None if an interrupt came before it was returned; it may have begun all the same.
        """
        stack = self._running.get(threading.get_ident(), [])
        ended_calls = stack[depth:]
        if call is None and not ended_calls:
            return
        for ended in (*ended_calls, *(() if call is None or call in ended_calls else (call,))):
            self.observers.release(ended.dict_observers)
        del stack[depth:]
        self.owners.node_owners.note_call(stack[-1].index if stack else -1)

    # -- which calls are running

    def innermost(self) -> ModuleCall | None:
        """Return the innermost running call of this thread, or None."""
        stack = self._running.get(threading.get_ident())
        return stack[-1] if stack else None

    def depth(self) -> int:
        """Return the number of running calls in this thread."""
        return len(self._running.get(threading.get_ident(), ()))

    def is_busy(self) -> bool:
        """Return whether a call is running in any thread."""
        return any(self._running.values())

    # -- what happens while calls run

    def hook_registered(self, module: Module | None) -> None:
        """Observe a forward hook that was just added to ``module``, or to all modules (None).

        A call that is running may be about to run it.
        """
        for call in self._running.get(threading.get_ident(), ()):
            if module is None or call.module is module:
                self.observers.observe(call.module, call.dict_observers, "forward_hook")

    def compiled_region_begins(self, region: RegionSwitch) -> None:
        """Record that a compiled region begins."""
        call = self.innermost()
        name = self.compiled.begin(region, call)
        self.log.add_step("compiled", None if call is None else call.index, region=name)
        self.observers.suspend()

    def renumber(self, calls: Mapping[int, int], hooks: Mapping[int, int]) -> None:
        """Renumber calls and hooks (old → new), and forget those that are not in the mappings."""
        self.probe.forget_all()
        self.owners.renumber(calls)
        self.modules.renumber(hooks)
        self.flow.renumber(calls)

    def close(self) -> None:
        """Remove all observers, and note models that were never called."""
        called = self.modules.called_ids
        for name, modules in self._models:
            if not modules & called and not self.session.notes.has("profiled"):
                self.session.notes.say("uncalled.compiled" if self.compiled.names else "uncalled", model=name)
        if self.followed.outer is not None:
            self.session.notes.say("part", outer=self.followed.outer)
        self.observers.close()
        self.flow.clear()
        self._running.clear()
