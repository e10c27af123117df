"""The ids of the elements of a picture: functions that make an id, and functions that read one.

A box is ``n12`` (a node), ``m3`` (a module call), ``c3`` (a module with several calls, first ``m3``), ``o0`` (an
optimizer) or ``g5`` (a group). The id of an element on a box is the box's id, a hyphen, a letter for the kind of
element, and a number if a box can have several: ``n12-p0`` is the pin of hook 0, and ``n12-p0-v`` the text that says
what that hook did. An arrow is ``e12-0-15`` (from input 0 of node 12 to node 15) or ``en12-m3``.
"""


def node_id(number: int) -> str:
    """Return the id of a node's box."""
    return f"n{number}"


def call_id(number: int) -> str:
    """Return the id of the frame of a module call."""
    return f"m{number}"


def shared_id(first_call: int) -> str:
    """Return the id of the frame around the calls of one module."""
    return f"c{first_call}"


def group_id(number: int) -> str:
    """Return the id of the box of a group."""
    return f"g{number}"


def optimizer_id(number: int) -> str:
    """Return the id of an optimizer's box."""
    return f"o{number}"


def edge_id(start: int, slot: int, end: int) -> str:
    """Return the id of the arrow of one edge: from input ``slot`` of node ``start`` to node ``end``."""
    return f"e{start}-{slot}-{end}"


def bundle_id(start: str, end: str) -> str:
    """Return the id of the arrow that stands for all edges between two boxes, given by their ids."""
    return f"e{start}-{end}"


def pin_id(owner: str, hook: int | None) -> str:
    """Return the id of the pin of a hook on the box ``owner``."""
    return f"{owner}-p{hook}"


def unfired_pin_id(owner: str, index: int) -> str:
    """Return the id of the pin of a hook that was not registered when its pass began."""
    return f"{owner}-u{index}"


def saved_id(owner: str, index: int) -> str:
    """Return the id of the row of a tensor that the node of the box ``owner`` saved."""
    return f"{owner}-s{index}"


def retain_pin_id(owner: str, output: int) -> str:
    """Return the id of the pin of ``retain_grad`` for one output."""
    return f"{owner}-r{output}"


def value_id(owner: str) -> str:
    """Return the id of the text that says what a hook did, or which gradient an arrow carries."""
    return f"{owner}-v"


def gradient_id(owner: str) -> str:
    """Return the id of the gradient's text on a box."""
    return f"{owner}-g"


def output_id(owner: str) -> str:
    """Return the id of the text with a module call's output."""
    return f"{owner}-a"


def input_id(owner: str) -> str:
    """Return the id of the text with a module call's input."""
    return f"{owner}-i"


def memory_id(owner: str) -> str:
    """Return the id of the text that says which other gradients have the memory of a box's gradient."""
    return f"{owner}-y"


def fired_count_id(owner: str) -> str:
    """Return the id of the text that counts the fired hooks in a group."""
    return f"{owner}-c"


def tensor_value_id(owner: str, index: int) -> str:
    """Return the id of the tensor's value behind the name with this ``index``."""
    return f"{owner}-d{index}"


def data_id(owner: str, output: int) -> str:
    """Return the id of a tensor's ``data`` in the layer of tensors."""
    return f"{owner}-b{output}"


def grad_id(owner: str, output: int) -> str:
    """Return the id of a tensor's ``.grad`` in the layer of tensors."""
    return f"{owner}-f{output}"


def header_id(owner: str) -> str:
    """Return the id of the head of a module call: its name, its class and its output."""
    return f"{owner}-h"


def output_plate_id(owner: str) -> str:
    """Return the id of the plate with the hooks at a module's output."""
    return f"{owner}-q"


def input_plate_id(owner: str) -> str:
    """Return the id of the plate with the hooks at a module's inputs."""
    return f"{owner}-f"


def tensor_box_id(owner: str, output: int) -> str:
    """Return the id of a tensor's box in the layer of tensors."""
    return f"{owner}-k{output}"


def bar_id(owner: str, index: int) -> str:
    """Return the id of a bar of a stack."""
    return f"{owner}-s{index}"


# -- reading an id


def is_retain_pin(element_id: str) -> bool:
    """Whether a pin stands for ``retain_grad``."""
    return element_id.rpartition("-")[2].startswith("r")
