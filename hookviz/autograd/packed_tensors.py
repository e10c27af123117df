"""Read the tensors that nodes saved in forward, without running the user's code."""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import torch
from torch.autograd.graph import Node

from hookviz.autograd.tensor_types import is_tensor, runs_user_code
from hookviz.autograd.torch_internals import (
    FUNCTION_OF_NODE,
    RAW_SAVED,
    SAVED,
    SAVED_BY_FUNCTION,
    SAVED_TENSORS_SHOW_THEIR_HOOKS,
)

Problem = Literal["", "hook", "hidden", "freed", "changed"]
"""Why a saved tensor is not read: a hook would unpack it, its class would run the user's code, a pass freed it, or it
was changed in place since."""


class SavedTensor(NamedTuple):
    """A tensor that a node saved."""

    name: str
    """The attribute of the node, as ``_saved_self``, ``_saved_indices[0]``, or ``saved_tensors[0]`` of a Function."""
    tensor: torch.Tensor | None = None
    unpack_hook: Any = None
    problem: Problem = ""
    """Empty if the tensor was read."""


def saved_tensors(node: Node, *, results: bool = True) -> Iterator[SavedTensor]:
    """Yield what ``node`` saved; nothing where torch does not show whether reading would call a hook of the user's.

    Without ``results``, what torch saved of the node's own output is left out: reading it makes a new tensor.
    """
    for name, raw in _saved_attributes(type(node)) if SAVED_TENSORS_SHOW_THEIR_HOOKS else ():
        if not results and name.startswith(f"{SAVED}result"):
            continue
        try:
            packed = getattr(node, raw)
        except RuntimeError:
            yield SavedTensor(name, problem="freed")
            continue
        if isinstance(packed, tuple):
            yield from _unpack(node, name, [f"{name}[{index}]" for index in range(len(packed))], packed)
        else:
            yield from _unpack(node, name, [name], (packed,))


def _unpack(node: Node, attribute: str, names: list[str], packed: tuple[Any, ...]) -> Iterator[SavedTensor]:
    """Yield the tensors of one attribute; reading it unpacks all of them."""
    hooks = [part.unpack_hook for part in packed]
    if any(hook is not None for hook in hooks):
        for name, hook in zip(names, hooks, strict=True):
            yield SavedTensor(name, None, hook, "hook")
        return
    problem: Problem = "hidden"
    if not any(map(unpacking_runs_user_code, packed)):
        try:
            read = getattr(node, attribute)
        except RuntimeError:  # backward raises the same error
            problem = "freed" if all(part.data is None for part in packed) else "changed"
        else:
            tensors = read if isinstance(read, tuple) else (read,)
            found = zip(names, tensors, strict=True)
            yield from (SavedTensor(name, tensor) for name, tensor in found if isinstance(tensor, torch.Tensor))
            return
    yield from (SavedTensor(name, problem=problem) for name in names)


def unpacking_runs_user_code(saved: Any) -> bool:
    """Return whether to unpack a saved tensor without an unpack hook would run code of the user's.

    Raises:
        RuntimeError: it was freed.
    """
    tensor = getattr(saved, "data", None)
    return is_tensor(tensor) and runs_user_code(tensor)


_SAVED_ATTRIBUTES: dict[type, tuple[tuple[str, str], ...]] = {}


def _saved_attributes(kind: type) -> tuple[tuple[str, str], ...]:
    """The attributes in which nodes of a class keep saved tensors, as pairs (unpacked, packed)."""
    if hasattr(kind, FUNCTION_OF_NODE):  # a custom Function, and no class of it may stay here
        return (SAVED_BY_FUNCTION,)
    if kind not in _SAVED_ATTRIBUTES:
        names = [name for name in dir(kind) if name.startswith(SAVED)]
        pairs = [(name, f"{RAW_SAVED}{name.removeprefix(SAVED)}") for name in names]
        _SAVED_ATTRIBUTES[kind] = tuple((name, raw) for name, raw in pairs if hasattr(kind, raw))
    return _SAVED_ATTRIBUTES[kind]
