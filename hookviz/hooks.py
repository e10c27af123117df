"""Where PyTorch keeps each kind of hook, and the census of those registered now."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
from torch.autograd.graph import Node
from torch.utils.hooks import RemovableHandle

from hookviz import graph
from hookviz.survey import KEY, Survey, hook_row, metadata_of
from hookviz.table import Table
from hookviz.trace import Hook, Trace
from hookviz.words import say

Dict = dict[Any, Callable[..., Any]]


def node_dict(node: Node, kind: str) -> Dict:
    """The dict that all hooks of one kind on ``node`` share; torch gives it away through a handle only."""
    hooks = put(node, kind, _nothing)
    del hooks[_nothing]
    return hooks


def put(node: Node, kind: str, hook: Callable[..., Any]) -> Dict:
    """Put a hook of ours into the dict that all hooks of one kind on ``node`` share, as its own key.

    The number that its handle took is given back, so that the hooks of a person get the numbers that they would get.
    """
    handle = (node.register_prehook if kind == "node_pre_hook" else node.register_hook)(hook)
    hooks = shared_dict(handle)
    hooks[hook] = hooks.pop(handle.id)
    if RemovableHandle.next_id == handle.id + 1:
        RemovableHandle.next_id = handle.id
    return hooks


def shared_dict(handle: RemovableHandle) -> Dict:
    """The dict in which a handle's hook is kept, as long as the handle's owner lives."""
    hooks: Any = handle.hooks_dict_ref()
    return cast(Dict, hooks)


def _nothing(*_: Any) -> None:
    """A hook that is taken off before it can run."""


def survey(roots: Sequence[Any], names: dict[str, torch.Tensor]) -> Trace:
    """A trace without steps: the graph below ``roots``, and every hook registered on it now.

    Raises:
        ValueError: the graph is too deep to be held.
    """
    trace = Trace()
    seen = Survey(trace, graph.Numbering())
    try:
        with torch._C.DisableTorchFunction():
            seen.take(roots, names)
            for kind, hooks, node, output in _kept(seen):
                for key, hook in (hooks or {}).items():
                    hook_row(trace, 0, kind, node, output, key, hook)
    except graph.TooDeep:
        raise ValueError(say("error.draw.deep", deepest=f"{graph.DEEPEST:,}")) from None
    finally:
        seen.release()
    return trace


def _kept(seen: Survey) -> Iterator[tuple[str, Any, int, int]]:
    yield from seen.hooks_of_tensors(marked=any(KEY in metadata_of(node) for node in seen.nodes))
    for node in seen.nodes:
        for kind in ("node_pre_hook", "node_post_hook"):
            yield kind, node_dict(node, kind), seen.numbers[id(node)], -1


def hooks(*tensors: torch.Tensor) -> Table[Hook]:
    """Every hook registered now on ``tensors`` and on the graphs below them.

    A hook on an intermediate tensor fires even when the Python tensor is gone: its dict then hangs on the node. Such a
    hook is listed only where the tensor can still be reached: through a variable, or because a node saved it.

    Raises:
        TypeError: something is no tensor.
        ValueError: a graph is too deep to be held.

    >>> a = torch.tensor(2.0, requires_grad=True)
    >>> c = a * 3
    >>> handle = c.register_hook(print)
    >>> [(hook.on, hook.name, hook.kept_in) for hook in hooks(c)]
    [('c', 'print', 'c._backward_hooks')]
    """
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(say("error.hooks.type", kind=graph.kind_of(tensor)))
    roots = [tensor for tensor in tensors if tensor.requires_grad]
    trace = survey(roots, graph.variables(graph.caller()))
    rows = [trace.hook(index) for index in range(len(trace.hook_rows))]
    head = [say(f"table.{name}") for name in ("on", "hook", "dict", "place", "where")]
    return Table(rows, head, _cells)


def _cells(hook: Hook) -> tuple[str, ...]:
    return (hook.on, hook.label, hook.kept_in, f"{hook.place + 1}/{hook.total}", hook.where)
