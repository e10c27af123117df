"""The scene of one view of a large pass, in which groups are closed boxes."""

from collections.abc import Sequence

from hookviz.picture.grouped_graph import connect_view, make_group_box
from hookviz.picture.grouping import View
from hookviz.picture.grouping.activity import PassActivity
from hookviz.picture.module_boxes import make_call_boxes
from hookviz.picture.scene import Scene, make_node_box
from hookviz.picture.tensor_flow import connect_groups


def build_group_scene(view: View, activity: PassActivity, steps: Sequence[int]) -> Scene:
    """Build the scene of one view of a pass; ``steps`` are the steps that mark something in it."""
    tree, arrows = view.tree, connect_view(view)
    boxes = {node: make_node_box(tree.trace, tree.pass_id, node, view.module) for node in view.nodes}
    enclosing_calls = {node: tree.innermost_groups[node].call for node in view.nodes}
    calls_of_nodes = {
        node: call
        for node, call in enclosing_calls.items()
        if call is not None and tree.calls[call] in view.opened_calls
    }
    calls = make_call_boxes(
        tree.trace,
        tree.pass_id,
        [group.call for group in view.opened_calls if group.call is not None],
        calls_of_nodes,
        view.module,
    )
    box_count = len(boxes) + len(calls) + len(view.closed_groups)
    scene = Scene(tree.trace, tree.pass_id, boxes, arrows.single, calls, box_count)
    scene.group_boxes = [make_group_box(tree.trace, group, activity, view.module) for group in view.closed_groups]
    scene.bundles, scene.ports = [*arrows.bundles.values()], arrows.ports
    scene.bundle_steps = {
        arrow_id: step
        for arrow_id, starts in arrows.starts.items()
        if (step := _find_sending_step(activity, starts)) is not None
    }
    scene.add_forward_arrows(
        connect_groups(view), {call: box.steps[0] for call, box in activity.calls.items() if box.steps}
    )
    for group in view.closed_groups:
        if group.parent is not None and group.parent.call in calls:
            calls[group.parent.call].group_ids.append(group.id)
    return scene.write_steps(steps, activity.last)


def _find_sending_step(activity: PassActivity, starts: set[int]) -> int | None:
    """Return the step at which the first of the nodes ``starts`` sends its gradients, or None if none does."""
    steps_of_nodes = (activity.nodes[node].steps for node in starts if node in activity.nodes)
    return min((steps[-1] for steps in steps_of_nodes if steps), default=None)
