"""The rows in the box of a node that say what it saved for its backward."""

from hookviz.picture import element_ids as ids
from hookviz.picture.box_parts import Framed, Line, Outline, Part, Words
from hookviz.picture.boxes import format_data
from hookviz.picture.primitives import SPACE, Box, Saved, format_tensor_value
from hookviz.picture.scene import Scene
from hookviz.picture.styles import GREY, LIGHT_GREY, SAVED_FILL
from hookviz.support.messages import _


def make_saved_rows(scene: Scene, box: Box) -> list[Part]:
    """Make the rows of a box: the attribute of the node at the left, which tensor it is and its value at the right."""
    outline = Outline("hv-saved-box", SAVED_FILL, LIGHT_GREY, 1)
    rows: list[Part] = []
    for index, saved in enumerate(box.saved):
        text = Words(describe_saved(scene, saved), "hv-saved-text")
        line = Line([Words(saved.name, "hv-op", color=GREY)], text)
        rows.append(Framed(line, ids.part_id("saved", box.id, index), "hv-saved", outline, padding=(7, 3)))
    return rows


def describe_saved(scene: Scene, saved: Saved) -> str:
    """Say which tensor was saved, with its value; one without a name by the op that made it, as its box says it."""
    text = saved.text
    if saved.maker is not None:
        op = scene.boxes[saved.maker].op if saved.maker in scene.boxes else scene.trace.ops[saved.maker]
        text = _("from {op}").format(op=op)
    value = format_tensor_value(format_data(scene.trace, saved.value))
    return f"{text}{value}".strip(SPACE)
