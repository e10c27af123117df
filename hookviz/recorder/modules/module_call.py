"""One running module call, to which the observers between its hooks report, and the steps that it writes.

The hooks on the graph of a pass have their classes in ``hookviz.recorder.passes.hook_kinds``.
"""

import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import torch

from hookviz.autograd.torch_internals import StopRecomputation
from hookviz.recorder.exception_tracker import describe_exception, exception_text
from hookviz.recorder.hook_observer import Hook, HookDictObserver, HookIteration, Observer
from hookviz.recorder.modules.arguments import ArgumentProbe, PytreeLeaf, labelled_arguments, labelled_leaves
from hookviz.recorder.modules.graph_owners import ModuleOutputs
from hookviz.recorder.modules.module_hooks import ModuleHooksObserver, ModuleObserverRegistry
from hookviz.recorder.modules.module_registry import ModuleRegistry
from hookviz.recorder.session import Session, is_outermost
from hookviz.recorder.torch.compiled_regions import is_restoring_saved_tensors
from hookviz.recorder.torch.grad_modes import requires_grad
from hookviz.trace import HookPlace, StepKind, StepRow


class CallLog:
    """Writes the events of module calls as steps, which refer to values and hooks by number."""

    def __init__(self, session: Session, modules: ModuleRegistry, probe: ArgumentProbe, outputs: ModuleOutputs) -> None:
        self.session, self.trace, self.modules, self.probe = session, session.trace, modules, probe
        self.outputs = outputs

    def add_step(
        self,
        kind: StepKind,
        call: int | None,
        before: Sequence[PytreeLeaf] | None = None,
        after: Sequence[PytreeLeaf] | None = None,
        **more: Any,
    ) -> None:
        """Add a step. A forward step belongs to the next pass, unless the running one needs it again."""
        labels = (_leaf_labels(before), _leaf_labels(after))
        values = {"before": _value_numbers(before), "after": _value_numbers(after), "labels": labels}
        self.trace.rows.append(StepRow(self._find_pass(), kind, call=call, **values, **more))

    def note_forward(self, call: int, items: Sequence[Any]) -> None:
        """Note whether what a forward returned requires grad, before a hook replaces it."""
        row = self.trace.calls[call]
        if not row.transformed:
            self.trace.calls[call] = row._replace(forward_grad=requires_grad(items))

    def _find_pass(self) -> int:
        running = None if is_outermost() or not is_restoring_saved_tensors() else self.session.passes.current()
        return len(self.trace.roots) if running is None else running.number

    def hook_number(self, dict_observer: HookDictObserver, entry: tuple[Any, Hook], call: int) -> int:
        """Return the number of a module's forward hook in the trace."""
        shared = isinstance(dict_observer, ModuleHooksObserver) and dict_observer.shared
        return self.modules.hook_number(
            dict_observer.kind, self.trace.calls[call].module, entry[0], entry[1], shared=shared
        )

    def add_exception(self, call: int, error: BaseException, hook: int | None) -> None:
        """Add a step for ``error``, which was raised in a call, in ``hook`` if that is known.

        Checkpointing ends calls early with an exception that it catches; such a step has the kind "cut_short".
        """
        if isinstance(error, StopRecomputation):
            self.add_step("cut_short", call, hook=hook, error=exception_text(error))
        else:
            self.add_step("exception", call, hook=hook, **describe_exception(error))


def _leaf_labels(leaves: Sequence[PytreeLeaf] | None) -> tuple[str, ...]:
    return tuple([leaf.label for leaf in leaves]) if leaves else ()


def _value_numbers(leaves: Sequence[PytreeLeaf] | None) -> Any:
    if leaves is None:
        return None
    return leaves[0].value if len(leaves) == 1 else tuple(leaf.value for leaf in leaves)


Module = torch.nn.Module


class ModuleCall:
    """One call of a module, while it runs."""

    def __init__(self, log: CallLog, observers: ModuleObserverRegistry, module: Module, index: int) -> None:
        self.log, self.observers, self.module, self.index = log, observers, module, index
        self.dict_observers: list[ModuleHooksObserver] = []
        self.running: dict[HookDictObserver, HookIteration[PytreeLeaf]] = {}
        self.copied_hooks: dict[HookDictObserver, list[tuple[Any, Hook]]] = {}
        """The entries that torch copied out of a module's own dict along with the global hooks, which run first."""
        self.given: list[PytreeLeaf] = []
        """Its arguments as they were when it began."""
        self.in_backward = False
        """Whether the call began during a backward pass."""
        self.forward_logged = False
        """Whether the forward step has been written."""
        self.handled_exception = sys.exception()
        """The exception that was being handled when the call began. It has nothing to do with the call."""
        self.earlier_exception: int | None = None
        """The exception that was propagating when the call began, for ``ExceptionTracker.leave``."""
        self.has_children = False
        """Whether it has called other modules."""
        self.is_failing = False
        """Whether an exception is propagating, so that torch runs only the hooks with ``always_call=True``."""

    # -- what the observers report

    def enter(self, dict_observer: HookDictObserver, given: tuple[Any, ...]) -> list[PytreeLeaf]:
        """Handle the first observer of a dict: measure what its hooks get."""
        self._notice_exception()
        if isinstance(dict_observer, ModuleHooksObserver) and dict_observer.shared:
            self.copied_hooks.update(
                (own, own.items())
                for own in self.dict_observers
                if own.kind == dict_observer.kind and own is not dict_observer
            )
        kind = FORWARD_HOOKS[dict_observer.kind]
        now = kind.measure(self, given)
        kind.enter(self, given, now)
        return now

    @property
    def running_hook(self) -> Any:
        """The key of the hook that torch is running; None if it is running none."""
        return next((entry[0] for _dict, _iteration, (entry, *_rest) in self._unfinished_dicts()), None)

    def _notice_exception(
        self, dict_observer: HookDictObserver | None = None, entry: tuple[Any, Hook] | None = None
    ) -> bool:
        """Return whether an exception was raised since the last check.

        One step records it, with the hook that raised it.
        """
        error = sys.exception()
        if self.is_failing or error is None or error is self.handled_exception:
            return False
        self.is_failing = True
        hook = (
            None if dict_observer is None or entry is None else self.log.hook_number(dict_observer, entry, self.index)
        )
        self.log_exception(error, hook)
        return True

    def hook_fired(
        self,
        dict_observer: HookDictObserver,
        entry: tuple[Any, Hook],
        iteration: HookIteration[PytreeLeaf],
        given: tuple[Any, ...],
    ) -> list[PytreeLeaf]:
        """Record that one of the user's hooks has run."""
        if self._notice_exception(dict_observer, entry):
            return iteration.last
        now = FORWARD_HOOKS[dict_observer.kind].measure(self, given)
        self._log_hook(dict_observer, entry, iteration, now, self.log.probe.compare(iteration.last, now))
        return now

    def leave(self, dict_observer: HookDictObserver, last: list[PytreeLeaf]) -> None:
        """Do nothing: when the last observer of a dict is called, everything has been recorded."""

    def log_forward(self, outputs: list[PytreeLeaf]) -> None:
        """Record that the module's own forward has returned."""
        self.forward_logged = True
        self.log.add_step("forward", self.index, after=outputs)

    def log_exception(self, error: BaseException, hook: int | None = None) -> None:
        """Record an exception that was raised in the call. Only the innermost call that it leaves writes a step."""
        if self.log.session.exceptions.is_new(error):
            self.log.add_exception(self.index, error, self._hook_that_raised(error) if hook is None else hook)

    def _hook_that_raised(self, error: BaseException) -> int | None:
        """Return the number of the hook that torch was running, or None."""
        for dict_observer, iteration, (entry, *_) in self._unfinished_dicts():
            # The last hook may have run unnoticed: only a line of it in the traceback shows that it raised.
            if entry is not iteration.hooks[-1] or _was_raised_through(error, entry[1]):
                return self.log.hook_number(dict_observer, entry, self.index)
        return None

    def finish_hooks(self, outputs: list[PytreeLeaf]) -> None:
        """Record a last hook that has no observer after it: ``outputs`` is what it left."""
        for dict_observer, iteration, entries in self._unfinished_dicts():
            del self.running[dict_observer]
            if len(entries) > 1:  # a program put them into the dict past torch's methods while it ran
                continue
            same_places = zip(iteration.last, outputs, strict=False)
            now = [_keep_identity(*pair) for pair in same_places] + outputs[len(iteration.last) :]
            self._log_hook(dict_observer, entries[0], iteration, now, self.log.probe.compare(iteration.last, now))

    def finish_always_called(self) -> None:
        """Record hooks that torch ran after an exception; it ignores the result of the last one."""
        for dict_observer, iteration, (entry, *_) in self._unfinished_dicts():
            if isinstance(dict_observer, ModuleHooksObserver) and entry[0] in (dict_observer.always_called or ()):
                self._log_hook(dict_observer, entry, iteration, iteration.last, "kept")

    def _unfinished_dicts(self) -> list[tuple[HookDictObserver, HookIteration[PytreeLeaf], list[tuple[Any, Hook]]]]:
        """Return the dicts that torch is iterating over, each with its remaining hooks, the innermost first."""
        running = reversed(self.running.items())
        unfinished = [(dict_observer, iteration, iteration.remaining) for dict_observer, iteration in running]
        return [one for one in unfinished if one[-1]]

    def _log_hook(
        self,
        dict_observer: HookDictObserver,
        entry: tuple[Any, Hook],
        iteration: HookIteration[PytreeLeaf],
        after: list[PytreeLeaf],
        effect: str,
    ) -> None:
        keys = [key for key, hook in iteration.hooks if not isinstance(hook, Observer)]
        place, hook = HookPlace(keys.index(entry[0]), len(keys)), self.log.hook_number(dict_observer, entry, self.index)
        kind = cast(StepKind, dict_observer.kind)  # the step of a hook has the kind of the hook
        before = iteration.last
        if isinstance(dict_observer, ModuleHooksObserver) and entry[0] not in (dict_observer.with_kwargs or ()):
            before, after = ([leaf for leaf in leaves if not leaf.by_keyword] for leaves in (before, after))
        aside = iteration.effects._asdict()
        self.log.add_step(kind, self.index, before, after, hook=hook, place=place, effect=effect, **aside)


def _was_raised_through(error: BaseException, hook: Hook) -> bool:
    """Return whether an exception passed through the code of ``hook``."""
    code = getattr(hook, "__code__", None)
    return any(frame.f_code is code for frame, _line in traceback.walk_tb(error.__traceback__))


def _keep_identity(before: PytreeLeaf, after: PytreeLeaf) -> PytreeLeaf:
    """Return ``after`` with the identity of ``before`` if it is only torch's view for a full backward hook."""
    original, returned = before.fingerprint, after.fingerprint
    if original is None or returned is None or not returned.is_unwritten_since(original):
        return after
    return after._replace(fingerprint=replace(returned, identity=original.identity))


class ForwardPreHooks:
    """Hooks in front of a module's forward: torch calls them with the module, its arguments, and perhaps keywords."""

    def measure(self, call: ModuleCall, given: tuple[Any, ...]) -> list[PytreeLeaf]:
        """Measure what a hook may change."""
        positional = call.log.probe.measure(labelled_arguments(call.module, given[1], {}), again=True)
        keywords = labelled_arguments(call.module, (), given[2] if len(given) > 2 else {})
        leaves = call.log.probe.measure(keywords, again=True)
        return [*positional, *(leaf._replace(by_keyword=True) for leaf in leaves)]

    def enter(self, call: ModuleCall, given: tuple[Any, ...], now: list[PytreeLeaf]) -> None:
        """Record what happened before the first hook of a dict is called."""


class ForwardHooks:
    """Hooks behind a module's forward: torch calls them with the module, its arguments, and what it returned."""

    def measure(self, call: ModuleCall, given: tuple[Any, ...]) -> list[PytreeLeaf]:
        """Measure the output."""
        return call.log.probe.measure(labelled_leaves("output", given[-1]), again=True)

    def enter(self, call: ModuleCall, given: tuple[Any, ...], now: list[PytreeLeaf]) -> None:
        """Record that the forward has returned, unless torch is here because of an exception."""
        if call.is_failing:
            return
        call.finish_hooks(now)  # a last global hook without an observer after it: the module's own hooks come next
        if not call.forward_logged:
            labelled = list(labelled_leaves("output", given[-1]))
            call.log.outputs.note(call.index, labelled)
            call.log.note_forward(call.index, [item for _label, item in labelled])
            call.log_forward(now)


FORWARD_HOOKS: dict[str, ForwardPreHooks | ForwardHooks] = {
    "forward_pre_hook": ForwardPreHooks(),
    "forward_hook": ForwardHooks(),
}
"""Kind of hook → what is special about it."""
