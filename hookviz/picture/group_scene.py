"""The scene of a large pass as one sees it on entering a box."""

from collections.abc import Sequence

from hookviz.picture.grouped_graph import group_box, ways
from hookviz.picture.grouping import View
from hookviz.picture.grouping.activity import Activity
from hookviz.picture.module_boxes import call_boxes
from hookviz.picture.scene import Scene, box_of


def group_scene(view: View, happened: Activity, steps: Sequence[int]) -> Scene:
    """The scene of one view of a pass; ``steps`` are those that are told in it."""
    tree, found = view.tree, ways(view)
    boxes = {node: box_of(tree.trace, tree.pass_id, node, view.module) for node in view.nodes}
    around = {node: tree.around[node].call for node in view.nodes}
    own = {node: call for node, call in around.items() if call >= 0 and tree.calls[call] in view.opened}
    calls = call_boxes(tree.trace, tree.pass_id, [fold.call for fold in view.opened], own, view.module)
    shown = len(boxes) + len(calls) + len(view.closed)
    scene = Scene(tree.trace, tree.pass_id, boxes, found.single, calls, shown)
    scene.folds = [group_box(tree.trace, fold, happened, view.module) for fold in view.closed]
    scene.bundles, scene.ports = [*found.bundles.values()], found.ports
    scene.sent = {
        name: first for name, starts in found.starts.items() if (first := _sent(happened, starts)) is not None
    }
    for fold in view.closed:
        if fold.parent is not None and fold.parent.call in calls:
            calls[fold.parent.call].folds.append(fold.id)
    return scene.written(steps, happened.last)


def _sent(happened: Activity, starts: set[int]) -> int | None:
    """The step at which the first of these nodes has sent what it sends."""
    ran = (happened.nodes[node].steps for node in starts if node in happened.nodes)
    return min((steps[-1] for steps in ran if steps), default=None)
