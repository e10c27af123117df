"""What is copied or pickled while a module call runs holds none of the observers that stand in its hook dicts then."""

import copy
import sys
from collections import OrderedDict
from typing import Any

from hookviz.recorder.hook_observer import Observer

_cleaned: dict[int, OrderedDict[Any, Any]] = {}
"""``id`` of a dict with observers → the same without, one and the same for the module and for its handles."""


def clear_cache() -> None:
    """Nothing is recorded any more."""
    _cleaned.clear()


def clean_module(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a module as it would be without recording; a shallow copy shares the dicts, and is left so."""
    if not _is_shallow_copy():
        state.update((name, without_observers(hooks)) for name, hooks in list(state.items()) if "hooks" in name)
    return state


def clean_handle(state: tuple[Any, ...]) -> tuple[Any, ...]:
    """The state of a handle, which holds the dicts that its hook is in."""
    if _is_shallow_copy():
        return state
    hooks, number, *more = state
    return (without_observers(hooks), number, *(tuple(map(without_observers, dicts)) for dicts in more))


def _is_shallow_copy() -> bool:
    """Whether ``copy.copy`` has asked for the state."""
    return sys._getframe(3).f_code is copy.copy.__code__


def without_observers(hooks: Any) -> Any:
    """A dict of hooks without observers: itself, if it has none."""
    if not isinstance(hooks, OrderedDict) or not any(isinstance(key, Observer) for key in hooks):
        return hooks
    theirs = OrderedDict((key, hook) for key, hook in hooks.items() if not isinstance(key, Observer))
    known = _cleaned.get(id(hooks))
    if known is None or list(known.items()) != list(theirs.items()):
        known = _cleaned[id(hooks)] = theirs
    return known
