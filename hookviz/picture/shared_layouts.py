"""Layouts of pictures that several passes share: Graphviz draws pictures of equal structure once.

Two pictures have equal structure if they differ only in the numbers of their ids and in the digits of their texts.
Graphviz gives them the same layout, since the digits of a font are equally wide.
"""

import re
import xml.etree.ElementTree as ET
from html import unescape
from typing import NamedTuple

from hookviz.picture.dot_source import Figure, build_figure, sketch_scene
from hookviz.picture.graphviz_digraph import tidy_svg
from hookviz.picture.layout import NoPictureError, draw_source
from hookviz.picture.scene import Scene
from hookviz.picture.svg_templates import FilledTemplate, Template, Templates

_TEXT_END = "</FONT>"
"""What ends a text of a label; nothing else in a source comes from the user."""
_ID = re.compile(
    r"(?<![\w#])((?:cluster_)?(?:[nmgo]\d+|e\d+-\d+-\d+|e[nmgo]\d+-[nmgo]\d+)(?:-[a-z]\d*)*(?:_inside)?)(?!\w)"
)
"""Matches an id (see ``element_ids``) in a source outside of texts, and the names that are made of ids."""
_CELL_OR_TEXT = re.compile(r'\sID="([^"]*)"|(?<=>)([^<>]*)(?=</FONT>)')
_EDGE = re.compile(r"\be(\d+)-(\d+)-(\d+)")
_NUMBER, _DIGITS, _DIGIT = re.compile(r"[a-z]\d+"), re.compile(r"\d+"), re.compile(r"[0-9]")
_ZEROS = str.maketrans("123456789", "0" * 9)
_MARK = "\ue000"
"""A character for private use: around the index of a text, it marks where that text stands in an SVG."""
_SVG = "{http://www.w3.org/2000/svg}"


Structure = tuple[str, str, tuple[int, ...], str]
"""The same for all pictures of equal structure: the source without its ids and texts; its ids without their numbers;
which of these numbers are equal; and the texts with 0 for each digit."""


class Outline(NamedTuple):
    """What a picture shares with others of equal structure, and what it has of its own."""

    structure: Structure
    numbers: tuple[str, ...]
    """The numbers in its ids, each with a letter for what it counts, in the order in which they first appear."""
    texts: tuple[str, ...]

    @classmethod
    def of(cls, source: str) -> "Outline":
        """Split a DOT source, or the text of a sketch, into its structure and its own numbers and texts.

        >>> outlines = [Outline.of(f"n{n} [label=<<FONT>{n * n}</FONT>> id=n{n}]") for n in (4, 5)]
        >>> outlines[0].structure == outlines[1].structure, outlines[1].numbers, outlines[1].texts
        (True, ('n5',), ('25',))
        """
        *parts, end = source.split(_TEXT_END)
        cut = [part.rpartition(">") for part in parts]
        texts = tuple(text for _, _, text in cut)
        pieces = _ID.split(">".join([*(head for head, _, _ in cut), end]))
        ids = _name_numbers(" ".join(pieces[1::2]))
        numbers = _NUMBER.findall(ids)
        indexes = {number: index for index, number in enumerate(dict.fromkeys(numbers))}
        equal_numbers = tuple(map(indexes.__getitem__, numbers))
        shapes = "\n".join(texts).translate(_ZEROS)
        shared = "".join(pieces[::2]), _DIGITS.sub("", ids), equal_numbers, shapes
        return cls(shared, tuple(indexes), texts)


def _name_numbers(ids: str) -> str:
    """Put a letter before each number of ids, so that node 0 and slot 0 are not taken for the same number.

    >>> _name_numbers("e12-0-15-v n12-d0")
    'n12-s0-n15-v n12-t0'
    """
    return _EDGE.sub(r"n\1-s\2-n\3", ids).replace("-d", "-t")  # the name and the value of a tensor have one number


class _Hole(NamedTuple):
    """What stands between two pieces of a template."""

    text: str
    """An id or a text, as in the first picture of this layout."""
    source: int | None = None
    """The index of the text in the source; None if it is an id, or the same in all pictures of this layout."""
    numbers: tuple[str, ...] = ()
    """The numbers of an id, as in ``Outline.numbers``."""


class _Layout(NamedTuple):
    """The template of all pictures of equal structure."""

    template: Template
    holes: list[_Hole]
    numbers: tuple[str, ...]
    """The numbers in the ids of the first picture."""

    def fill(self, outline: Outline) -> FilledTemplate:
        """Return the picture of another source of equal structure."""
        numbers = dict(zip(self.numbers, outline.numbers, strict=True))
        fill = []
        for hole in self.holes:
            if hole.numbers:
                own = iter([numbers[number][1:] for number in hole.numbers])
                fill.append(_DIGITS.sub(lambda _, own=own: next(own), hole.text))  # type: ignore[misc]
            elif hole.source is not None:
                digits = iter(_DIGIT.findall(unescape(outline.texts[hole.source])))
                fill.append(_DIGIT.sub(lambda _, own=digits: next(own), hole.text))  # type: ignore[misc]
            else:
                fill.append(hole.text)
        return FilledTemplate(self.template, fill)


class SharedLayouts:
    """Draws figures for the player; figures of equal structure are drawn once."""

    def __init__(self) -> None:
        self._templates = Templates()
        self._layouts: dict[Structure, _Layout | None] = {}
        """The layout of each structure; None if it cannot be shared."""

    def draw(self, scene: Scene, name: str) -> FilledTemplate:
        """Return the picture ``name`` as a template, which other pictures may share, and what fills it."""
        outline = Outline.of(sketch_scene(scene).text)
        if outline.structure not in self._layouts:
            self._layouts[outline.structure] = self._lay_out(build_figure(scene, None, for_player=True), outline, name)
        layout = self._layouts[outline.structure]
        if layout is not None:
            return layout.fill(outline)
        return self._templates.fill_template(build_figure(scene, None, for_player=True).svg(), name)

    def _lay_out(self, figure: Figure, outline: Outline, name: str) -> _Layout | None:
        """Lay out the first picture of its structure; None if a text of the source is not in the SVG as it stands."""
        source = figure.source
        if Outline.of(source).texts != outline.texts:
            return None
        try:
            svg = draw_source(source, "svg")
        except NoPictureError:
            return None
        marked, drawn = _mark_texts(svg, _list_cell_texts(source))
        picture = self._templates.fill_template(tidy_svg(marked).decode(), name)
        holes = [_make_hole(content, before, drawn) for content, before in picture.list_holes()]
        if not all(_is_in_source(hole, outline) for hole in holes):
            return None
        # A text outside of cells, such as that of a port, would keep the digits of the first picture.
        own_texts = {hole.source for hole in holes}
        if any(_DIGIT.search(text) for index, text in enumerate(outline.texts) if index not in own_texts):
            return None
        return _Layout(picture.template, holes, outline.numbers)


def _list_cell_texts(source: str) -> dict[str, list[int]]:
    """Return the id of each cell → the indexes of its texts among all texts of the source."""
    cells: dict[str, list[int]] = {}
    cell, count = "", 0
    for match in _CELL_OR_TEXT.finditer(source):
        if match[1] is not None:
            cell = match[1]
        else:
            cells.setdefault(cell, []).append(count)
            count += 1
    return cells


def _mark_texts(svg: bytes, cells: dict[str, list[int]]) -> tuple[bytes, dict[int, str]]:
    """Replace the texts of cells in Graphviz's SVG by marks; return the SVG, and index of a text → the text in the SVG.

    A cell with another number of texts than in the source keeps its texts.
    """
    root = ET.fromstring(svg)
    drawn: dict[int, str] = {}
    for group in root.iter(f"{_SVG}g"):
        indexes = cells.get(group.get("id", "").removeprefix("a_"), [])
        texts = group.findall(f"{_SVG}a/{_SVG}text")
        for index, text in zip(indexes, texts, strict=False) if len(indexes) == len(texts) else ():
            drawn[index] = _escape((text.text or "").rstrip())
            text.text = f"{_MARK}{index}{_MARK}"
    return ET.tostring(root), drawn


def _make_hole(content: str, before: str, drawn: dict[int, str]) -> _Hole:
    """Make the hole of what stands behind the piece ``before`` of a template: a mark, an id, or something else."""
    if content.startswith(_MARK):
        index = int(content.strip(_MARK))
        return _Hole(drawn[index], index)
    is_id = before.endswith('id="') and _ID.fullmatch(content) is not None
    return _Hole(content, None, tuple(_NUMBER.findall(_name_numbers(content))) if is_id else ())


def _is_in_source(hole: _Hole, outline: Outline) -> bool:
    """Whether the source has the numbers of an id in the SVG, or the digits of a text."""
    if hole.source is None:
        return set(hole.numbers) <= set(outline.numbers)
    return _DIGIT.findall(unescape(hole.text)) == _DIGIT.findall(unescape(outline.texts[hole.source]))


def _escape(text: str) -> str:
    """Escape a text as ElementTree does."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
