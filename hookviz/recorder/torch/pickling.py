"""Keeps observers out of copies and pickles that are made while a module call runs."""

import copy
import sys
from collections import OrderedDict
from collections.abc import Callable
from functools import wraps
from typing import Any

from hookviz.recorder.hook_observer import Observer
from hookviz.recorder.torch.function_replacement import ActiveFlag

_cleaned: dict[int, OrderedDict[Any, Any]] = {}
"""``id`` of a dict with observers → a copy without them, which a module and its handles share."""


def clear_cache() -> None:
    """Forget the copies, because no recording is open."""
    _cleaned.clear()


def clean_module(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a module without observers; leave that of a shallow copy, which shares the dicts."""
    if not _is_shallow_copy():
        state.update((name, without_observers(hooks)) for name, hooks in list(state.items()) if "hooks" in name)
    return state


def clean_handle(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the state of a handle without observers in the dicts that hold its hook."""
    if _is_shallow_copy():
        return state
    hooks, number, *more = state
    return (without_observers(hooks), number, *(tuple(map(without_observers, dicts)) for dicts in more))


def _is_shallow_copy() -> bool:
    """Return whether ``copy.copy`` requested the state."""
    return sys._getframe(3).f_code is copy.copy.__code__


def without_observers(hooks: Any) -> Any:
    """Return a hook dict without observers: a copy, or the dict itself if it has none."""
    if not isinstance(hooks, OrderedDict) or not any(isinstance(key, Observer) for key in hooks):
        return hooks
    user_hooks = OrderedDict((key, hook) for key, hook in hooks.items() if not isinstance(key, Observer))
    copied = _cleaned.get(id(hooks))
    if copied is None or list(copied.items()) != list(user_hooks.items()):
        copied = _cleaned[id(hooks)] = user_hooks
    return copied


def leaving_observers_out(clean: Callable[[Any], Any]) -> Callable[[Any, ActiveFlag], Any]:
    """Wrap a method that returns the state to pickle, to leave out our observers."""

    def make(state: Callable[[Any], Any], _: ActiveFlag) -> Callable[[Any], Any]:
        @wraps(state)
        def state_without_observers(self: Any) -> Any:
            return clean(state(self))

        return state_without_observers

    return make
