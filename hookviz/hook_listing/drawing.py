"""Draw the graph below a tensor with the hooks that are registered on it now."""

from typing import Any

import torch

from hookviz.autograd import variable_names
from hookviz.autograd.torch_internals import require_internals
from hookviz.hook_listing.graph_hooks import capture_with_hooks
from hookviz.picture.figure import Figure
from hookviz.picture.scene import MAX_BOXES, Scene
from hookviz.support.messages import N_, _
from hookviz.support.printable import describe_type

_WRONG_MOST = N_("most is how many nodes to draw at most, a whole number from 1 to 300, not {most}.")


def draw(
    root: torch.Tensor, *, tensors: bool = False, internal: bool = False, most: int = MAX_BOXES, names: Any = None
) -> Figure:
    """Draw the autograd graph below ``root`` with every registered hook on it, before anything runs.

    Args:
        root: a tensor that was computed from leaves, such as a loss.
        tensors: draw also the Python tensor of each node, with its data, grad, grad_fn and hooks.
        internal: draw also the nodes that torch makes on its own, such as ``TBackward0``. Without names of a module's
            parameters, as from ``names=dict(net.named_parameters())``, all nodes are drawn in any case.
        most: draw at most this many nodes, the nearest to the root; 300 at the most.
        names: name → tensor; these names override the names of the caller's variables.

    Raises:
        TypeError: ``root`` is not a tensor, or ``most`` is not an int.
        ValueError: ``root`` has no history, or its graph is too deep to be held; ``most`` is less than 1.

    >>> import torch, hookviz as hv
    >>> a = torch.tensor(2.0, requires_grad=True)
    >>> c = a * 3
    >>> "MulBackward0" in hv.draw(c).svg()
    True
    """
    require_internals()
    if not isinstance(root, torch.Tensor):
        raise TypeError(
            _("draw() takes a tensor that has a history, such as a loss; this is {kind}.").format(
                kind=describe_type(root)
            )
        )
    if not root.requires_grad:
        raise ValueError(
            _(
                "This tensor has no history to draw: it was not computed from a tensor that requires grad. "
                "Set requires_grad=True on a leaf and compute again (outside torch.no_grad())."
            )
        )
    if isinstance(most, bool) or not isinstance(most, int):
        raise TypeError(_(_WRONG_MOST).format(most=describe_type(most)))
    if most < 1:
        raise ValueError(_(_WRONG_MOST).format(most=most))
    given = variable_names.validate_names(names)
    for name, tensor in variable_names.tensor_variables(variable_names.caller_frame()).items():
        given.setdefault(name, tensor)
    trace, _hooks = capture_with_hooks([root], given)
    scene = Scene.from_trace(trace, max_boxes=min(most, MAX_BOXES), internal=internal)
    return Figure(scene, None, tensors=tensors)
