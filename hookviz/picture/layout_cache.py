"""Pictures of equal structure are laid out once: the same boxes and arrows, with other ids, names and numbers."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape, unescape
from typing import NamedTuple

from hookviz.picture.graphviz import Rendered
from hookviz.picture.layout import NoPictureError, draw_source, sentence_svg

_TOKEN = re.compile(
    r"(?P<font><FONT[^>]*>)(?P<text>[^<]*)|(?<![#\w.-])(?P<id>(?:cluster_)?(?:e?[nmgo]\d|e\d)[\w-]*)",
)
"""A text in a label, or an id: in DOT source nothing else differs between pictures of equal structure."""
_OWN = re.compile(r'(?<=\sid=")(?P<id>[^"]*)|(?<=>)[^<>]+(?=</text>)')
"""An id in a finished picture, or a text."""
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
    boxes: list[str]
    """For each text the box in which it stands."""

    @classmethod
    def of(cls, source: str) -> "Structure":
        """The structure of ``source``; a digit is as wide as any other, and two take the room of three.

        >>> one, other = (Structure.of(f'n{k} [label=<<TD ID="n{k}-o"><FONT>x{k}</FONT></TD>>]') for k in (37, 123))
        >>> one.key == other.key, other.ids, other.texts
        (True, ['n123', 'n123-o'], ['x123'])
        """
        ids: dict[str, int] = {}
        texts: list[str] = []
        boxes: list[str] = []

        def note(text: str, spot: str) -> str:
            texts.append(text)
            boxes.append(_holder_of(spot))
            return re.sub(r"\d", "0", _roomy(text))

        key = _with(source, lambda name: f"\0{ids.setdefault(name, len(ids))}", note, lambda _: "")
        return cls(key, list(ids), texts, boxes)


def _holder_of(spot: str) -> str:
    """The box that has the id ``spot``, or something on it."""
    return spot.removeprefix("cluster_").partition("-")[0]


def _with(
    source: str, named: Callable[[str], str], told: Callable[[str, str], str], written: Callable[[str], str]
) -> str:
    """``source`` with other ids, other texts, and others of those texts that the player writes at every step.

    ``told`` is given the id, too, after which a text stands.
    """
    inside = ""

    def take(found: re.Match[str]) -> str:
        nonlocal inside
        if found["id"]:
            inside = found["id"]
            return named(inside)
        text = found["text"]
        return found["font"] + (written(text) if _WRITTEN.search(inside) else told(text, inside))

    return _TOKEN.sub(take, source)


class Hole(NamedTuple):
    """A place in a picture where each of its structure has something of its own."""

    kind: str
    """``id`` or ``text``."""
    places: tuple[int, ...]
    """Where that stands among the ids, or among the texts, of a structure."""


class Shared(NamedTuple):
    """A picture that is given by its template, and by what fills the holes in it."""

    template: "Template"
    fill: list[str]

    @property
    def svg(self) -> str:
        """The picture."""
        return "".join(self.fill[piece] if isinstance(piece, int) else piece for piece in self.template.pieces)


class Template:
    """The first picture of a structure, with holes for the ids and texts of others."""

    def __init__(self, name: str, like: Structure, svg: str) -> None:
        self.name = name
        self.pieces: list[str | int] = []
        """The parts of the SVG that all share, and between them the place of what fills a hole."""
        self._ids = {spot: place for place, spot in enumerate(like.ids)}
        self._texts: dict[tuple[str, str], tuple[int, ...]] = {}
        """(box, text) → its places among the texts; with no box, those in any box."""
        for place, (box, text) in enumerate(zip(like.boxes, map(_plain, like.texts), strict=True)):
            for where in ((box, text), ("", text)):
                self._texts[where] = (*self._texts.get(where, ()), place)
        self._holes: dict[Hole, int] = {}
        self._cut(svg)

    def _cut(self, svg: str) -> None:
        at, box = 0, ""
        for found in _OWN.finditer(svg):
            spot = found["id"]
            if spot is None:
                hole, width = self._text_hole(box, unescape(found[0])), len(found[0])
            else:
                box = _holder_of(spot)
                # Some ids are made of others when the picture is tidied: they begin as the box does.
                known = spot if spot in self._ids else spot.partition("-")[0]
                hole = Hole("id", (self._ids[known],)) if known in self._ids else None
                width = len(known)
            if hole is not None:
                self.pieces += [svg[at : found.start()], self._holes.setdefault(hole, len(self._holes))]
                at = found.start() + width
        self.pieces.append(svg[at:])

    def _text_hole(self, box: str, text: str) -> Hole | None:
        places = self._texts.get((box, text)) or self._texts.get(("", text))
        return None if places is None else Hole("text", places)

    def filled(self, mine: Structure) -> Shared | None:
        """The picture of ``mine``; None where one text would have to become two."""
        texts = [*map(_plain, mine.texts)]
        fill = []
        for hole in self._holes:
            own = {texts[place] for place in hole.places} if hole.kind == "text" else {mine.ids[hole.places[0]]}
            if len(own) > 1:
                return None
            fill.append(escape(own.pop(), quote=False))
        return Shared(self, fill)


class Layouts:
    """The layouts that were made, by structure."""

    def __init__(self) -> None:
        self._made: dict[str, Template | str] = {}
        """Structure → its template, or a sentence that says why there is none."""

    def svg(self, figure: Rendered) -> str:
        """The picture of ``figure``, laid out only if none of its structure was."""
        shared = self.shared(figure, "")
        return shared if isinstance(shared, str) else shared.svg

    def shared(self, figure: Rendered, name: str) -> Shared | str:
        """The picture of ``figure`` in its structure's template, or by itself where it does not fit into that.

        ``name`` becomes the name of the template, if this is the first picture of its structure.
        """
        mine = Structure.of(figure.source)
        if mine.key not in self._made:
            self._made[mine.key] = _template(figure, name)
        template = self._made[mine.key]
        if isinstance(template, str):
            return template
        return template.filled(mine) or figure.svg()

    @property
    def count(self) -> int:
        """How many layouts there are."""
        return len(self._made)


def _template(figure: Rendered, name: str) -> Template | str:
    roomy = _with(figure.source, str, lambda text, _: _roomy(text), str)
    try:
        svg = figure.finish(draw_source(roomy, "svg", figure.engine)).decode()
    except NoPictureError as error:
        return sentence_svg(str(error))
    return Template(name, Structure.of(roomy), svg)


def _roomy(text: str) -> str:
    return _TENS.sub(r"0\g<0>", text)


def _plain(text: str) -> str:
    """What a label shows, as it stands in the finished picture."""
    return unescape(text).replace("\\\\", "\\").rstrip()
