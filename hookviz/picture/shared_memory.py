"""Gradients that share one memory: where a hook edits one of them in place, the boxes of both say so."""

from typing import TYPE_CHECKING

from hookviz.picture import element_ids as ids
from hookviz.picture.primitives import Box
from hookviz.support.messages import _, join_list
from hookviz.trace import StepRow

if TYPE_CHECKING:
    from hookviz.picture.scene import Scene


def write_shared_memory(scene: "Scene") -> None:
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
                scene.marks[cause].write(ids.memory_id(box.id), box.memory)
