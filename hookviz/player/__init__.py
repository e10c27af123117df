"""What the browser gets: the content of a player, the widget, pages that play without a kernel, and their code."""

from functools import cache
from importlib.resources import files


@cache
def read_bundle(name: str) -> str:
    """Return the text of ``hookviz/static/<name>``, which ``make bundle`` makes of ``hookviz/player/browser``.

    >>> ".hv-player" in read_bundle("player.css")
    True
    """
    return files("hookviz").joinpath("static", name).read_text(encoding="utf-8")
