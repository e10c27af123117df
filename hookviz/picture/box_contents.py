"""What stands in the boxes and on the arrows of a picture: names, hooks, gradients and cuts, as parts with a size."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, log10

from hookviz.picture import element_ids as ids
from hookviz.picture.box_parts import Bars, Column, FirstGrows, Framed, Line, Outline, Part, SideBySide, Words
from hookviz.picture.boxes import CallBox, OptimizerBox
from hookviz.picture.group_boxes import GroupBox, find_bar_height
from hookviz.picture.grouping import has_many_passes
from hookviz.picture.letters import LARGE, SMALL
from hookviz.picture.primitives import SPACE, Arrow, Box, Parameter, Pin
from hookviz.picture.saved_rows import make_saved_rows
from hookviz.picture.scene import Scene
from hookviz.picture.shared_modules import SharedModule
from hookviz.picture.styles import (
    BOX_FILL,
    FRAME_FILL,
    GREY,
    INK,
    LEAF_FILL,
    PLATE_FILL,
    PURPLE,
    Style,
)
from hookviz.picture.svg import SvgWriter, format_points
from hookviz.picture.tensor_layer import make_pre_hooks_line, make_tensor_parts
from hookviz.support.messages import _
from hookviz.trace.values import Value

MAX_SHARED_LINE = 210
"""Points: a gradient shares a line with the name if that line is no wider than this, or than the widest pin."""
MAX_PIN_LINE = 230
"""Points: in a large network a longer pin has two lines."""
MAX_WORDY = 16
"""In a network of more boxes, boxes say less."""
WIDTH_STEP = 35
"""Points: in a picture of a large trace the width of a number is a multiple of this, so that layers look alike."""

_RING = "a2.2,2.2 0 1 0 -4.4,0a2.2,2.2 0 1 0 4.4,0"

_SCISSORS = f"M4.6,2.4{_RING}M4.6,9.6{_RING}M4.1,3.7L14,10M4.1,8.3L14,2"
"""Two rings and two blades, 14 points wide and 12 high."""

_ROOM = 19.0
"""Points from the left end of the scissors to the words."""

_HEIGHT = 12.0


@dataclass
class CutSign:
    """The sign of a cut on an arrow: scissors and the name of what cut, such as ``detach, line 24``."""

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


class BoxContents:
    """Makes the parts of all boxes of a scene at one step.

    Args:
        scene: the scene.
        style: the state of its elements.
        tensors: whether each named tensor stands above its node, with its facts.
    """

    def __init__(self, scene: Scene, style: Style, *, tensors: bool = False) -> None:
        self.scene, self.style, self.tensors = scene, style, tensors
        is_large = bool(scene.group_boxes) or has_many_passes(scene.trace)
        self._rounding = WIDTH_STEP if is_large and style.for_player else 1
        is_wordy = tensors or not (scene.group_boxes or (scene.calls and scene.box_count > MAX_WORDY))
        self._is_brief = not is_wordy
        """Whether boxes say less, so that more of a large network fits a screen: the panel says the rest."""

    def node(self, box: Box) -> Part:
        """Make the box of a node."""
        if not self.tensors:
            return self._node_frame(box, self._node_lines(box))
        tensors = make_tensor_parts(self.scene, box, self.style, self.pin)
        rows = [Line([Words(_("node {op}").format(op=box.op), "hv-op", color=GREY)])]
        rows.append(make_pre_hooks_line(self.scene, box))
        pins = [self.pin(pin) for pin in box.pins if pin.id not in tensors.pin_ids]
        leaves = [self.node(self._leaf_of(row)) for row in box.parameters]
        return Column(
            [*tensors.parts, self._node_frame(box, [*rows, *pins, *leaves, *make_saved_rows(self.scene, box)])],
            spacing=2,
        )

    def _leaf_of(self, row: Parameter) -> Box:
        """Return the box of a parameter's AccumulateGrad, which has a row only if tensors are not shown."""
        tensors = self.scene.trace.lookup.tensors(self.scene.pass_id, row.node)
        return Box(row.id, row.node, self.scene.trace.ops[row.node], True, tensors, [], row.pins)

    def _node_frame(self, box: Box, lines: list[Part]) -> Part:
        """Make the outline of a node around its lines: one line, or two for a leaf."""
        color, fill = self.style.outline_color(box.id), LEAF_FILL if box.leaf else BOX_FILL
        # The player draws the second line of a leaf by itself.
        two_lines = box.leaf and not self.style.for_player
        width = 5 if box.leaf and self.style.for_player else 1 if box.leaf else 2
        outline = Outline("hv-box", fill, color, width, radius=10, second=two_lines)
        css_class = "hv-node hv-leaf" if box.leaf else "hv-node"
        return Framed(Column(lines), box.id, css_class, outline, padding=(9, 3 if self._is_small(box) else 6))

    def _node_lines(self, box: Box) -> list[Part]:
        """Make the lines of a node: names with values, the op, the parameters, the pins, and the gradient.

        The gradient is on the first line if it fits there, else on the last.
        """
        titles = [
            Line(self._named_value(name, value, ids.part_id("tensor_value", box.id, index), LARGE))
            for index, (name, value) in enumerate(box.names)
        ]
        gradient = self._written(ids.part_id("gradient", box.id), "hv-grad", box.longest_text, PURPLE, bold=True)
        if self._is_small(box):
            return [Line([gradient])] if gradient else []
        first, *others = [*titles, Line([Words(_describe_op(self.scene, box), "hv-op", color=GREY)])]
        memory = self._written(ids.part_id("memory", box.id), "hv-memory", box.memory, GREY, bold=False)
        rows = [*map(self.pin, box.pins), *self._parameters(box), *make_saved_rows(self.scene, box)]
        rows += [Line([memory])] if memory else []
        if gradient is None:
            return [first, *others, *rows]
        shared = Line(first.left, gradient)
        if shared.width <= max(MAX_SHARED_LINE, *(row.width for row in rows), 0):
            return [shared, *others, *rows]
        return [first, *others, *rows, Line([gradient])]

    def _is_small(self, box: Box) -> bool:
        """Whether a box says its gradient only: in a large network, the one op of a call without hooks."""
        return box.node in self._small_nodes

    @cached_property
    def _small_nodes(self) -> set[int]:
        if not self._is_brief or not self.scene.graph.boxes:  # with all nodes shown, each says its op
            return set()
        calls = (call for call in self.scene.calls.values() if not (call.children or call.group_ids or call.pins))
        single = [self.scene.boxes[call.nodes[0]] for call in calls if len(call.nodes) == 1]
        hooked = {box.node for box in single if box.pins or any(row.pins for row in box.parameters)}
        return {box.node for box in single if not box.names and box.longest_text} - hooked

    def _signs(self, box: Box) -> list[Part]:
        """Make a sign for each parameter, without its name."""
        return [self._parameter_frame(row, [Line([Words(" ", "hv-op")])]) for row in box.parameters]

    def _parameters(self, box: Box) -> list[Part]:
        """Make the rows of the parameters; in a large picture those without hooks stand on one line."""
        brief = [row for row in box.parameters if self._is_brief and not row.pins]
        rows: list[Part] = [self._parameter(row) for row in box.parameters if row not in brief]
        if not brief:
            return rows
        return [
            *rows,
            SideBySide([self._parameter_frame(row, [Line([Words(row.name, "hv-op", color=GREY)])]) for row in brief]),
        ]

    def _parameter(self, row: Parameter) -> Part:
        """Make the row of a parameter: its name, its value, its gradient, and its hooks."""
        gradient = self._written(ids.part_id("gradient", row.id), "hv-grad", row.longest_text, PURPLE, bold=True)
        name = self._named_value(row.name, row.value, ids.part_id("tensor_value", row.id, 0), SMALL)
        return self._parameter_frame(row, [Line(name, gradient), *map(self.pin, row.pins)])

    def _parameter_frame(self, row: Parameter, lines: list[Part]) -> Part:
        outline = Outline("hv-box", LEAF_FILL, self.style.outline_color(row.id), 1)
        return Framed(Column(lines), row.id, "hv-node hv-parameter", outline, padding=(7, 3))

    def _named_value(self, name: str, value: str, value_id: str, size: int) -> Sequence[Words]:
        """Make the name of a tensor and its value."""
        words = [Words(name, "hv-name", size=size, bold=True)]
        if value:
            longest = self.scene.reserved_texts.get(value_id, "")
            words.append(Words(self.style.texts.get(value_id, value), "hv-data", longest, id=value_id))
        return words

    def pin(self, pin: Pin, *, two_lines: bool = False) -> Part:
        """Make a pin: the hook's number and label, and what the hook did, below it if ``two_lines``."""
        value = self._written(ids.part_id("value", pin.id), "hv-pin-value", pin.longest_text, "", bold=True)
        label = Words(pin.label, "hv-pin-label")
        outline = Outline("hv-pin-box", self.style.pin_fill(pin.id), self.style.outline_color(pin.id), 1)
        css_class = "hv-pin hv-retain" if pin.hook is None and pin.unfired is None else "hv-pin"
        lines = [Line([label], value)]
        is_long = self._is_brief and lines[0].width > MAX_PIN_LINE
        if value is not None and (two_lines or is_long):
            lines = [Line([label]), Line([value])]
        return Framed(Column([*lines], spacing=0), pin.id, css_class, outline, padding=(7, 3))

    def group(self, box: GroupBox) -> Part:
        """Make a closed box: its name, its description, and the texts that steps write on it."""
        lines: list[Part] = [Line([Words(box.name, "hv-name", size=LARGE, bold=True)])]
        lines.append(Line([Words(box.description, "hv-op", color=GREY)]))
        heights = self._bar_heights(box)
        if any(heights):
            bars = [ids.part_id("bar", box.id, index) for index in range(len(box.stack))]
            lines.append(Bars(bars, self.style.outline_color(box.id), heights))
        texts = (
            (ids.part_id("gradient", box.id), "hv-grad", PURPLE, True),
            (ids.part_id("fired_count", box.id), "hv-hooked", "", False),
        )
        for text_id, css_class, color, bold in texts:
            words = self._written(text_id, css_class, box.longest_text(text_id), color, bold=bold)
            if words is not None:
                lines.append(Line([words]))
        color = self.style.outline_color(box.id)
        outline = Outline("hv-box", BOX_FILL, color, 2, radius=10, is_dashed=box.is_recomputed)
        names = {"data-name": box.full_name or box.name, "data-hv": "stack" if box.stack else "module"}
        if box.stack:
            names["data-count"] = str(sum(bar.count for bar in box.stack))
        css_class = f"hv-fold{' hv-stack' if box.stack else ''}{' hv-again' if box.is_recomputed else ''}"
        return Framed(Column(lines), box.id, css_class, outline, padding=(9, 6), names=names)

    def _bar_heights(self, box: GroupBox) -> list[float]:
        """Return the height of each bar at the step; the player gives bars their heights by itself."""
        if self.style.for_player:
            return [1.0] * len(box.stack)
        latest = [[norm for step, norm in bar.norms if step <= self.style.last_step][-1:] for bar in box.stack]
        scale = [log10(norm) for norms in latest for norm in norms if 0 < norm < inf]
        return [max(find_bar_height(norms[0], scale), 0) if norms else 0.0 for norms in latest]

    def header(self, box: CallBox) -> Framed:
        """Make the head of a module call: its name, its class and its output."""
        name = [Words(f"{box.name} ", "hv-name", size=LARGE, bold=True)]
        small = [*self._small_nodes.intersection(box.nodes)]
        if small:
            return _plate(
                ids.part_id("header", box.id), [FirstGrows([Line(name), *self._signs(self.scene.boxes[small[0]])])], 1
            )
        outer = self.scene.calls.get(box.parent) if box.parent is not None else None
        is_first = box.is_recomputed and not (outer is not None and outer.is_recomputed)
        kind = _("{kind} · recomputed").format(kind=box.kind) if is_first else box.kind
        name.append(Words(kind, "hv-kind", color=GREY))
        says_output = not self._is_brief or box.pins_at(self.scene.trace, output=True)
        longest = box.longest_text if says_output else ""
        output = self._written(ids.part_id("output", box.id), "hv-activation", longest, INK, bold=True)
        return _plate(ids.part_id("header", box.id), [Line(name, output)])

    def shared_header(self, module: SharedModule) -> Framed:
        """Make the head of a module with several calls: its name, its class, and how many they are."""
        calls = _("{kind} · {count} calls").format(kind=module.kind, count=f"{len(module.calls):,}")
        name = Words(f"{module.name} ", "hv-name", size=LARGE, bold=True)
        return _plate(ids.part_id("header", module.id), [Line([name, Words(calls, "hv-kind", color=GREY)])])

    def output_plate(self, box: CallBox) -> Framed | None:
        """Make the plate with the hooks at a module's output, where gradients enter it; None if it has none."""
        pins = [self.pin(pin) for pin in box.pins_at(self.scene.trace, output=True)]
        return _plate(ids.part_id("output_plate", box.id), pins) if pins else None

    def input_plate(self, box: CallBox) -> Framed | None:
        """Make the plate with the hooks at a module's inputs, and the input; None if it has no such hook."""
        lines: list[Part] = [self.pin(pin) for pin in box.pins_at(self.scene.trace, output=False)]
        if not lines:
            return None
        longest = "" if self._is_brief else box.longest_input
        words = self._written(ids.part_id("input", box.id), "hv-activation", longest, INK, bold=True)
        return _plate(ids.part_id("input_plate", box.id), [*lines, *([Line([words])] if words else [])])

    def optimizer(self, box: OptimizerBox) -> Part:
        """Make the box of an optimizer: its name, its class, and its hooks."""
        name = Line([Words(f"{box.name} ", "hv-name", size=LARGE, bold=True), Words(box.kind, "hv-kind", color=GREY)])
        outline = Outline("hv-box", BOX_FILL, self.style.outline_color(box.id), 2, radius=10)
        pins = (self.pin(pin, two_lines=True) for pin in box.pins)
        return Framed(Column([name, *pins]), box.id, "hv-node", outline, padding=(9, 6))

    def arrow_sign(self, arrow: Arrow) -> Words | CutSign | None:
        """Make the value on an arrow, or the sign of its cut; None if it has neither."""
        if arrow.words:
            return CutSign(arrow.words)
        return self._written(ids.part_id("value", arrow.id), "hv-edge-value", arrow.longest_text, PURPLE, bold=True)

    def _written(self, text_id: str, css_class: str, longest: str, color: str, *, bold: bool) -> Words | None:
        """Make a text that steps write; None if ``longest`` is empty, which means that none does."""
        if not longest:
            return None
        shown = self.style.texts.get(text_id, "")
        return Words(shown, css_class, longest, text_id, bold=bold, color=color, rounding=self._rounding)


def _describe_op(scene: Scene, box: Box) -> str:
    """Return the op of a box; a leaf without a name says its shape as well."""
    if not box.leaf:
        return box.op
    op = _("leaf · {op}").format(op=box.op)
    value = scene.trace.value(box.tensors[0].data) if box.tensors and not box.names else None
    return f"{op}{SPACE}{value.shape}" if isinstance(value, Value) and value.shape else op


def _plate(plate_id: str, lines: Sequence[Part], padding: float = 4) -> Framed:
    return Framed(Column([*lines]), plate_id, "hv-plate", Outline("hv-plate-box", PLATE_FILL), padding=(5, padding))


def frame_outline(style: Style, frame_id: str, *, is_dashed: bool = False) -> Outline:
    """Return the outline of the frame of a module, or of one of its calls."""
    is_current = frame_id in style.current_elements
    color = GREY if frame_id in style.marked_elements and not is_current else style.outline_color(frame_id)
    return Outline("hv-box", FRAME_FILL, color, 3 if is_current else 1.5, radius=12, is_dashed=is_dashed)
