"""Observers between the forward hooks of a module, or of all modules, for the time of the module's calls."""

from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import torch

from hookviz.autograd.torch_internals import ForwardHooks, forward_hooks, global_forward_hooks
from hookviz.recorder.hook_observer import Hook, HookDictObserver, Observer, release_observers
from hookviz.recorder.recursion_limit import ROOM
from hookviz.recorder.session import Session
from hookviz.support.interpreter import thread_switching_paused
from hookviz.support.interrupts import Uninterrupted

Module = torch.nn.Module


class ModuleHooksObserver(HookDictObserver):
    """One hook dict of a module, or of all modules, while calls that use it are running."""

    __slots__ = ("always", "innermost", "kwargs", "shared")

    def __init__(self, session: Session, found: ForwardHooks, innermost: Callable[[], Any]) -> None:
        super().__init__(session, found.kind, found.hooks, -1)
        self.innermost = innermost
        """Gives the call that runs in the calling thread."""
        self.kwargs, self.always, self.shared = found.with_kwargs, found.always_called, found.shared

    def current(self, given: tuple[Any, ...]) -> Any:
        """The call whose hooks these are: the innermost one of this thread, if it is of the module at hand."""
        call = self.innermost()
        return call if call is not None and call.module is given[0] else None

    def called(self, observer: Observer, arguments: tuple[Any, ...]) -> None:
        """An observer was called, where the program may be as deep as it can go."""
        with ROOM.where_needed():
            super().called(observer, arguments)

    def hooks_called(self, current: Any) -> list[tuple[Any, Hook]]:
        """What torch is calling: hooks of all modules may have changed the module's own dict since."""
        return current.copied.pop(self, None) or self.items()

    def install(self) -> None:
        """As for any dict; no other thread may call a module while the hooks of all modules are out of their dict."""
        if self.users and self.installed():  # by a call around this one
            return
        with thread_switching_paused() if self.shared else nullcontext():
            self._unflag()
            super().install()
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

    def uninstall(self) -> None:
        """Take all observers out, and their flags."""
        self._unflag()
        super().uninstall()

    def _unflag(self) -> None:
        for key, hook in list(self.dict.items()):
            if self._own(hook):
                for flags in (self.kwargs, self.always):
                    if flags:
                        flags.pop(key, None)


class ModuleObserverRegistry:
    """Knows the module hook dicts with observers in them, and puts observers there for the time of a call."""

    def __init__(self, session: Session, innermost: Callable[[], Any]) -> None:
        self.session, self._innermost = session, innermost
        self._known: dict[int, ModuleHooksObserver] = {}
        """``id`` of a hook dict → what observes it."""

    def observe(self, module: Module, stages: list[ModuleHooksObserver], kind: str | None = None) -> None:
        """Put observers around the forward hooks of ``module`` and of all modules, of one kind or of each.

        ``stages`` are those that the module's call uses already; what it uses from now on is added to them.
        """
        if module._compiled_call_impl is not None:  # its hooks are compiled with it, and so would observers be
            return
        for found in forward_hooks(module):
            if found.hooks and kind in (None, found.kind):
                with Uninterrupted():
                    self._use(found, stages)

    def _use(self, found: ForwardHooks, stages: list[ModuleHooksObserver]) -> None:
        stage = self._known.get(id(found.hooks))
        if stage is not None and not stage.user_hooks():
            stage.uninstall()  # torch takes another way where there is no hook at all
            return
        if stage is None:
            stage = self._known[id(found.hooks)] = ModuleHooksObserver(self.session, found, self._innermost)
        if stage not in stages:
            stage.users += 1
            stages.append(stage)
        stage.install()

    def release(self, stages: list[ModuleHooksObserver]) -> None:
        """A call is over: the observers that no other call uses are taken out."""
        with Uninterrupted() if stages else nullcontext():
            release_observers(stages, self._known)

    def removed(self, hooks: Any) -> None:
        """A hook was taken out of a dict: another may be the last one now."""
        if id(hooks) in self._known:
            with Uninterrupted():
                self._known[id(hooks)].open_end()

    def unobserved(self, module: Module) -> list[Hook]:
        """The forward hooks of a module, and of all, that were added while it ran without a sign."""
        dicts = [global_forward_hooks, module._forward_hooks]
        hooks = [hook for own in dicts if id(own) not in self._known for hook in own.values()]
        return [hook for hook in hooks if not HookDictObserver.observes(hook)]

    def suspend_shared(self) -> None:
        """The hooks of all modules are compiled with the region, and so would observers be."""
        for stage in self._known.values():
            if stage.shared:
                stage.uninstall()

    def resume_shared(self) -> None:
        """The hooks of all modules are observed again."""
        for stage in self._known.values():
            if stage.shared:
                stage.install()

    def close(self) -> None:
        """Take out every observer there is."""
        for stage in self._known.values():
            stage.uninstall()
        self._known.clear()
