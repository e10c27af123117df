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

from hookviz import graph
from hookviz.recorder.behind import behind
from hookviz.recorder.dicts import Dict, entries


def dicts_on_nodes(known: Collection[int]) -> Iterator[tuple[Dict, torch.Tensor | None]]:
    """Dicts of hooks that autograd nodes hold, besides those whose ``id`` is ``known``, each with its tensor.

    The tensor is None where it is gone, or was changed in place since: then the node of its old version alone holds the
    dict, and PyTorch does not tell which node that is. What a node holds is hidden from Python: a dict is on a node if
    it has more references than all Python objects together account for.
    """
    found: list[Any] = [thing for thing in _ordered_dicts() if _holds_hooks(thing) and id(thing) not in known]
    if not found:
        return
    found.append(OrderedDict({0: _nothing}))  # a dict that no node holds, to compare with
    referred, tensors = _referred(found)
    counts = [sys.getrefcount(hooks) - referred.get(id(hooks), 0) for hooks in found]
    for hooks, count in zip(found[:-1], counts[:-1], strict=True):
        if count > counts[-1]:
            yield hooks, tensors.get(id(hooks))


def _ordered_dicts() -> list[OrderedDict[Any, Any]]:
    """Those among some hundred thousand objects, chosen without a call for each of them."""
    things: list[Any] = gc.get_objects()
    return list(compress(things, map(is_, map(type, things), repeat(OrderedDict))))


def _holds_hooks(thing: OrderedDict[Any, Any]) -> bool:
    """Whether this is a dict as ``register_hook`` makes it, with a hook that a person registered."""
    if not thing or not all(type(key) is int for key in thing):
        return False
    hooks = [hook for _, hook in entries(thing) if callable(hook)]
    return any((found := behind(hook)) is None or found.kind == "multi_grad_hook" for hook in hooks)


def _referred(found: list[Any]) -> tuple[dict[int, int], dict[int, torch.Tensor]]:
    """How often Python objects refer to each of the dicts, and of which tensors they are the ``_backward_hooks``."""
    referred: dict[int, int] = dict.fromkeys(map(id, found), 0)
    tensors: dict[int, torch.Tensor] = {}
    for holder in gc.get_referrers(*found):
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


def _local_variables() -> Iterator[object]:
    """What the functions that are running hold in variables, which the garbage collector does not look at."""
    for frame in [*sys._current_frames().values()]:
        at: FrameType | None = frame
        while at is not None:
            if at.f_code.co_flags & inspect.CO_NEWLOCALS and at.f_globals is not globals():
                shared = {*at.f_code.co_cellvars, *at.f_code.co_freevars}  # these it does look at
                yield from [thing for name, thing in graph.locals_of(at).items() if name not in shared]
            at = at.f_back


def _nothing() -> None:
    """Stands for a hook."""
