"""A picture as a notebook shows it: whole where it can be, never too small to read, dark where the page is dark."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from hookviz.support.printable import make_printable

ZOOM = 1.2
"""Pixels per point: the smallest type, 13 points, becomes 15.6 pixels."""
NARROW = 820
"""Pixels: an output of JupyterLab on a screen 1280 wide with its side bar open."""
READABLE = 11.5
"""Pixels: type is not made smaller than this; a picture too large for that is scrolled."""
DARK = "<style>@media (prefers-color-scheme: dark){svg{filter:invert(.933) hue-rotate(180deg)}}</style>"
"""JupyterLab shows a picture in an ``img`` and tells it its theme: a browser hands that on as the preferred scheme."""


def shown(svg: str) -> str:
    """``svg`` with a size for a notebook, and with its colours turned where the page is dark.

    >>> shown('<svg viewBox="0 0 500 200"><text font-size="13">loss</text></svg>')[:54]
    '<svg width="600px" height="240px" viewBox="0 0 500 200'
    """
    head, _, body = sized(svg).partition(">")
    return f"{head}>{DARK}{body}"


def sized(svg: str) -> str:
    """``svg`` with a size for a page or a notebook.

    >>> sized('<svg viewBox="0 0 500 200"></svg>')
    '<svg width="600px" height="240px" viewBox="0 0 500 200"></svg>'
    """
    head, _, body = svg[svg.index("<svg") :].partition(">")
    head = re.sub(r'\s(?:width|height)="[^"]*"', "", head)
    width, height = map(float, head.partition('viewBox="')[2].partition('"')[0].split()[2:])
    types = [float(size) for size in re.findall(r'font-size="([\d.]+)"', svg)]
    size = _size(width, height, min(types, default=READABLE))
    return f"{head.replace('<svg', f'<svg {size}', 1)}>{body}"


def _size(width: float, height: float, smallest: float) -> str:
    """Fixed where it fits; as wide as the page where that leaves it readable; else fixed, and scrolled."""
    if width * ZOOM > NARROW and smallest * NARROW >= READABLE * width:
        return 'width="100%"'
    zoom = ZOOM if width * ZOOM <= NARROW else READABLE / smallest
    return f'width="{width * zoom:.0f}px" height="{height * zoom:.0f}px"'


def finished(svg: str, texts: Mapping[str, str]) -> str:
    """A picture made for the player, with ``texts`` (id → text) in their places.

    >>> finished('<text id="n1-g">gradient 10</text>', {"n1-g": "gradient 8"})
    '<text id="n1-g">gradient 8</text>'
    """
    return re.sub(
        r'(<text\b[^>]*\sid="([^"]*)"[^>]*>)([^<]*)',
        lambda found: found[1] + (text(texts[found[2]]) if found[2] in texts else found[3]),
        svg,
    )


def text(shown: Any) -> str:
    """User text for HTML: it stays text, and what cannot be seen or would turn the line around is shown as �.

    >>> text("<b>\u202e")
    '&lt;b&gt;\ufffd'
    """
    return escape(make_printable(str(shown)))
