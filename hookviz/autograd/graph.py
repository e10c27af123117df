"""Walk the autograd graph, read what its nodes saved, and find the names of tensors in a frame."""

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

MAX_DEPTH = 20_000
"""Deeper graphs run unobserved: freeing a longer chain of nodes that were held can overflow the C stack."""


class TooDeep(Exception):
    """The graph has more than ``MAX_DEPTH`` nodes in a row."""


def edge_of(root: torch.Tensor | GradientEdge) -> tuple[Node | None, int]:
    """The node that receives the gradient of ``root``, and at which output; (None, 0) if there is none."""
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
        # Torch does not give out the history of a stale view (backward raises for it), nor the AccumulateGrad of a
        # leaf that belongs to an inner level of torch.func.
        return None, 0
    return edge.node, edge.output_nr


def reachable_nodes(roots: Iterable[Node]) -> list[Node]:
    """List all nodes reachable from ``roots``, in the order in which the engine would most likely run them.

    As the engine does, this takes the node with the highest sequence number among those that are ready. It does not
    recurse.

    Raises:
        TooDeep: there are more than ``MAX_DEPTH`` nodes in a row.
    """
    order = count()
    heap = [(-node._sequence_nr(), next(order), 1, node) for node in roots]
    heapq.heapify(heap)
    visited: dict[int, Node] = {}
    while heap:
        _, _, depth, node = heapq.heappop(heap)
        if id(node) in visited:
            continue
        visited[id(node)] = node
        if depth > MAX_DEPTH:
            release(list(visited.values()))
            raise TooDeep
        for following, _ in node.next_functions:
            if following is not None and id(following) not in visited:
                heapq.heappush(heap, (-following._sequence_nr(), next(order), depth + 1, following))
    return list(visited.values())


def release(nodes: list[Node]) -> None:
    """Empty the list ``nodes``, root first: freeing a long chain from the leaves recurses."""
    nodes.reverse()
    nodes.clear()


def saved_tensors(node: Node) -> Iterator[tuple[torch.Tensor | None, Any]]:
    """Yield (tensor, unpack hook) for each tensor that ``node`` saved in forward.

    Where there is an unpack hook (checkpointing, save_on_cpu), the tensor is None: reading it would call the hook.
    """
    for name, raw in _saved_attributes(type(node)):
        try:
            hook = getattr(getattr(node, raw), "unpack_hook", _NOT_SAVED_TENSOR)
            tensor = getattr(node, name) if hook is None else None
        except RuntimeError:  # changed in place since, or freed already: backward raises its own error
            continue
        if isinstance(tensor, torch.Tensor) or (hook is not None and hook is not _NOT_SAVED_TENSOR):
            yield tensor, hook


_NOT_SAVED_TENSOR = object()
"""Stands for the unpack hook of a saved value that is not a tensor."""
_SAVED_ATTRIBUTES: dict[type, tuple[tuple[str, str], ...]] = {}


def _saved_attributes(kind: type) -> tuple[tuple[str, str], ...]:
    """The attributes in which nodes of a class keep saved tensors, as pairs (unpacked, packed)."""
    if kind not in _SAVED_ATTRIBUTES:
        if hasattr(
            kind, FUNCTION_OF_NODE
        ):  # a custom Function: it saves without names, and no class of it may stay here
            return ()
        names = [name for name in dir(kind) if name.startswith(SAVED) and not name.startswith(f"{SAVED}result")]
        pairs = [(name, f"{RAW_SAVED}{name.removeprefix(SAVED)}") for name in names]
        _SAVED_ATTRIBUTES[kind] = tuple((name, raw) for name, raw in pairs if hasattr(kind, raw))
    return _SAVED_ATTRIBUTES[kind]


LEAF_OP, LEAF_SEQUENCE = "AccumulateGrad", 2**64 - 1
"""The op and the sequence number of AccumulateGrad nodes, which write to leaves."""


def leaf_of(node: Node) -> torch.Tensor | None:
    """The leaf that an AccumulateGrad node writes to; None for any other node."""
    if type(node).__name__ != LEAF_OP:
        return None
    variable: torch.Tensor = node.variable  # type: ignore[attr-defined]
    return variable


def op_of(node: Node) -> str:
    """The node's op as torch prints it: ``MulBackward0``, ``AccumulateGrad``."""
    return type(node).__name__


def caller_frame(depth: int = 1) -> FrameType:
    """Return the innermost frame of the user's code: neither of this package nor of torch."""
    frame = sys._getframe(depth)
    while frame.f_back is not None and _is_library_frame(frame):
        frame = frame.f_back
    return frame


_LIBRARY_FOLDERS = tuple(
    os.path.join(folder, "") for folder in (os.path.dirname(torch.__file__), os.path.dirname(os.path.dirname(__file__)))
)


def _is_library_frame(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(_LIBRARY_FOLDERS) or file == contextlib.__file__


MAX_NAME_LENGTH = 200
"""Names passed by the user may have up to this many characters."""


def validate_names(names: Mapping[str, torch.Tensor] | None) -> dict[str, torch.Tensor]:
    """Check that ``names`` maps names to tensors, and return a copy; an empty dict for None.

    Raises:
        TypeError: ``names`` is not a mapping, a name is not a str, or a value is not a tensor.
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
        if len(name) > MAX_NAME_LENGTH:
            raise ValueError(say("error.names.long", most=MAX_NAME_LENGTH, length=f"{len(name):,}"))
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(say("error.names.value", name=name, kind=describe_type(tensor)))
    return dict(names)


def tensor_variables(frame: FrameType) -> dict[str, torch.Tensor]:
    """Map names to the tensors in a frame's variables and then its globals; the items of a container as ``w[0]``."""
    local = frame.f_locals
    found = dict(_tensors_in_namespace(local))
    if local is not frame.f_globals:
        for name, tensor in _tensors_in_namespace(frame.f_globals):
            found.setdefault(name, tensor)
        _clear_locals_cache(frame, local)
    return found


def variable_name(value: object, frame: FrameType) -> str | None:
    """Find the name of a variable that holds ``value``, first in the frame, then in its globals."""
    local = frame.f_locals
    found = _find_name(local, value) or _find_name(frame.f_globals, value)
    if local is not frame.f_globals:
        _clear_locals_cache(frame, local)
    return found


def _find_name(namespace: Mapping[str, Any], value: object) -> str | None:
    for name, held in list(namespace.items()):
        if held is value and not name.startswith("_") and name not in _IGNORED_NAMES:
            return name
    return None


def copy_locals(frame: FrameType) -> dict[str, Any]:
    """Copy the local variables of a running function; the frame keeps no reference to the values because of it."""
    local = frame.f_locals
    found = dict(local)
    _clear_locals_cache(frame, local)
    return found


def _clear_locals_cache(frame: FrameType, local: dict[str, Any]) -> None:
    """Empty the dict behind ``f_locals``: before Python 3.13 the frame keeps it, and with it every tensor in it."""
    function = frame.f_code.co_flags & 0x3 == 0x3  # CO_OPTIMIZED and CO_NEWLOCALS: not a module or class body
    if function and sys.version_info < (3, 13) and sys.getrefcount(local) <= 4:  # the user holds no locals()
        local.clear()


_IGNORED_NAMES = frozenset({"In", "Out", "exit", "quit"})
_TYPES_WITHOUT_TENSORS = frozenset(
    {bool, int, float, str, bytes, type(None), type, FunctionType, BuiltinFunctionType, ModuleType}
)
"""Types of values that contain no tensor: most variables of a notebook have one of them."""


def _tensors_in_namespace(namespace: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    for name, value in list(namespace.items()):
        if type(value) not in _TYPES_WITHOUT_TENSORS and not name.startswith("_") and name not in _IGNORED_NAMES:
            yield from _tensors_in_variable(name, value)


def _tensors_in_variable(name: str, value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, torch.nn.Module):
        yield from ((f"{name}.{path}", parameter) for path, parameter in named_parameters(value))
    elif type(value) in (list, tuple):
        yield from ((f"{name}[{i}]", x) for i, x in enumerate(value[:64]) if isinstance(x, torch.Tensor))
    elif type(value) is dict and len(value) <= 64:
        yield from ((f"{name}[{key!r}]", x) for key, x in value.items() if isinstance(x, torch.Tensor))
