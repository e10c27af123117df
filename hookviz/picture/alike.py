"""Pictures of equal structure are laid out once: the same boxes and arrows, with other ids, names and numbers."""

import re
from dataclasses import dataclass
from html import escape, unescape

from hookviz.picture.engine import Rendered

_TOKEN = re.compile(
    r"(?P<font><FONT[^>]*>)(?P<text>[^<]*)|(?<![#\w.-])(?P<id>(?:cluster_)?(?:e?[nmgo]\d|e\d)[\w-]*)",
)
"""A text in a label, or an id: in DOT source nothing else differs between pictures of equal structure."""
_WRITTEN = re.compile(r"-[vgaic]$")
"""The ids of what the player writes at every step: only the room that it takes counts."""


@dataclass
class Structure:
    """A picture's DOT source without what is its own, and that: its ids and texts in their order."""

    key: str
    ids: list[str]
    texts: list[str]

    @classmethod
    def of(cls, source: str) -> "Structure":
        """The structure of ``source``; a digit is as wide as any other.

        >>> one, other = (Structure.of(f'n{k} [label=<<TD ID="n{k}-o"><FONT>x{k}</FONT></TD>>]') for k in (3, 7))
        >>> one.key == other.key, other.ids, other.texts
        (True, ['n7', 'n7-o'], ['x7'])
        """
        ids: dict[str, int] = {}
        texts: list[str] = []
        inside = ""

        def take(found: re.Match[str]) -> str:
            nonlocal inside
            if found["id"]:
                inside = found["id"]
                return f"\0{ids.setdefault(inside, len(ids))}"
            if _WRITTEN.search(inside):
                return found["font"]
            texts.append(found["text"])
            return found["font"] + re.sub(r"\d", "0", found["text"])

        return cls(_TOKEN.sub(take, source), list(ids), texts)


class Layouts:
    """The layouts that were made, by structure."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Structure, str]] = {}

    def svg(self, figure: Rendered) -> str:
        """The picture of ``figure``, laid out only if none of its structure was."""
        mine = Structure.of(figure.source)
        if mine.key in self._made:
            changed = _changed(*self._made[mine.key], mine)
            if changed is not None:
                return changed
        drawn: str = figure.pipe("svg", encoding="utf-8")
        self._made[mine.key] = (mine, drawn)
        return drawn

    @property
    def count(self) -> int:
        """How many layouts there are."""
        return len(self._made)


def _changed(like: Structure, svg: str, mine: Structure) -> str | None:
    """``svg``, a picture of ``like``, as one of ``mine``; None where one text would have to become two."""
    ids = dict(zip(like.ids, mine.ids, strict=True))
    texts: dict[str, str] = {}
    for old, new in zip(map(_plain, like.texts), map(_plain, mine.texts), strict=True):
        if texts.setdefault(old, new) != new:
            return None

    def renamed(found: re.Match[str]) -> str:
        """Some ids are made of others when the picture is tidied: they begin as the box does."""
        return ids.get(found[0]) or ids.get(found[1], found[1]) + (found[2] or "")

    svg = re.sub(r'(?<=\sid=")([^"-]*)(-[^"]*)?', renamed, svg)
    return re.sub(
        r"(?<=>)[^<>]+(?=</text>)", lambda found: _safe(texts.get(unescape(found[0]), unescape(found[0]))), svg
    )


def _plain(text: str) -> str:
    """What a label shows, as it stands in the finished picture."""
    return unescape(text).replace("\\\\", "\\").rstrip()


def _safe(text: str) -> str:
    return escape(text, quote=False)
