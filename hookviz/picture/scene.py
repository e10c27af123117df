"""The scene of one pass: boxes with pins, arrows between them, and the texts that each step writes on them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from hookviz.picture import element_ids as ids
from hookviz.picture.boxes import (
    CallBox,
    OptimizerBox,
    make_call_boxes,
    make_node_box,
    make_optimizer_boxes,
    mark_call,
    mark_optimizer,
    number_equal_boxes,
)
from hookviz.picture.group_boxes import GroupBox
from hookviz.picture.primitives import (
    Arrow,
    Box,
    Mark,
    Parameter,
    Pin,
    format_values,
    join_values,
    join_variants,
)
from hookviz.picture.repeated_calls import find_first_of_several
from hookviz.picture.tensor_flow import CallArrows, connect_frames
from hookviz.picture.visible_graph import VisibleGraph, make_visible_graph
from hookviz.support.messages import N_, _, join_list
from hookviz.trace import HOOK_KINDS, Step, StepRow, TraceData
from hookviz.trace.hook_facts import HOOK_FACTS, NODE_HOOK_KINDS
from hookviz.trace.sentences import MAX_LISTED
from hookviz.trace.traversal import iter_enclosing_calls

SILENT = N_("did not fire")
"""What stands on the pin of a hook that has not fired."""
MAX_BOXES = 300
"""The maximum number of boxes in a picture: with more, Graphviz takes seconds and nobody can read the result."""

FEW_BOXES = 12
"""In a picture of more boxes, an arrow shows its gradient only if other arrows lead to the same box.

If it is the only arrow there, the box shows the same gradient.
"""

TextOwner = Pin | Box | Parameter | Arrow | CallBox | OptimizerBox
"""An element on which steps write."""


@dataclass
class Scene:
    """The boxes and arrows of one pass, and a mark for each of its steps."""

    trace: TraceData
    pass_id: int
    boxes: dict[int, Box]
    """Node → its box."""
    arrows: dict[tuple[int, int], Arrow]
    """(node, input) → the arrow that starts there."""
    calls: dict[int, CallBox]
    """Module call → its box."""
    graph: VisibleGraph
    """The graph of the pass, with what stands for its hidden nodes."""
    total_boxes: int
    """How many boxes the picture would have without ``MAX_BOXES``."""
    marks: dict[int, Mark] = field(default_factory=dict)
    """Step's index → its mark."""
    optimizer_boxes: dict[int, OptimizerBox] = field(default_factory=dict)
    """Number of an optimizer with hooks → its box."""
    group_boxes: list[GroupBox] = field(default_factory=list)
    """The boxes that can be opened."""
    bundles: list[Arrow] = field(default_factory=list)
    """The arrows from and to boxes that can be opened; each stands for several edges."""
    forward_arrows: list[Arrow] = field(default_factory=list)
    """The arrows of tensors without a graph, each from a module call to a later one."""
    second_runs: dict[str, str] = field(default_factory=dict)
    """Id of the box of a call, or of a group → the id of the box of its recomputation."""
    bundle_steps: dict[str, int] = field(default_factory=dict)
    """Id of a bundle or forward arrow → the first step at which a gradient is sent, or a tensor flows, along it."""
    arrow_counts: Counter[str] = field(default_factory=Counter)
    """Id of a box → how many arrows lead to it."""
    latest_gradients: dict[int, dict[int, str]] = field(default_factory=dict)
    """Node → output → the gradient that arrived there last, as text."""
    last_step: int = 0
    """The last step that it shows."""
    has_relative_names: bool = False
    """Whether names are relative to the frames in which they stand."""
    reserved_texts: dict[str, str] = field(default_factory=dict)
    """Id of a text in the layer of tensors, or of one that differs between variants → the text to reserve room for."""
    _text_owners: dict[str, TextOwner] = field(default_factory=dict)
    """Id of a text → the element on which it stands."""

    @classmethod
    def from_trace(
        cls, trace: TraceData, pass_id: int = 0, max_boxes: int = MAX_BOXES, *, internal: bool = False
    ) -> "Scene":
        """Build the scene of one pass of ``trace``, with the ``max_boxes`` boxes that are nearest to the roots.

        With ``internal``, nodes that nobody wrote have boxes as well.
        """
        return cls.from_graph(make_visible_graph(trace, pass_id, internal=internal, whole=True), max_boxes)

    @classmethod
    def from_graph(cls, graph: VisibleGraph, max_boxes: int = MAX_BOXES) -> "Scene":
        """Build the scene of the graph of a pass, with the ``max_boxes`` boxes that are nearest to the roots."""
        trace, pass_id = graph.trace, graph.pass_id
        nodes, calls = _select_boxes(graph, max_boxes)
        boxes = {node: make_node_box(trace, pass_id, node, graph) for node in nodes}
        drawn_calls = {node: graph.calls[node] for node in nodes if node in graph.calls}
        number_equal_boxes(trace, boxes, drawn_calls)
        first_of_several = find_first_of_several(trace, pass_id)
        call_boxes = make_call_boxes(trace, pass_id, calls, drawn_calls, first_of_several)
        scene = cls(trace, pass_id, boxes, _make_arrows(graph, boxes), call_boxes, graph, graph.box_count)
        steps = trace.lookup.steps(pass_id)
        scene.optimizer_boxes = make_optimizer_boxes(trace, steps)
        scene.total_boxes += len(scene.optimizer_boxes)
        flow = connect_frames(trace, pass_id, scene.calls, drawn_calls)
        if flow.arrows or flow.second_runs:
            scene.add_forward_arrows(flow, {trace.rows[step].call: step for step in reversed(steps)})
        return scene.write_steps(steps, max(steps, default=0))

    def add_forward_arrows(self, flow: CallArrows, first_steps: Mapping[int | None, int]) -> None:
        """Add arrows between calls, and note second runs; ``first_steps``: call → its first step.

        Where gradients flow between two boxes already, their arrow says that the boxes are connected.
        """
        self.second_runs = flow.second_runs
        connected = {frozenset((arrow.start, arrow.end)) for arrow in self.bundles}
        for arrow_id, arrow in flow.arrows.items():
            if frozenset((arrow.start, arrow.end)) not in connected:
                self.forward_arrows.append(arrow)
                step = first_steps.get(flow.takers[arrow_id])
                if step is not None:
                    self.bundle_steps[arrow_id] = step

    def write_steps(self, steps: Iterable[int], last_step: int) -> "Scene":
        """Add the marks of ``steps``, and return the scene. Hooks that have not fired by ``last_step`` say so there."""
        self.arrow_counts.update(arrow.end for arrow in self.arrows.values())
        parts = ("value", "gradient", "output", "input")
        self._text_owners = {ids.part_id(part, one.id): one for one in self._list_text_owners() for part in parts}
        for index in steps:
            self._add_mark(index, self._mark_step(self.trace.steps[index]))
        _write_shared_memory(self)
        self._write_silent_hooks(last_step)
        self.last_step = last_step
        return self

    def _mark_step(self, step: Step) -> Mark:
        optimizer = None if step.row.optimizer is None else self.optimizer_boxes.get(step.row.optimizer)
        if optimizer is not None:
            return mark_optimizer(optimizer, step)
        call = None if step.row.call is None else self.calls.get(step.row.call)
        if call is not None:
            # The step of a hook is about the hook and its module, not about a box next to the node that calls the hook.
            elements = self.list_elements(step.node, or_nearby=step.hook is None)
            return mark_call(call, step, elements, self.list_arrows_along)
        holder = self.find_holder(step.node)
        return _mark_hidden(self, step) if holder is None else _mark_node(self, holder, step)

    def find_holder(self, node: int | None) -> Box | Parameter | None:
        """Return the box of a node, or the row of a parameter's leaf; None if the node is hidden."""
        return None if node is None else self.boxes.get(node) or self.parameters.get(node)

    @cached_property
    def parameters(self) -> dict[int, Parameter]:
        """Leaf → its row, for parameters that are rows in the box of an op."""
        return {parameter.node: parameter for box in self.boxes.values() for parameter in box.parameters}

    def list_elements(self, node: int | None, *, or_nearby: bool = True) -> list[str]:
        """List the ids of the elements that stand for a node.

        Of a hidden one these are the arrows over it, or else, with ``or_nearby``, a box or row next to it.
        """
        if node is None or self.find_holder(node) is not None:
            return [] if node is None else [ids.box_id("node", node)]
        slots = (slot for slot, _end in self.trace.lookup.next_nodes.get(node, ()) if node not in self.graph.joined)
        arrows = dict.fromkeys(arrow.id for slot in slots for arrow in self.list_arrows_along(node, slot))
        if not or_nearby:
            return [*arrows]
        nearby = (self.find_holder(nodes.get(node)) for nodes in (self.graph.ends, self.graph.boxes))
        return [*arrows] or [holder.id for holder in nearby if holder is not None][:1]

    def list_arrows_along(self, node: int, slot: int) -> list[Arrow]:
        """List the arrows that pass along the edge from an input of a node."""
        starts = self.graph.passages.get((node, slot), [(node, slot)])
        return [self.arrows[start] for start in starts if start in self.arrows]

    def reserve_room(self, scenes: "Sequence[Scene]") -> None:
        """Reserve room for the texts of ``scenes``, the variants of this pass, and for two of them side by side."""
        texts_by_scene = [scene.collect_texts() for scene in scenes]
        for text_id in {text_id for scene_texts in texts_by_scene for text_id in scene_texts}:
            texts = [scene_texts.get(text_id, {}) for scene_texts in texts_by_scene]
            longest = sorted(sorted({text for scene_texts in texts for text in scene_texts.values()}), key=len)[-2:]
            differ = any(scene_texts != texts[0] for scene_texts in texts)
            reserved = join_variants(longest[-1], longest[0]) if differ else longest[-1]
            if text_id in self._text_owners:
                _reserve_text(text_id, self._text_owners[text_id], reserved)
            else:
                self.reserved_texts[text_id] = reserved

    def collect_texts(self) -> dict[str, dict[int, str]]:
        """Collect the texts of all steps: id of a text → step's index → text."""
        texts: dict[str, dict[int, str]] = {}
        for index, mark in self.marks.items():
            for text_id, text in mark.texts.items():
                texts.setdefault(text_id, {})[index] = text
        return texts

    @property
    def box_count(self) -> int:
        """How many boxes are drawn."""
        return len(self.boxes) + len(self.calls) + len(self.group_boxes) + len(self.optimizer_boxes)

    @property
    def boxes_outside_calls(self) -> list[str]:
        """The ids of the boxes that are not inside a module call."""
        in_calls = {box_id for box in self.calls.values() for box_id in box.box_ids}
        others: list[Box | GroupBox | OptimizerBox] = [*self.boxes.values(), *self.group_boxes]
        others += self.optimizer_boxes.values()
        return [box.id for box in others if box.id not in in_calls]

    @property
    def all_arrows(self) -> list[Arrow]:
        """The arrows of single edges, the bundles, and the arrows of tensors without a graph."""
        return [*self.arrows.values(), *self.bundles, *self.forward_arrows]

    def list_pins(self) -> Iterator[Pin]:
        """Yield every pin in the picture."""
        for holder in self._list_pin_holders():
            yield from holder.pins

    def _list_pin_holders(self) -> "Iterator[Box | Parameter | CallBox | OptimizerBox]":
        yield from self.boxes.values()
        yield from self.parameters.values()
        yield from self.calls.values()
        yield from self.optimizer_boxes.values()

    def _list_text_owners(self) -> Iterator[TextOwner]:
        yield from self.arrows.values()
        yield from self._list_pin_holders()
        yield from self.list_pins()

    def replace_silent_texts(self, hooks: Collection[int], text: str) -> None:
        """Replace "did not fire" on the pins of ``hooks`` by ``text``."""
        silent = _(SILENT)
        text_ids = {ids.part_id("value", pin.id) for pin in self.list_pins() if pin.hook in hooks}
        for mark in self.marks.values():
            changed = {text_id for text_id, written in mark.texts.items() if written == silent and text_id in text_ids}
            mark.texts |= dict.fromkeys(changed, text)
            for text_id in changed:
                self._text_owners[text_id].longest_text = text

    def _add_mark(self, index: int, mark: Mark) -> None:
        """Add the mark of a step, and reserve room for its texts, so that no step moves anything."""
        self.marks[index] = mark
        for text_id, text in mark.texts.items():
            owner = self._text_owners.get(text_id)
            if owner is not None:
                _reserve_text(text_id, owner, text)
            elif len(text) > len(self.reserved_texts.get(text_id, "")):
                self.reserved_texts[text_id] = text

    def _write_silent_hooks(self, last_step: int) -> None:
        """Let the last step write on the pins of hooks that have not fired that they did not fire."""
        if not self.marks:
            return
        mark = self.marks.get(last_step, Mark())
        written = {text_id for other in self.marks.values() for text_id in other.texts}
        values = {ids.part_id("value", pin.id): _(SILENT) for pin in self.list_pins()}
        mark.texts |= {text_id: text for text_id, text in values.items() if text_id not in written}
        self._add_mark(last_step, mark)


def _reserve_text(text_id: str, owner: TextOwner, text: str) -> None:
    """Reserve room for a text on the element ``owner``."""
    field_name = "longest_input" if text_id == ids.part_id("input", owner.id) else "longest_text"
    if len(text) > len(getattr(owner, field_name)):
        setattr(owner, field_name, text)


def _make_arrows(graph: VisibleGraph, boxes: Collection[int]) -> dict[tuple[int, int], Arrow]:
    """Make the arrows between ``boxes``, the nodes that are drawn."""
    return {
        (start, slot): Arrow(ids.edge_id(start, slot, end), ids.box_id("node", start), ids.box_id("node", end))
        for start, slot, end in graph.edges
        if start in boxes and end in boxes
    }


def _select_boxes(graph: VisibleGraph, max_boxes: int) -> tuple[list[int], list[int]]:
    """Select at most ``max_boxes`` nodes and calls: first nodes with the calls around them, then other calls."""
    nodes: list[int] = []
    calls: dict[int, None] = {}
    for node in graph.nodes:
        enclosing = dict.fromkeys(iter_enclosing_calls(graph.trace, graph.calls.get(node)))
        if len(nodes) + 1 + len(calls | enclosing) > max_boxes:
            break
        nodes.append(node)
        calls |= enclosing
    for call in graph.step_calls:
        enclosing = dict.fromkeys(iter_enclosing_calls(graph.trace, call))
        if len(nodes) + len(calls | enclosing) > max_boxes:
            break
        calls |= enclosing
    return nodes, list(calls)


def _mark_hidden(scene: Scene, step: Step) -> Mark:
    """Make the mark of a step about a node without a box, on the arrows that pass over it, or about no node.

    The steps of a call without a frame, as of dropout in evaluation, are seen at the frame around it.
    """
    mark = Mark(scene.list_elements(step.node))
    if step.row.call in scene.graph.idle_calls:
        around = scene.calls.get(scene.graph.idle_calls[step.row.call])
        mark.elements += [around.id] if around else []
    if step.kind == "compute":
        _mark_sent_gradients(scene, step, mark)
    return mark


def _mark_node(scene: Scene, box: Box | Parameter, step: Step) -> Mark:
    """Make the mark of a step about a node with a box, or about a parameter."""
    mark = Mark([box.id])
    if step.kind in HOOK_KINDS:
        _mark_hook(scene, box, step, mark)
    elif step.kind == "retain_grad":
        pin = ids.part_id("retain_pin", box.id, step.row.own_output)
        mark.elements.append(pin)
        _write_grad(mark, box, ids.part_id("value", pin), step)
    elif step.kind in ("accumulate", "synchronise"):
        _write_grad(mark, box, ids.part_id("gradient", box.id), step)
    elif step.kind == "compute":
        _mark_sent_gradients(scene, step, mark)
    elif step.kind == "exception" and step.row.hook is not None:
        pin = ids.part_id("pin", box.id, step.row.hook)
        mark.elements.append(pin)
        mark.write(ids.part_id("value", pin), _("raised"))
    elif step.kind in ("seed", "arrive", "aliased", "unknown_hook", "returned"):
        _write_gradient(scene, mark, box, _format_gradient(scene, step))
        if step.kind in ("aliased", "unknown_hook"):
            _mark_changed_arrow(scene, step, mark)
    return mark


def _mark_hook(scene: Scene, box: Box | Parameter, step: Step, mark: Mark) -> None:
    """Highlight the pin of a hook, and write what the hook changed on it and on the box."""
    pin = ids.part_id("pin", box.id, step.row.hook)
    mark.elements.append(pin)
    mark.write_change(ids.part_id("value", pin), step.before, step.after)
    changes = HOOK_FACTS[step.kind].changes
    if changes == "gradient":
        is_of_node = step.kind in NODE_HOOK_KINDS  # it has the gradients of all outputs
        value = format_values(step.after) if is_of_node else _format_gradient(scene, step)
        _write_gradient(scene, mark, box, value)
    elif changes == "grad" and step.row.subject == "gradient":
        _write_grad(mark, box, ids.part_id("gradient", box.id), step)


def _write_gradient(scene: Scene, mark: Mark, box: Box | Parameter, value: str) -> None:
    """Write the gradient of a node on its box; in a large network there is room for its number only."""
    if scene.group_boxes:
        mark.write(ids.part_id("gradient", box.id), value)
        return
    mark.write(ids.part_id("gradient", box.id), _("gradient {value}").format(value=value), value)


def _write_grad(mark: Mark, box: Box | Parameter, text_id: str, step: Step) -> None:
    """Write the ``.grad`` of a tensor on its box or pin, and at the tensor itself in the layer of tensors."""
    value = format_values(step.after)
    mark.write(text_id, f".grad = {value}", value)
    mark.write(ids.part_id("grad", box.id, step.row.own_output if step.kind == "retain_grad" else 0), value)


def _format_gradient(scene: Scene, step: Step) -> str:
    """Format the gradient of a node: of all its outputs so far, or, if they are many, of the step's output only."""
    outputs, value = scene.trace.outputs(step.row.own_node), format_values(step.after)
    if len(outputs) < 2:
        return value
    if len(outputs) > MAX_LISTED:  # with ten thousand outputs, a text of all at each arrival would take gigabytes
        return _("{value} (output {output}, of {count})").format(
            value=value, output=f"{step.output:,}", count=f"{len(outputs):,}"
        )
    latest = scene.latest_gradients.setdefault(step.row.own_node, dict.fromkeys(outputs, "–"))
    latest[step.row.own_output] = value
    return join_values([*latest.values()])


def _mark_changed_arrow(scene: Scene, step: Step, mark: Mark) -> None:
    """Write a gradient that changed between two nodes on its arrow, and highlight the hook that changed it."""
    end = (step.node, step.output)
    for start, arrow in scene.arrows.items():
        if scene.graph.targets[start] == end:
            mark.elements.append(arrow.id)
            mark.write_change(ids.part_id("value", arrow.id), step.before, step.after)
    cause = None if step.row.cause is None else scene.trace.rows[step.row.cause]
    if cause is not None and cause.node is not None and scene.find_holder(cause.node) is not None:
        mark.elements.append(ids.part_id("pin", ids.box_id("node", cause.node), cause.hook))


def _mark_sent_gradients(scene: Scene, step: Step, mark: Mark) -> None:
    """Write the gradients that a node sends on its arrows."""
    sent = step.after if isinstance(step.after, tuple) else (step.after,)
    for slot, value in enumerate(sent):
        arrows = [] if value is None else scene.list_arrows_along(step.row.own_node, slot)
        mark.elements += [arrow.id for arrow in arrows if arrow.id not in mark.elements]
        # Where a hidden node adds up gradients, each arrow keeps its own; their sum is in the box to which they lead.
        if len(arrows) == 1 and (scene.box_count <= FEW_BOXES or scene.arrow_counts[arrows[0].end] > 1):
            mark.write(ids.part_id("value", arrows[0].id), format_values(value))


def _write_shared_memory(scene: Scene) -> None:
    """Let the step of each hook that changed other gradients along with its own write so on the boxes of all."""
    trace = scene.trace
    sharing: dict[int, list[StepRow]] = {}
    for step in trace.lookup.steps_of_kinds("aliased"):
        row = trace.rows[step]
        if row.pass_id == scene.pass_id and row.cause in scene.marks:
            sharing.setdefault(row.cause, []).append(row)
    for cause, rows in sharing.items():
        names = {row.node: trace.name_tensor(row.node, row.output) for row in (trace.rows[cause], *rows)}
        for node in names:
            box, others = scene.find_holder(node), [name for other, name in names.items() if other != node and name]
            if isinstance(box, Box) and others:
                box.memory = _("same memory as {names}").format(names=join_list(others))
                scene.marks[cause].write(ids.part_id("memory", box.id), box.memory)
