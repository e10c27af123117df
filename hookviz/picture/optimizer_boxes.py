"""Optimizers in a picture: a box for each optimizer whose hooks ran after the backward pass, with these hooks."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from hookviz.picture import element_ids as ids
from hookviz.picture.primitives import MAX_LABEL, MAX_NAME, Mark, Pin, fit_name, fit_on_line
from hookviz.support.messages import _
from hookviz.trace import Step, TraceData
from hookviz.trace.hook_facts import HOOK_FACTS
from hookviz.trace.hooks import name_of_effect
from hookviz.trace.sentences import format_hook_position


@dataclass
class OptimizerBox:
    """The box of an optimizer."""

    id: str
    name: str
    kind: str
    """The optimizer's class."""
    pins: list[Pin] = field(default_factory=list)
    longest_text: str = ""
    """Empty: no step writes on the box itself."""


def make_optimizer_boxes(trace: TraceData, steps: Iterable[int]) -> dict[int, OptimizerBox]:
    """Make the boxes of the optimizers of which hooks ran in ``steps``: number of an optimizer → its box."""
    boxes: dict[int, OptimizerBox] = {}
    for step in steps:
        row = trace.rows[step]
        if row.optimizer is None or row.hook is None:
            continue
        optimizer = trace.optimizers[row.optimizer]
        new = OptimizerBox(
            ids.optimizer_id(row.optimizer), fit_name(optimizer.name, MAX_NAME), fit_name(optimizer.kind, MAX_NAME)
        )
        box = boxes.setdefault(row.optimizer, new)
        if ids.pin_id(box.id, row.hook) not in [pin.id for pin in box.pins]:
            box.pins.append(_make_pin(trace, box, row.hook))
    return boxes


def _make_pin(trace: TraceData, box: OptimizerBox, index: int) -> Pin:
    hook = trace.hook(index)
    kind = _(HOOK_FACTS[hook.kind].name)
    label = f"{kind} {format_hook_position(hook.place)} {fit_on_line(hook.label, MAX_LABEL)}"
    return Pin(ids.pin_id(box.id, index), label, hook.name, index)


def mark_optimizer(box: OptimizerBox, step: Step) -> Mark:
    """Make the mark of a step about an optimizer: its hooks say what they did."""
    mark = Mark([box.id])
    if step.row.hook is None:
        return mark
    pin = ids.pin_id(box.id, step.row.hook)
    mark.elements.append(pin)
    if step.kind == "exception":
        mark.write(ids.value_id(pin), _("raised"))
    elif step.before or step.after:
        mark.write_change(ids.value_id(pin), step.before, step.after)
    else:
        mark.write(ids.value_id(pin), name_of_effect(step.effect))
    return mark
