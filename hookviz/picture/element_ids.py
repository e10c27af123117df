"""The ids of what is in a picture: how they are made, and what they say of an element.

A box is ``n12`` (a node), ``m3`` (a module call), ``g5`` (a group) or ``o1`` (what lies outside). Whatever stands on it
has the box's id, a hyphen, a letter for its part, and a number where there are several: ``n12-p0`` is its hook 0, and
``n12-p0-v`` what that hook did. An arrow is ``e12-0-15`` (from node 12, its input 0, to node 15) or ``en12-m3``.
"""

import re
from typing import NamedTuple


def node_id(number: int) -> str:
    """The box of a node."""
    return f"n{number}"


def call_id(number: int) -> str:
    """The frame of a module call."""
    return f"m{number}"


def group_id(number: int) -> str:
    """A box of several things that were put together."""
    return f"g{number}"


def port_id(number: int) -> str:
    """What lies outside."""
    return f"o{number}"


def edge_id(start: int, slot: int, end: int) -> str:
    """The arrow of one edge of the graph."""
    return f"e{start}-{slot}-{end}"


def bundle_id(start: str, end: str) -> str:
    """The arrow for all edges from one box to another."""
    return f"e{start}-{end}"


def pin_id(owner: str, hook: int | None) -> str:
    """A hook on a box."""
    return f"{owner}-p{hook}"


def retain_pin_id(owner: str, output: int) -> str:
    """The pin of retain_grad."""
    return f"{owner}-r{output}"


def value_id(owner: str) -> str:
    """What a hook did, or what an arrow carries."""
    return f"{owner}-v"


def gradient_id(owner: str) -> str:
    """The gradient on a box."""
    return f"{owner}-g"


def output_id(owner: str) -> str:
    """What a module call returns."""
    return f"{owner}-a"


def input_id(owner: str) -> str:
    """What a module call is given."""
    return f"{owner}-i"


def fired_count_id(owner: str) -> str:
    """How many of the hooks in a box have fired."""
    return f"{owner}-c"


def name_id(owner: str, place: int | str = "") -> str:
    """A name on a box."""
    return f"{owner}-t{place}"


def tensor_value_id(owner: str, place: int) -> str:
    """What the tensor of a name holds."""
    return f"{owner}-d{place}"


def op_id(owner: str) -> str:
    """The op of a node, or what is in a box."""
    return f"{owner}-o"


def label_id(owner: str) -> str:
    """The label of a pin."""
    return f"{owner}-l"


def pre_hooks_id(owner: str) -> str:
    """A node's list of pre-hooks."""
    return f"{owner}-x"


def data_id(owner: str, output: int) -> str:
    """What a tensor holds, in the layer of tensors."""
    return f"{owner}-b{output}"


def grad_id(owner: str, output: int) -> str:
    """A tensor's ``.grad``, in the layer of tensors."""
    return f"{owner}-f{output}"


def upper_plate_id(owner: str) -> str:
    """The plate above a module call: its name, and the hooks at its output."""
    return f"{owner}-h"


def lower_plate_id(owner: str) -> str:
    """The plate below a module call: the hooks at its inputs."""
    return f"{owner}-f"


def filler_id(owner: str) -> str:
    """What keeps a module call open in which nothing is drawn."""
    return f"{owner}-e"


# -- what an id says

ARROW = re.compile(r"e\d+-\d+-\d+|e[nmgo]\d+-[nmgo]\d+")
BOX = re.compile(r"[nmg]\d+")
PLATE = re.compile(r"m\d+-[hf]")
PIN = re.compile(r"[nm]\d+-[pr]\d+")
_PART = re.compile(r"[nmge].*-(?P<letter>[a-z])(?P<place>\d*)")


class TextKind(NamedTuple):
    """A kind of text in a picture."""

    css_class: str
    has_id: bool = False
    """Whether steps write it, so that it needs an id."""


_TEXTS = {
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
_ON_ARROW = TextKind("hv-edge-value", has_id=True)


def text_kind(element_id: str) -> TextKind | None:
    """What kind of text has the id ``spot``; None where it is none.

    >>> text_kind("n12-p0-v"), text_kind("e12-0-15-v").css_class, text_kind("n12-f0")
    (TextKind(css_class='hv-pin-value', written=True), 'hv-edge-value', None)
    """
    match = _PART.fullmatch(element_id)
    kind = _TEXTS.get(match["letter"]) if match else None
    return _ON_ARROW if kind is not None and element_id.startswith("e") else kind


def tensor_value_id_beside(name_element_id: str) -> str:
    """The id of what the tensor holds whose name has the id ``name_spot``.

    >>> held_by(name("n12", 1)) == held("n12", 1)
    True
    """
    owner, _, part = name_element_id.rpartition("-")
    return tensor_value_id(owner, int(part[1:] or 0))


def is_retain_pin(element_id: str) -> bool:
    """Whether a pin is that of retain_grad."""
    return element_id.rpartition("-")[2].startswith("r")


def grad_id_for(text_id: str) -> str:
    """The id of a tensor's ``.grad``, of which the gradient on its box or its pin of retain_grad tells, too.

    >>> grad_of(gradient("n1")), grad_of(value(retained("n1", 2)))
    ('n1-f0', 'n1-f2')
    """
    owner, *_ = text_id.split("-")
    match = re.fullmatch(r"n\d+-r(\d+)-v", text_id)
    return grad_id(owner, int(match[1]) if match else 0)


def is_tensor_fact(element_id: str) -> bool:
    """Whether an id is that of a fact about a tensor, whose last text is its value.

    >>> [*map(is_fact, (data("n1", 0), grad("n1", 0), lower_plate("m1"), gradient("n1")))]
    [True, True, False, False]
    """
    return re.fullmatch(r"n\d+-[bf]\d+", element_id) is not None
