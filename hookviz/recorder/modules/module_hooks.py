"""Puts observers between the forward hooks of a module, or of all modules, during calls."""

from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import torch

from hookviz.autograd.torch_internals import ForwardHooks, forward_hooks
from hookviz.recorder.hook_observer import Hook, HookDictObserver, Observer, release_observers
from hookviz.recorder.session import Session
from hookviz.recorder.torch.compiled_regions import runs_eagerly
from hookviz.support.interpreter import Uninterrupted, thread_switching_paused

Module = torch.nn.Module


class ModuleHooksObserver(HookDictObserver):
    """Observes one hook dict of a module, or of all modules, while calls that use it are running."""

    __slots__ = ("always_called", "innermost", "shared", "with_kwargs")

    def __init__(self, session: Session, hook_dict: ForwardHooks, innermost: Callable[[], Any]) -> None:
        super().__init__(session, hook_dict.kind, hook_dict.hooks, -1)
        self.innermost = innermost
        """Returns the innermost running call of the calling thread."""
        self.with_kwargs, self.always_called = hook_dict.with_kwargs, hook_dict.always_called
        self.shared = hook_dict.shared

    def find_module(self, given: tuple[Any, ...]) -> Any:
        """Return the module that is called."""
        return given[0]

    def find_receiver(self, given: tuple[Any, ...]) -> Any:
        """Return the innermost call of this thread if it is a call of the module whose hooks run, else None."""
        call = self.innermost()
        return call if call is not None and call.module is given[0] else None

    def hooks_to_call(self, receiver: Any) -> list[tuple[Any, Hook]]:
        """Return the entries that torch is calling.

        Global hooks may have changed the module's own dict since torch copied it.
        """
        return receiver.copied_hooks.pop(self, None) or self.items()

    def install(self) -> None:
        """Install the observers as in any dict.

        While global hooks are out of their dict, no other thread may call a module.
        """
        if self.users and self.is_installed():  # an enclosing call of the module installed them
            return
        with thread_switching_paused() if self.shared else nullcontext():
            self._remove_flags()
            super().install()
        # The observer before an always-called hook is always called, too.
        for observer, hook in pairwise(list(self.dict)):
            if self.always_called and hook in self.always_called and isinstance(self.dict[observer], Observer):
                self.always_called[observer] = True
        self.trim_end()

    def must_end_with_hook(self) -> bool:
        """Return whether a hook has ``always_call=True``, so that no observer may stand after the last hook.

        After an exception torch iterates over the dict itself, not over a copy. There the last hook may change the
        dict, and a hook with another entry after it may not.
        """
        return any(key in (self.always_called or ()) for key, _ in self.user_hooks())

    def trim_end(self) -> None:
        """Remove observers after the last of the user's hooks, if none may stand there."""
        while self.must_end_with_hook() and isinstance(self.dict[key := next(reversed(self.dict))], Observer):
            del self.dict[key]
            for flags in (self.with_kwargs, self.always_called):
                if flags:
                    flags.pop(key, None)

    def _append_observer(self) -> None:
        """Append an observer that gets the keyword arguments, and runs whenever the hook before or after it does."""
        before = next(reversed(self.dict), None)
        super()._append_observer()
        if self.with_kwargs is not None:
            self.with_kwargs[next(reversed(self.dict))] = True
        if before in (self.always_called or ()):
            self.always_called[next(reversed(self.dict))] = True

    def uninstall(self) -> None:
        """Remove all observers and their flags."""
        self._remove_flags()
        super().uninstall()

    def _remove_flags(self) -> None:
        for key, hook in list(self.dict.items()):
            if self._is_own(hook):
                for flags in (self.with_kwargs, self.always_called):
                    if flags:
                        flags.pop(key, None)


class ModuleObserverRegistry:
    """Knows the observed hook dicts of modules, and puts observers into them for the time of a call."""

    def __init__(self, session: Session, innermost: Callable[[], Any]) -> None:
        self.session, self._innermost = session, innermost
        self._observers_by_dict: dict[int, ModuleHooksObserver] = {}
        """``id`` of a hook dict → its observer."""

    def observe(self, module: Module, dict_observers: list[ModuleHooksObserver], kind: str | None = None) -> None:
        """Put observers between the forward hooks of ``module`` and of all modules, of one kind or every kind.

        ``dict_observers`` lists the dict observers that the call uses already; new ones are appended.
        """
        if module._compiled_call_impl is not None and not runs_eagerly():
            return  # its hooks are compiled with it, and observers would be, too
        for hook_dict in forward_hooks(module):
            if hook_dict.hooks and kind in (None, hook_dict.kind):
                with Uninterrupted():
                    self._use(hook_dict, dict_observers)

    def _use(self, hook_dict: ForwardHooks, dict_observers: list[ModuleHooksObserver]) -> None:
        dict_observer = self._observers_by_dict.get(id(hook_dict.hooks))
        if dict_observer is not None and not dict_observer.user_hooks():
            dict_observer.uninstall()  # torch takes a faster path if there are no hooks
            return
        if dict_observer is None:
            dict_observer = self._observers_by_dict[id(hook_dict.hooks)] = ModuleHooksObserver(
                self.session, hook_dict, self._innermost
            )
        if dict_observer not in dict_observers:
            dict_observer.users += 1
            dict_observers.append(dict_observer)
        dict_observer.install()

    def release(self, dict_observers: list[ModuleHooksObserver]) -> None:
        """Remove the observers that no call uses any more, at the end of a call."""
        with Uninterrupted() if dict_observers else nullcontext():
            release_observers(dict_observers, self._observers_by_dict)

    def hook_removed(self, hooks: Any) -> None:
        """Handle the removal of a hook from a dict: another hook may be the last one now."""
        if id(hooks) in self._observers_by_dict:
            with Uninterrupted():
                self._observers_by_dict[id(hooks)].trim_end()

    def suspend(self) -> None:
        """Take out the observers of global hooks, which a compiled region would compile along with the hooks."""
        for dict_observer in self._observers_by_dict.values():
            if dict_observer.shared:
                dict_observer.uninstall()

    def resume(self) -> None:
        """Put back the observers that were taken out; one that stands where it should stays."""
        for dict_observer in self._observers_by_dict.values():
            if dict_observer.user_hooks():
                dict_observer.install()

    def close(self) -> None:
        """Remove all observers."""
        for dict_observer in self._observers_by_dict.values():
            dict_observer.uninstall()
        self._observers_by_dict.clear()
