"""The player's JavaScript and CSS, as esbuild bundled them (``make bundle``) from ``hookviz/player/browser``."""

from functools import cache
from importlib.resources import files


@cache
def bundle(name: str) -> str:
    """The file ``name`` of ``hookviz/static``.

    >>> ".hv-player" in bundle("player.css")
    True
    """
    return files("hookviz").joinpath("static", name).read_text(encoding="utf-8")
