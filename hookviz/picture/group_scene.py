"""The scene of one view of a large pass, in which groups are closed boxes."""

from collections.abc import Sequence

from hookviz.picture.grouped_graph import GroupBoxes, connect_view
from hookviz.picture.grouping import View
from hookviz.picture.grouping.activity import PassActivity
from hookviz.picture.module_boxes import make_call_boxes
from hookviz.picture.optimizer_boxes import make_optimizer_boxes
from hookviz.picture.scene import Scene, make_node_box, number_equal_boxes
from hookviz.picture.tensor_flow import connect_groups


def build_group_scene(view: View, activity: PassActivity, group_boxes: GroupBoxes, steps: Sequence[int]) -> Scene:
    """Build the scene of one view of a pass; ``steps`` are the steps that mark something in it."""
    tree, arrows = view.tree, connect_view(view)
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
    scene = Scene(trace, pass_id, boxes, arrows.single, calls, tree.graph, box_count)
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
