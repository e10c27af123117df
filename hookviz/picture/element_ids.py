"""The ids of the elements of a picture: functions that make an id, and functions that read one.

A box is ``n12`` (a node), ``m3`` (a module call) or ``g5`` (a group). The id of an element on a box is the box's id, a
hyphen, a letter for the kind of element, and a number if a box can have several: ``n12-p0`` is the pin of hook 0, and
``n12-p0-v`` the text that says what that hook did. An arrow is ``e12-0-15`` (from input 0 of node 12 to node 15) or
``en12-m3``.
"""

import re
from typing import NamedTuple


def node_id(number: int) -> str:
    """Return the id of a node's box."""
    return f"n{number}"


def call_id(number: int) -> str:
    """Return the id of the frame of a module call."""
    return f"m{number}"


def group_id(number: int) -> str:
    """Return the id of the box of a group."""
    return f"g{number}"


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


def fired_count_id(owner: str) -> str:
    """Return the id of the text that counts the fired hooks in a group."""
    return f"{owner}-c"


def name_id(owner: str, index: int = 0) -> str:
    """Return the id of a name on a box; ``index`` counts the names if there can be several."""
    return f"{owner}-t{index}"


def tensor_value_id(owner: str, index: int) -> str:
    """Return the id of the tensor's value behind the name with this ``index``."""
    return f"{owner}-d{index}"


def op_id(owner: str) -> str:
    """Return the id of a node's op, or of the description of a group."""
    return f"{owner}-o"


def label_id(owner: str) -> str:
    """Return the id of a pin's label."""
    return f"{owner}-l"


def pre_hooks_id(owner: str) -> str:
    """Return the id of a node's list of pre-hooks."""
    return f"{owner}-x"


def data_id(owner: str, output: int) -> str:
    """Return the id of a tensor's ``data`` in the layer of tensors."""
    return f"{owner}-b{output}"


def grad_id(owner: str, output: int) -> str:
    """Return the id of a tensor's ``.grad`` in the layer of tensors."""
    return f"{owner}-f{output}"


def upper_plate_id(owner: str) -> str:
    """Return the id of the plate above a module call: its name and the hooks at its output."""
    return f"{owner}-h"


def lower_plate_id(owner: str) -> str:
    """Return the id of the plate below a module call: the hooks at its inputs."""
    return f"{owner}-f"


def filler_id(owner: str) -> str:
    """Return the id of the invisible node that gives an empty module call its size."""
    return f"{owner}-e"


# -- reading an id

ARROW_ID = re.compile(r"e\d+-\d+-\d+|e[nmg]\d+-[nmg]\d+")
BOX_ID = re.compile(r"[nmg]\d+")
PLATE_ID = re.compile(r"m\d+-[hf]")
PIN_ID = re.compile(r"[nm]\d+-[pru]\d+")
_ON_BOX = re.compile(r"[nmge].*-(?P<letter>[a-z])\d*")


class TextKind(NamedTuple):
    """A kind of text in a picture."""

    css_class: str
    has_id: bool = False
    """Whether the text keeps its id in the SVG, because steps write it."""


_TEXT_KINDS = {
    "t": TextKind("hv-name"),
    "o": TextKind("hv-op"),
    "g": TextKind("hv-grad", has_id=True),
    "v": TextKind("hv-pin-value", has_id=True),
    "l": TextKind("hv-pin-label"),
    "x": TextKind("hv-text"),
    "a": TextKind("hv-activation", has_id=True),
    "i": TextKind("hv-activation", has_id=True),
    "c": TextKind("hv-hooked", has_id=True),
}
_ARROW_TEXT = TextKind("hv-edge-value", has_id=True)


def text_kind(element_id: str) -> TextKind | None:
    """Return the kind of the text with the id ``element_id``, or None if it is not the id of a text.

    >>> text_kind("n12-p0-v"), text_kind("e12-0-15-v").css_class, text_kind("n12-f0")
    (TextKind(css_class='hv-pin-value', has_id=True), 'hv-edge-value', None)
    """
    match = _ON_BOX.fullmatch(element_id)
    kind = _TEXT_KINDS.get(match["letter"]) if match else None
    return _ARROW_TEXT if kind is not None and element_id.startswith("e") else kind


def tensor_value_id_beside(name_element_id: str) -> str:
    """Return the id of the tensor's value behind the name with the id ``name_element_id``.

    >>> tensor_value_id_beside(name_id("n12", 1)) == tensor_value_id("n12", 1)
    True
    """
    owner, _, part = name_element_id.rpartition("-")
    return tensor_value_id(owner, int(part[1:]))


def is_retain_pin(element_id: str) -> bool:
    """Whether a pin stands for ``retain_grad``."""
    return element_id.rpartition("-")[2].startswith("r")


def is_tensor_fact(element_id: str) -> bool:
    """Whether an id belongs to a fact in the layer of tensors; the last text of that element is the fact's value.

    >>> [*map(is_tensor_fact, (data_id("n1", 0), grad_id("n1", 0), lower_plate_id("m1"), gradient_id("n1")))]
    [True, True, False, False]
    """
    return re.fullmatch(r"n\d+-[bf]\d+", element_id) is not None
