"""Hook dicts that no variable leads to, found among all objects that Python's garbage collector knows."""

import gc
import inspect
import sys
from collections import OrderedDict
from collections.abc import Collection, Iterator
from itertools import compress, repeat
from operator import is_
from types import FrameType
from typing import Any

import torch
from torch.nn import Module

from hookviz.autograd import graph
from hookviz.recorder.hook_dicts import Dict, entries
from hookviz.recorder.unwrapped_hooks import unwrap_hook

MANY = 50
"""From so many dicts on it is quicker to look each reference up than to compare it with each dict."""
CHUNK = 2_000
"""So many objects' references are looked at together."""


def dicts_on_nodes(known: Collection[int]) -> Iterator[tuple[Dict, torch.Tensor | None]]:
    """Dicts of hooks that autograd nodes hold, besides those whose ``id`` is ``known``, each with its tensor.

    The tensor is None where it is gone, or was changed in place since: then the node of its old version alone holds the
    dict, and PyTorch does not tell which node that is. What a node holds is hidden from Python: a dict is on a node if
    it has more references than all Python objects together account for.
    """
    dicts, of_modules = _ordered_dicts()
    known = {*known, *of_modules}
    found: list[Any] = [thing for thing in dicts if id(thing) not in known and _holds_hooks(thing)]
    del dicts  # a list of them would count as one more that refers to each
    if not found:
        return
    found.append(OrderedDict({0: _nothing}))  # a dict that no node holds, to compare with
    referred, tensors = _referred(found)
    counts = [sys.getrefcount(hooks) - referred.get(id(hooks), 0) for hooks in found]
    for hooks, count in zip(found[:-1], counts[:-1], strict=True):
        if count > counts[-1]:
            yield hooks, tensors.get(id(hooks))


def _ordered_dicts() -> tuple[list[OrderedDict[Any, Any]], set[int]]:
    """Those among some hundred thousand objects, chosen without a call for each; and by their ``id`` what modules have.

    A module's hooks are in dicts of the same form, which no node holds, and a process may have thousands of them.
    """
    things: list[Any] = gc.get_objects()
    kinds = list(map(type, things))
    # By their id: a class may be one that cannot be hashed.
    classes = {key for key, kind in dict(zip(map(id, kinds), kinds, strict=True)).items() if issubclass(kind, Module)}
    modules = compress(things, map(classes.__contains__, map(id, kinds)))
    return (
        list(compress(things, map(is_, kinds, repeat(OrderedDict)))),
        {id(held) for module in modules for held in vars(module).values()},
    )


def _holds_hooks(thing: OrderedDict[Any, Any]) -> bool:
    """Whether this is a dict as ``register_hook`` makes it, with a hook that a person registered."""
    if not thing or not all(type(key) is int for key in thing):
        return False
    hooks = [hook for _, hook in entries(thing) if callable(hook)]
    return any((found := unwrap_hook(hook)) is None or found.kind == "multi_grad_hook" for hook in hooks)


def _referred(found: list[Any]) -> tuple[dict[int, int], dict[int, torch.Tensor]]:
    """How often Python objects refer to each of the dicts, and of which tensors they are the ``_backward_hooks``."""
    referred: dict[int, int] = dict.fromkeys(map(id, found), 0)
    tensors: dict[int, torch.Tensor] = {}
    for holder in _holders(found):
        if holder is found:
            continue
        for held in gc.get_referents(holder):
            if id(held) in referred:
                referred[id(held)] += 1
        if issubclass(type(holder), torch.Tensor) and id(holder._backward_hooks) in referred:
            tensors[id(holder._backward_hooks)] = holder
    for thing in _local_variables():
        if id(thing) in referred:
            referred[id(thing)] += 1
    return referred, tensors


def _holders(found: list[Any]) -> Iterator[Any]:
    """All objects that refer to one of ``found``."""
    if len(found) <= MANY:
        yield from gc.get_referrers(*found)  # which compares each reference with each of them
        return
    wanted = set(map(id, found))
    things = gc.get_objects()
    for start in range(0, len(things), CHUNK):
        chunk = things[start : start + CHUNK]
        if not wanted.isdisjoint(map(id, gc.get_referents(*chunk))):
            yield from (thing for thing in chunk if not wanted.isdisjoint(map(id, gc.get_referents(thing))))


def _local_variables() -> Iterator[object]:
    """What the functions that are running hold in variables, which the garbage collector does not look at."""
    for frame in [*sys._current_frames().values()]:
        at: FrameType | None = frame
        while at is not None:
            if at.f_code.co_flags & inspect.CO_NEWLOCALS and at.f_globals is not globals():
                shared = {*at.f_code.co_cellvars, *at.f_code.co_freevars}  # these it does look at
                yield from [thing for name, thing in graph.copy_locals(at).items() if name not in shared]
            at = at.f_back


def _nothing() -> None:
    """Stands for a hook."""
