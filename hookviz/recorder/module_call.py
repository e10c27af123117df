"""One module call while it runs: what the observers between its hooks report."""

import sys
from typing import Any

import torch

from hookviz.autograd.torch_internals import GLOBAL_CALL_DICTS, MODULE_HOOKS
from hookviz.recorder.call_log import CallLog
from hookviz.recorder.hook_observer import Hook, HookDictObserver, HookIteration
from hookviz.recorder.module_hooks import ModuleHooksObserver, ModuleObserverRegistry
from hookviz.recorder.pytree import PytreeLeaf, arguments, leaves
from hookviz.trace import HookPlace

Module = torch.nn.Module


class ModuleCall:
    """One call of a module, while it runs."""

    def __init__(self, log: CallLog, observers: ModuleObserverRegistry, module: Module, index: int) -> None:
        self.log, self.observers, self.module, self.index = log, observers, module, index
        self.stages: list[ModuleHooksObserver] = []
        self.running: dict[HookDictObserver, HookIteration[PytreeLeaf]] = {}
        self.copied: dict[HookDictObserver, list[tuple[Any, Hook]]] = {}
        """What torch copied out of a module's own dict along with the hooks of all modules, which it calls first."""
        self.backward = False
        """Whether it was begun during a backward pass."""
        self.forwarded = False
        """Whether the step of its forward is written."""
        self.handling = sys.exception()
        """An exception that was being handled when the call began has nothing to do with it."""
        self.earlier_exception: int | None = None
        """The exception that was on its way when the call began, for ``ExceptionTracker.leave``."""
        self.since = 0
        """The number of the first node that the outermost call around it could make, in its thread."""
        self.children = False
        """Whether it has called other modules."""
        self.broken = False
        """Whether an exception is on its way, and torch runs the hooks that are always called."""
        self.plain = not (any(map(len, GLOBAL_CALL_DICTS)) or any(map(module.__dict__.get, MODULE_HOOKS.values())))
        """Whether the module had no hook of any kind when the call began: then torch looks for none later."""

    # -- what the observers report

    def enter(self, stage: HookDictObserver, given: tuple[Any, ...]) -> list[PytreeLeaf]:
        """The first observer among the hooks of one dict was called."""
        self._notice()
        if isinstance(stage, ModuleHooksObserver) and stage.shared:
            self.copied.update((own, own.items()) for own in self.stages if own.kind == stage.kind and own is not stage)
        now = self._measure(stage, given)
        if stage.kind == "forward_hook" and not self.broken:
            self.finish(now)  # a last hook of all modules with no observer behind it: the module's own come next
            if not self.forwarded:
                self.forward(now)
        return now

    def _notice(self, stage: HookDictObserver | None = None, entry: tuple[Any, Hook] | None = None) -> bool:
        """Whether an exception has come up since we last looked; one step names it, with the hook that raised it."""
        error = sys.exception()
        if self.broken or error is None or error is self.handling:
            return False
        self.broken = True
        hook = None if stage is None or entry is None else self.log.hook(stage, entry, self.index)
        self.fail(error, hook)
        return True

    def fired(
        self, stage: HookDictObserver, entry: tuple[Any, Hook], run: HookIteration[PytreeLeaf], given: tuple[Any, ...]
    ) -> list[PytreeLeaf]:
        """One of the user's hooks has run."""
        if self._notice(stage, entry):
            return run.last
        now = self._measure(stage, given)
        self._log_hook(stage, entry, run, now, self.log.probe.effect(run.last, now))
        return now

    def leave(self, stage: HookDictObserver, last: list[PytreeLeaf]) -> None:
        """The last observer of a dict was called: nothing is left to note."""

    def forward(self, outputs: list[PytreeLeaf]) -> None:
        """The module's own forward has returned."""
        self.forwarded = True
        self.log.step("forward", self.index, after=outputs)
        if not self.plain:
            self.log.unobserved(self.index, self.observers.unobserved(self.module))

    def fail(self, error: BaseException, hook: int | None = None) -> None:
        """An exception came up in the call; only the innermost call that it leaves writes a step of it."""
        if self.log.is_new(error):
            self.log.exception(self.index, error, self._raiser(error) if hook is None else hook)

    def _raiser(self, error: BaseException) -> int | None:
        """The hook that torch was running, if it was running one."""
        for stage, run, (entry, *_) in self._unfinished():
            # The last one may have run without a sign, so it takes its own line in the traceback to blame it.
            if entry is not run.hooks[-1] or _was_raised_through(error, entry[1]):
                return self.log.hook(stage, entry, self.index)
        return None

    def finish(self, outputs: list[PytreeLeaf]) -> None:
        """A last hook with no observer behind it has run: what there is now is what it made of the output."""
        for stage, run, entries in self._unfinished():
            del self.running[stage]
            if len(entries) > 1:
                self.log.unobserved(self.index, [hook for _, hook in entries])
                continue
            now = [_keep_identity(*pair) for pair in zip(run.last, outputs, strict=False)] + outputs[len(run.last) :]
            self._log_hook(stage, entries[0], run, now, self.log.probe.effect(run.last, now))

    def finish_always(self) -> None:
        """After an exception torch ran the hooks that are always called; what the last one returned is not used."""
        for stage, run, (entry, *_) in self._unfinished():
            if isinstance(stage, ModuleHooksObserver) and entry[0] in (stage.always or ()):
                self._log_hook(stage, entry, run, run.last, "kept")

    def _unfinished(self) -> list[tuple[HookDictObserver, HookIteration[PytreeLeaf], list[tuple[Any, Hook]]]]:
        """The dicts that torch is going through, each with those of its hooks that are left; the innermost first."""
        found = []
        for stage, run in reversed(self.running.items()):
            later = [entry for entry in run.hooks[run.position + 1 :] if not stage.observes(entry[1])]
            if later:
                found.append((stage, run, later))
        return found

    def _measure(self, stage: HookDictObserver, given: tuple[Any, ...]) -> list[PytreeLeaf]:
        """What the hooks of this kind may change, out of what they are called with."""
        if stage.kind == "forward_pre_hook":
            things = arguments(self.module, given[1], given[2] if len(given) > 2 else {})
        else:
            things = leaves("output", given[-1])
        return self.log.probe.measure(things, again=True)

    def _log_hook(
        self,
        stage: HookDictObserver,
        entry: tuple[Any, Hook],
        run: HookIteration[PytreeLeaf],
        after: list[PytreeLeaf],
        effect: str,
    ) -> None:
        keys = [key for key, hook in run.hooks if not stage.observes(hook)]
        place, hook = HookPlace(keys.index(entry[0]), len(keys)), self.log.hook(stage, entry, self.index)
        self.log.step(stage.kind, self.index, run.last, after, hook=hook, place=place, effect=effect)


def _was_raised_through(error: BaseException, hook: Hook) -> bool:
    """Whether an exception came through the code of ``hook``."""
    code, traceback = getattr(hook, "__code__", None), error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code is code:
            return True
        traceback = traceback.tb_next
    return False


def _keep_identity(before: PytreeLeaf, after: PytreeLeaf) -> PytreeLeaf:
    """``after`` as the same tensor where it is only a view that torch put around it for a full backward hook."""
    one, other = before.fingerprint, after.fingerprint
    same_place = one is not None and other is not None and one.mark == other.mark
    return after._replace(identity=before.identity) if same_place else after
