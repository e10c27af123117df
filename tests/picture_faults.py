"""What is wrong with a picture: elements that lack or overlap, and texts that have no room where they stand."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from itertools import chain, combinations
from typing import NamedTuple

from hookviz.picture.letters import SMALL, fit_for_picture, text_width
from hookviz.picture.scene import Scene
from hookviz.picture.shared_modules import SharedModules
from hookviz.player.scene_views import step_texts

SVG = "{http://www.w3.org/2000/svg}"
SLACK = 1.0
"""Points by which elements may miss: lengths in an SVG are rounded."""
BOX_CLASSES = {"hv-node", "hv-fold", "hv-plate", "hv-tensor"}
Point = tuple[float, float]


class Area(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def contains(self, other: "Area") -> bool:
        return (
            self.left <= other.left + SLACK
            and self.top <= other.top + SLACK
            and self.right >= other.right - SLACK
            and self.bottom >= other.bottom - SLACK
        )

    def overlaps(self, other: "Area") -> bool:
        """Whether the two have some area in common."""
        return (
            min(self.right, other.right) - max(self.left, other.left) > SLACK
            and min(self.bottom, other.bottom) - max(self.top, other.top) > SLACK
        )

    def distance(self, point: Point) -> float:
        """How far ``point`` is from its outline."""
        x, y = point
        outside = max(self.left - x, x - self.right, 0), max(self.top - y, y - self.bottom, 0)
        if any(outside):
            return max(outside)
        return min(x - self.left, self.right - x, y - self.top, self.bottom - y)


class Words(NamedTuple):
    id: str
    holder: str
    """The id of the innermost box, frame, pin or arrow around it; empty for a note."""
    x: float
    y: float
    size: float
    bold: bool
    at_end: bool
    text: str

    def area(self, text: str) -> Area:
        """Where ``text`` stands if it is written here."""
        width = text_width(fit_for_picture(text), round(self.size), bold=self.bold)
        left = self.x - width if self.at_end else self.x
        return Area(left, self.y - 0.75 * self.size, left + width, self.y + 0.22 * self.size)


class PicturePlan:
    """Where the elements of an SVG of hookviz stand.

    >>> plan = PicturePlan('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"/>')
    >>> plan.find_faults()
    []
    """

    def __init__(self, svg: str) -> None:
        root = ET.fromstring(svg)
        self.ids = {element.get("id", "") for element in root.iter()} - {""}
        self.view_box = Area(*map(float, root.get("viewBox", "").split()))
        self.areas: dict[str, Area] = {}
        """Id of a box, frame, plate or pin → its outline."""
        self.classes: dict[str, set[str]] = {}
        self.holders: dict[str, str] = {}
        """Id of a pin, tensor or fact → the id of the element around it."""
        self.arrows: dict[str, list[Point]] = {}
        """Id of an arrow → points on its line and, at the end, its tip."""
        self.words: list[Words] = []
        self._shift: Point = (0.0, 0.0)
        self._read(root, "")

    def _read(self, element: ET.Element, holder: str) -> None:
        for child in element:
            inner = holder
            if child.tag == f"{SVG}g" and child.get("transform"):
                x, y = map(float, re.findall(r"-?[\d.]+", child.get("transform", "")))
                self._shift = (x, y)
            elif child.tag == f"{SVG}g" and child.get("id"):
                inner = self._read_group(child, holder)
            elif child.tag == f"{SVG}text":
                self._read_text(child, holder)
            self._read(child, inner)

    def _read_group(self, group: ET.Element, holder: str) -> str:
        """Read an element of the picture; return its id if it has an outline or is an arrow, else the holder's."""
        group_id = group.get("id", "")
        self.classes[group_id] = set(group.get("class", "").split())
        self.holders[group_id] = holder
        outline = group.find(f"{SVG}rect")
        lines = group.findall(f"{SVG}path")
        if outline is not None:
            x, y, width, height = (float(outline.get(name, 0)) for name in ("x", "y", "width", "height"))
            left, top = x + self._shift[0], y + self._shift[1]
            self.areas[group_id] = Area(left, top, left + width, top + height)
        elif lines:
            line, head = (_read_points(path.get("d", ""), self._shift) for path in lines)
            self.arrows[group_id] = [*_sample(line), head[1]]
        return group_id if outline is not None or lines else holder

    def _read_text(self, text: ET.Element, holder: str) -> None:
        x, y = float(text.get("x", 0)) + self._shift[0], float(text.get("y", 0)) + self._shift[1]
        size, bold = float(text.get("font-size", SMALL)), text.get("font-weight") == "bold"
        at_end = text.get("text-anchor") == "end"
        self.words.append(Words(text.get("id", ""), holder, x, y, size, bold, at_end, text.text or ""))

    @property
    def boxes(self) -> dict[str, Area]:
        """Id of a box or plate → its outline; what is in another box does not count."""
        return {
            box: area for box, area in self.areas.items() if self.classes[box] & BOX_CLASSES and not self.holders[box]
        }

    @property
    def frames(self) -> dict[str, Area]:
        """Id of a module's frame → its outline."""
        return {box: area for box, area in self.areas.items() if "hv-module" in self.classes[box]}

    def find_faults(self, texts: Mapping[str, list[str]] | None = None) -> list[str]:
        """Return what is wrong, in the picture alone; ``texts``: id → what steps write there."""
        return [*self._find_misplaced(), *self._find_cut_texts(texts or {})]

    def _find_misplaced(self) -> Iterator[str]:
        for box, area in self.areas.items():
            if not self.view_box.contains(area):
                yield f"{box} is outside of the picture"
            holder = self.holders[box]
            if holder and not self.areas[holder].contains(area):
                yield f"{box} is not inside {holder}"
        for (one, area), (other, other_area) in combinations(self.boxes.items(), 2):
            if area.overlaps(other_area):
                yield f"{one} overlaps {other}"
        for frame, frame_area in self.frames.items():
            for box, area in (self.boxes | self.frames).items():
                nested = frame_area.contains(area) or (box in self.frames and area.contains(frame_area))
                if frame_area.overlaps(area) and not nested:
                    yield f"{box} crosses the outline of {frame}"
        for arrow, points in self.arrows.items():
            if not all(self.view_box.contains(Area(x, y, x, y)) for x, y in points):
                yield f"{arrow} is outside of the picture"

    def _find_cut_texts(self, texts: Mapping[str, list[str]]) -> Iterator[str]:
        places: dict[str, list[tuple[str, Area]]] = {}
        for words in self.words:
            longest = max([words.text, *texts.get(words.id, [])], key=lambda text: words.area(text).right - words.x)
            longest = max([longest, *texts.get(words.id, [])], key=lambda text: words.x - words.area(text).left)
            area = words.area(longest)
            around = self.areas.get(words.holder, self.view_box)
            if not around.contains(area):
                yield f"{longest!r} does not fit {words.holder or 'the picture'}"
            places.setdefault(words.holder, []).append((longest, area))
        for holder, placed in places.items():
            for (text, area), (other, other_area) in combinations(placed, 2):
                if area.overlaps(other_area):
                    yield f"{text!r} stands on {other!r} in {holder}"


def _read_points(data: str, shift: Point) -> list[Point]:
    numbers = [float(number) for number in re.findall(r"-?[\d.]+", data)]
    return [(x + shift[0], y + shift[1]) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]


def _sample(curve: list[Point]) -> Iterator[Point]:
    """Yield points on a Bézier curve, from its start to its end."""
    yield curve[0]
    for index in range(0, len(curve) - 1, 3):
        for part in (0.25, 0.5, 0.75, 1):
            weights = ((1 - part) ** 3, 3 * part * (1 - part) ** 2, 3 * part**2 * (1 - part), part**3)
            pairs = [*zip(weights, curve[index : index + 4], strict=True)]
            yield sum(weight * x for weight, (x, _) in pairs), sum(weight * y for weight, (_, y) in pairs)


def find_faults(svg: str, scene: Scene) -> list[str]:
    plan = PicturePlan(svg)
    texts = {text_id: [*steps.values()] for text_id, steps in step_texts(scene).items()}
    has_note = any(words.holder == "" for words in plan.words)
    notes = ["a note that nobody needs"] if has_note and scene.total_boxes <= scene.box_count else []
    missing = [f"{element} is missing" for element in _list_elements(scene) if element not in plan.ids]
    if missing:
        return [*missing, *notes]
    return [*notes, *plan.find_faults(texts), *_find_strays(plan, scene)]


def _list_elements(scene: Scene) -> Iterator[str]:
    for boxes in (scene.boxes.values(), scene.calls.values(), scene.group_boxes, scene.list_pins(), scene.all_arrows):
        yield from (box.id for box in boxes)
    yield from (text_id for box in scene.group_boxes for text_id in box.texts if box.longest_text(text_id))


def _find_strays(plan: PicturePlan, scene: Scene) -> Iterator[str]:
    shared = SharedModules(scene)
    inside = {
        call.id: {*call.box_ids, *(child.id for child in call.children), f"{call.id}-h"} - shared.leaves
        for call in scene.calls.values()
    }
    for module in chain.from_iterable(shared.by_frame.values()):
        inside[module.id] = {*module.calls, *module.leaves, f"{module.id}-h"}
    for frame, elements in inside.items():
        for inner in sorted(elements):
            if not plan.areas[frame].contains(plan.areas[inner]):
                yield f"{inner} is not inside {frame}"
    # An arrow may also end at a frame that holds one box and nothing else.
    single = {next(iter(parts - {f"{frame}-h"})): frame for frame, parts in inside.items() if len(parts) == 2}
    for arrow in scene.all_arrows:
        points = plan.arrows[arrow.id]
        for end, point in ((arrow.start, points[0]), (arrow.end, points[-1])):
            if min(area.distance(point) for area in _list_ends(plan, single.get(end), end)) > 2 * SLACK:
                yield f"{arrow.id} does not touch {end}"
    yield from _find_false_ways(plan, scene)


def _find_false_ways(plan: PicturePlan, scene: Scene) -> Iterator[str]:
    """Yield arrows of parameters that lead through the hooks at the inputs of a module, which get no such gradient."""
    plates = [plan.areas[f"{call.id}-f"] for call in scene.calls.values() if f"{call.id}-f" in plan.areas]
    leaves = {box.id for node, box in scene.boxes.items() if box.leaf and node in scene.graph.calls}
    for arrow in scene.all_arrows:
        points = plan.arrows[arrow.id] if arrow.end in leaves else []
        if any(plate.contains(Area(x, y, x, y)) for plate in plates for x, y in points):
            yield f"{arrow.id} leads through hooks that do not get its gradient"


def _list_ends(plan: PicturePlan, frame: str | None, box: str) -> Iterator[Area]:
    """Yield the outlines at which an arrow of a box may end: the box, or the ``frame`` that holds nothing else."""
    yield plan.areas[box]
    tensors = [area for name, area in plan.areas.items() if name.startswith(f"{box}-k")]  # they stand above their node
    lefts, tops, rights, bottoms = zip(plan.areas[box], *tensors, strict=True)
    yield Area(min(lefts), min(tops), max(rights), max(bottoms))
    if frame is not None:
        yield plan.areas[frame]
