"""One module call while it runs, and the observers between the hooks of its module."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.modules.module as torch_modules

from hookviz.recorder.hook_observer import Hook, HookDictObserver, Observer, Run
from hookviz.recorder.pytree import Leaf, arguments, leaves
from hookviz.recorder.recursion_limit import ROOM
from hookviz.support.interpreter import thread_switching_paused
from hookviz.support.source_code import describe
from hookviz.trace import HookPlace, Note

if TYPE_CHECKING:
    from hookviz.recorder.call_tracker import CallTracker

Module = torch.nn.Module

_KINDS = ("backward_hooks", "backward_pre_hooks", "forward_hooks", "forward_pre_hooks")
_OWN = tuple(f"_{kind}" for kind in _KINDS)
_EVERYONES = tuple(getattr(torch_modules, f"_global_{kind}") for kind in _KINDS)
"""The dicts of hooks that torch looks into before it runs a module without any."""


class Call:
    """One call of a module, while it runs."""

    def __init__(self, calls: "CallTracker", module: Module, index: int) -> None:
        self.calls, self.module, self.index = calls, module, index
        self.stages: list[ModuleHooksObserver] = []
        self.running: dict[HookDictObserver, Run[Leaf]] = {}
        self.taken: dict[HookDictObserver, list[tuple[Any, Hook]]] = {}
        """What torch took out of a module's own dict when it took the hooks of all modules, which it calls first."""
        self.backward = False
        """Whether it was begun during a backward pass."""
        self.forwarded = False
        """Whether the step of its forward is written."""
        self.handling = sys.exception()
        """An exception that was being handled when the call began has nothing to do with it."""
        self.raised: int | None = None
        """The exception that was on its way when the call began, for ``Raised.leave``."""
        self.since = 0
        """The number of the first node that the outermost call around it could make, in its thread."""
        self.children = False
        """Whether it has called other modules."""
        self.broken = False
        """Whether an exception is on its way, and torch runs the hooks that are always called."""
        self.plain = not (any(map(len, _EVERYONES)) or any(map(module.__dict__.get, _OWN)))
        """Whether the module had no hook of any kind when the call began: then torch looks for none later."""

    # -- what the observers report

    def enter(self, stage: "HookDictObserver", given: tuple[Any, ...]) -> list[Leaf]:
        """The first observer among the hooks of one dict was called."""
        self._notice()
        if isinstance(stage, ModuleHooksObserver) and stage.shared:
            self.taken.update((own, own.items()) for own in self.stages if own.kind == stage.kind and own is not stage)
        now = self._look(stage, given)
        if stage.kind == "forward_hook" and not self.broken:
            self.finish(now)  # a last hook of all modules with no observer behind it: the module's own come next
            if not self.forwarded:
                self.forward(now)
        return now

    def _notice(self, stage: HookDictObserver | None = None, entry: tuple[Any, Hook] | None = None) -> bool:
        """Whether an exception has come up since we last looked; it is told of once, with the hook that raised it."""
        error = sys.exception()
        if self.broken or error is None or error is self.handling:
            return False
        self.broken = True
        hook = None if stage is None or entry is None else self.calls.hook(stage, entry, self.index)
        self.calls.failed(self, error, hook)
        return True

    def fired(
        self, stage: "HookDictObserver", entry: tuple[Any, Hook], run: "Run[Leaf]", given: tuple[Any, ...]
    ) -> list[Leaf]:
        """One of the user's hooks has run."""
        if self._notice(stage, entry):
            return run.last
        now = self._look(stage, given)
        self._log(stage, entry, run, now, self.calls.effect(run.last, now))
        return now

    def leave(self, stage: "HookDictObserver", last: list[Leaf]) -> None:
        """The last observer of a dict was called: nothing is left to note."""

    def forward(self, outputs: list[Leaf]) -> None:
        """The module's own forward has returned."""
        self.forwarded = True
        self.calls.log("forward", self.index, after=outputs)
        self._unseen([] if self.plain else self.calls.unseen(self.module))

    def _unseen(self, hooks: Sequence[Hook]) -> None:
        """Hooks have run that were added without a sign, and what each of them did cannot be told."""
        for hook in hooks:
            on = self.calls.trace.call(self.index)
            self.calls.log("unobserved", self.index, note=Note.of("trace.unseen", hook=describe(hook)[0], on=on))

    def raiser(self, error: BaseException) -> int | None:
        """The hook that torch was running, if it was running one."""
        for stage, run, (entry, *_) in self._unfinished():
            # The last one may have run without a sign, so it takes its own line in the traceback to blame it.
            if entry is not run.hooks[-1] or _passed(error, entry[1]):
                return self.calls.hook(stage, entry, self.index)
        return None

    def finish(self, outputs: list[Leaf]) -> None:
        """A last hook with no observer behind it has run: what there is now is what it made of the output."""
        for stage, run, entries in self._unfinished():
            del self.running[stage]
            if len(entries) > 1:
                self._unseen([hook for _, hook in entries])
                continue
            seen = [_unwrapped(*pair) for pair in zip(run.last, outputs, strict=False)] + outputs[len(run.last) :]
            self._log(stage, entries[0], run, seen, self.calls.effect(run.last, seen))

    def finish_always(self) -> None:
        """After an exception torch ran the hooks that are always called; what the last one returned is not used."""
        for stage, run, (entry, *_) in self._unfinished():
            if isinstance(stage, ModuleHooksObserver) and entry[0] in (stage.always or ()):
                self._log(stage, entry, run, run.last, "kept")

    def _unfinished(self) -> list[tuple[HookDictObserver, Run[Leaf], list[tuple[Any, Hook]]]]:
        """The dicts that torch is going through, each with those of its hooks that are left; the innermost first."""
        found = []
        for stage, run in reversed(self.running.items()):
            later = [entry for entry in run.hooks[run.position + 1 :] if not stage.observes(entry[1])]
            if later:
                found.append((stage, run, later))
        return found

    def _look(self, stage: "HookDictObserver", given: tuple[Any, ...]) -> list[Leaf]:
        """What the hooks of this kind may change, out of what they are called with."""
        if stage.kind == "forward_pre_hook":
            things = arguments(self.module, given[1], given[2] if len(given) > 2 else {})
        else:
            things = leaves("output", given[-1])
        return self.calls.look(things, again=True)

    def _log(
        self, stage: HookDictObserver, entry: tuple[Any, Hook], run: Run[Leaf], after: list[Leaf], effect: str
    ) -> None:
        keys = [key for key, hook in run.hooks if not stage.observes(hook)]
        place, hook = HookPlace(keys.index(entry[0]), len(keys)), self.calls.hook(stage, entry, self.index)
        self.calls.log(stage.kind, self.index, run.last, after, hook=hook, place=place, effect=effect)


class ModuleHooksObserver(HookDictObserver):
    """One hook dict of a module, or of all modules, while calls that use it are running."""

    __slots__ = ("always", "calls", "kwargs", "shared")

    def __init__(self, calls: "CallTracker", kind: str, hooks: Any, flags: Sequence[Any], shared: bool) -> None:
        super().__init__(calls.session, kind, hooks, -1)
        self.calls = calls
        self.kwargs, self.always = flags
        self.shared = shared

    def current(self, given: tuple[Any, ...]) -> Call | None:
        """The call whose hooks these are: the innermost one of this thread, if it is of the module at hand."""
        call = self.calls.innermost()
        return call if call is not None and call.module is given[0] else None

    def seen(self, observer: Observer, arguments: tuple[Any, ...]) -> None:
        """An observer was called, where the program may be as deep as it can go."""
        with ROOM.where_needed():
            super().seen(observer, arguments)

    def taken(self, current: Any) -> list[tuple[Any, Hook]]:
        """What torch is calling: hooks of all modules may have changed the module's own dict since."""
        return current.taken.pop(self, None) or self.items()

    def lay(self) -> None:
        """As for any dict; no other thread may call a module while the hooks of all modules are out of their dict."""
        if self.users and self.laid():  # by a call around this one
            return
        with thread_switching_paused() if self.shared else nullcontext():
            self._unflag()
            super().lay()
        for observer, hook in pairwise(list(self.dict)):  # the one before a hook that is always called is so, too
            if self.always and hook in self.always and self.observes(self.dict[observer]):
                self.always[observer] = True
        self.open_end()

    def open_ended(self) -> bool:
        """Whether there is a hook that is always called, so that no observer may stand behind the last one.

        After an exception torch goes through the dict itself, not through a copy: there the last hook may change the
        dict, and one with something behind it may not.
        """
        return any(key in (self.always or ()) for key, _ in self.user_hooks())

    def open_end(self) -> None:
        """Take away what stands behind the last of the user's hooks, where nothing may."""
        while self.open_ended() and self.observes(self.dict[key := next(reversed(self.dict))]):
            del self.dict[key]
            for flags in (self.kwargs, self.always):
                if flags:
                    flags.pop(key, None)

    def _observe(self) -> None:
        """An observer sees the keyword arguments, and runs whenever the hooks before and after it do."""
        before = next(reversed(self.dict), None)
        super()._observe()
        if self.kwargs is not None:
            self.kwargs[next(reversed(self.dict))] = True
        if before in (self.always or ()):
            self.always[next(reversed(self.dict))] = True

    def lift(self) -> None:
        """Take all observers out, and their flags."""
        self._unflag()
        super().lift()

    def _unflag(self) -> None:
        for key, hook in list(self.dict.items()):
            if self._own(hook):
                for flags in (self.kwargs, self.always):
                    if flags:
                        flags.pop(key, None)


def _passed(error: BaseException, hook: Hook) -> bool:
    """Whether an exception came through the code of ``hook``."""
    code, traceback = getattr(hook, "__code__", None), error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code is code:
            return True
        traceback = traceback.tb_next
    return False


def _unwrapped(before: Leaf, after: Leaf) -> Leaf:
    """``after`` as the same tensor where it is only a view that torch put around it for a full backward hook."""
    same_place = before.glimpse is not None and after.glimpse is not None and before.glimpse.mark == after.glimpse.mark
    return after._replace(identity=before.identity) if same_place else after
