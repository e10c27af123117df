"""SVG as PNG, drawn by resvg, which the extra ``images`` installs."""

from functools import cache
from math import sqrt
from typing import Any

from hookviz.picture.svg import view_box
from hookviz.support.messages import _
from hookviz.support.optional_modules import load_optional

PIXELS_PER_POINT = 2.0
MAX_PIXELS = 50_000_000
"""A larger picture gets fewer pixels per point: 50 million take 200 MB of memory."""
FAMILIES = {
    "sans_serif_family": ("Arial", "Helvetica", "Liberation Sans", "Noto Sans", "DejaVu Sans"),
    "serif_family": ("Times New Roman", "Times", "Liberation Serif", "Noto Serif", "DejaVu Serif"),
    "monospace_family": ("Courier New", "Menlo", "Liberation Mono", "Noto Sans Mono", "DejaVu Sans Mono"),
}
"""resvg's option for a generic family → the fonts of which it gets the first that is installed."""


def render_png(svg: str, width: int | None = None) -> bytes:
    """Draw an SVG on white as PNG, ``width`` pixels wide; if None, with ``PIXELS_PER_POINT``.

    Raises:
        ImportError: resvg is not installed; the message says how to install it.
        RuntimeError: no font of ``FAMILIES`` is installed.
    """
    options: dict[str, Any] = {"width": width} if width else {"zoom": _choose_zoom(svg)}
    png: bytes = load_module("resvg_py").svg_to_bytes(
        svg_string=svg, background="white", dpi=72, **options, **_find_families()
    )
    return png


def load_module(name: str) -> Any:
    """Return a module of the extra ``images``.

    Raises:
        ImportError: it is not installed; the message says how to install it.
    """
    missing = _(
        "PNG pictures and animations need resvg and Pillow, which are not installed: install them "
        'with: pip install "hookviz[images]"'
    )
    return load_optional(name, missing)


def _choose_zoom(svg: str) -> float:
    width, height = view_box(svg)
    return min(PIXELS_PER_POINT, sqrt(MAX_PIXELS / (width * height)))


@cache
def _find_families() -> dict[str, str]:
    """Return the options that name installed fonts: resvg draws no text in a font that is missing."""
    found = {option: next(filter(_is_installed, names), "") for option, names in FAMILIES.items()}
    any_family = next(filter(None, found.values()), "")
    if not any_family:
        raise RuntimeError(
            _(
                "There is no PNG: none of the fonts that it could use is installed. Install one, such as "
                "DejaVu Sans; an SVG needs none."
            )
        )
    return {option: family or any_family for option, family in found.items()}


def _is_installed(family: str) -> bool:
    return _draw_letter(family, "x") != _draw_letter(family, "")


def _draw_letter(family: str, letter: str) -> bytes:
    text = f'<text y="9" font-family="{family}">{letter}</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{text}</svg>'
    png: bytes = load_module("resvg_py").svg_to_bytes(svg_string=svg, serif_family=family)
    return png
