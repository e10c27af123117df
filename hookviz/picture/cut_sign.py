"""The sign of a cut on an arrow: scissors, and what cut the graph there."""

from dataclasses import dataclass

from hookviz.picture.box_parts import Words
from hookviz.picture.letters import SMALL
from hookviz.picture.styles import GREY
from hookviz.picture.svg_writer import SvgWriter, format_points

_RING = "a2.2,2.2 0 1 0 -4.4,0a2.2,2.2 0 1 0 4.4,0"
_SCISSORS = f"M4.6,2.4{_RING}M4.6,9.6{_RING}M4.1,3.7L14,10M4.1,8.3L14,2"
"""Two rings and two blades, 14 points wide and 12 high."""
_ROOM = 19.0
"""Points from the left end of the scissors to the words."""
_HEIGHT = 12.0


@dataclass
class CutSign:
    """Scissors and the name of what cut, such as ``detach, line 24``."""

    name: str

    @property
    def _words(self) -> Words:
        return Words(self.name, "hv-cut-name", bold=True, color=GREY)

    @property
    def width(self) -> float:
        """The width of the scissors and the words."""
        return _ROOM + self._words.width

    def draw(self, svg: SvgWriter, x: float, baseline: float) -> None:
        """Draw the sign from ``x`` on."""
        top = baseline - 0.35 * SMALL - _HEIGHT / 2
        place = f"translate({format_points(x)} {format_points(top)})"
        svg.element("path", d=_SCISSORS, transform=place, fill="none", stroke=GREY, stroke_width="1.6")
        svg.shared(' class="hv-scissors"/>')
        self._words.draw(svg, x + _ROOM, baseline)
