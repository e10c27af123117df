"""The parts of a box: cells, rows and texts of Graphviz's HTML-like labels, coloured as they stand at one step."""

from collections.abc import Mapping
from functools import cache
from html import escape
from math import ceil
from typing import Any

from hookviz.picture import element_ids as ids
from hookviz.picture.primitives import SPACE, Pin
from hookviz.picture.scene import Scene
from hookviz.support.printable import truncate

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
"""A text in this colour only keeps its room; ``engine.tidy`` leaves it out of the SVG."""
CURRENT_FILL, PIN_FILL, DONE_FILL = "#fde68a", "#f8fafc", "#faf5ff"
SMALL_FONT_SIZE, FONT_SIZE, ARROW_FONT_SIZE = 13, 14, 15
MAX_LABEL_TEXT = 1_000
"""Characters of a text in a label; beyond, nobody reads it."""
WIDTH_STEP = 105
"""Points: the room for a number in a picture of a large trace is a multiple of this. Twice it holds any norm."""
_CHARS_BY_WIDTH = {0.4: " .,:;'|()[]ijl-", 0.5: "rtf", 0.72: "0123456789abcdeghknopqsuvxyz_"}
"""Parts of the type's size → the characters that are no wider; others are a little wider."""


class Style:
    """How things stand at one step: which are now, which are done, and the texts shown.

    With ``final`` every text is laid out at its longest, as the player needs it.
    """

    def __init__(self, scene: Scene, step: int | None, for_player: bool) -> None:
        marks = [(index, mark) for index, mark in sorted(scene.marks.items()) if step is None or index <= step]
        self.texts = {element_id: text for _, mark in marks for element_id, text in mark.texts.items()}
        self.done = {element_id for _, mark in marks for element_id in mark.elements}
        self.current = {*marks[-1][1].elements, *marks[-1][1].related} if marks and step is not None else set()
        self.for_player, self.reserved_texts = for_player, scene.reserved_texts
        self.rounds_widths = bool(scene.group_boxes or scene.ports)

    def width_of(self, text: str, size: int) -> int:
        """How many points wide ``text`` can be: in a large trace a round number, so that equal layers look alike."""
        width = text_width(text, size)
        return ceil(width / WIDTH_STEP) * WIDTH_STEP if self.rounds_widths else width

    def outline_color(self, element_id: str) -> str:
        """The colour around a box or a pin."""
        return AMBER if element_id in self.current else PURPLE if element_id in self.done else LIGHT_GREY


def format_text(text: str, **font: Any) -> str:
    """User text, escaped for Graphviz's HTML-like labels; control characters, which XML forbids, are shown.

    Graphviz cannot read a label with a text of 20,000 bytes: what is very long is cut.
    """
    printable = "".join(
        c if c.isprintable() or c == SPACE else "\N{REPLACEMENT CHARACTER}" for c in truncate(text, MAX_LABEL_TEXT)
    )
    escaped = escape(printable).replace("\\", "\\\\")  # Graphviz reads escapes such as \N in these labels too
    return f"<FONT{_format_attributes(font)}>{escaped}</FONT>"


def _format_attributes(attributes: Mapping[str, Any]) -> str:
    """Attributes of an element; nothing that is given can end one, or the element."""
    return "".join(
        f' {key.replace("_", "-").upper()}="{value if isinstance(value, int) else escape(value)}"'
        for key, value in attributes.items()
    )


def format_small(text: str) -> str:
    """Text in small type, for what is said beside the name.

    The layout rounds the widths of small letters down; a space behind makes up for it, which ``engine.tidy`` takes off.
    """
    return format_text(text + SPACE, point_size=SMALL_FONT_SIZE, color=GREY)


def make_cell(element_id: str, content: str, **attributes: Any) -> str:
    """A cell with an id: Graphviz keeps an id only for a link (``engine.tidy`` takes the link out again)."""
    given = {"id": element_id, "href": "#", "tooltip": " ", "align": "LEFT", **attributes}
    return f"<TD{_format_attributes(given)}>{content}</TD>"


def make_row(*cells: str) -> str:
    """A row of cells."""
    return f"<TR>{''.join(cells)}</TR>"


def make_title(name: str, value: str) -> str:
    """A tensor's name, and what it holds."""
    return f"<B>{format_text(name, point_size=19)}</B>" + (format_text(value, point_size=16) if value else "")


def make_pin_cell(hook_pin: Pin, style: Style) -> str:
    """A hook's cell: its number and label, and what it did."""
    value_id = ids.value_id(hook_pin.id)
    fill = CURRENT_FILL if hook_pin.id in style.current else DONE_FILL if hook_pin.id in style.done else PIN_FILL
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
    """A cell for a text that may not be shown yet; it keeps room for the longest, so that no step moves anything."""
    if not longest:
        return ""
    shown = longest if style.for_player else style.texts.get(text_id, "")
    text = format_text(shown, color=color) if shown else format_text(longest, color=HIDDEN)
    content = f"<B>{text}</B>" if color == INK else text
    return make_cell(text_id, content, width=style.width_of(longest, size), **attributes)


def text_width(text: str, size: int = FONT_SIZE) -> int:
    """How many points wide ``text`` can be in the widest of the fonts that show it, in bold.

    >>> room_for("8 → 10"), room_for("8 → 10", 2 * SIZE)
    (57, 111)
    """
    return 4 + round(size * sum(_char_width(char) for char in text))


@cache
def _char_width(char: str) -> float:
    if ord(char) > 0x2E7F:  # Chinese, Japanese and Korean characters are squares
        return 1.1
    return next((width for width, chars in _CHARS_BY_WIDTH.items() if char in chars), 0.85)
