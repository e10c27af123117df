"""What a picture is made of: boxes with pins, arrows between them, and the short texts on them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from hookviz.support.messages import join, say
from hookviz.support.printable import truncate
from hookviz.trace import TensorRow, Values
from hookviz.trace.values import Value

MAX_NAME, MAX_LABEL, MAX_VALUE = 28, 24, 16
SPACE = "\N{NO-BREAK SPACE}"
DIGITS = 4
"""Significant digits of a number in a picture, where room is dear."""


@dataclass
class Pin:
    """A hook on a box, or retain_grad; ``hook`` is the hook's number in the trace."""

    id: str
    label: str
    hook_name: str
    hook: int | None
    longest_text: str = ""
    """The longest text it ever shows, for which the layout keeps room."""


@dataclass
class Box:
    """An autograd node, under the names of the tensors whose gradient arrives there."""

    id: str
    node: int
    op: str
    leaf: bool
    tensors: list[TensorRow]
    names: list[tuple[str, str]]
    """(name, value) of each named tensor."""
    pins: list[Pin] = field(default_factory=list)
    longest_text: str = ""
    """The longest text of its gradient line."""


@dataclass
class Arrow:
    """The way of a gradient, from one of a node's inputs to the node that made that input."""

    id: str
    start: str
    end: str
    longest_text: str = ""


class Mark(NamedTuple):
    """What a step is about (ids, the box first) and the texts that it writes (id → text)."""

    elements: list[str]
    texts: dict[str, str]
    related: tuple[str, ...] = ()
    """What it concerns as well: the nodes that a call makes."""


def format_values(values: Values, max_chars: int = MAX_VALUE) -> str:
    """A gradient in a few characters: its numbers if they fit, else its norm."""
    if values is None:
        return say("name.none")
    if isinstance(values, Value):
        return values.text(max_chars, shape=False, digits=DIGITS)
    if len(values) > max_chars:
        return say("value.several", count=f"{len(values):,}")
    items = (format_values(value, max_chars // max(len(values), 1)) for value in values)
    return say("value.tuple", items=join("join.list", items))


def format_change(before: Values, after: Values) -> str:
    """What a hook was given and what it made, in a few characters."""
    return say("value.change", before=format_values(before), after=format_values(after))


def format_tensor_value(data: str) -> str:
    """What stands behind a tensor's name: the value that it holds, or its shape, which is no value.

    >>> held("4"), held("(2, 3)"), held("")
    ('\\xa0= 4', '\\xa0(2, 3)', '')
    """
    return data and (f"{SPACE}{data}" if data.startswith("(") else f"{SPACE}= {data}")


def fit_on_line(text: str, max_chars: int) -> str:
    """``text`` on one line, cut to ``room`` characters; what is cut shows as an ellipsis.

    >>> short("a_very_long_name", 8)
    'a_very_…'
    """
    return truncate(" ".join(text.split()), max_chars)


def relative_name(name: str, module: str) -> str:
    """A module's or parameter's name inside the module ``around``.

    >>> within("layers.0.linear1", "layers.0"), within("layers.10", "layers.1")
    ('linear1', 'layers.10')
    """
    return fit_on_line(name.removeprefix(f"{module}.") if module else name, MAX_NAME)


def join_variants(old: str, new: str) -> str:
    """Two texts beside each other, as the player shows what a switch has changed: what they begin with is said once.

    >>> both("gradient 10", "gradient 8"), both("8 → 10", "9 → 9")
    ('gradient 10 8', '8 → 10 9 → 9')
    """
    old_words, new_words = old.split(" "), new.split(" ")
    common = next(
        (i for i, pair in enumerate(zip(old_words, new_words, strict=False)) if len(set(pair)) > 1), len(old_words)
    )
    return " ".join([*old_words, *new_words[common:]])
