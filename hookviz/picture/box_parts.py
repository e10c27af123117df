"""The parts of a box: lines of words, frames around them, columns and bars. Each has a size, and draws itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Protocol

from hookviz.picture.letters import LINE_HEIGHTS, SMALL, fit_for_picture, text_width
from hookviz.picture.svg import SvgWriter

GAP = 14
"""Points between the words at the left of a line and those at its right."""


class Part(Protocol):
    """Something in a box."""

    @property
    def width(self) -> float:
        """The least width that it needs, in points."""

    @property
    def height(self) -> float:
        """Its height, in points."""

    def draw(self, svg: SvgWriter, x: float, y: float, width: float) -> None:
        """Draw it with its upper left corner at (``x``, ``y``), ``width`` points wide."""


@dataclass
class Words:
    """Words in one style."""

    text: str
    """What stands there now."""
    css_class: str
    longest: str = ""
    """The longest text that will stand there, if steps write there; the picture has room for it."""
    id: str = ""
    """The id of a text that steps write."""
    size: int = SMALL
    bold: bool = False
    color: str = ""
    rounding: int = 1
    """The width is a multiple of this number of points, so that layers with other numbers have equal layouts."""

    @property
    def width(self) -> float:
        """The width of the longest text, in points."""
        widest = max(text_width(fit_for_picture(text), self.size, bold=self.bold) for text in (self.text, self.longest))
        return ceil(widest / self.rounding) * self.rounding

    def draw(self, svg: SvgWriter, x: float, baseline: float, *, at_end: bool = False) -> None:
        """Write the words from ``x`` on, or up to ``x``."""
        # Each text says its size: the browser copies texts out of the picture, for motion and for the lens.
        svg.element("text", x=x, y=baseline, text_anchor="end" if at_end else "", font_size=self.size)
        weight = "bold" if self.bold else ""
        svg.shared("".join(_attribute(*pair) for pair in (("font-weight", weight), ("fill", self.color))))
        svg.shared(_attribute("class", self.css_class))
        if self.id:
            svg.own(' id="', self.id).shared('"')
        svg.own(">", fit_for_picture(self.text)).shared("</text>")


def _attribute(name: str, value: str) -> str:
    return f' {name}="{value}"' if value else ""


@dataclass
class Line:
    """A line of words."""

    left: Sequence[Words]
    right: Words | None = None

    @property
    def width(self) -> float:
        """The width of all its words and the gap between those at the left and those at the right."""
        ends = [self.right.width + GAP] if self.right and self.left else [self.right.width] if self.right else []
        return sum([*(words.width for words in self.left), *ends])

    @property
    def height(self) -> float:
        """The height of its largest letters."""
        return max(LINE_HEIGHTS[words.size] for words in (*self.left, *([self.right] if self.right else [])))

    def draw(self, svg: SvgWriter, x: float, y: float, width: float) -> None:
        """Draw all words on one baseline."""
        largest = max(words.size for words in (*self.left, *([self.right] if self.right else [])))
        baseline = y + (self.height + 0.7 * largest) / 2
        at = x
        for words in self.left:
            words.draw(svg, at, baseline)
            at += words.width
        if self.right:
            self.right.draw(svg, x + width, baseline, at_end=True)


@dataclass
class Column:
    """Parts below each other, all as wide as the widest."""

    parts: list[Part]
    spacing: float = 3

    @property
    def width(self) -> float:
        """The width of the widest part."""
        return max((part.width for part in self.parts), default=0)

    @property
    def height(self) -> float:
        """The height of all parts with the spaces between them."""
        return sum(part.height for part in self.parts) + self.spacing * max(len(self.parts) - 1, 0)

    def draw(self, svg: SvgWriter, x: float, y: float, width: float) -> None:
        """Draw one part after the other."""
        for part in self.parts:
            part.draw(svg, x, y, width)
            y += part.height + self.spacing


@dataclass
class SideBySide:
    """Parts beside each other, all as high as the highest."""

    parts: Sequence[Part]
    gap: float = 4

    @property
    def width(self) -> float:
        """The width of all parts with the gaps between them."""
        return sum(part.width for part in self.parts) + self.gap * (len(self.parts) - 1)

    @property
    def height(self) -> float:
        """The height of the highest part."""
        return max(part.height for part in self.parts)

    def draw(self, svg: SvgWriter, x: float, y: float, width: float) -> None:
        """Draw one part after the other, each with its share of the width that is left."""
        share = (width - self.width) / len(self.parts)
        for part in self.parts:
            part.draw(svg, x, y, part.width + share)
            x += part.width + share + self.gap


@dataclass
class FirstGrows(SideBySide):
    """Parts beside each other, of which the first has all width that is left."""

    def draw(self, svg: SvgWriter, x: float, y: float, width: float) -> None:
        """Draw one part after the other."""
        for part in self.parts:
            own = part.width + (width - self.width if part is self.parts[0] else 0)
            part.draw(svg, x, y + (self.height - part.height) / 2, own)
            x += own + self.gap


@dataclass
class Outline:
    """How the outline of a frame looks."""

    css_class: str
    fill: str
    stroke: str = ""
    stroke_width: float = 0
    radius: float = 6
    second: bool = False
    """Whether there is a second line inside the first, as around a leaf."""
    is_dashed: bool = False

    def draw(self, svg: SvgWriter, x: float, y: float, width: float, height: float) -> None:
        """Draw it around an area."""
        self._rect(svg, self.css_class, self.fill, x, y, width, height)
        if self.second:
            self._rect(svg, "hv-second", "none", x + 4, y + 4, width - 8, height - 8)

    def _rect(self, svg: SvgWriter, css_class: str, fill: str, x: float, y: float, width: float, height: float) -> None:
        line: dict[str, float | str] = {"stroke": self.stroke, "stroke_width": self.stroke_width} if self.stroke else {}
        size = {"x": x, "y": y, "width": width, "height": height, "rx": self.radius}
        dashes = "6 4" if self.is_dashed else ""
        svg.element("rect", **size, class_=css_class, fill=fill, **line, stroke_dasharray=dashes).shared("/>")


@dataclass
class Framed:
    """A part that is an element of the picture, with an outline around it: a box, a pin, a plate; a fact has none."""

    part: Part
    id: str
    css_class: str
    outline: Outline | None = None
    padding: tuple[float, float] = (6, 2)
    """Points at the left and right, and above and below."""
    names: dict[str, str] = field(default_factory=dict)
    """Further attributes, such as ``data-name``."""

    @property
    def width(self) -> float:
        """The width with the padding."""
        return self.part.width + 2 * self.padding[0]

    @property
    def height(self) -> float:
        """The height with the padding."""
        return self.part.height + 2 * self.padding[1]

    def draw(self, svg: SvgWriter, x: float, y: float, width: float) -> None:
        """Draw the outline, and the part in it."""
        begin_group(svg, self.id, self.css_class, self.names)
        if self.outline is not None:
            self.outline.draw(svg, x, y, width, self.height)
        across, down = self.padding
        self.part.draw(svg, x + across, y + down, width - 2 * across)
        svg.shared("</g>")


@dataclass
class Bars:
    """A row of bars; the browser gives each its height at the step."""

    ids: Sequence[str]
    color: str
    heights: Sequence[float]
    """The height of each, from 0 to 1."""
    height: float = 34
    bar_width: float = 8
    gap: float = 3

    @property
    def width(self) -> float:
        """The width of all bars."""
        return len(self.ids) * (self.bar_width + self.gap) - self.gap

    def draw(self, svg: SvgWriter, x: float, y: float, width: float) -> None:
        """Draw the bars in the middle of the width."""
        at = x + (width - self.width) / 2
        for bar_id, share in zip(self.ids, self.heights, strict=True):
            size = {"y": y + (1 - share) * self.height, "height": share * self.height, "width": self.bar_width}
            svg.element("rect", x=at, **size, class_="hv-bar", fill=self.color)
            svg.own(' id="', bar_id).shared('"/>')
            at += self.bar_width + self.gap


def begin_group(svg: SvgWriter, element_id: str, css_class: str, names: dict[str, str]) -> None:
    """Begin the group of an element of the picture."""
    svg.own('<g id="', element_id).shared('"')
    for name, value in names.items():
        svg.own(f' {name}="', fit_for_picture(value)).shared('"')
    svg.shared(f' class="{css_class}">')
