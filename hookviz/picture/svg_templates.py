"""Templates of SVG pictures: pictures that differ only in ids and texts share the rest.

A page of a large trace has hundreds of pictures, and many of them are alike.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_ID_OR_TEXT = re.compile(r'(?<=\sid=")[^"]*|(?<=>)[^<>]+(?=</text>)')
"""Matches an id or a text: what may differ between two pictures whose boxes and arrows stand in the same places."""


class Template(NamedTuple):
    """The SVG that several pictures have in common."""

    name: str
    """The name of the first of these pictures."""
    pieces: list[str | int]
    """The shared pieces of SVG; between them, the index in ``FilledTemplate.fill`` of what stands there."""


class FilledTemplate(NamedTuple):
    """A picture as a template and the ids and texts that fill it."""

    template: Template
    fill: list[str]

    def list_holes(self) -> Iterator[tuple[str, str]]:
        """Yield what stands in each hole, in order, and the piece of SVG before it."""
        before = ""
        for piece in self.template.pieces:
            if isinstance(piece, int):
                yield self.fill[piece], before
            else:
                before = piece

    @property
    def svg(self) -> str:
        """The whole SVG of the picture."""
        return "".join(self.fill[piece] if isinstance(piece, int) else piece for piece in self.template.pieces)


class Templates:
    """The templates of all pictures so far."""

    def __init__(self) -> None:
        self._by_pieces: dict[tuple[str, ...], Template] = {}

    def fill_template(self, svg: str, name: str) -> FilledTemplate:
        """Split the picture ``name`` into its template and its own ids and texts.

        The template is a new one if no earlier picture has the same pieces.

        >>> templates = Templates()
        >>> pictures = [(f'<g id="{id}"><text>{id}</text></g>', id) for id in ("n1", "n2")]
        >>> first, second = (templates.fill_template(svg, id) for svg, id in pictures)
        >>> first.template == second.template, second.template.name, second.fill
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
