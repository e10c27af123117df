"""The ids of the elements of a picture.

A box is ``n12`` (a node), ``m3`` (a module call), ``c3`` (a module with several calls, first ``m3``), ``o0`` (an
optimizer) or ``g5`` (a group). The id of an element on a box is the box's id, a hyphen, a letter for the kind of
element, and a number if a box can have several: ``n12-p0`` is the pin of hook 0, and ``n12-p0-v`` the text that says
what that hook did. An arrow is ``e12-0-15`` (from input 0 of node 12 to node 15) or ``en12-m3``.
"""

_BOXES = {"node": "n", "call": "m", "shared": "c", "group": "g", "optimizer": "o"}
"""Kind of a box → its letter. The number of a shared module is that of its first call."""
_PARTS = {
    "pin": "p",  # of a hook that was registered when its pass began
    "unfired_pin": "u",  # of a hook that was not
    "retain_pin": "r",  # of retain_grad, for one output
    "value": "v",  # what a hook did, or which gradient an arrow carries
    "gradient": "g",
    "output": "a",  # the text with the output of a module call
    "input": "i",
    "memory": "y",  # which other gradients have the memory of this one
    "fired_count": "c",  # how many hooks in a group have fired
    "tensor_value": "d",  # the value behind the name with this index
    "saved": "s",  # a tensor that the node saved
    "header": "h",  # the name, class and output of a module call
    "output_plate": "q",  # the plate with the hooks at the output of a module
    "input_plate": "f",
    "tensor_box": "k",  # of the layer of tensors, as the next two
    "data": "b",
    "grad": "f",
    "bar": "s",  # of a stack
}
"""Element on a box, or on another element → its letter; no box has two elements with one letter."""


def box_id(kind: str, number: int) -> str:
    """Return the id of a box.

    >>> box_id("node", 12)
    'n12'
    """
    return f"{_BOXES[kind]}{number}"


def part_id(part: str, owner: str, number: int | str | None = "") -> str:
    """Return the id of an element on a box, or on another element: ``owner`` is its id.

    >>> part_id("value", part_id("pin", "n12", 0))
    'n12-p0-v'
    """
    return f"{owner}-{_PARTS[part]}{number}"


def edge_id(start: int, slot: int, end: int) -> str:
    """Return the id of the arrow of one edge: from input ``slot`` of node ``start`` to node ``end``."""
    return f"e{start}-{slot}-{end}"


def bundle_id(start: str, end: str) -> str:
    """Return the id of the arrow that stands for all edges between two boxes, given by their ids."""
    return f"e{start}-{end}"
