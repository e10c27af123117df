"""Module calls in a picture: a box around the nodes that each made, and its hooks at the sides where they act."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hookviz.picture import element_ids as ids
from hookviz.picture.primitives import NAME_ROOM, Arrow, Mark, Pin, change, short, tiny, within
from hookviz.support.messages import say
from hookviz.trace import MODULE_HOOK_KINDS, Step, TraceData
from hookviz.trace.sentences import format_hook_position

AT_OUTPUT = ("forward_hook", "full_backward_pre_hook", "backward_hook")
"""Kinds that act where a module's output leaves and its gradient comes in; the others act at the inputs.

A legacy hook sits on the node of the module's first output tensor.
"""

PIN_ROOM = 16
"""Characters of a hook's label, beside which its kind must be told, too."""


@dataclass
class CallBox:
    """One call of a module."""

    id: str
    call: int
    name: str
    kind: str
    parent: int | None
    nodes: list[int] = field(default_factory=list)
    """Those that it made itself, not through a module inside it, and its parameters' AccumulateGrads."""
    made: list[int] = field(default_factory=list)
    """Of these, the ones that the call brought about."""
    inside: list["CallBox"] = field(default_factory=list)
    folds: list[str] = field(default_factory=list)
    """The ids of the closed boxes in it."""
    pins: list[Pin] = field(default_factory=list)
    final: str = ""
    """The longest text of what it returns."""
    input: str = ""
    """The longest text of what it is given."""

    @property
    def boxes(self) -> list[str]:
        """The ids of the boxes that stand in it, outside of other calls."""
        return [*(ids.node(node) for node in self.nodes), *self.folds]

    def at(self, trace: TraceData, *, output: bool) -> list[Pin]:
        """Its hooks at one of its two sides."""
        return [pin for pin in self.pins if (trace.hook_rows[pin.hook or 0].kind in AT_OUTPUT) == output]


def call_boxes(
    trace: TraceData, pass_id: int, calls: Iterable[int], made: Mapping[int, int], around: str = ""
) -> dict[int, CallBox]:
    """The boxes of ``calls``, each with the nodes that belong in it (node → call), and with its hooks.

    Inside the module ``around`` others go by their names there.
    """
    boxes = {call: _box(trace, call, around) for call in sorted(calls)}
    for box in boxes.values():
        if box.parent in boxes:
            boxes[box.parent].inside.append(box)
    for node, call in made.items():
        boxes[call].nodes.append(node)
        if trace.ops[node] != "AccumulateGrad":
            boxes[call].made.append(node)
    for call, hook in _hooks(trace, pass_id, boxes):
        boxes[call].pins.append(_pin(trace, call, hook))
    return boxes


def _box(trace: TraceData, call: int, around: str) -> CallBox:
    row = trace.calls[call]
    kind = trace.modules[row.module].kind if row.module >= 0 else ""
    return CallBox(ids.call(call), call, within(trace.call(call), around), short(kind, NAME_ROOM), row.parent)


def _hooks(trace: TraceData, pass_id: int, boxes: dict[int, CallBox]) -> Iterator[tuple[int, int]]:
    """(call, hook), each pair once: hooks that ran in a call, and those that were there and did not."""
    ran = {(call, hook) for call in boxes for hook in trace.lookup.fired_hooks.get((pass_id, call), ())}
    registered = trace.lookup.hooks(pass_id).by_module
    modules = ((call, trace.calls[call].module) for call in boxes)
    waited = {(call, hook) for call, module in modules if module >= 0 for hook in registered.get(module, ())}
    module_hooks = ((call, hook) for call, hook in ran | waited if trace.hook_rows[hook].kind in MODULE_HOOK_KINDS)
    return iter(sorted(module_hooks, key=lambda pair: (pair[0], *_order(trace, pair[1]))))


def _order(trace: TraceData, hook: int) -> tuple[int, bool, int]:
    """Hooks of one kind stand together, global ones first, as they fire."""
    row = trace.hook_rows[hook]
    return MODULE_HOOK_KINDS.index(row.kind), "global" not in row.flags, hook


def _pin(trace: TraceData, call: int, index: int) -> Pin:
    hook, row = trace.hook(index), trace.hook_rows[index]
    kind = say(f"picture.{row.kind}")
    label = f"{kind} {format_hook_position(hook.place)} {short(hook.label, PIN_ROOM)}"
    return Pin(ids.pin(ids.call(call), index), label, hook.name, index)


def mark_call(box: CallBox, step: Step, drawn: Container[int], arrows: Mapping[tuple[int, int], Arrow]) -> Mark:
    """What a step about a module call marks and writes."""
    on, texts = [box.id], {}
    pin = ids.pin(box.id, step.row.hook)
    if step.hook is not None:
        on.insert(0, pin)
        raised = step.kind == "exception"
        texts[ids.value(pin)] = say("picture.raised") if raised else change(step.before, step.after)
    if step.node in drawn:
        on.append(ids.node(step.node))
        if step.effect == "replaced":
            texts.update(_rewritten(step, arrows))
    if step.kind in ("call", "forward_pre_hook"):
        texts[ids.given(box.id)] = say("picture.input", value=tiny(step.after))
    elif step.kind in ("forward", "forward_hook"):
        texts[ids.returned(box.id)] = say("picture.output", value=tiny(step.after))
    near = tuple(ids.node(node) for node in box.made) if step.kind == "forward" else ()
    return Mark(on, texts, near)


def _rewritten(step: Step, arrows: Mapping[tuple[int, int], Arrow]) -> Iterator[tuple[str, str]]:
    """Torch's node passes on as many gradients as the module has tensors there: its arrows carry what the hook made."""
    before, after = ((values if isinstance(values, tuple) else (values,)) for values in (step.before, step.after))
    slots = [slot for slot, _ in step.trace.lookup.next_nodes.get(step.node, ())]
    if len(slots) == len(before) == len(after):
        for slot, was, now in zip(sorted(slots), before, after, strict=True):
            arrow = arrows.get((step.node, slot))
            if arrow is not None and was != now:
                yield ids.value(arrow.id), change(was, now)
