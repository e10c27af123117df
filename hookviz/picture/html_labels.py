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

INK, QUIET, PURPLE, AMBER, FAINT, LEAF, PAPER = (
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
GLOW, PIN, DONE = "#fde68a", "#f8fafc", "#faf5ff"
SMALL, SIZE, ON_ARROWS = 13, 14, 15
LONGEST = 1_000
"""Characters of a text in a label; beyond, nobody reads it."""
EVEN = 105
"""Points: the room for a number in a picture of a large trace is a multiple of this. Twice it holds any norm."""
_WIDTHS = {0.4: " .,:;'|()[]ijl-", 0.5: "rtf", 0.72: "0123456789abcdeghknopqsuvxyz_"}
"""Parts of the type's size → the characters that are no wider; others are a little wider."""


class Style:
    """How things stand at one step: which are now, which are done, and the texts shown.

    With ``final`` every text is laid out at its longest, as the player needs it.
    """

    def __init__(self, scene: Scene, step: int | None, final: bool) -> None:
        marks = [(index, mark) for index, mark in sorted(scene.marks.items()) if step is None or index <= step]
        self.texts = {spot: text for _, mark in marks for spot, text in mark.texts.items()}
        self.done = {spot for _, mark in marks for spot in mark.on}
        self.now = {*marks[-1][1].on, *marks[-1][1].near} if marks and step is not None else set()
        self.final, self.wide = final, scene.wide
        self.even = bool(scene.folds or scene.ports)

    def room(self, text: str, size: int) -> int:
        """How many points wide ``text`` can be: in a large trace a round number, so that equal layers look alike."""
        width = room_for(text, size)
        return ceil(width / EVEN) * EVEN if self.even else width

    def outline(self, spot: str) -> str:
        """The colour around a box or a pin."""
        return AMBER if spot in self.now else PURPLE if spot in self.done else FAINT


def words(text: str, **font: Any) -> str:
    """User text, escaped for Graphviz's HTML-like labels; control characters, which XML forbids, are shown.

    Graphviz cannot read a label with a text of 20,000 bytes: what is very long is cut.
    """
    clean = "".join(
        c if c.isprintable() or c == SPACE else "\N{REPLACEMENT CHARACTER}" for c in truncate(text, LONGEST)
    )
    safe = escape(clean).replace("\\", "\\\\")  # Graphviz reads escapes such as \N in these labels too
    return f"<FONT{_attributes(font)}>{safe}</FONT>"


def _attributes(given: Mapping[str, Any]) -> str:
    """Attributes of an element; nothing that is given can end one, or the element."""
    return "".join(
        f' {key.replace("_", "-").upper()}="{value if isinstance(value, int) else escape(value)}"'
        for key, value in given.items()
    )


def small(text: str) -> str:
    """Text in small type, for what is said beside the name.

    The layout rounds the widths of small letters down; a space behind makes up for it, which ``engine.tidy`` takes off.
    """
    return words(text + SPACE, point_size=SMALL, color=QUIET)


def cell(spot: str, inside: str, **attributes: Any) -> str:
    """A cell with an id: Graphviz keeps an id only for a link (``engine.tidy`` takes the link out again)."""
    return f"<TD{_attributes({'id': spot, 'href': '#', 'tooltip': ' ', 'align': 'LEFT', **attributes})}>{inside}</TD>"


def row(*cells: str) -> str:
    """A row of cells."""
    return f"<TR>{''.join(cells)}</TR>"


def title(name: str, shown: str) -> str:
    """A tensor's name, and what it holds."""
    return f"<B>{words(name, point_size=19)}</B>" + (words(shown, point_size=16) if shown else "")


def pin(shown: Pin, look: Style) -> str:
    """A hook's cell: its number and label, and what it did."""
    spot = ids.value(shown.id)
    fill = GLOW if shown.id in look.now else DONE if shown.id in look.done else PIN
    number = kept(spot, shown.final, look, INK, align="RIGHT")
    label = cell(ids.label(shown.id), words(shown.label, point_size=SIZE))
    inner = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2"><TR>{label}<TD WIDTH="14"></TD>'
    style = {"border": 1, "color": look.outline(shown.id), "bgcolor": fill, "style": "ROUNDED", "colspan": 2}
    return cell(shown.id, f"{inner}{number}</TR></TABLE>", **style)


def kept(spot: str, longest: str, look: Style, color: str, size: int = SIZE, **attributes: Any) -> str:
    """A cell for a text that may not be shown yet; it keeps room for the longest, so that no step moves anything."""
    if not longest:
        return ""
    shown = longest if look.final else look.texts.get(spot, "")
    text = words(shown, color=color) if shown else words(longest, color=HIDDEN)
    weight = f"<B>{text}</B>" if color == INK else text
    return cell(spot, weight, width=look.room(longest, size), **attributes)


def room_for(text: str, size: int = SIZE) -> int:
    """How many points wide ``text`` can be in the widest of the fonts that show it, in bold.

    >>> room_for("8 → 10"), room_for("8 → 10", 2 * SIZE)
    (57, 111)
    """
    return 4 + round(size * sum(_ems(char) for char in text))


@cache
def _ems(char: str) -> float:
    if ord(char) > 0x2E7F:  # Chinese, Japanese and Korean characters are squares
        return 1.1
    return next((width for width, chars in _WIDTHS.items() if char in chars), 0.85)
