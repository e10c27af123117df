"""The pins of hooks that did not fire: those that a pass had, and new ones for hooks that it did not have.

A hook that was registered after the pass, or removed before it, has its place in the picture all the same.
"""

from collections.abc import Collection, Iterator

from hookviz.picture import element_ids as ids
from hookviz.picture.boxes import MAX_CALL_LABEL, NODE_PIN_KINDS, CallBox, label_of_hook
from hookviz.picture.primitives import MAX_LABEL, Box, Parameter, Pin, fit_on_line
from hookviz.picture.scene import SILENT, Scene
from hookviz.support.messages import _
from hookviz.trace import MODULE_HOOK_KINDS, TraceData, UnfiredRow
from hookviz.trace.hook_facts import HOOK_FACTS


def mark_silent_pins(scene: Scene, unfired: Collection[int]) -> None:
    """Note on the pins of ``scene`` which of the rows ``unfired`` says why the hook did not fire."""
    rows = scene.trace.lookup.unfired_rows_of_hooks
    for pin in scene.list_pins():
        if pin.hook is not None and rows.get(pin.hook) in unfired:
            pin.unfired = rows[pin.hook]


def add_silent_pins(scene: Scene, unfired: Collection[int]) -> None:
    """Mark the pins of ``scene``, and give each other row of ``unfired`` a pin on each box of its node or module."""
    mark_silent_pins(scene, unfired)
    if not scene.marks:
        return
    pinned = {pin.unfired for pin in scene.list_pins()}
    added = []
    for index in unfired:
        if index not in pinned:
            row = scene.trace.unfired_rows[index]
            for box in _find_boxes(scene, row):
                pin = _make_pin(scene.trace, box, index)
                box.pins.append(pin)
                added.append(pin)
    last_step = max(scene.marks)
    silent = _(SILENT)
    for pin in added:
        pin.longest_text = silent
    texts = {ids.part_id("value", pin.id): silent for pin in added}
    scene.marks[last_step].texts |= texts


def _find_boxes(scene: Scene, row: UnfiredRow) -> Iterator[Box | Parameter | CallBox]:
    """Yield the boxes on which a hook stands."""
    holder = scene.find_holder(row.node) if row.kind in NODE_PIN_KINDS else None
    if holder is not None:
        yield holder
    elif row.kind in MODULE_HOOK_KINDS and row.module is not None:
        yield from (box for call, box in scene.calls.items() if scene.trace.calls[call].module == row.module)


def _make_pin(trace: TraceData, box: Box | Parameter | CallBox, index: int) -> Pin:
    row = trace.unfired_rows[index]
    name = trace.hook_of_row(row, row.on).label
    if isinstance(box, CallBox):
        label = f"{_(HOOK_FACTS[row.kind].prefix)} {fit_on_line(name, MAX_CALL_LABEL)}"
    else:
        label = fit_on_line(label_of_hook(row.kind, name), MAX_LABEL)
    return Pin(ids.part_id("unfired_pin", box.id, index), label, None, unfired=index)
