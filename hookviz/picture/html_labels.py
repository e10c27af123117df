"""Cells, rows and texts of Graphviz's HTML-like labels, in the colours that they have at one step."""

from collections.abc import Mapping
from functools import cache, lru_cache
from html import escape
from math import ceil
from typing import Any

from hookviz.picture import element_ids as ids
from hookviz.picture.grouping import has_many_passes
from hookviz.picture.primitives import SPACE, Pin
from hookviz.picture.scene import Scene
from hookviz.support.columns import truncate

INK, GREY, PURPLE, AMBER, LIGHT_GREY, LEAF_FILL, BOX_FILL = (
    "#111827",
    "#475569",
    "#6d28d9",
    "#b45309",
    "#7c8798",
    "#eff6ff",
    "white",
)
HIDDEN = "transparent"
"""The colour of a text that only reserves room; ``graphviz_digraph.tidy_svg`` drops such texts."""
CURRENT_FILL, PIN_FILL, MARKED_FILL = "#fde68a", "#f8fafc", "#faf5ff"
SMALL_FONT_SIZE, FONT_SIZE, ARROW_FONT_SIZE = 13, 14, 15
"""Points."""
MAX_LABEL_TEXT = 1_000
"""Characters of a text in a label; longer texts are cut."""
WIDTH_STEP = 105
"""Points: in a picture of a large trace the width for a number is a multiple of this. Two of them hold any norm."""
PLACEHOLDER_STEP = 8
"""The number of zeros in a placeholder is a multiple of this. Four digits of a number take 4 to 10 characters."""
_CHARS_BY_WIDTH = {0.4: " .,:;'|()[]ijl-", 0.5: "rtf", 0.72: "0123456789abcdeghknopqsuvxyz_"}
"""Width as a fraction of the font size → the characters that are no wider."""


class Style:
    """The state of a picture at one step: highlighted elements, elements of earlier steps, and texts.

    With ``for_player`` every text is laid out at its longest, since the player writes all texts into one picture.
    """

    def __init__(self, scene: Scene, step: int | None, for_player: bool) -> None:
        marks = [(index, mark) for index, mark in sorted(scene.marks.items()) if step is None or index <= step]
        self.texts = {element_id: text for _, mark in marks for element_id, text in mark.texts.items()}
        self.marked_elements = {element_id for _, mark in marks for element_id in mark.elements}
        self.current_elements = {*marks[-1][1].elements, *marks[-1][1].related} if marks and step is not None else set()
        self.for_player, self.reserved_texts = for_player, scene.reserved_texts
        self.rounds_widths = bool(scene.group_boxes)
        self.pads_texts = for_player and has_many_passes(scene.trace)

    def width_of(self, text: str, size: int) -> int:
        """Return how many points wide ``text`` can be.

        In a picture of a large trace this is rounded up, so that equal layers get equal pictures.
        """
        width = text_width(text, size)
        return ceil(width / WIDTH_STEP) * WIDTH_STEP if self.rounds_widths else width

    def placeholder(self, longest: str) -> str:
        """Return the text that a cell holds in the layout for the player, which overwrites it.

        If the trace has many passes, it consists of zeros, at least as wide as the ``longest`` text, so that equal
        passes get equal pictures although their numbers are not equally long.
        """
        if not self.pads_texts or not longest:
            return longest
        zeros = sum(map(_char_width, longest)) / _char_width("0")
        return "0" * (ceil(zeros / PLACEHOLDER_STEP) * PLACEHOLDER_STEP)

    def outline_color(self, element_id: str) -> str:
        """Return the colour of the outline of a box, a pin or an arrow."""
        return (
            AMBER
            if element_id in self.current_elements
            else PURPLE
            if element_id in self.marked_elements
            else LIGHT_GREY
        )


def format_text(text: str, **font: Any) -> str:
    """Escape user text for Graphviz's HTML-like labels; control characters, which XML forbids, become �.

    Very long texts are cut: Graphviz cannot read a label with a text of 20,000 bytes.
    """
    printable = truncate(text, MAX_LABEL_TEXT)
    if not printable.isprintable():
        printable = "".join(c if c.isprintable() or c == SPACE else "\N{REPLACEMENT CHARACTER}" for c in printable)
    escaped = escape(printable).replace("\\", "\\\\")  # Graphviz reads escapes such as \N in these labels too
    return f"<FONT{_format_attributes(font)}>{escaped}</FONT>"


def _format_attributes(attributes: Mapping[str, Any]) -> str:
    """Format the attributes of an element; values are escaped, so that none can end the attribute or the element."""
    return "".join([_format_attribute(key, value) for key, value in attributes.items()])


@lru_cache(maxsize=1024)
def _format_attribute(key: str, value: str | int) -> str:
    return f' {key.replace("_", "-").upper()}="{value if isinstance(value, int) else escape(value)}"'


def format_small(text: str) -> str:
    """Format text in small type, for facts next to a name.

    The layout rounds the widths of small letters down. A trailing space makes up for it, and
    ``graphviz_digraph.tidy_svg`` strips it.
    """
    return format_text(text + SPACE, point_size=SMALL_FONT_SIZE, color=GREY)


def make_cell(element_id: str, content: str, **attributes: Any) -> str:
    """Make a cell with an id.

    It is a link, since Graphviz keeps a cell's id only if it is one; ``graphviz_digraph.tidy_svg`` unwraps the link.
    """
    given = _format_attributes({"align": "LEFT", **attributes})
    return f'<TD ID="{escape(element_id)}" HREF="#" TOOLTIP=" "{given}>{content}</TD>'


def make_row(*cells: str) -> str:
    """Make a row of cells."""
    return f"<TR>{''.join(cells)}</TR>"


def make_title(name: str, value: str) -> str:
    """Make the title of a box: a tensor's name and its value."""
    return f"<B>{format_text(name, point_size=19)}</B>" + (format_text(value, point_size=16) if value else "")


def make_pin_cell(hook_pin: Pin, style: Style) -> str:
    """Make the cell of a pin: the hook's number and label, and what the hook did."""
    value_id = ids.value_id(hook_pin.id)
    fill = (
        CURRENT_FILL
        if hook_pin.id in style.current_elements
        else MARKED_FILL
        if hook_pin.id in style.marked_elements
        else PIN_FILL
    )
    value_cell = make_value_cell(value_id, hook_pin.longest_text, style, INK, align="RIGHT")
    label_cell = make_cell(ids.label_id(hook_pin.id), format_text(hook_pin.label, point_size=FONT_SIZE))
    table = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2"><TR>{label_cell}<TD WIDTH="14"></TD>'
    attributes = {
        "border": 1,
        "color": style.outline_color(hook_pin.id),
        "bgcolor": fill,
        "style": "ROUNDED",
        "colspan": 2,
    }
    return make_cell(hook_pin.id, f"{table}{value_cell}</TR></TABLE>", **attributes)


def make_value_cell(
    text_id: str, longest: str, style: Style, color: str, size: int = FONT_SIZE, **attributes: Any
) -> str:
    """Make the cell of a text that steps write, or nothing if ``longest`` is empty.

    The cell has the width of the longest text at every step, so that no step moves anything.
    """
    if not longest:
        return ""
    longest = style.placeholder(longest)
    visible_text = longest if style.for_player else style.texts.get(text_id, "")
    text = format_text(visible_text, color=color) if visible_text else format_text(longest, color=HIDDEN)
    content = f"<B>{text}</B>" if color == INK else text
    return make_cell(text_id, content, width=style.width_of(longest, size), **attributes)


def text_width(text: str, size: int = FONT_SIZE) -> int:
    """Return how many points wide ``text`` can be in bold, in the widest of the fonts that show it.

    >>> text_width("8 → 10"), text_width("8 → 10", 2 * FONT_SIZE)
    (57, 111)
    """
    return 4 + round(size * sum(_char_width(char) for char in text))


@cache
def _char_width(char: str) -> float:
    """Return the width of a character as a fraction of the font size."""
    if ord(char) > 0x2E7F:  # Chinese, Japanese and Korean characters are squares
        return 1.1
    return next((width for width, chars in _CHARS_BY_WIDTH.items() if char in chars), 0.85)
