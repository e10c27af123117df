"""What a picture of one pass shows: boxes with pins, arrows between them, and what each step writes on them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hookviz.sentences import numeral
from hookviz.trace import HOOK_KINDS, Step, TensorRow, Trace, Values
from hookviz.values import Value
from hookviz.words import say

MOST = 300
"""No more boxes than this are ever laid out: beyond, Graphviz takes seconds and nobody can read the picture."""

NAME_ROOM, LABEL_ROOM, VALUE_ROOM = 28, 24, 16
DIGITS = 4
"""Significant digits of a number in a picture, where room is dear."""


@dataclass
class Pin:
    """A hook on a box, or retain_grad; ``hook`` is the hook's number in the trace."""

    id: str
    label: str
    full: str
    hook: int | None
    final: str = ""
    """The longest text it ever shows, for which the layout keeps room."""


@dataclass
class Box:
    """An autograd node, under the names of the tensors whose gradient arrives there."""

    id: str
    node: int
    op: str
    leaf: bool
    tensors: list[TensorRow]
    names: list[tuple[str, str]]
    """(name, value) of each named tensor."""
    pins: list[Pin] = field(default_factory=list)
    final: str = ""
    """The longest text of its gradient line."""


@dataclass
class Arrow:
    """The way of a gradient, from one of a node's inputs to the node that made that input."""

    id: str
    start: str
    end: str
    final: str = ""


class Mark(NamedTuple):
    """What a step is about (ids, the box first) and the texts that it writes (id → text)."""

    on: list[str]
    texts: dict[str, str]


@dataclass
class Scene:
    """The boxes and arrows of one pass, and a mark for each of its steps."""

    trace: Trace
    pass_id: int
    boxes: dict[int, Box]
    arrows: dict[tuple[int, int], Arrow]
    hidden: int
    """How many nodes are not drawn."""
    marks: dict[int, Mark] = field(default_factory=dict)
    """Step's index → its mark."""
    _spots: dict[str, Pin | Box | Arrow] = field(default_factory=dict)
    """Id of a text → what it stands on."""

    @classmethod
    def of(cls, trace: Trace, pass_id: int = 0, most: int = MOST) -> "Scene":
        """The scene of one pass of ``trace``, at most ``most`` boxes of it, those nearest to the roots."""
        nodes = list(_below(trace, pass_id))
        shown = set(nodes[:most])
        boxes = {node: _box(trace, pass_id, node) for node in nodes[:most]}
        arrows = {
            (start, slot): Arrow(f"e{start}-{slot}-{end}", f"n{start}", f"n{end}")
            for (start, slot), (end, _) in trace.edges.items()
            if start in shown and end in shown
        }
        scene = cls(trace, pass_id, boxes, arrows, len(nodes) - len(shown))
        scene._spots = {f"{thing.id}-{kind}": thing for thing in scene._things() for kind in "vg"}
        for index, row in enumerate(trace.rows):
            if row.pass_id == pass_id:
                box = boxes.get(row.node)
                scene._write(index, Mark([], {}) if box is None else _mark(scene, box, trace.steps[index]))
        scene._silence()
        return scene

    def _things(self) -> Iterator[Pin | Box | Arrow]:
        yield from self.arrows.values()
        for box in self.boxes.values():
            yield box
            yield from box.pins

    def _write(self, index: int, mark: Mark) -> None:
        """Note what a step marks, and keep room for its texts, so that no step moves anything."""
        self.marks[index] = mark
        for spot, text in mark.texts.items():
            thing = self._spots.get(spot)
            if thing is not None and len(text) > len(thing.final):
                thing.final = text

    def _silence(self) -> None:
        """At the end of a pass, a hook that did not fire says so."""
        if not self.marks:
            return
        written = {spot for mark in self.marks.values() for spot in mark.texts}
        last = max(self.marks)
        silent = [f"{pin.id}-v" for box in self.boxes.values() for pin in box.pins if f"{pin.id}-v" not in written]
        texts = {**self.marks[last].texts, **dict.fromkeys(silent, say("picture.silent"))}
        self._write(last, Mark(self.marks[last].on, texts))


def tiny(values: Values, room: int = VALUE_ROOM) -> str:
    """A gradient in a few characters: its numbers if they fit, else its norm."""
    if values is None:
        return say("name.none")
    if isinstance(values, Value):
        return values.text(room, shape=False, digits=DIGITS)
    return "(" + ", ".join(tiny(value, room // max(len(values), 1)) for value in values) + ")"


def short(text: str, room: int) -> str:
    """``text``, cut to ``room`` characters; what is cut shows as an ellipsis.

    >>> short("a_very_long_name", 8)
    'a_very_…'
    """
    text = " ".join(text.split())
    return text if len(text) <= room else text[: room - 1] + "…"


def _below(trace: Trace, pass_id: int) -> Iterator[int]:
    """The nodes of a pass, nearest to the roots first."""
    following: dict[int, list[int]] = {}
    for (start, _), (end, _) in trace.edges.items():
        following.setdefault(start, []).append(end)
    queue = [node for node, _ in trace.roots[pass_id]] if pass_id < len(trace.roots) else []
    seen = dict.fromkeys(queue)
    queue = list(seen)
    for node in queue:  # grows while it is read
        for end in following.get(node, ()):
            if end not in seen:
                seen[end] = None
                queue.append(end)
    return iter(seen)


def _box(trace: Trace, pass_id: int, node: int) -> Box:
    tensors = [row for row in trace.tensors if row.node == node and row.pass_id == pass_id]
    names = [(short(row.name, NAME_ROOM), _data(trace, row)) for row in tensors if row.name]
    leaf = trace.ops[node] == "AccumulateGrad"
    return Box(f"n{node}", node, trace.ops[node], leaf, tensors, names, list(_pins(trace, pass_id, node, tensors)))


def _data(trace: Trace, row: TensorRow) -> str:
    """A tensor's numbers where they fit, else its shape."""
    value = trace.value(row.data)
    if not isinstance(value, Value):
        return ""
    line = value.line(DIGITS)
    return str(value.shape) if value.note is None and (line is None or len(line) > VALUE_ROOM) else tiny(value)


def _pins(trace: Trace, pass_id: int, node: int, tensors: list[TensorRow]) -> Iterator[Pin]:
    """Pins in the order in which they fire."""
    mine = [index for index in trace.hooked[pass_id] if trace.hook_rows[index].node == node]
    for kind in ("tensor_hook", "retain_grad", "node_pre_hook", "post_accumulate_hook", "node_post_hook"):
        if kind == "retain_grad":
            for row in tensors:
                if row.retains_grad:
                    yield Pin(f"n{node}-r{row.output}", say("picture.retain"), say("picture.retain"), None)
        for index in mine:
            if trace.hook_rows[index].kind == kind:
                hook = trace.hook(index, trace.place(index, pass_id))
                prefix = {"node_pre_hook": "picture.pre", "node_post_hook": "picture.post"}.get(kind)
                label = f"{say(prefix)} {hook.label}" if prefix else hook.label
                yield Pin(f"n{node}-p{index}", f"{numeral(hook.place)} {short(label, LABEL_ROOM)}", hook.name, index)


def _mark(scene: Scene, box: Box, step: Step) -> Mark:
    on, texts = [box.id], {}
    gradient = f"{box.id}-g"
    if step.kind in HOOK_KINDS:
        pin = f"{box.id}-p{step.row.hook}"
        on.append(pin)
        texts[f"{pin}-v"] = f"{tiny(step.before)} → {tiny(step.after)}"
        if step.kind in ("tensor_hook", "node_pre_hook"):
            texts[gradient] = say("picture.gradient", value=tiny(step.after))
        elif step.kind == "post_accumulate_hook" and not step.row.of:
            texts[gradient] = say("picture.grad", value=tiny(step.after))
    elif step.kind == "retain_grad":
        on.append(f"{box.id}-r{step.output}")
        texts[f"{box.id}-r{step.output}-v"] = say("picture.grad", value=tiny(step.after))
    elif step.kind == "accumulate":
        texts[gradient] = say("picture.grad", value=tiny(step.after))
    elif step.kind == "compute":
        _carry(scene, step, on, texts)
    elif step.kind == "exception" and step.row.hook is not None:
        on.append(f"{box.id}-p{step.row.hook}")
        texts[f"{box.id}-p{step.row.hook}-v"] = say("picture.raised")
    elif step.kind in ("seed", "arrive", "aliased", "unknown_hook", "returned"):
        texts[gradient] = say("picture.gradient", value=tiny(step.after))
        if step.kind in ("aliased", "unknown_hook"):
            _correct(scene, step, on, texts)
    return Mark(on, texts)


def _correct(scene: Scene, step: Step, on: list[str], texts: dict[str, str]) -> None:
    """A gradient changed on its way: its arrow carries another value now, and the hook that did it is marked, too."""
    end = (step.node, step.output)
    for (start, slot), arrow in scene.arrows.items():
        if scene.trace.edges[start, slot] == end:
            on.append(arrow.id)
            texts[f"{arrow.id}-v"] = f"{tiny(step.before)} → {tiny(step.after)}"
    cause = None if step.row.cause is None else scene.trace.rows[step.row.cause]
    if cause is not None and cause.node in scene.boxes:
        on.append(f"n{cause.node}-p{cause.hook}")


def _carry(scene: Scene, step: Step, on: list[str], texts: dict[str, str]) -> None:
    """A node computes: its arrows carry what it sends."""
    after = step.after if isinstance(step.after, tuple) else (step.after,)
    for slot, value in enumerate(after):
        arrow = scene.arrows.get((step.node, slot))
        if arrow is not None and value is not None:
            on.append(arrow.id)
            texts[f"{arrow.id}-v"] = tiny(value)
