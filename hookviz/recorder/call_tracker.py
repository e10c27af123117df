"""The module calls of a recording: which are running, in each thread, and what comes in and out of them."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from hookviz.autograd import module_tree
from hookviz.recorder.argument_probe import ArgumentProbe
from hookviz.recorder.call_log import CallLog
from hookviz.recorder.compiled_regions import is_recomputing
from hookviz.recorder.graph_owners import GraphOwners
from hookviz.recorder.module_call import Call, Module
from hookviz.recorder.module_filter import ModuleFilter
from hookviz.recorder.module_hooks import ModuleObserverRegistry
from hookviz.recorder.module_registry import ModuleRegistry
from hookviz.recorder.pass_sampler import outermost
from hookviz.recorder.pytree import arguments, leaves
from hookviz.recorder.session import Session
from hookviz.trace import CallRow

_ENCODER_LAYER = torch.nn.TransformerEncoderLayer.forward
"""Calls other modules, unless it takes the fast path."""


class CallTracker:
    """Follows the module calls of a recording as they begin and end. None of this may raise into the user's forward."""

    def __init__(self, session: Session, models: Sequence[Module], module_filter: ModuleFilter) -> None:
        self.session, self.trace, self.module_filter = session, session.trace, module_filter
        self.modules = ModuleRegistry(session.trace)
        self.owners = GraphOwners(session.trace, self.modules, module_filter)
        self.probe = ArgumentProbe(session.trace)
        self.log = CallLog(session, self.modules, self.probe)
        self.observers = ModuleObserverRegistry(session, self.innermost)
        self.followed = module_filter.modules
        """``id`` of each module that is followed; empty for all modules there are."""
        self._counts: Counter[int] = Counter()
        self._running: dict[int, list[Call]] = {}
        """The calls that run in each thread, the innermost last."""
        self._ran_compiled = False
        """Whether compiled code has run, in which calls are not seen."""
        self._given = [
            (self.modules.name(model), {id(module) for module in module_tree.all_modules(model)}) for model in models
        ]

    # -- a call begins and ends

    def begin(self, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """A module is called; observers stand around its hooks until ``end``. Where this raises, nothing is left."""
        stack = self._running.setdefault(threading.get_ident(), [])
        number, depth = self.modules.number(module), len(stack)
        things = list(arguments(module, args, kwargs))
        given, parameters = self.probe.measure(things), list(self.module_filter.parameters(module))
        call = Call(self.log, self.observers, module, len(self.trace.calls))
        try:
            self.observers.observe(module, call.stages)
            self._push(call, stack, number, things)
            self.owners.add_parameters(parameters, call.index)
            self.log.step("call", call.index, after=given, in_backward=call.backward)
        except BaseException:
            self.end(call, depth)
            raise
        return call

    def _push(self, call: Call, stack: list[Call], number: int, things: list[tuple[str, Any]]) -> None:
        """The call is the innermost one of its thread from now on."""
        call.earlier_exception = self.session.exceptions.enter()
        self._counts[number] += 1
        parent = stack[-1].index if stack else None
        if stack:
            stack[-1].children = True
        call.backward = not outermost()
        again = call.backward and is_recomputing()
        self.trace.calls.append(CallRow(number, self._counts[number], parent, again))
        if not stack:
            self.owners.made.given(thing for _, thing in things)
        stack.append(call)
        number = self.owners.made.note(call.index)
        call.since = number if parent is None else stack[0].since

    def returned(self, call: Call, result: Any) -> None:
        """The call returns ``result``."""
        if getattr(type(call.module), "forward", None) is _ENCODER_LAYER and not call.children:
            self.log.step("fast_path", call.index)
        hooked = bool(call.running)
        outputs = self.probe.measure(leaves("output", result), again=hooked) if hooked or not call.forwarded else []
        if not call.forwarded:
            call.forward(outputs)
        call.finish(outputs)
        self.owners.made.returned((thing for _, thing in leaves("output", result)), call.since)
        self.session.exceptions.leave(call.earlier_exception)

    def raised(self, call: Call, error: BaseException) -> None:
        """An exception leaves the call; a last hook that is always called has run by now."""
        call.fail(error)
        if call.broken:
            call.finish_always()

    def end(self, call: Call | None, depth: int) -> None:
        """A call is over, whatever happened: take its observers out. ``depth`` is how many calls are around it.

        A call that an interrupt kept from being observed, None, may have begun.
        """
        stack = self._running.get(threading.get_ident(), [])
        over = stack[depth:]
        if call is None and not over:
            return
        for one in (*over, *(() if call is None or call in over else (call,))):
            self.observers.release(one.stages)
        del stack[depth:]
        self.owners.made.note(stack[-1].index if stack else -1)

    # -- which calls are running

    def innermost(self) -> Call | None:
        """The call that is running in this thread."""
        stack = self._running.get(threading.get_ident())
        return stack[-1] if stack else None

    def depth(self) -> int:
        """How many calls are running in this thread."""
        return len(self._running.get(threading.get_ident(), ()))

    def busy(self) -> bool:
        """Whether a call is running, in any thread."""
        return any(self._running.values())

    # -- what happens while calls run

    def hook_registered(self, module: Module | None) -> None:
        """A forward hook was added to a module, or to all: a call that is running may be about to run it."""
        for call in self._running.get(threading.get_ident(), ()):
            if module is None or call.module is module:
                self.observers.observe(call.module, call.stages, "forward_hook")

    def compiled_region_begins(self, name: str) -> None:
        """A compiled region begins: called after the module that was compiled, or after its function."""
        self._ran_compiled = True
        call = self.innermost()
        index = -1 if call is None else call.index
        own = call is not None and (call.module._compiled_call_impl or hasattr(call.module, "_orig_mod"))
        self.log.step("compiled", index, region=self.trace.call(index) if own else name)
        self.observers.suspend_shared()

    def renumber(self, calls: Mapping[int, int], hooks: Mapping[int, int]) -> None:
        """Calls and hooks got new numbers (old → new); what is not among them is forgotten."""
        self.probe.forget_all()
        self.owners.renumber(calls)
        self.modules.renumber(hooks)

    def close(self) -> None:
        """Take out every observer there is, and forget the calls that still run in other threads."""
        called = self.modules.called()
        for name, modules in self._given if self.module_filter.patterns is None else ():
            if not modules & called:
                key = "note.uncalled.compiled" if self._ran_compiled else "note.uncalled"
                self.session.notes.say(key, model=name)
        self.module_filter.add_notes(self.session.notes, bool(called))
        self.observers.close()
        self._running.clear()
        self.owners.made.close()
