"""Observers between the forward hooks of a module, or of all modules, for the time of the module's calls."""

from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import torch

from hookviz.autograd.torch_internals import ForwardHooks, forward_hooks, global_forward_hooks
from hookviz.recorder.hook_observer import Hook, HookDictObserver, Observer, release_observers
from hookviz.recorder.recursion_limit import HEADROOM
from hookviz.recorder.session import Session
from hookviz.support.interpreter import thread_switching_paused
from hookviz.support.interrupts import Uninterrupted

Module = torch.nn.Module


class ModuleHooksObserver(HookDictObserver):
    """One hook dict of a module, or of all modules, while calls that use it are running."""

    __slots__ = ("always_called", "innermost", "shared", "with_kwargs")

    def __init__(self, session: Session, found: ForwardHooks, innermost: Callable[[], Any]) -> None:
        super().__init__(session, found.kind, found.hooks, -1)
        self.innermost = innermost
        """Gives the call that runs in the calling thread."""
        self.with_kwargs, self.always_called, self.shared = found.with_kwargs, found.always_called, found.shared

    def find_receiver(self, given: tuple[Any, ...]) -> Any:
        """The call whose hooks these are: the innermost one of this thread, if it is of the module at hand."""
        call = self.innermost()
        return call if call is not None and call.module is given[0] else None

    def observer_called(self, observer: Observer, arguments: tuple[Any, ...]) -> None:
        """An observer was called, where the program may be as deep as it can go."""
        with HEADROOM.if_needed():
            super().observer_called(observer, arguments)

    def hooks_to_call(self, current: Any) -> list[tuple[Any, Hook]]:
        """What torch is calling: hooks of all modules may have changed the module's own dict since."""
        return current.copied_hooks.pop(self, None) or self.items()

    def install(self) -> None:
        """As for any dict; no other thread may call a module while the hooks of all modules are out of their dict."""
        if self.users and self.is_installed():  # by a call around this one
            return
        with thread_switching_paused() if self.shared else nullcontext():
            self._remove_flags()
            super().install()
        for observer, hook in pairwise(list(self.dict)):  # the one before a hook that is always called is so, too
            if self.always_called and hook in self.always_called and self.is_observer(self.dict[observer]):
                self.always_called[observer] = True
        self.trim_end()

    def must_end_with_hook(self) -> bool:
        """Whether there is a hook that is always called, so that no observer may stand behind the last one.

        After an exception torch goes through the dict itself, not through a copy: there the last hook may change the
        dict, and one with something behind it may not.
        """
        return any(key in (self.always_called or ()) for key, _ in self.user_hooks())

    def trim_end(self) -> None:
        """Take away what stands behind the last of the user's hooks, where nothing may."""
        while self.must_end_with_hook() and self.is_observer(self.dict[key := next(reversed(self.dict))]):
            del self.dict[key]
            for flags in (self.with_kwargs, self.always_called):
                if flags:
                    flags.pop(key, None)

    def _append_observer(self) -> None:
        """An observer sees the keyword arguments, and runs whenever the hooks before and after it do."""
        before = next(reversed(self.dict), None)
        super()._append_observer()
        if self.with_kwargs is not None:
            self.with_kwargs[next(reversed(self.dict))] = True
        if before in (self.always_called or ()):
            self.always_called[next(reversed(self.dict))] = True

    def uninstall(self) -> None:
        """Take all observers out, and their flags."""
        self._remove_flags()
        super().uninstall()

    def _remove_flags(self) -> None:
        for key, hook in list(self.dict.items()):
            if self._is_own(hook):
                for flags in (self.with_kwargs, self.always_called):
                    if flags:
                        flags.pop(key, None)


class ModuleObserverRegistry:
    """Knows the module hook dicts with observers in them, and puts observers there for the time of a call."""

    def __init__(self, session: Session, innermost: Callable[[], Any]) -> None:
        self.session, self._innermost = session, innermost
        self._known: dict[int, ModuleHooksObserver] = {}
        """``id`` of a hook dict → what observes it."""

    def observe(self, module: Module, dict_observers: list[ModuleHooksObserver], kind: str | None = None) -> None:
        """Put observers around the forward hooks of ``module`` and of all modules, of one kind or of each.

        ``dict_observers`` are those that the module's call uses already; what it uses from now on is added to them.
        """
        if module._compiled_call_impl is not None:  # its hooks are compiled with it, and so would observers be
            return
        for found in forward_hooks(module):
            if found.hooks and kind in (None, found.kind):
                with Uninterrupted():
                    self._use(found, dict_observers)

    def _use(self, found: ForwardHooks, dict_observers: list[ModuleHooksObserver]) -> None:
        dict_observer = self._known.get(id(found.hooks))
        if dict_observer is not None and not dict_observer.user_hooks():
            dict_observer.uninstall()  # torch takes another way where there is no hook at all
            return
        if dict_observer is None:
            dict_observer = self._known[id(found.hooks)] = ModuleHooksObserver(self.session, found, self._innermost)
        if dict_observer not in dict_observers:
            dict_observer.users += 1
            dict_observers.append(dict_observer)
        dict_observer.install()

    def release(self, dict_observers: list[ModuleHooksObserver]) -> None:
        """A call is over: the observers that no other call uses are taken out."""
        with Uninterrupted() if dict_observers else nullcontext():
            release_observers(dict_observers, self._known)

    def hook_removed(self, hooks: Any) -> None:
        """A hook was taken out of a dict: another may be the last one now."""
        if id(hooks) in self._known:
            with Uninterrupted():
                self._known[id(hooks)].trim_end()

    def unobserved_hooks(self, module: Module) -> list[Hook]:
        """The forward hooks of a module, and of all, that were added while it ran without a sign."""
        dicts = [global_forward_hooks, module._forward_hooks]
        hooks = [hook for own in dicts if id(own) not in self._known for hook in own.values()]
        return [hook for hook in hooks if not HookDictObserver.is_observer(hook)]

    def suspend_shared(self) -> None:
        """The hooks of all modules are compiled with the region, and so would observers be."""
        for dict_observer in self._known.values():
            if dict_observer.shared:
                dict_observer.uninstall()

    def resume_shared(self) -> None:
        """The hooks of all modules are observed again."""
        for dict_observer in self._known.values():
            if dict_observer.shared:
                dict_observer.install()

    def close(self) -> None:
        """Take out every observer there is."""
        for dict_observer in self._known.values():
            dict_observer.uninstall()
        self._known.clear()
