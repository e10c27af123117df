"""One running module call, to which the observers between its hooks report."""

import sys
from dataclasses import replace
from typing import Any, cast

import torch

from hookviz.autograd.torch_internals import GLOBAL_CALL_DICTS, MODULE_HOOKS
from hookviz.recorder.hook_observer import Hook, HookDictObserver, HookIteration
from hookviz.recorder.modules.call_log import CallLog
from hookviz.recorder.modules.forward_hook_kinds import FORWARD_HOOKS
from hookviz.recorder.modules.module_hooks import ModuleHooksObserver, ModuleObserverRegistry
from hookviz.recorder.modules.pytree import PytreeLeaf
from hookviz.trace import HookPlace, StepKind

Module = torch.nn.Module


class ModuleCall:
    """One call of a module, while it runs."""

    def __init__(self, log: CallLog, observers: ModuleObserverRegistry, module: Module, index: int) -> None:
        self.log, self.observers, self.module, self.index = log, observers, module, index
        self.dict_observers: list[ModuleHooksObserver] = []
        self.running: dict[HookDictObserver, HookIteration[PytreeLeaf]] = {}
        self.copied_hooks: dict[HookDictObserver, list[tuple[Any, Hook]]] = {}
        """The entries that torch copied out of a module's own dict along with the global hooks, which run first."""
        self.inputs: list[int] = []
        """The values of its arguments."""
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
        self.had_no_hooks = not (
            any(map(len, GLOBAL_CALL_DICTS)) or any(map(module.__dict__.get, MODULE_HOOKS.values()))
        )
        """Whether the module had no hooks of any kind when the call began.

        Then torch ignores hooks added later in the call.
        """

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
        if not self.had_no_hooks:
            self.log.add_unobserved(self.index, self.observers.unobserved_hooks(self.module))

    def log_exception(self, error: BaseException, hook: int | None = None) -> None:
        """Record an exception that was raised in the call. Only the innermost call that it leaves writes a step."""
        if self.log.is_new(error):
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
            if len(entries) > 1:
                self.log.add_unobserved(self.index, [hook for _, hook in entries])
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
        unfinished = []
        for dict_observer, iteration in reversed(self.running.items()):
            remaining = [
                entry for entry in iteration.hooks[iteration.position + 1 :] if not dict_observer.is_observer(entry[1])
            ]
            if remaining:
                unfinished.append((dict_observer, iteration, remaining))
        return unfinished

    def _log_hook(
        self,
        dict_observer: HookDictObserver,
        entry: tuple[Any, Hook],
        iteration: HookIteration[PytreeLeaf],
        after: list[PytreeLeaf],
        effect: str,
    ) -> None:
        keys = [key for key, hook in iteration.hooks if not dict_observer.is_observer(hook)]
        place, hook = HookPlace(keys.index(entry[0]), len(keys)), self.log.hook_number(dict_observer, entry, self.index)
        kind = cast(StepKind, dict_observer.kind)  # the step of a hook has the kind of the hook
        before = iteration.last
        if isinstance(dict_observer, ModuleHooksObserver) and entry[0] not in (dict_observer.with_kwargs or ()):
            before, after = ([leaf for leaf in leaves if not leaf.by_keyword] for leaves in (before, after))
        aside = iteration.effects._asdict()
        self.log.add_step(kind, self.index, before, after, hook=hook, place=place, effect=effect, **aside)


def _was_raised_through(error: BaseException, hook: Hook) -> bool:
    """Return whether an exception passed through the code of ``hook``."""
    code, traceback = getattr(hook, "__code__", None), error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code is code:
            return True
        traceback = traceback.tb_next
    return False


def _keep_identity(before: PytreeLeaf, after: PytreeLeaf) -> PytreeLeaf:
    """Return ``after`` with the identity of ``before`` if it is only torch's view for a full backward hook."""
    original, returned = before.fingerprint, after.fingerprint
    if original is None or returned is None or not returned.is_unwritten_since(original):
        return after
    return after._replace(fingerprint=replace(returned, identity=original.identity))
