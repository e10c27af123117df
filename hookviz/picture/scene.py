"""What a picture of one pass shows: boxes with pins, arrows between them, and what each step writes on them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hookviz.picture import element_ids as ids
from hookviz.picture.grouped_graph import GroupBox, Port
from hookviz.picture.module_boxes import CallBox, call_boxes, mark_call
from hookviz.picture.primitives import (
    DIGITS,
    LABEL_ROOM,
    SPACE,
    VALUE_ROOM,
    Arrow,
    Box,
    Mark,
    Pin,
    both,
    change,
    held,
    short,
    tiny,
    within,
)
from hookviz.support.messages import join, say
from hookviz.trace import HOOK_KINDS, Step, TensorRow, TraceData
from hookviz.trace.sentences import MAX_LISTED, format_hook_position
from hookviz.trace.traversal import assign_nodes_to_calls, iter_enclosing_calls, list_pass_calls, list_pass_nodes
from hookviz.trace.values import Value

MOST = 300
"""No more boxes than this are ever laid out: beyond, Graphviz takes seconds and nobody can read the picture."""

_PREFIXES = {
    "node_pre_hook": "picture.pre",
    "node_post_hook": "picture.post",
    "post_accumulate_hook": "picture.after",
}
FEW = 12
"""In a picture of more boxes an arrow that alone leads to a box does not say what the box says as well."""

PINNED = ("tensor_hook", "multi_grad_hook", "retain_grad", "node_pre_hook", "post_accumulate_hook", "node_post_hook")
"""What stands on the box of a node, in the order in which it fires."""


@dataclass
class Scene:
    """The boxes and arrows of one pass, and a mark for each of its steps."""

    trace: TraceData
    pass_id: int
    boxes: dict[int, Box]
    arrows: dict[tuple[int, int], Arrow]
    calls: dict[int, CallBox]
    everything: int
    """How many boxes the whole picture would have."""
    marks: dict[int, Mark] = field(default_factory=dict)
    """Step's index → its mark."""
    folds: list[GroupBox] = field(default_factory=list)
    """The boxes that can be entered."""
    bundles: list[Arrow] = field(default_factory=list)
    """The arrows from and to such boxes."""
    ports: list[Port] = field(default_factory=list)
    """What lies outside, where ways lead there."""
    sent: dict[str, int] = field(default_factory=dict)
    """Id of a bundle → the step at which something goes along it for the first time."""
    fan: Counter[str] = field(default_factory=Counter)
    """Id of a box → how many arrows lead to it."""
    arrived: dict[int, dict[int, str]] = field(default_factory=dict)
    """Node → for each of its outputs, the gradient that arrived there last."""
    wide: dict[str, str] = field(default_factory=dict)
    """Id of a text that is not the same in every variant, though no step changes it → what to keep room for."""
    _spots: dict[str, Pin | Box | Arrow | CallBox] = field(default_factory=dict)
    """Id of a text → what it stands on."""

    @classmethod
    def of(cls, trace: TraceData, pass_id: int = 0, most: int = MOST) -> "Scene":
        """The scene of one pass of ``trace``, at most ``most`` boxes of it, those nearest to the roots."""
        below_roots = list_pass_nodes(trace, pass_id)
        made = assign_nodes_to_calls(trace, below_roots)
        nodes, calls = _within(trace, below_roots, list_pass_calls(trace, pass_id), made, most)
        boxes = {node: box_of(trace, pass_id, node) for node in nodes}
        arrows = {
            (start, slot): Arrow(ids.edge(start, slot, end), ids.node(start), ids.node(end))
            for start, slot, end in trace.lookup.out_edges(boxes)
            if end in boxes
        }
        drawn = {node: made[node] for node in nodes if node in made}
        around = {outer for call in made.values() for outer in iter_enclosing_calls(trace, call)}
        everything = len(below_roots) + len(around.union(list_pass_calls(trace, pass_id)))
        scene = cls(trace, pass_id, boxes, arrows, call_boxes(trace, pass_id, calls, drawn), everything)
        steps = trace.lookup.steps(pass_id)
        return scene.written(steps, max(steps, default=0))

    def written(self, steps: Iterable[int], last: int) -> "Scene":
        """With the marks of ``steps``; what has not fired by step ``last`` did not fire."""
        self.fan.update(arrow.end for arrow in self.arrows.values())
        texts = (ids.value, ids.gradient, ids.returned, ids.given)
        self._spots = {text(thing.id): thing for thing in self._things() for text in texts}
        for index in steps:
            self._write(index, self._mark(self.trace.steps[index]))
        self._silence(last)
        return self

    def _mark(self, step: Step) -> Mark:
        call, node = self.calls.get(step.row.call), self.boxes.get(step.node)
        if call is not None:
            return mark_call(call, step, self.boxes, self.arrows)
        return Mark([], {}) if node is None else _mark(self, node, step)

    @cached_property
    def shape(self) -> tuple[Any, ...]:
        """Which boxes, pins and arrows of which pass there are: two scenes of one shape have the same ids."""
        boxes = sorted((box.id, box.op, *(pin.id for pin in box.pins)) for box in self.boxes.values())
        calls = sorted((box.id, *(pin.id for pin in box.pins), *box.nodes) for box in self.calls.values())
        return self.pass_id, tuple(boxes), tuple(calls), tuple(sorted(arrow.id for arrow in self.arrows.values()))

    @cached_property
    def look(self) -> tuple[Any, ...]:
        """Shape and names: two scenes that look alike can be shown in one picture."""
        return (
            *self.shape,
            tuple((node, *(name for name, _ in box.names)) for node, box in sorted(self.boxes.items())),
        )

    def make_room(self, scenes: "Sequence[Scene]") -> None:
        """Keep room for the texts of ``scenes``, other variants of this pass, and for two beside each other."""
        written = [scene.texts() for scene in scenes]
        for spot in {spot for there in written for spot in there}:
            texts = [there.get(spot, {}) for there in written]
            longest = sorted(sorted({text for there in texts for text in there.values()}), key=len)[-2:]
            differ = any(there != texts[0] for there in texts)
            wide = both(longest[-1], longest[0]) if differ else longest[-1]
            if spot in self._spots:
                self._keep(spot, self._spots[spot], wide)
            else:
                self.wide[spot] = wide

    def holds(self) -> dict[str, str]:
        """What the named tensors hold: id of a text behind a name, or of one among a tensor's facts → the text."""
        behind = {ids.held(box.id, k): shown for box in self.boxes.values() for k, (_, shown) in enumerate(box.names)}
        rows = [(box.id, row) for box in self.boxes.values() for row in box.tensors if row.name]
        return behind | {ids.data(box, row.output): tiny(self.trace.value(row.data)) + SPACE for box, row in rows}

    def tell(self, texts: Mapping[str, str]) -> None:
        """Let the first step write these texts."""
        if self.marks:
            first = min(self.marks)
            self.marks[first] = self.marks[first]._replace(texts={**texts, **self.marks[first].texts})

    def texts(self) -> dict[str, dict[int, str]]:
        """Id of a text → step's index → what it writes there."""
        found: dict[str, dict[int, str]] = {}
        for index, mark in self.marks.items():
            for spot, text in mark.texts.items():
                found.setdefault(spot, {})[index] = text
        return found

    @property
    def shown(self) -> int:
        """How many boxes are drawn."""
        return len(self.boxes) + len(self.calls) + len(self.folds)

    @property
    def loose(self) -> list[str]:
        """The ids of the boxes that stand in no call."""
        held = {spot for box in self.calls.values() for spot in box.boxes}
        every = [*(box.id for box in self.boxes.values()), *(fold.id for fold in self.folds)]
        return [spot for spot in every if spot not in held]

    @property
    def ways(self) -> list[Arrow]:
        """Every arrow."""
        return [*self.arrows.values(), *self.bundles]

    def pins(self) -> Iterator[Pin]:
        """Every pin in the picture."""
        holders: list[Box | CallBox] = [*self.boxes.values(), *self.calls.values()]
        for holder in holders:
            yield from holder.pins

    def _things(self) -> Iterator[Pin | Box | Arrow | CallBox]:
        yield from self.arrows.values()
        yield from self.boxes.values()
        yield from self.calls.values()
        yield from self.pins()

    def replace_silence(self, hooks: Collection[int], text: str) -> None:
        """Write ``text`` on the pins of ``hooks`` instead of that they did not fire."""
        silent = say("picture.silent")
        spots = {ids.value(pin.id) for pin in self.pins() if pin.hook in hooks}
        for index, mark in self.marks.items():
            changed = {spot for spot, old in mark.texts.items() if old == silent and spot in spots}
            self.marks[index] = mark._replace(texts=mark.texts | dict.fromkeys(changed, text))
            for spot in changed:
                self._spots[spot].final = text

    def _write(self, index: int, mark: Mark) -> None:
        """Note what a step marks, and keep room for its texts, so that no step moves anything."""
        self.marks[index] = mark
        for spot, text in mark.texts.items():
            thing = self._spots.get(spot)
            if thing is not None:
                self._keep(spot, thing, text)

    def _keep(self, spot: str, thing: Pin | Box | Arrow | CallBox, text: str) -> None:
        """Keep room for a text."""
        longest = "input" if spot == ids.given(thing.id) else "final"
        if len(text) > len(getattr(thing, longest)):
            setattr(thing, longest, text)

    def _silence(self, last: int) -> None:
        """At the end of a pass, a hook that did not fire says so."""
        if not self.marks:
            return
        end = self.marks.get(last, Mark([], {}))
        written = {spot for mark in self.marks.values() for spot in mark.texts}
        silent = [ids.value(pin.id) for pin in self.pins() if ids.value(pin.id) not in written]
        texts = {**end.texts, **dict.fromkeys(silent, say("picture.silent"))}
        self._write(last, end._replace(texts=texts))


def _within(
    trace: TraceData, below: list[int], others: list[int], made: dict[int, int], most: int
) -> tuple[list[int], list[int]]:
    """The nodes and the calls for which there is room: nodes with the calls around them, then other calls."""
    nodes: list[int] = []
    calls: dict[int, None] = {}
    for node in below:
        around = dict.fromkeys(iter_enclosing_calls(trace, made.get(node, -1)))
        if len(nodes) + 1 + len(calls | around) > most:
            break
        nodes.append(node)
        calls |= around
    for call in others:
        around = dict.fromkeys(iter_enclosing_calls(trace, call))
        if len(nodes) + len(calls | around) > most:
            break
        calls |= around
    return nodes, list(calls)


def box_of(trace: TraceData, pass_id: int, node: int, around: str = "") -> Box:
    """The box of a node; inside the module ``around`` its tensors go by their names there."""
    tensors = trace.lookup.tensors(pass_id, node)
    names = [(within(row.name, around), held(_data(trace, row))) for row in tensors if row.name]
    leaf = trace.ops[node] == "AccumulateGrad"
    op = trace.ops[node] if names or leaf else trace.name(node)  # with a number, where there are several
    return Box(ids.node(node), node, op, leaf, tensors, names, list(_pins(trace, pass_id, node, tensors)))


def _data(trace: TraceData, row: TensorRow) -> str:
    """A tensor's numbers where they fit, else its shape."""
    value = trace.value(row.data)
    if not isinstance(value, Value):
        return ""
    line = value.line(DIGITS)
    return str(value.shape) if value.note is None and (line is None or len(line) > VALUE_ROOM) else tiny(value)


def _pins(trace: TraceData, pass_id: int, node: int, tensors: list[TensorRow]) -> Iterator[Pin]:
    """Pins in the order in which they fire."""
    mine, box = trace.lookup.hooks(pass_id).by_node.get(node, ()), ids.node(node)
    for kind in PINNED:
        if kind == "retain_grad":
            for row in tensors:
                if row.retains_grad:
                    label = say("picture.retain")
                    yield Pin(ids.retained(box, row.output), label, label, None)
        for index in mine:
            if trace.hook_rows[index].kind == kind:
                hook = trace.hook(index, trace.place(index, pass_id))
                prefix = _PREFIXES.get(kind)
                named = short(f"{say(prefix)} {hook.label}" if prefix else hook.label, LABEL_ROOM)
                yield Pin(ids.pin(box, index), f"{format_hook_position(hook.place)} {named}", hook.name, index)


def _mark(scene: Scene, box: Box, step: Step) -> Mark:
    on, texts = [box.id], {}
    gradient = ids.gradient(box.id)
    if step.kind in HOOK_KINDS:
        pin = ids.pin(box.id, step.row.hook)
        on.append(pin)
        texts[ids.value(pin)] = change(step.before, step.after)
        if step.kind == "tensor_hook":
            texts[gradient] = say("picture.gradient", value=_arrived(scene, step))
        elif step.kind == "node_pre_hook":
            texts[gradient] = say("picture.gradient", value=tiny(step.after))
        elif step.kind == "post_accumulate_hook" and step.row.subject == "gradient":
            texts[gradient] = say("picture.grad", value=tiny(step.after))
    elif step.kind == "retain_grad":
        on.append(ids.retained(box.id, step.output))
        texts[ids.value(ids.retained(box.id, step.output))] = say("picture.grad", value=tiny(step.after))
    elif step.kind in ("accumulate", "synchronise"):
        texts[gradient] = say("picture.grad", value=tiny(step.after))
    elif step.kind == "compute":
        _carry(scene, step, on, texts)
    elif step.kind == "exception" and step.row.hook is not None:
        on.append(ids.pin(box.id, step.row.hook))
        texts[ids.value(ids.pin(box.id, step.row.hook))] = say("picture.raised")
    elif step.kind in ("seed", "arrive", "aliased", "unknown_hook", "returned"):
        texts[gradient] = say("picture.gradient", value=_arrived(scene, step))
        if step.kind in ("aliased", "unknown_hook"):
            _correct(scene, step, on, texts)
    return Mark(on, texts)


def _arrived(scene: Scene, step: Step) -> str:
    """The gradient of a box, or of all its outputs so far where it has several; of many, that of this one."""
    outputs, value = scene.trace.outputs(step.node), tiny(step.after)
    if len(outputs) < 2:
        return value
    if len(outputs) > MAX_LISTED:  # a text of all at each of them would take gigabytes for some ten thousand
        return say("picture.gradient.of", value=value, output=f"{step.output:,}", count=f"{len(outputs):,}")
    arrived = scene.arrived.setdefault(step.node, dict.fromkeys(outputs, "–"))
    arrived[step.output] = value
    return say("value.tuple", items=join("join.list", arrived.values()))


def _correct(scene: Scene, step: Step, on: list[str], texts: dict[str, str]) -> None:
    """A gradient changed on its way: its arrow carries another value now, and the hook that did it is marked, too."""
    end = (step.node, step.output)
    for (start, slot), arrow in scene.arrows.items():
        if scene.trace.edges[start, slot] == end:
            on.append(arrow.id)
            texts[ids.value(arrow.id)] = change(step.before, step.after)
    cause = None if step.row.cause is None else scene.trace.rows[step.row.cause]
    if cause is not None and cause.node in scene.boxes:
        on.append(ids.pin(ids.node(cause.node), cause.hook))


def _carry(scene: Scene, step: Step, on: list[str], texts: dict[str, str]) -> None:
    """A node computes: its arrows carry what it sends."""
    after = step.after if isinstance(step.after, tuple) else (step.after,)
    for slot, value in enumerate(after):
        arrow = scene.arrows.get((step.node, slot))
        if arrow is None or value is None:
            continue
        on.append(arrow.id)
        if scene.shown <= FEW or scene.fan[arrow.end] > 1:
            texts[ids.value(arrow.id)] = tiny(value)
