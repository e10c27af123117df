"""Find the hooks on tensors and nodes of autograd graphs."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch.autograd.graph import Node
from torch.utils.hooks import RemovableHandle

from hookviz.autograd import graph
from hookviz.autograd.graph import NodeMarks
from hookviz.autograd.graph_snapshot import GraphSnapshot, add_hook_row
from hookviz.autograd.graph_tensors import PlacedHookDict
from hookviz.autograd.node_numbering import NodeNumbers
from hookviz.autograd.tensor_statistics import fetch_pending, hidden_from_tools
from hookviz.autograd.torch_internals import DisableTorchFunction
from hookviz.hook_listing.saved_lines import SavedLines
from hookviz.hook_listing.unreachable_hooks import dicts_on_nodes
from hookviz.picture.primitives import Saved
from hookviz.recorder.hook_observer import Observer
from hookviz.recorder.open_recordings import recording_here
from hookviz.recorder.torch.hook_dicts import Dict, user_hook_entries
from hookviz.recorder.torch.unwrapped_hooks import UnwrappedHook, is_multi_grad_part, unwrap_hook, user_function
from hookviz.support.interpreter import Uninterrupted
from hookviz.support.messages import _
from hookviz.support.progress import progress
from hookviz.support.source_code import Source, describe_function
from hookviz.trace import TraceData


class UnplacedHooks(NamedTuple):
    """The hooks that run in a graph, or may, and are not listed on its nodes."""

    lost: list[Source]
    """Those on an unknown node: their tensors are gone, or were changed in place since."""
    of_modules: list[Source]
    """The backward hooks of modules, which torch's own hooks on nodes call."""


class GraphHook(NamedTuple):
    """A hook on a graph: its row in the trace, the dict that keeps it, and its key there."""

    row: int
    hooks: Dict
    key: Any


def node_dict(node: Node, kind: str) -> Dict:
    """Return the dict that keeps the hooks of one kind on ``node``; torch exposes it through a handle only.

    The number that the handle took is given back, so that the user's hooks get the same numbers as without this.
    """
    register = node.register_prehook if kind == "node_pre_hook" else node.register_hook
    with Uninterrupted():
        handle = register(_temporary_hook)
        hooks = cast("Dict", handle.hooks_dict_ref())
        handle.remove()
        if RemovableHandle.next_id == handle.id + 1:
            RemovableHandle.next_id = handle.id
    return hooks


def _temporary_hook(*_ignored: Any) -> None:
    """A hook that is removed before it can run."""


def capture_with_hooks(
    roots: Sequence[Any],
    names: dict[str, torch.Tensor],
    unplaced: UnplacedHooks | None = None,
    saved: dict[int, list[Saved]] | None = None,
) -> tuple[TraceData, list[GraphHook]]:
    """Capture the graph below ``roots`` as a trace without steps, and every hook registered on it now.

    With ``unplaced``, search also for the hooks of tensors that no variable leads to. Hooks that may be on this graph,
    but on an unknown node, are added to it, as are the hooks of modules that run here. What nodes saved is added to
    ``saved``: number of a node → what it saved.

    Raises:
        ValueError: the graph is too deep to be held.
    """
    trace, graph_hooks = TraceData(), []
    snapshot = GraphSnapshot(trace, NodeNumbers(trace))
    try:
        with DisableTorchFunction(), hidden_from_tools():
            snapshot.capture(roots, names)
            dicts = _hook_dicts_on_graph(snapshot) if unplaced is None else _all_hook_dicts(snapshot, unplaced)
            for kind, hooks, node, output in dicts:
                for key, hook in user_hook_entries(hooks):
                    unwrapped = unwrap_hook(hook)
                    if unwrapped.calls_others:
                        _add_of_module(unwrapped, unplaced)
                        continue
                    exact_kind = "multi_grad_hook" if is_multi_grad_part(hook) else kind
                    row = add_hook_row(trace, 0, exact_kind, node, output, key, unwrapped.function)
                    graph_hooks.append(GraphHook(row, hooks, key))
            if saved is not None:
                saved.update(SavedLines(snapshot, names).read())
            fetch_pending(trace.values, 0)
    except graph.TooDeep as error:
        raise ValueError(error.advice) from None
    finally:
        snapshot.release()
    return trace, graph_hooks


def _hook_dicts_on_graph(snapshot: GraphSnapshot) -> Iterator[PlacedHookDict]:
    """Yield the hook dicts of the tensors and nodes of a graph."""
    recording = recording_here()
    yield from snapshot.tensor_hook_dicts(
        NodeMarks() if recording is None else recording.passes.late_hooks.dicts, search=True
    )
    with progress(_("Looking for hooks on nodes: {n} of {total}"), len(snapshot.nodes)) as tick:
        for node in snapshot.nodes:
            for kind in ("node_pre_hook", "node_post_hook"):
                yield kind, node_dict(node, kind), snapshot.numbers[id(node)], None
            tick()


def _add_of_module(unwrapped: UnwrappedHook, unplaced: UnplacedHooks | None) -> None:
    """Add the hooks of a module that torch's own hook on a node calls."""
    if unplaced is not None:
        hooks = (*unwrapped.function.user_pre_hooks, *unwrapped.function.user_hooks)
        users = (user_function(hook) for hook in hooks if not isinstance(hook, Observer))
        unplaced.of_modules.extend(map(describe_function, users))


def _all_hook_dicts(snapshot: GraphSnapshot, unplaced: UnplacedHooks) -> Iterator[PlacedHookDict]:
    """As ``_hook_dicts_on_graph``, with dicts that only nodes hold; add hooks on unknown nodes to ``unplaced``."""
    known = set()
    for placed in _hook_dicts_on_graph(snapshot):
        known.add(id(placed[1]))
        yield placed
    if all(graph.leaf_of(node) is not None for node in snapshot.nodes):
        return
    for hooks, tensor in dicts_on_nodes(known):
        if tensor is None:
            unplaced.lost.extend(describe_function(user_function(hook)) for _key, hook in user_hook_entries(hooks))
        elif (place := snapshot.place_of_tensor(tensor)) is not None:
            yield "tensor_hook", hooks, *place
