"""The graph below a tensor, drawn with the hooks that are registered on it now."""

from typing import Any

import torch

from hookviz.autograd import graph
from hookviz.autograd.torch_internals import require
from hookviz.hook_listing.graph_hooks import survey
from hookviz.picture.dot_source import Figure, build_figure
from hookviz.picture.scene import MAX_BOXES, Scene
from hookviz.support.messages import say
from hookviz.support.printable import kind_of


def draw(root: torch.Tensor, *, tensors: bool = False, most: int = MAX_BOXES, names: Any = None) -> Figure:
    """The autograd graph below ``root`` with every registered hook on it, before anything runs.

    Where many arrows run far, as in an unrolled recurrent net, all are drawn straight, and the picture says so.

    Args:
        root: a tensor that was computed from leaves, such as a loss.
        tensors: beside each node, also the Python tensor with its data, grad, grad_fn and hooks.
        most: how many nodes are drawn at most, those nearest to the root; no more than 300.
        names: name → tensor, overruling the names of the caller's variables.

    Raises:
        TypeError: ``root`` is no tensor, or ``most`` no whole number.
        ValueError: ``root`` has no history, or one that is too deep to be held; ``most`` is less than 1.

    >>> a = torch.tensor(2.0, requires_grad=True)
    >>> c = a * 3
    >>> "MulBackward0" in draw(c).source
    True
    """
    require()
    if not isinstance(root, torch.Tensor):
        raise TypeError(say("error.draw.type", kind=kind_of(root)))
    if not root.requires_grad:
        raise ValueError(say("error.draw.history"))
    if isinstance(most, bool) or not isinstance(most, int):
        raise TypeError(say("error.draw.most", most=kind_of(most)))
    if most < 1:
        raise ValueError(say("error.draw.most", most=most))
    given = graph.checked_names(names)
    for name, tensor in graph.variables(graph.caller()).items():
        given.setdefault(name, tensor)
    trace = survey([root], given)
    return build_figure(Scene.from_trace(trace, max_boxes=min(most, MAX_BOXES)), None, tensors=tensors)
