"""The scenes of a large pass: its boxes are collapsed into groups, and each group has a scene in which it is opened."""

from functools import cached_property
from itertools import chain

from hookviz.picture.group_scene import build_group_scene
from hookviz.picture.grouped_graph import GroupBoxes
from hookviz.picture.grouping import MAX_VISIBLE_BOXES, Group, View, Views
from hookviz.picture.grouping.activity import PassActivity
from hookviz.picture.scene import Scene
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
