"""Pictures of equal structure are laid out once: the same boxes and arrows, with other ids, names and numbers."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape, unescape

from hookviz.picture.engine import Rendered
from hookviz.picture.layout import NoPictureError, draw_source, sentence_svg

_TOKEN = re.compile(
    r"(?P<font><FONT[^>]*>)(?P<text>[^<]*)|(?<![#\w.-])(?P<id>(?:cluster_)?(?:e?[nmgo]\d|e\d)[\w-]*)",
)
"""A text in a label, or an id: in DOT source nothing else differs between pictures of equal structure."""
_WRITTEN = re.compile(r"-[vgaic]$")
"""The ids of what the player writes at every step: only the room that it takes counts."""
_TENS = re.compile(r"(?<!\d)\d\d(?!\d)")
"""A number of two digits is laid out with three: so node #99 has the room of #100, and a size of 64 that of 128."""


@dataclass
class Structure:
    """A picture's DOT source without what is its own, and that: its ids and texts in their order."""

    key: str
    ids: list[str]
    texts: list[str]

    @classmethod
    def of(cls, source: str) -> "Structure":
        """The structure of ``source``; a digit is as wide as any other, and two take the room of three.

        >>> one, other = (Structure.of(f'n{k} [label=<<TD ID="n{k}-o"><FONT>x{k}</FONT></TD>>]') for k in (37, 123))
        >>> one.key == other.key, other.ids, other.texts
        (True, ['n123', 'n123-o'], ['x123'])
        """
        ids: dict[str, int] = {}
        texts: list[str] = []

        def note(text: str) -> str:
            texts.append(text)
            return re.sub(r"\d", "0", _roomy(text))

        key = _with(source, lambda name: f"\0{ids.setdefault(name, len(ids))}", note, lambda _: "")
        return cls(key, list(ids), texts)


def _with(source: str, named: Callable[[str], str], told: Callable[[str], str], written: Callable[[str], str]) -> str:
    """``source`` with other ids, other texts, and others of those texts that the player writes at every step."""
    inside = ""

    def take(found: re.Match[str]) -> str:
        nonlocal inside
        if found["id"]:
            inside = found["id"]
            return named(inside)
        return found["font"] + (written if _WRITTEN.search(inside) else told)(found["text"])

    return _TOKEN.sub(take, source)


def _roomy(text: str) -> str:
    return _TENS.sub(r"0\g<0>", text)


class Layouts:
    """The layouts that were made, by structure."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Structure, str]] = {}

    def svg(self, figure: Rendered) -> str:
        """The picture of ``figure``, laid out only if none of its structure was."""
        mine = Structure.of(figure.source)
        if mine.key not in self._made:
            roomy = _with(figure.source, str, _roomy, str)
            try:
                drawn = figure.finish(draw_source(roomy, "svg", figure.engine)).decode()
            except NoPictureError as error:
                return sentence_svg(str(error))
            self._made[mine.key] = (Structure.of(roomy), drawn)
        changed = _changed(*self._made[mine.key], mine)
        return figure.svg() if changed is None else changed

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
