"""A picture as a notebook shows it: whole where it can be, never too small to read, dark where the page is dark."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from hookviz.support.printable import printable

PIXELS_PER_POINT = 1.2
"""Pixels per point: the smallest type, 13 points, becomes 15.6 pixels."""
OUTPUT_WIDTH = 820
"""Pixels: an output of JupyterLab on a screen 1280 wide with its side bar open."""
MIN_FONT_SIZE = 11.5
"""Pixels: type is not made smaller than this; a picture too large for that is scrolled."""
DARK_MODE_STYLE = "<style>@media (prefers-color-scheme: dark){svg{filter:invert(.933) hue-rotate(180deg)}}</style>"
"""JupyterLab shows a picture in an ``img`` and tells it its theme: a browser hands that on as the preferred scheme."""


def prepare_for_notebook(svg: str) -> str:
    """``svg`` with a size for a notebook, and with its colours turned where the page is dark.

    >>> shown('<svg viewBox="0 0 500 200"><text font-size="13">loss</text></svg>')[:54]
    '<svg width="600px" height="240px" viewBox="0 0 500 200'
    """
    head, _, body = set_size(svg).partition(">")
    return f"{head}>{DARK_MODE_STYLE}{body}"


def set_size(svg: str) -> str:
    """``svg`` with a size for a page or a notebook.

    >>> sized('<svg viewBox="0 0 500 200"></svg>')
    '<svg width="600px" height="240px" viewBox="0 0 500 200"></svg>'
    """
    head, _, body = svg[svg.index("<svg") :].partition(">")
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    width, height = map(float, head.partition('viewBox="')[2].partition('"')[0].split()[2:])
    types = [float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)]
    size = _size_attributes(width, height, min(types, default=MIN_FONT_SIZE))
    return f"{head.replace('<svg', f'<svg {size}', 1)}>{body}"


def _size_attributes(width: float, height: float, smallest: float) -> str:
    """Fixed where it fits; as wide as the page where that leaves it readable; else fixed, and scrolled."""
    if width * PIXELS_PER_POINT > OUTPUT_WIDTH and smallest * OUTPUT_WIDTH >= MIN_FONT_SIZE * width:
        return 'width="100%"'
    zoom = PIXELS_PER_POINT if width * PIXELS_PER_POINT <= OUTPUT_WIDTH else MIN_FONT_SIZE / smallest
    return f'width="{width * zoom:.0f}px" height="{height * zoom:.0f}px"'


def fill_texts(svg: str, texts: Mapping[str, str]) -> str:
    """A picture made for the player, with ``texts`` (id → text) in their places.

    >>> finished('<text id="n1-g">gradient 10</text>', {"n1-g": "gradient 8"})
    '<text id="n1-g">gradient 8</text>'
    """
    return re.sub(
        r'(<text\b[^>]*\sid="([^"]*)"[^>]*>)([^<]*)',
        lambda match: match[1] + (escape_text(texts[match[2]]) if match[2] in texts else match[3]),
        svg,
    )


def escape_text(value: Any) -> str:
    """User text for HTML: it stays text, and what cannot be seen or would turn the line around is shown as �.

    >>> text("<b>\u202e")
    '&lt;b&gt;\ufffd'
    """
    return escape(printable(str(value)))
