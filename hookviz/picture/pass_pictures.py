"""The scenes of a large pass: its boxes are collapsed into groups, and each group has a scene in which it is opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from hookviz.picture import element_ids as ids
from hookviz.picture.boxes import make_call_boxes, make_node_box, make_optimizer_boxes, number_equal_boxes
from hookviz.picture.group_boxes import GroupBoxes
from hookviz.picture.grouping import MAX_VISIBLE_BOXES, Group, Member, View, Views
from hookviz.picture.grouping.activity import PassActivity
from hookviz.picture.primitives import Arrow
from hookviz.picture.scene import Scene
from hookviz.picture.tensor_flow import connect_groups
from hookviz.picture.visible_graph import VisibleGraph, make_visible_graph
from hookviz.trace import TraceData


class PassPictures:
    """The groups of one pass, and the activity in each."""

    def __init__(self, graph: VisibleGraph) -> None:
        self.views = Views(graph)
        self.activity = PassActivity(self.views.tree)
        self.group_boxes = GroupBoxes(self.views.tree, self.activity)

    def scene(self, view: View) -> Scene:
        """Return the scene of one view, with the steps of the nodes and calls that it shows."""
        nodes = (activity.steps for node in view.nodes for activity in self.activity.list_node_activity(node))
        calls = (
            self.activity.calls[group.call].steps for group in view.opened_calls if group.call in self.activity.calls
        )
        tree = self.views.tree
        own = () if view.group.id else tree.trace.lookup.steps(tree.pass_id)
        optimizers = [step for step in own if tree.trace.rows[step].optimizer is not None]
        steps = sorted({*chain.from_iterable([*nodes, *calls]), *optimizers})
        return build_group_scene(view, self.activity, self.group_boxes, steps)

    def scene_at(self, step: int | None) -> Scene:
        """Return the scene in which the box of a step is opened; the outermost one if ``step`` is None."""
        tree = self.views.tree
        row = None if step is None else tree.trace.rows[step]
        group = tree.root
        if row is not None and row.call in tree.calls:
            group = tree.calls[row.call]
        elif row is not None and row.node is not None:
            box = tree.graph.boxes.get(row.node, row.node)
            group = tree.innermost_groups.get(box, tree.root)
        return self.scene(self.views.view_of(self.views.find_view_group(group)))

    @cached_property
    def groups(self) -> dict[str, Group]:
        """Id of a group → the group."""
        return {group.id: group for group in self.views.tree.groups}


def make_scene(trace: TraceData, step: int | None, *, internal: bool = False) -> Scene:
    """Make the scene of the pass of a step, or of the last pass if ``step`` is None; with groups if it is large."""
    last = len(trace.rows) - 1 if step is None else step
    pass_id = trace.rows[last].pass_id if trace.rows else 0
    scene = Scene.from_trace(trace, pass_id, internal=internal)
    if scene.total_boxes <= MAX_VISIBLE_BOXES:
        return scene
    return PassPictures(make_visible_graph(trace, pass_id, internal=internal)).scene_at(step)


def build_group_scene(view: View, activity: PassActivity, group_boxes: GroupBoxes, steps: Sequence[int]) -> Scene:
    """Build the scene of one view of a pass; ``steps`` are the steps that mark something in it."""
    tree, arrows = view.tree, _connect_view(view)
    trace, pass_id = tree.trace, tree.pass_id
    frames = {node: view.find_frame(node) for node in view.nodes}
    boxes = {
        node: make_node_box(trace, pass_id, node, tree.graph, "" if call is None else trace.call_path(call))
        for node, call in frames.items()
    }
    calls_of_nodes = {node: call for node, call in frames.items() if call is not None}
    number_equal_boxes(trace, boxes, calls_of_nodes)
    calls = make_call_boxes(
        trace,
        pass_id,
        [group.call for group in view.opened_calls if group.call is not None],
        calls_of_nodes,
        group_boxes.first_of_several,
        has_relative_names=True,
    )
    optimizers = make_optimizer_boxes(trace, steps)
    box_count = len(optimizers) + len(boxes) + len(calls) + len(view.closed_groups)
    scene = Scene(trace, pass_id, boxes, arrows.single, calls, tree.graph, box_count, has_relative_names=True)
    scene.optimizer_boxes = optimizers
    scene.group_boxes = [group_boxes.find(group) for group in view.closed_groups]
    scene.bundles = [*arrows.bundles.values()]
    scene.bundle_steps = {
        arrow_id: step
        for arrow_id, starts in arrows.starts.items()
        if (step := _find_sending_step(activity, starts)) is not None
    }
    scene.add_forward_arrows(
        connect_groups(view), {call: box.steps[0] for call, box in activity.calls.items() if box.steps}
    )
    for group in view.closed_groups:
        frame = view.find_frame(group)
        if frame is not None:
            calls[frame].group_ids.append(group.id)
    return scene.write_steps(steps, activity.last)


def _find_sending_step(activity: PassActivity, starts: set[int]) -> int | None:
    """Return the step at which the first of the nodes ``starts`` sends its gradients, or None if none does."""
    steps_of_nodes = (activity.nodes[node].steps for node in starts if node in activity.nodes)
    return min((steps[-1] for steps in steps_of_nodes if steps), default=None)


def _box_id(member: Member) -> str:
    """Return the id of the box of a node or a group."""
    return ids.box_id("node", member) if isinstance(member, int) else member.id


@dataclass
class _ViewArrows:
    """The arrows of a view: one for each edge between two nodes, one for all edges between two other boxes."""

    single: dict[tuple[int, int], Arrow]
    """(node, input) → the arrow of that edge."""
    bundles: dict[str, Arrow]
    """Id of an arrow that stands for several edges → the arrow."""
    starts: dict[str, set[int]]
    """Id of such an arrow → the nodes at which its edges start."""


def _connect_view(view: View) -> _ViewArrows:
    """Make the arrows between the boxes of ``view``."""
    arrows = _ViewArrows({}, {}, {})
    between: dict[tuple[Member, Member], set[int]] = {}
    for box in view.boxes:
        for start, slot, end in view.list_edges(box):
            end_box = view.find_box(end)
            if isinstance(box, int) and isinstance(end_box, int):
                arrows.single[start, slot] = Arrow(ids.edge_id(start, slot, end), _box_id(box), _box_id(end_box))
            elif end_box is not box:
                between.setdefault((box, end_box), set()).add(start)
    for (box, end_box), starts in between.items():
        arrow = Arrow(ids.bundle_id(_box_id(box), _box_id(end_box)), _box_id(box), _box_id(end_box))
        arrows.bundles[arrow.id], arrows.starts[arrow.id] = arrow, starts
    return arrows
