"""The module calls of a recording: which there are, what goes in and comes out, and which nodes they made."""

import threading
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.modules.module as torch_modules
from torch.autograd.graph import Node

from hookviz.autograd import graph, module_tree
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.autograd.tensor_statistics import measured
from hookviz.recorder.compiled_regions import ENOUGH, is_recomputing
from hookviz.recorder.exception_tracker import exception_text
from hookviz.recorder.fingerprint import fingerprint_of
from hookviz.recorder.hook_observer import Hook, HookDictObserver, release
from hookviz.recorder.module_call import Call, Module, ModuleHooksObserver
from hookviz.recorder.module_filter import ModuleFilter
from hookviz.recorder.module_registry import ModuleRegistry
from hookviz.recorder.node_owners import NodeOwners
from hookviz.recorder.pass_sampler import outermost
from hookviz.recorder.pytree import Leaf, arguments, leaves, row_of
from hookviz.recorder.session import Session
from hookviz.support.interrupts import Uninterrupted
from hookviz.trace import CallRow, StepRow
from hookviz.trace.value_rows import Deferred
from hookviz.trace.values import same

_LAYER = torch.nn.TransformerEncoderLayer.forward
"""Calls other modules, unless it takes the fast path."""
_SHARED = (torch_modules._global_forward_pre_hooks, torch_modules._global_forward_hooks)


class CallTracker:
    """Follows the modules of a recording. None of this may raise into the user's forward."""

    def __init__(self, session: Session, models: Sequence[Module], chosen: ModuleFilter) -> None:
        self.session, self.trace = session, session.trace
        self.modules = ModuleRegistry(session.trace)
        self._counts: Counter[int] = Counter()
        self._running: dict[int, list[Call]] = {}
        self._slept = False
        """Whether compiled code has run, in which calls are not seen."""
        self._stages: dict[int, ModuleHooksObserver] = {}
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], int, int]] = {}
        self.parameters: dict[int, int] = {}
        """``id`` of a parameter → the first call of its module."""
        self.chosen, self.follows = chosen, chosen.modules
        """``id`` of each module that is followed; empty for all modules there are."""
        self.makers = NodeOwners(marking=bool(self.follows))
        self._given = [
            (self.modules.name(model), {id(module) for module in module_tree.modules(model)}) for model in models
        ]

    # -- a call begins and ends

    def begin(self, module: Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        """A module is called; observers stand around its hooks until ``end``. Where this raises, nothing is left."""
        stack = self._running.setdefault(threading.get_ident(), [])
        number, depth = self.modules.number(module), len(stack)
        things = list(arguments(module, args, kwargs))
        given, parameters = self.look(things), list(self.chosen.parameters(module))
        call = Call(self, module, len(self.trace.calls))
        try:
            self._lay(call)
            self._begin(call, stack, number, things)
            for parameter in parameters:
                self.parameters.setdefault(id(parameter), call.index)
            self.log("call", call.index, after=given, in_backward=call.backward)
        except BaseException:
            self.end(call, depth)
            raise
        return call

    def _begin(self, call: Call, stack: list[Call], number: int, things: list[tuple[str, Any]]) -> None:
        """The call is the innermost one of its thread from now on."""
        call.raised = self.session.raised.enter()
        self._counts[number] += 1
        parent = stack[-1].index if stack else None
        if stack:
            stack[-1].children = True
        call.backward = not outermost()
        again = call.backward and is_recomputing()
        self.trace.calls.append(CallRow(number, self._counts[number], parent, again))
        if not stack:
            self.makers.given(thing for _, thing in things)
        stack.append(call)
        number = self.makers.note(call.index)
        call.since = number if parent is None else stack[0].since

    def returned(self, call: Call, result: Any) -> None:
        """The call returns ``result``."""
        if getattr(type(call.module), "forward", None) is _LAYER and not call.children:
            self.log("fast_path", call.index)
        hooked = bool(call.running)
        outputs = self.look(leaves("output", result), again=hooked) if hooked or not call.forwarded else []
        if not call.forwarded:
            call.forward(outputs)
        call.finish(outputs)
        self.makers.returned((thing for _, thing in leaves("output", result)), call.since)
        self.session.raised.leave(call.raised)

    def broke(self, call: Call, error: BaseException) -> None:
        """An exception leaves the call; a last hook that is always called has run by now."""
        self.failed(call, error)
        if call.broken:
            call.finish_always()

    def failed(self, call: Call, error: BaseException, hook: int | None = None) -> None:
        """An exception came up in the call; only the innermost call that it leaves tells of it."""
        if self.session.raised.first(error):
            hook = call.raiser(error) if hook is None else hook
            kind = "cut_short" if isinstance(error, ENOUGH) else "exception"
            self.log(kind, call.index, hook=hook, error=exception_text(error))

    def end(self, call: Call | None, depth: int) -> None:
        """Take the observers off, whatever happened; so many calls are around it.

        One that an interrupt kept from being observed may have begun.
        """
        stack = self._running.get(threading.get_ident(), [])
        over = stack[depth:]
        if call is None and not over:
            return
        for one in (*over, *(() if call is None or call in over else (call,))):
            self._lift(one)
        del stack[depth:]
        self.makers.note(stack[-1].index if stack else -1)

    def _lift(self, call: Call) -> None:
        with Uninterrupted() if call.stages else nullcontext():
            release(call.stages, self._stages)

    def close(self) -> None:
        """Take off every observer there is, and forget the calls that still run in other threads."""
        called = self.modules.called()
        for name, modules in self._given if self.chosen.patterns is None else ():
            if not modules & called:
                key = "note.uncalled.compiled" if self._slept else "note.uncalled"
                self.session.notices.say(key, model=name)
        self.chosen.tell(self.session.notices, bool(called))
        for stage in self._stages.values():
            stage.lift()
        self._stages.clear()
        self._running.clear()
        self.makers.close()

    def compiled(self, name: str) -> None:
        """A compiled region begins: called after the module that was compiled, or after its function."""
        self._slept = True
        call = self.innermost()
        index = -1 if call is None else call.index
        own = call is not None and (call.module._compiled_call_impl or hasattr(call.module, "_orig_mod"))
        self.log("compiled", index, region=self.trace.call(index) if own else name)
        for stage in self._stages.values():
            if stage.shared:  # the hooks of all modules are compiled with the region, and so would observers be
                stage.lift()

    def resumed(self) -> None:
        """A compiled region has ended: the hooks of all modules are observed again."""
        for stage in self._stages.values():
            if stage.shared:
                stage.lay()

    def innermost(self) -> Call | None:
        """The call that is running in this thread."""
        stack = self._running.get(threading.get_ident())
        return stack[-1] if stack else None

    def depth(self) -> int:
        """How many calls are running in this thread."""
        return len(self._running.get(threading.get_ident(), ()))

    def registered(self, module: Module | None) -> None:
        """A forward hook was added to a module, or to all: a call that is running may be about to run it."""
        for call in self._running.get(threading.get_ident(), ()):
            if module is None or call.module is module:
                self._lay(call, "forward_hook")

    def removed(self, hooks: Any) -> None:
        """A hook was taken out of a dict: another may be the last one now."""
        if id(hooks) in self._stages:
            with Uninterrupted():
                self._stages[id(hooks)].open_end()

    def unseen(self, module: Module) -> list[Hook]:
        """The forward hooks of a module, and of all, that were added while it ran and that nobody told of."""
        dicts = [torch_modules._global_forward_hooks, module._forward_hooks]
        hooks = [hook for own in dicts if id(own) not in self._stages for hook in own.values()]
        return [hook for hook in hooks if not HookDictObserver.observes(hook)]

    def _lay(self, call: Call, *kinds: str) -> None:
        module: Any = call.module
        shared: Any = torch_modules
        if module._compiled_call_impl is not None:  # its hooks are compiled with it, and so would observers be
            return
        for kind, hooks, flags in (
            ("forward_pre_hook", shared._global_forward_pre_hooks, (None, None)),
            ("forward_pre_hook", module._forward_pre_hooks, (module._forward_pre_hooks_with_kwargs, None)),
            (
                "forward_hook",
                shared._global_forward_hooks,
                (shared._global_forward_hooks_with_kwargs, shared._global_forward_hooks_always_called),
            ),
            (
                "forward_hook",
                module._forward_hooks,
                (module._forward_hooks_with_kwargs, module._forward_hooks_always_called),
            ),
        ):
            if hooks and kind in (kinds or (kind,)):
                with Uninterrupted():
                    self._observe(call, kind, hooks, flags)

    def _observe(self, call: Call, kind: str, hooks: Any, flags: tuple[Any, ...]) -> None:
        stage = self._stages.get(id(hooks))
        if stage is not None and not stage.user_hooks():
            stage.lift()  # torch takes another way where there is no hook at all
            return
        if stage is None:
            shared = any(hooks is known for known in _SHARED)
            stage = self._stages[id(hooks)] = ModuleHooksObserver(self, kind, hooks, flags, shared)
        if stage not in call.stages:
            stage.users += 1
            call.stages.append(stage)
        stage.lay()

    # -- who made a node

    def claim(self, survey: GraphSnapshot) -> None:
        """Note which call made each node of a graph; a leaf's node belongs to the module whose parameter it is."""
        owners = self.owners(survey.nodes) if self.trace.calls else {}
        for node in survey.nodes if owners else ():
            if id(node) in owners:
                self.trace.owners[survey.numbers[id(node)]] = owners[id(node)]

    def adopt(self, module: Module, leaf: torch.Tensor) -> None:
        """``leaf`` stands for a parameter of ``module`` while it computes: it belongs to the first call of that."""
        if id(leaf) in self.parameters:
            return
        number = self.modules.known(module)
        first = next((index for index, call in enumerate(self.trace.calls) if call.module == number), None)
        if first is not None:
            self.parameters[id(leaf)] = first

    def chosen_of(self, nodes: Sequence[Node]) -> set[int]:
        """``id`` of each node that belongs to what is followed."""
        return {*self.owners(nodes), *self.chosen.leaves(nodes)}

    def owners(self, nodes: Sequence[Node]) -> dict[int, int]:
        """``id`` of a node → the call that it belongs to, for those that belong to one."""
        leaves = {id(node): leaf for node in nodes if (leaf := graph.leaf_of(node)) is not None}
        known = {key: self.parameters[id(leaf)] for key, leaf in leaves.items() if id(leaf) in self.parameters}
        return {**known, **self.makers.owners(nodes)}

    def call_of(self, module: Module, node: int) -> int:
        """The call that made ``node``, one of the two at which a module's full backward hooks run.

        A call from before the recording has the number 0.
        """
        number = self.modules.number(module)
        owner = self.trace.owners.get(node)
        if owner is not None and self.trace.calls[owner].module == number:
            return owner
        self.trace.calls.append(CallRow(number, 0, None, False))
        self.trace.owners[node] = len(self.trace.calls) - 1
        return self.trace.owners[node]

    def forget(self, tensor: torch.Tensor) -> None:
        """What was seen of ``tensor`` is measured again."""
        self._known.pop(id(tensor), None)

    def busy(self) -> bool:
        """Whether a call is running, in any thread."""
        return any(self._running.values())

    def renumber(self, calls: Mapping[int, int], hooks: Mapping[int, int]) -> None:
        """Calls and hooks got new numbers (old → new); what is not among them is forgotten."""
        self._known.clear()
        self.parameters = {key: calls[call] for key, call in self.parameters.items() if call in calls}
        self.makers.renumber(calls)
        self.modules.renumber(hooks)

    # -- writing down

    def log(self, kind: str, call: int, before: Any = None, after: Any = None, **known: Any) -> None:
        """Add a step; a forward belongs to the pass that will come next."""
        labels = (_labels(before), _labels(after))
        values = {"before": _values(before), "after": _values(after), "labels": labels}
        self.trace.rows.append(StepRow(len(self.trace.roots), kind, call=call, **values, **known))

    def hook(self, stage: HookDictObserver, entry: tuple[Any, Hook], call: int) -> int:
        """The number of a module's forward hook in the trace."""
        shared = isinstance(stage, ModuleHooksObserver) and stage.shared
        return self.modules.hook(stage.kind, self.trace.calls[call].module, entry[0], entry[1], shared=shared)

    def look(self, things: Iterable[tuple[str, Any]], *, again: bool = False) -> list[Leaf]:
        """What is there now; a tensor that nobody wrote to since it was seen is measured ``again`` only if asked for.

        A hook may write past torch, through ``.data`` or numpy, and then no version tells.
        """
        return [self._leaf(label, thing, again) for label, thing in things]

    def _leaf(self, label: str, thing: Any, again: bool) -> Leaf:
        if not isinstance(thing, torch.Tensor):
            return Leaf(label, None, id(thing), self._keep(row_of(thing)))
        glimpse = fingerprint_of(thing)
        reference, version, value = self._known.get(id(thing), (None, 0, 0))
        seen = reference is not None and reference() is thing and version == glimpse.mark[1]
        if not seen or again or glimpse.layout is None:
            row = measured(thing, self.trace.statistics)
            if not seen or isinstance(row, Deferred) or not same(self.trace.values[value], row):
                value = self._keep(row)
            self._known[id(thing)] = (weakref.ref(thing), glimpse.mark[1], value)
        glimpse.value = value
        return Leaf(label, glimpse, id(thing), value)

    def _keep(self, row: Any) -> int:
        self.trace.values.append(row)
        return len(self.trace.values) - 1

    def effect(self, before: list[Leaf], after: list[Leaf]) -> str:
        """What a hook must have done: kept, edited or replaced."""
        if [leaf.label for leaf in before] != [leaf.label for leaf in after]:
            return "replaced"
        effects = {self._effect(*pair) for pair in zip(before, after, strict=True)}
        return next(effect for effect in ("replaced", "edited", "kept") if effect in {*effects, "kept"})

    def _effect(self, before: Leaf, after: Leaf) -> str:
        alike = same(self.trace.values[before.value], self.trace.values[after.value])
        if before.glimpse is None or after.glimpse is None:
            return "kept" if before.glimpse is after.glimpse and alike else "replaced"
        if before.identity != after.identity:
            return "replaced"
        return "kept" if alike and before.glimpse.mark == after.glimpse.mark else "edited"


def _labels(seen: list[Leaf] | None) -> tuple[str, ...]:
    return tuple([leaf.label for leaf in seen]) if seen else ()


def _values(seen: list[Leaf] | None) -> Any:
    if seen is None:
        return None
    return seen[0].value if len(seen) == 1 else tuple(leaf.value for leaf in seen)
