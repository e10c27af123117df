"""SVG: how it is written, and how it becomes a part of a page or of a notebook's output.

It is written as pieces that pictures of equal layout share, and between them what is a picture's own: a page of a large
trace has hundreds of pictures, and many of them differ only in ids and texts. On a page, a picture is shown whole if
its type stays large enough to read; otherwise it is scrolled.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from html import escape
from typing import Any, NamedTuple

from hookviz.support.printable import make_printable

PIXELS_PER_POINT = 1.2
"""The smallest type, 13 points, becomes 15.6 pixels."""

OUTPUT_WIDTH = 820
"""Pixels: the width of an output in JupyterLab on a screen of 1280 pixels with the side bar open."""

MIN_FONT_SIZE = 11.5
"""Pixels: type is never made smaller than this; a picture that would need smaller type is scrolled."""

DARK_FILTER = "invert(.933) hue-rotate(180deg)"
"""Inverts lightness but keeps hues, as the style sheet of the pages does in dark mode."""

DARK_MODE_STYLE = f"<style>@media (prefers-color-scheme: dark){{svg{{filter:{DARK_FILTER}}}}}</style>"
"""JupyterLab shows a picture in an ``img`` that has its theme's colour scheme, which the SVG sees as preferred."""


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


# -- as part of a page or of an output


def prepare_for_notebook(svg: str) -> str:
    """Set the size of ``svg`` for a notebook, and invert its colours in dark mode.

    >>> prepare_for_notebook('<svg viewBox="0 0 500 200"><text font-size="13">loss</text></svg>')[:54]
    '<svg width="600px" height="240px" viewBox="0 0 500 200'
    """
    head, _, body = set_size(svg).partition(">")
    return f"{head}>{DARK_MODE_STYLE}{body}"


def set_size(svg: str) -> str:
    """Set the width and height of ``svg`` for a page or a notebook, and drop what precedes ``<svg``.

    >>> set_size('<svg viewBox="0 0 500 200"></svg>')
    '<svg width="600px" height="240px" viewBox="0 0 500 200"></svg>'
    """
    head, _, body = svg[svg.index("<svg") :].partition(">")
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    types = [float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)]
    size = _size_attributes(*view_box(svg), min(types, default=MIN_FONT_SIZE))
    return f"{head.replace('<svg', f'<svg {size}', 1)}>{body}"


def view_box(svg: str) -> tuple[float, float]:
    """Return the width and the height of an SVG, in points.

    >>> view_box('<svg viewBox="0 0 500 200.5"></svg>')
    (500.0, 200.5)
    """
    width, height = map(float, svg.partition('viewBox="')[2].partition('"')[0].split()[2:])
    return width, height


def _size_attributes(width: float, height: float, smallest: float) -> str:
    """Return the width and height of a picture whose smallest type has ``smallest`` points.

    The width is fixed if the picture fits, the page's width if the type stays readable then, and fixed otherwise, so
    that the picture is scrolled.
    """
    if width * PIXELS_PER_POINT > OUTPUT_WIDTH and smallest * OUTPUT_WIDTH >= MIN_FONT_SIZE * width:
        return 'width="100%"'
    zoom = PIXELS_PER_POINT if width * PIXELS_PER_POINT <= OUTPUT_WIDTH else MIN_FONT_SIZE / smallest
    return f'width="{width * zoom:.0f}px" height="{height * zoom:.0f}px"'


def escape_text(value: Any) -> str:
    """Escape user text for HTML; characters that are invisible or change the writing direction become �.

    >>> escape_text("<b>\u202e")
    '&lt;b&gt;\ufffd'
    """
    return escape(make_printable(str(value)))
