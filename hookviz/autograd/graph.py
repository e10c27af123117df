"""The autograd graph as data: walking it, numbering its nodes, naming its tensors."""

import contextlib
import heapq
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any

import torch
from torch.autograd.graph import GradientEdge, Node

from hookviz.autograd.module_tree import named_parameters
from hookviz.autograd.torch_internals import FUNCTION_OF_NODE, RAW_SAVED, SAVED
from hookviz.support.messages import say
from hookviz.support.printable import describe_type

DEEPEST = 20_000
"""Deeper graphs run unobserved: holding each node of a longer chain can overflow the C stack when it is freed."""


class TooDeep(Exception):
    """The graph has more than ``DEEPEST`` nodes in a row."""


def edge_of(root: torch.Tensor | GradientEdge) -> tuple[Node | None, int]:
    """The node into which a gradient of ``root`` goes, and at which of its outputs."""
    if isinstance(root, GradientEdge):
        return root.node, root.output_nr
    if not root.requires_grad:
        return None, 0
    try:
        node = root.grad_fn
        if node is not None:
            return node, root.output_nr
        edge = torch.autograd.graph.get_gradient_edge(root)  # a leaf: its AccumulateGrad
    except (RuntimeError, AttributeError):
        # A stale view, of which torch refuses to tell the history (the pass will say so itself), or a leaf of one of
        # torch.func's inner levels, whose AccumulateGrad cannot be reached.
        return None, 0
    return edge.node, edge.output_nr


def walk(roots: Iterable[Node]) -> list[Node]:
    """All nodes below ``roots``, without recursion, as the engine would most likely visit them.

    The engine takes, of the nodes that are ready, the one with the highest sequence number; so does this.

    Raises:
        TooDeep: more than ``DEEPEST`` nodes lie in a row.
    """
    order = count()
    heap = [(-node._sequence_nr(), next(order), 1, node) for node in roots]
    heapq.heapify(heap)
    seen: dict[int, Node] = {}
    while heap:
        _, _, depth, node = heapq.heappop(heap)
        if id(node) in seen:
            continue
        seen[id(node)] = node
        if depth > DEEPEST:
            release(list(seen.values()))
            raise TooDeep
        for following, _ in node.next_functions:
            if following is not None and id(following) not in seen:
                heapq.heappush(heap, (-following._sequence_nr(), next(order), depth + 1, following))
    return list(seen.values())


def release(nodes: list[Node]) -> None:
    """Let go of ``nodes``, root first: the other way round, freeing a long chain recurses."""
    nodes.reverse()
    nodes.clear()


def saved_tensors(node: Node) -> Iterator[tuple[torch.Tensor | None, Any]]:
    """The tensors that ``node`` saved from forward, where reading them runs no code of anybody's.

    Each comes with the hook that unpacks it, if it has one (checkpointing, save_on_cpu): such a tensor is left alone
    and None stands in its place, since unpacking it would call the hook.
    """
    for name, raw in _saved_names(type(node)):
        try:
            hook = getattr(getattr(node, raw), "unpack_hook", _NEVER)
            tensor = getattr(node, name) if hook is None else None
        except RuntimeError:  # changed in place since, or freed already: backward will say so itself
            continue
        if isinstance(tensor, torch.Tensor) or (hook is not None and hook is not _NEVER):
            yield tensor, hook


_NEVER = object()
"""What is saved is not a tensor, and has no hook."""
_SAVED: dict[type, tuple[tuple[str, str], ...]] = {}


def _saved_names(kind: type) -> tuple[tuple[str, str], ...]:
    """(attribute with a saved tensor, attribute with what it is packed in) of a kind of node."""
    if kind not in _SAVED:
        if hasattr(kind, FUNCTION_OF_NODE):  # a Function of one's own saves under no name, and must not be kept here
            return ()
        names = [name for name in dir(kind) if name.startswith(SAVED) and not name.startswith(f"{SAVED}result")]
        pairs = [(name, f"{RAW_SAVED}{name.removeprefix(SAVED)}") for name in names]
        _SAVED[kind] = tuple((name, raw) for name, raw in pairs if hasattr(kind, raw))
    return _SAVED[kind]


LEAVES, LAST = "AccumulateGrad", 2**64 - 1
"""The op of the nodes that write to leaves, and their sequence number."""


def leaf_of(node: Node) -> torch.Tensor | None:
    """The leaf that an AccumulateGrad node writes to, else None."""
    if type(node).__name__ != LEAVES:
        return None
    variable: torch.Tensor = node.variable  # type: ignore[attr-defined]
    return variable


def op_of(node: Node) -> str:
    """The node's op as torch prints it: ``MulBackward0``, ``AccumulateGrad``."""
    return type(node).__name__


def caller(depth: int = 1) -> FrameType:
    """The nearest frame below this package and torch: the code that a person wrote."""
    frame = sys._getframe(depth)
    while frame.f_back is not None and _ours(frame):
        frame = frame.f_back
    return frame


_NOT_THEIRS = tuple(
    os.path.join(folder, "") for folder in (os.path.dirname(torch.__file__), os.path.dirname(os.path.dirname(__file__)))
)


def _ours(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(_NOT_THEIRS) or file == contextlib.__file__


LONGEST_NAME = 200
"""Names given by hand may have up to this many characters."""


def checked_names(names: Mapping[str, torch.Tensor] | None) -> dict[str, torch.Tensor]:
    """``names`` as it was given, once it is seen to be name → tensor.

    Raises:
        TypeError: it is not a dict, a name is not a text, or what is named is not a tensor.
        ValueError: a name is empty or longer than ``MAX_NAME_LENGTH``.
    """
    if names is None:
        return {}
    if not isinstance(names, Mapping):
        raise TypeError(say("error.names.type", kind=describe_type(names)))
    for name, tensor in names.items():
        if not isinstance(name, str):
            raise TypeError(say("error.names.key", kind=describe_type(name)))
        if not name.strip():
            raise ValueError(say("error.names.empty"))
        if len(name) > LONGEST_NAME:
            raise ValueError(say("error.names.long", most=LONGEST_NAME, length=f"{len(name):,}"))
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(say("error.names.value", name=name, kind=describe_type(tensor)))
    return dict(names)


def variables(frame: FrameType) -> dict[str, torch.Tensor]:
    """Name → tensor, from the frame's variables and then its globals; a container's items as ``w[0]``."""
    local = frame.f_locals
    found = dict(_tensors(local))
    if local is not frame.f_globals:
        for name, tensor in _tensors(frame.f_globals):
            found.setdefault(name, tensor)
        _forget(frame, local)
    return found


def variable_of(thing: object, frame: FrameType) -> str | None:
    """The name of the variable that holds ``thing``, in the frame and then in its globals."""
    local = frame.f_locals
    found = _name_in(local, thing) or _name_in(frame.f_globals, thing)
    if local is not frame.f_globals:
        _forget(frame, local)
    return found


def _name_in(space: Mapping[str, Any], thing: object) -> str | None:
    for name, held in list(space.items()):
        if held is thing and not name.startswith("_") and name not in _SKIPPED:
            return name
    return None


def locals_of(frame: FrameType) -> dict[str, Any]:
    """A copy of the variables of a function that is running; the frame is left as it was."""
    local = frame.f_locals
    found = dict(local)
    _forget(frame, local)
    return found


def _forget(frame: FrameType, local: dict[str, Any]) -> None:
    """Before Python 3.13 a function's frame keeps the dict it gave out, and with it every tensor in it."""
    function = frame.f_code.co_flags & 0x3 == 0x3  # CO_OPTIMIZED and CO_NEWLOCALS: not a module or class body
    if function and sys.version_info < (3, 13) and sys.getrefcount(local) <= 4:  # the user holds no locals()
        local.clear()


_SKIPPED = frozenset({"In", "Out", "exit", "quit"})
_WITHOUT = frozenset({bool, int, float, str, bytes, type(None), type, FunctionType, BuiltinFunctionType, ModuleType})
"""Types of things in which there is no tensor: most of the variables of a notebook are such."""


def _tensors(space: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, thing in list(space.items()):
        if type(thing) not in _WITHOUT and not name.startswith("_") and name not in _SKIPPED:
            yield from _named(name, thing)


def _named(name: str, thing: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(thing, torch.Tensor):
        yield name, thing
    elif isinstance(thing, torch.nn.Module):
        yield from ((f"{name}.{path}", parameter) for path, parameter in named_parameters(thing))
    elif type(thing) in (list, tuple):
        yield from ((f"{name}[{i}]", x) for i, x in enumerate(thing[:64]) if isinstance(x, torch.Tensor))
    elif type(thing) is dict and len(thing) <= 64:
        yield from ((f"{name}[{key!r}]", x) for key, x in thing.items() if isinstance(x, torch.Tensor))
