"""Draw the graph below tensors with the hooks that are registered on it now."""

from types import FrameType
from typing import Any

import torch

from hookviz.autograd import variable_names
from hookviz.autograd.tensor_types import is_tensor
from hookviz.autograd.torch_internals import SAVED_TENSORS_SHOW_THEIR_HOOKS, require_internals
from hookviz.hook_listing.graph_hooks import capture_with_hooks
from hookviz.picture.figure import Figure
from hookviz.picture.primitives import Saved
from hookviz.picture.scene import MAX_BOXES, Scene
from hookviz.recorder.modules.arguments import labelled_leaves
from hookviz.support.messages import N_, _
from hookviz.support.printable import describe_type

_WRONG_MOST = N_("most is how many nodes to draw at most, a whole number from 1 to 300, not {most}.")


def draw(
    *outputs: Any,
    tensors: bool = False,
    saved: bool = False,
    internal: bool = False,
    most: int = MAX_BOXES,
    names: Any = None,
) -> Figure:
    """Draw the autograd graph below ``outputs`` with every registered hook on it, before anything runs.

    Args:
        outputs: tensors that were computed from leaves, such as losses, or what a model returns: a list, tuple, dict
            or dataclass of tensors. What it holds without a history is not drawn.
        tensors: draw also the Python tensor of each node, with its data, grad, grad_fn and hooks.
        saved: show in the box of each node what it saved for its backward: the name of its attribute, which of your
            tensors it is, and its numbers or its shape. It says which were freed by a backward pass.
        internal: draw also the nodes that torch makes on its own, such as ``TBackward0``. Without names of a module's
            parameters, as from ``names=dict(net.named_parameters())``, all nodes are drawn in any case.
        most: draw at most this many nodes, the nearest to the outputs; 300 at the most.
        names: name → tensor; these names override the names of the caller's variables.

    Raises:
        TypeError: an output is neither a tensor nor holds one, there is none, or ``most`` is not an int.
        ValueError: an output has no history, or the graph is too deep to be held; ``most`` is less than 1.
        RuntimeError: ``saved`` needs PyTorch 2.10.

    >>> import torch, hookviz as hv
    >>> a = torch.tensor(2.0, requires_grad=True)
    >>> c = a * 3
    >>> "MulBackward0" in hv.draw(c).svg()
    True
    >>> "_saved_result" in hv.draw(c, c.exp(), saved=True).svg()
    True
    """
    require_internals()
    _check_options(most, saved)
    given = variable_names.validate_names(names)
    frame = variable_names.caller_frame()
    roots = [root for number, output in enumerate(outputs, 1) for root in _read_roots(output, number, frame)]
    if not roots:
        raise TypeError(_("draw() takes at least one tensor that has a history, such as a loss."))
    for name, tensor in (*variable_names.tensor_variables(frame).items(), *roots):
        if name:
            given.setdefault(name, tensor)
    shown: dict[int, list[Saved]] = {}
    trace, _hooks = capture_with_hooks([root for _name, root in roots], given, saved=shown if saved else None)
    scene = Scene.from_trace(trace, max_boxes=min(most, MAX_BOXES), internal=internal)
    for node in scene.boxes.keys() & shown.keys():
        scene.boxes[node].saved = shown[node]
    return Figure(scene, None, tensors=tensors)


def _check_options(most: object, saved: bool) -> None:
    if isinstance(most, bool) or not isinstance(most, int):
        raise TypeError(_(_WRONG_MOST).format(most=describe_type(most)))
    if most < 1:
        raise ValueError(_(_WRONG_MOST).format(most=most))
    if saved and not SAVED_TENSORS_SHOW_THEIR_HOOKS:
        raise RuntimeError(
            _(
                "draw(saved=True) needs PyTorch 2.10 or newer: with an older one, reading what a node saved could call "
                "a hook of yours."
            )
        )


def _read_roots(output: Any, number: int, frame: FrameType) -> list[tuple[str, torch.Tensor]]:
    """Return the tensors with a history in an argument, each with a name that no variable gives it.

    Raises:
        TypeError: it holds no tensor.
        ValueError: none of its tensors has a history.
    """
    if is_tensor(output):
        held = [("", output)]
    else:
        label = variable_names.variable_name(output, frame) or "output"
        held = [(name, leaf) for name, leaf in labelled_leaves(label, output) if is_tensor(leaf)]
    if not held:
        raise TypeError(
            _(
                "draw() takes a tensor that has a history, such as a loss, or a list, tuple or dict of such tensors; "
                "this is {kind}."
            ).format(kind=describe_type(output))
        )
    roots = [(name, tensor) for name, tensor in held if tensor.requires_grad]
    if not roots:
        raise ValueError(
            _(
                "Argument {number} of draw() has no history to draw: it was not computed from a tensor that requires "
                "grad. Set requires_grad=True on a leaf and compute again (outside torch.no_grad())."
            ).format(number=number)
        )
    return roots
