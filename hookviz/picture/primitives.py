"""The elements of a picture (boxes with pins, arrows, marks of steps) and the formats of the short texts on them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from hookviz.support.messages import _
from hookviz.support.terminal_text import truncate
from hookviz.trace import TensorRow, Values
from hookviz.trace.values import Value, are_same_values

MAX_NAME, MAX_LABEL, MAX_VALUE = 28, 24, 16
"""Characters of a name, of a pin's label, and of a value."""
SPACE = "\N{NO-BREAK SPACE}"
DIGITS = 4
"""Significant digits of a number in a picture; there is little room."""
_NUMBER = re.compile(r"[\d.]+(e[+-]?\d+)?")
"""A norm without a remark such as that some numbers are NaN."""


@dataclass
class Pin:
    """A hook on a box, or ``retain_grad``."""

    id: str
    label: str
    hook: int | None
    """The hook's number in the trace; None for ``retain_grad``."""
    longest_text: str = ""
    """The longest text that any step writes on it; the layout reserves room for that."""
    unfired: int | None = None
    """The index among the unfired rows of the trace, if it is known why the hook did not fire."""


@dataclass
class Parameter:
    """A parameter of a module in the box of the op that uses it; it stands for the parameter's AccumulateGrad."""

    id: str
    """The id that the box of the AccumulateGrad would have."""
    node: int
    """The AccumulateGrad."""
    name: str
    """The name, relative to the module."""
    value: str
    """The text behind the name, as in ``Box.names``."""
    pins: list[Pin] = field(default_factory=list)
    longest_text: str = ""
    """The longest text of its gradient."""


@dataclass
class Saved:
    """A tensor that the op of a box saved for its backward."""

    name: str
    """The attribute of the node, such as ``_saved_self``."""
    text: str
    """Which tensor it is, or why it was not read; empty if ``maker`` says it, or nothing does."""
    maker: int | None = None
    """The node that made it."""
    value: int | None = None
    """The number of its value in the trace; None if it was not read."""


@dataclass
class Box:
    """The box of an autograd node, with the names of the tensors whose gradients arrive there."""

    id: str
    node: int
    op: str
    leaf: bool
    tensors: list[TensorRow]
    names: list[tuple[str, str]]
    """(name, value) of each named tensor, as texts."""
    pins: list[Pin] = field(default_factory=list)
    longest_text: str = ""
    """The longest text of its line with the gradient."""
    memory: str = ""
    """The text that a step writes on it if its gradient has the memory of another one; empty if none does."""
    parameters: list[Parameter] = field(default_factory=list)
    """The parameters that only this op uses."""
    saved: list[Saved] = field(default_factory=list)
    """What the op saved for its backward, if that is shown."""


ArrowKind = Literal["gradient", "tensor", "cut"]
"""What an arrow says: a gradient is sent, a tensor without a graph flows, or its graph was cut off."""


@dataclass
class Arrow:
    """An arrow along which a gradient is sent: from an input of a node to the node that made that input.

    Of another kind, it leads from a module call to a later one, along the way of a tensor.
    """

    id: str
    start: str
    """The id of the box at which the arrow starts."""
    end: str
    """The id of the box to which it points."""
    longest_text: str = ""
    """The longest text of the value on it."""
    kind: ArrowKind = "gradient"
    words: str = ""
    """Of a cut, what cut the graph, such as ``detach, line 24``."""

    @property
    def is_forward(self) -> bool:
        """Whether it leads from a module call to a later one."""
        return self.kind != "gradient"


@dataclass
class Mark:
    """What a step highlights and writes in a picture."""

    elements: list[str] = field(default_factory=list)
    """The ids of the elements that the step is about, the box first."""
    texts: dict[str, str] = field(default_factory=dict)
    """Id of a text → the text that the step writes there."""
    numbers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Id of a text that is more than one number → that number, or the numbers before and after a change."""
    related: tuple[str, ...] = ()
    """The ids of elements that are highlighted as well: the nodes that a module call creates."""

    def write(self, text_id: str, text: str, *numbers: str) -> None:
        """Write ``text``, in which the ``numbers`` stand; none if the whole text is one number."""
        self.texts[text_id] = text
        if numbers:
            self.numbers[text_id] = numbers

    def write_change(self, text_id: str, before: Values, after: Values) -> None:
        """Write what a hook received and what it returned, in a few characters."""
        old, new = format_values(before), format_values(after)
        if old == new and isinstance(before, tuple) and isinstance(after, tuple) and before != after:
            old, new = (f"({', '.join(map(format_values, values))})" for values in (before, after))
        norm = _("norm {norm}").format(norm="")
        words = "" if old.startswith("(") else old[: old.rfind(norm) + len(norm)] if norm in old else ""
        new = new.removeprefix(words)
        sign = "=" if are_same_values(before, after) else "→"
        self.write(text_id, f"{old} {sign} {new}", old, new)


def format_values(values: Values, max_chars: int = MAX_VALUE) -> str:
    """Format a gradient, or a tuple of them, in ``max_chars`` characters: its numbers if they fit, else its norm."""
    if values is None:
        return "None"
    if isinstance(values, Value):
        return values.text(max_chars, shape=False, digits=DIGITS)
    if len(values) > max_chars:
        return _("{count} gradients").format(count=f"{len(values):,}")
    return join_values([format_values(value, max_chars // max(len(values), 1)) for value in values])


def join_values(texts: Sequence[str]) -> str:
    """Join the texts of several values. Of more than two norms, the least and the greatest say enough.

    >>> join_values(["norm 0.5", "norm 2"]), join_values(["norm 0.5", "norm 2", "norm 0.25", "None"])
    ('norm (0.5, 2)', '3 × norm 0.25 … 2')
    >>> join_values(["2", "None"]), join_values(["norm 2", "–", "–"])
    ('(2, None)', '(norm 2, –, –)')
    """
    norm = _("norm {norm}").format(norm="")
    numbers = [text.removeprefix(norm) for text in texts if text.startswith(norm)]
    if len(numbers) < 2 or not all(map(_NUMBER.fullmatch, numbers)):
        return f"({', '.join(texts)})"
    if len(numbers) == len(texts) == 2:
        return f"{norm}({', '.join(numbers)})"
    low, *_others, high = sorted((f"{float(number):.3g}" for number in numbers), key=float)
    return f"{len(numbers)} × {norm}{low if low == high else f'{low} … {high}'}"


def format_tensor_value(data: str) -> str:
    """Format the text behind a tensor's name: ``= value``, or its shape without an equals sign.

    >>> format_tensor_value("4"), format_tensor_value("(2, 3)"), format_tensor_value("")
    ('\\xa0= 4', '\\xa0(2, 3)', '')
    """
    return data and (f"{SPACE}{data}" if data.startswith("(") else f"{SPACE}= {data}")


def fit_on_line(text: str, max_chars: int) -> str:
    """Return ``text`` on one line of at most ``max_chars`` characters; an ellipsis shows where it is cut.

    >>> fit_on_line("a_very_long_name", 8)
    'a_very_…'
    """
    return truncate(" ".join(text.split()), max_chars)


def fit_name(name: str, max_chars: int) -> str:
    """Return a name of at most ``max_chars`` characters; it is cut before its end, since long names differ there.

    >>> fit_name("feature_extraction_block_number_11", 20)
    'feature_ext…umber_11'
    """
    name = " ".join(name.split())
    if len(name) <= max_chars:
        return name
    end = max_chars * 2 // 5
    return f"{name[: max_chars - 1 - end]}…{name[-end:]}"


def strip_module(name: str, module: str) -> str:
    """Return the name of a module or parameter relative to ``module``, if it is inside that module.

    A name that begins with a number says nothing: it keeps a part of the path before it.

    >>> strip_module("layers.0.linear1", "layers.0"), strip_module("layers.10", "layers.1")
    ('linear1', 'layers.10')
    >>> strip_module("net.layers.0", "net.layers"), strip_module("net.blocks.0.1", "net.blocks.0")
    ('layers.0', 'blocks.0.1')
    """
    if not module or not name.startswith(f"{module}."):
        return name
    start = len(module) + 1
    while start and name[start].isdigit():
        start = name.rfind(".", 0, start - 1) + 1
    return name[start:]


def relative_name(name: str, module: str) -> str:
    """Return the name of a module or parameter relative to ``module``, in at most ``MAX_NAME`` characters."""
    return fit_name(strip_module(name, module), MAX_NAME)


def join_variants(old: str, new: str) -> str:
    """Join two variants of a text as the player shows what a switch changes; the words they begin with appear once.

    >>> join_variants("gradient 10", "gradient 8"), join_variants("8 → 10", "9 → 9")
    ('gradient 10 8', '8 → 10 9 → 9')
    """
    old_words, new_words = old.split(" "), new.split(" ")
    common = next(
        (i for i, pair in enumerate(zip(old_words, new_words, strict=False)) if len(set(pair)) > 1), len(old_words)
    )
    return " ".join([*old_words, *new_words[common:]])
