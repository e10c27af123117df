"""SVG as pieces that pictures of equal layout share, and between them what is a picture's own: its ids and texts.

A page of a large trace has hundreds of pictures, and many of them differ only in ids and texts.
"""

from collections.abc import Iterable
from functools import lru_cache
from html import escape
from typing import NamedTuple


class FilledTemplate(NamedTuple):
    """A picture as pieces of SVG and what stands between them."""

    pieces: tuple[str, ...]
    """What all pictures of equal layout share: one piece more than there are fillings."""
    fill: list[str]
    """The ids and texts between the pieces, escaped."""

    @property
    def svg(self) -> str:
        """The whole SVG."""
        joined = [self.pieces[0]]
        for text, piece in zip(self.fill, self.pieces[1:], strict=True):
            joined += (text, piece)
        return "".join(joined)


class SvgWriter:
    """Writes the elements of a picture one after the other.

    >>> svg = SvgWriter()
    >>> text = svg.element("text", x=2, y=14.5).own(' id="', "n1-g")
    >>> text = text.own('">', "a < b").shared("</text>")
    >>> svg.finish().svg
    '<text x="2" y="14.5" id="n1-g">a &lt; b</text>'
    """

    def __init__(self) -> None:
        self._pieces: list[list[str]] = [[]]
        self._fill: list[str] = []

    def shared(self, markup: str) -> "SvgWriter":
        """Write markup that pictures of equal layout share."""
        self._pieces[-1].append(markup)
        return self

    def own(self, before: str, text: str) -> "SvgWriter":
        """Write the shared markup ``before``, and after it a text or id of this picture."""
        self._pieces[-1].append(before)
        self._fill.append(escape(text))
        self._pieces.append([])
        return self

    def element(self, tag: str, **attributes: float | str) -> "SvgWriter":
        """Begin an element, without the bracket that ends its attributes; empty attributes are left out."""
        return self.shared(f"<{tag}{format_attributes(attributes.items())}")

    def finish(self) -> FilledTemplate:
        """Return what was written."""
        return FilledTemplate(tuple("".join(piece) for piece in self._pieces), self._fill)


def format_attributes(attributes: Iterable[tuple[str, float | str]]) -> str:
    """Format the attributes of an element.

    >>> format_attributes([("stroke_width", 2.50), ("fill", "")])
    ' stroke-width="2.5"'
    """
    texts = ((name, value if isinstance(value, str) else format_points(value)) for name, value in attributes)
    return "".join(f' {name.rstrip("_").replace("_", "-")}="{text}"' for name, text in texts if text)


@lru_cache(maxsize=8192)
def format_points(value: float) -> str:
    """Format a length, to a tenth of a point.

    >>> format_points(12.0), format_points(0.25)
    ('12', '0.2')
    """
    return f"{value:.1f}".removesuffix(".0")
