"""The player's JavaScript and CSS, as esbuild bundled them (``make bundle``) from ``hookviz/player/browser``."""

from functools import cache
from importlib.resources import files


@cache
def read_bundle(name: str) -> str:
    """Return the text of ``hookviz/static/<name>``.

    >>> ".hv-player" in read_bundle("player.css")
    True
    """
    return files("hookviz").joinpath("static", name).read_text(encoding="utf-8")
