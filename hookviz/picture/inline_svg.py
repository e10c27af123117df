"""SVG as part of a page or a notebook's output: its size, its colours in dark mode, and escaped texts.

A picture is shown whole if its type stays large enough to read; otherwise it is scrolled.
"""

import re
from html import escape
from typing import Any

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
