"""Pictures that differ in ids and texts alone share what is equal in them: a page of a large trace has hundreds."""

import re
from typing import NamedTuple

_ID_OR_TEXT = re.compile(r'(?<=\sid=")[^"]*|(?<=>)[^<>]+(?=</text>)')
"""An id or a text in a picture: each has its own, though boxes and arrows stand in the same places."""


class Template(NamedTuple):
    """What several pictures have in common."""

    name: str
    """The first of them."""
    pieces: list[str | int]
    """The parts of the SVG that all share, and between them the place of what fills a hole."""


class FilledTemplate(NamedTuple):
    """A picture that is given by its template, and by what fills the holes in it."""

    template: Template
    fill: list[str]

    @property
    def svg(self) -> str:
        """The picture."""
        return "".join(self.fill[piece] if isinstance(piece, int) else piece for piece in self.template.pieces)


class Templates:
    """The templates of the pictures that were seen."""

    def __init__(self) -> None:
        self._by_pieces: dict[tuple[str, ...], Template] = {}

    def fill_template(self, svg: str, name: str) -> FilledTemplate:
        """The picture called ``name`` in its template, which is new where no picture before had the same shape.

        >>> templates = Templates()
        >>> one, other = (templates.shared(f'<g id="{at}"><text>{at}</text></g>', at) for at in ("n1", "n2"))
        >>> one.template == other.template, other.template.name, other.fill
        (True, 'n1', ['n2', 'n2'])
        """
        pieces_between = tuple(_ID_OR_TEXT.split(svg))
        if pieces_between not in self._by_pieces:
            pieces: list[str | int] = [pieces_between[0]]
            for index, text in enumerate(pieces_between[1:]):
                pieces += [index, text]
            self._by_pieces[pieces_between] = Template(name, pieces)
        return FilledTemplate(self._by_pieces[pieces_between], _ID_OR_TEXT.findall(svg))

    def __len__(self) -> int:
        return len(self._by_pieces)
