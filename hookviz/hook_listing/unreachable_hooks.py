"""Find hook dicts that no variable leads to, among all objects that Python's garbage collector knows."""

import gc
import inspect
import sys
from collections import OrderedDict
from collections.abc import Collection, Iterator
from itertools import compress
from types import FrameType
from typing import Any

import torch
from torch.nn import Module

from hookviz.autograd import variable_names
from hookviz.recorder.torch.hook_dicts import Dict, user_hook_entries
from hookviz.recorder.torch.unwrapped_hooks import unwrap_hook

FEW_DICTS = 50
"""Up to this many dicts, comparing each reference with each dict is faster than looking it up in a set."""
OBJECTS_PER_CHUNK = 2_000
"""The number of objects whose references are read in one call."""


def dicts_on_nodes(known: Collection[int]) -> Iterator[tuple[Dict, torch.Tensor | None]]:
    """Yield the hook dicts that autograd nodes hold, each with its tensor, except those whose ``id`` is ``known``.

    The tensor is None if it is gone or was changed in place since: then only the node of its old version holds the
    dict, and PyTorch does not show which node. Python cannot see what a node holds: a dict is on a node if it has more
    references than all Python objects together account for.
    """
    dicts, of_modules = _ordered_dicts()
    known = {*known, *of_modules}
    candidates: list[Any] = [hooks for hooks in dicts if id(hooks) not in known and _has_user_hook(hooks)]
    del dicts  # the list would count as one more reference to each dict
    if not candidates:
        return
    candidates.append(OrderedDict({0: _placeholder_hook}))  # a dict that no node holds, for comparison
    references, tensors = _references_and_tensors(candidates)
    counts = [sys.getrefcount(hooks) - references.get(id(hooks), 0) for hooks in candidates]
    for hooks, count in zip(candidates[:-1], counts[:-1], strict=True):
        if count > counts[-1]:
            yield hooks, tensors.get(id(hooks))


def _ordered_dicts() -> tuple[list[OrderedDict[Any, Any]], set[int]]:
    """List all ordered dicts, and the ``id`` of every attribute value of a module.

    Modules keep hooks in dicts of the same form, which no node holds; a process may have thousands of them.
    """
    live = list_live((OrderedDict, Module))
    modules = [one for one in live if issubclass(type(one), Module)]
    dicts = [one for one in live if type(one) is OrderedDict]
    return dicts, {id(held) for module in modules for held in vars(module).values()}


def list_live(classes: tuple[type, ...]) -> list[Any]:
    """List all instances of some classes, and of their subclasses, that the garbage collector knows.

    There may be hundreds of thousands of objects, so this makes no Python call per object. Objects that
    ``gc.freeze`` has set aside are not among them.
    """
    objects: list[Any] = gc.get_objects()
    kinds = list(map(type, objects))
    # Classes by their id, since a class may be unhashable.
    known = dict(zip(map(id, kinds), kinds, strict=True))
    wanted = {key for key, kind in known.items() if issubclass(kind, classes)}
    return list(compress(objects, map(wanted.__contains__, map(id, kinds))))


def _has_user_hook(candidate: OrderedDict[Any, Any]) -> bool:
    """Whether this is a dict as ``register_hook`` makes it, with a hook that the user registered."""
    if not candidate or not all(type(key) is int for key in candidate):
        return False
    hooks = [hook for _, hook in user_hook_entries(candidate) if callable(hook)]
    return any(not unwrap_hook(hook).is_of_module for hook in hooks)


def _references_and_tensors(dicts: list[Any]) -> tuple[dict[int, int], dict[int, torch.Tensor]]:
    """Map the ``id`` of each dict to its number of referrers, and to the tensor whose ``_backward_hooks`` it is."""
    references: dict[int, int] = dict.fromkeys(map(id, dicts), 0)
    tensors: dict[int, torch.Tensor] = {}
    for holder in _referrers(dicts):
        if holder is dicts:
            continue
        for held in gc.get_referents(holder):
            if id(held) in references:
                references[id(held)] += 1
        if issubclass(type(holder), torch.Tensor) and id(holder._backward_hooks) in references:
            tensors[id(holder._backward_hooks)] = holder
    for value in _local_variables():
        if id(value) in references:
            references[id(value)] += 1
    return references, tensors


def _referrers(dicts: list[Any]) -> Iterator[Any]:
    """Yield all objects that refer to one of ``dicts``."""
    if len(dicts) <= FEW_DICTS:
        yield from gc.get_referrers(*dicts)  # compares each reference with each dict
        return
    wanted = set(map(id, dicts))
    objects = gc.get_objects()
    for start in range(0, len(objects), OBJECTS_PER_CHUNK):
        chunk = objects[start : start + OBJECTS_PER_CHUNK]
        if not wanted.isdisjoint(map(id, gc.get_referents(*chunk))):
            yield from (holder for holder in chunk if not wanted.isdisjoint(map(id, gc.get_referents(holder))))


def _local_variables() -> Iterator[object]:
    """Yield the local variables of running functions, whose references the garbage collector does not list."""
    for frame in [*sys._current_frames().values()]:
        current: FrameType | None = frame
        while current is not None:
            if current.f_code.co_flags & inspect.CO_NEWLOCALS and current.f_globals is not globals():
                cells = {*current.f_code.co_cellvars, *current.f_code.co_freevars}  # listed by the garbage collector
                yield from [value for name, value in variable_names.copy_locals(current).items() if name not in cells]
            current = current.f_back
    del frame  # the last may be this function's own: a circle would keep the graph alive until the next collection


def _placeholder_hook() -> None:
    """Stands in for a hook in the dict for comparison."""
