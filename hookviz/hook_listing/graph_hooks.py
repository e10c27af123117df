"""The hooks on tensors and nodes of autograd graphs."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import Node
from torch.utils.hooks import RemovableHandle

from hookviz.autograd import graph
from hookviz.autograd.graph_snapshot import GraphSnapshot, add_hook_row, dict_of_handle
from hookviz.autograd.node_marks import NodeMarks
from hookviz.autograd.node_numbers import NodeNumbers
from hookviz.autograd.tensor_statistics import fetch_pending, hidden_from_tools
from hookviz.autograd.torch_internals import DisableTorchFunction
from hookviz.hook_listing.unreachable_hooks import dicts_on_nodes
from hookviz.recorder.hook_dicts import Dict, entries
from hookviz.recorder.torch_patches import recording_here
from hookviz.recorder.unwrapped_hooks import unwrap_hook
from hookviz.support.interrupts import Uninterrupted
from hookviz.support.messages import say
from hookviz.support.progress import maybe
from hookviz.support.source_code import describe
from hookviz.trace import TraceData


class Unplaced(NamedTuple):
    """A hook on a node, nobody knows which: on a tensor that is gone, or was changed in place since."""

    label: str
    where: str


class OnGraph(NamedTuple):
    """A hook on a graph: its row in the trace, and the dict in which it is kept, under a key."""

    row: int
    hooks: Dict
    key: Any


def node_dict(node: Node, kind: str) -> Dict:
    """The dict that all hooks of one kind on ``node`` share; torch gives it away through a handle only.

    The number that the handle took is given back, so that the hooks of a person get the numbers that they would get.
    """
    register = node.register_prehook if kind == "node_pre_hook" else node.register_hook
    with Uninterrupted():
        handle = register(_nothing)
        hooks: Dict = dict_of_handle(handle)
        handle.remove()
        if RemovableHandle.next_id == handle.id + 1:
            RemovableHandle.next_id = handle.id
    return hooks


def _nothing(*_: Any) -> None:
    """A hook that is taken off before it can run."""


def survey(roots: Sequence[Any], names: dict[str, torch.Tensor]) -> TraceData:
    """A trace without steps: the graph below ``roots``, and every hook registered on it now.

    Raises:
        ValueError: the graph is too deep to be held.
    """
    return survey_hooks(roots, names)[0]


def survey_hooks(
    roots: Sequence[Any], names: dict[str, torch.Tensor], unplaced: list[Unplaced] | None = None
) -> tuple[TraceData, list[OnGraph]]:
    """As ``survey``, and with the trace the hooks with the dicts that keep them.

    Where ``unplaced`` is given, tensors that no variable leads to are looked for, too, and the hooks are added to it
    that may be on this graph and cannot be found on it.

    Raises:
        ValueError: the graph is too deep to be held.
    """
    trace, found = TraceData(), []
    seen = GraphSnapshot(trace, NodeNumbers(trace))
    try:
        with DisableTorchFunction(), hidden_from_tools():
            seen.capture(roots, names)
            kept = _kept(seen) if unplaced is None else _kept_anywhere(seen, unplaced)
            for kind, hooks, node, output in kept:
                for key, hook in entries(hooks):
                    row = add_hook_row(trace, 0, *_shown(kind, node, output, key, hook))
                    found.append(OnGraph(row, hooks, key))
            fetch_pending(trace.values, 0)
    except graph.TooDeep:
        raise ValueError(say("error.draw.deep", deepest=f"{graph.MAX_DEPTH:,}")) from None
    finally:
        seen.release()
    return trace, found


def _kept(seen: GraphSnapshot) -> Iterator[tuple[str, Any, int, int]]:
    recording = recording_here()
    yield from seen.tensor_hook_dicts(
        NodeMarks() if recording is None else recording.passes.late_hooks.dicts, search=True
    )
    with maybe(say("progress.looking", n="{n}", total="{total}"), len(seen.nodes)) as tick:
        for node in seen.nodes:
            for kind in ("node_pre_hook", "node_post_hook"):
                yield kind, node_dict(node, kind), seen.numbers[id(node)], -1
            tick()


def _kept_anywhere(seen: GraphSnapshot, unplaced: list[Unplaced]) -> Iterator[tuple[str, Any, int, int]]:
    known = set()
    for kept in _kept(seen):
        known.add(id(kept[1]))
        yield kept
    if all(graph.leaf_of(node) is not None for node in seen.nodes):
        return
    for hooks, tensor in dicts_on_nodes(known):
        if tensor is None:
            unplaced += [_unplaced(hook) for _, hook in entries(hooks)]
        elif (place := seen.place_of_tensor(tensor)) is not None:
            yield "tensor_hook", hooks, *place


def _unplaced(hook: Any) -> Unplaced:
    found = unwrap_hook(hook)
    source = describe(hook if found is None else found.function)
    return Unplaced(source.label, say("hook.where", file=source.file, line=source.line) if source.file else "")


def _shown(kind: str, node: int, output: int, key: Any, hook: Any) -> tuple[str, int, int, Any, Any]:
    """A multi-grad hook as what it is; torch keeps a function of its own on each of the tensors."""
    found = unwrap_hook(hook)
    if found is not None and found.kind == "multi_grad_hook":
        kind, hook = found.kind, found.function
    return kind, node, output, key, hook
