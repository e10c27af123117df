"""The boxes of a picture, each with pins for its hooks.

There is one for a node, one around the nodes that a module call created, with its hooks at its output and inputs, and
one for each optimizer whose hooks ran after the backward pass.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hookviz.picture import element_ids as ids
from hookviz.picture.primitives import (
    DIGITS,
    MAX_LABEL,
    MAX_NAME,
    MAX_VALUE,
    Arrow,
    Box,
    Mark,
    Parameter,
    Pin,
    fit_name,
    fit_on_line,
    format_tensor_value,
    format_values,
    relative_name,
)
from hookviz.picture.repeated_calls import find_first_runs, list_extra_runs
from hookviz.picture.visible_graph import VisibleGraph
from hookviz.support.messages import _
from hookviz.trace import FORWARD_HOOK_KINDS, MODULE_HOOK_KINDS, Step, TensorRow, TraceData
from hookviz.trace.hook_facts import HOOK_FACTS, NODE_HOOK_KINDS, ON_TENSOR_KINDS
from hookviz.trace.hooks import name_of_effect
from hookviz.trace.sentences import format_hook_position
from hookviz.trace.values import Value

OUTPUT_SIDE_KINDS = ("forward_hook", "full_backward_pre_hook", "backward_hook")
"""The kinds of module hooks that act on the output or its gradient; the others act at the inputs.

``backward_hook`` is among them: torch puts a legacy hook on the node of the module's first output tensor.
"""

MAX_CALL_LABEL = 16
"""Characters of a module hook's label, which has the hook's kind in front of it."""

_ON_BOXES = [kind for kind in HOOK_FACTS if kind in (*ON_TENSOR_KINDS, *NODE_HOOK_KINDS)]
_FIRST_OF_NODE = _ON_BOXES.index("node_pre_hook")
NODE_PIN_KINDS = (*_ON_BOXES[:_FIRST_OF_NODE], "retain_grad", *_ON_BOXES[_FIRST_OF_NODE:])
"""The kinds of hooks that have a pin on the box of a node, in the order in which they fire."""


def make_node_box(trace: TraceData, pass_id: int, node: int, graph: VisibleGraph, module: str = "") -> Box:
    """Make the box of a node, with a row for each of its parameters; names inside ``module`` are relative to it."""
    tensors = trace.lookup.tensors(pass_id, node)
    names = [
        (relative_name(row.name, module), format_tensor_value(format_data(trace, row.data)))
        for row in tensors
        if row.name
    ]
    op, leaf = trace.ops[node], trace.ops[node] == "AccumulateGrad"
    if node in graph.joined:
        op = _("{count} nodes").format(count=f"{[*graph.joined.values()].count(node):,}")
    pins = [*_make_node_pins(trace, pass_id, node, tensors)]
    rows = [
        _make_parameter(trace, pass_id, row, graph.calls.get(row), module) for row in graph.parameters.get(node, ())
    ]
    return Box(ids.box_id("node", node), node, op, leaf, tensors, names, pins, parameters=rows)


def _make_parameter(trace: TraceData, pass_id: int, node: int, call: int | None, module: str) -> Parameter:
    """Make the row of a parameter; its name is relative to the module of ``call``, or else to ``module``."""
    tensors = trace.lookup.tensors(pass_id, node)
    owner = module if call is None else trace.plain_call(call)
    value = format_tensor_value(format_data(trace, tensors[0].data)) if tensors else ""
    pins = [*_make_node_pins(trace, pass_id, node, tensors)]
    return Parameter(ids.box_id("node", node), node, relative_name(trace.lookup.leaf_names[node], owner), value, pins)


def number_equal_boxes(trace: TraceData, boxes: Mapping[int, Box], calls_of_nodes: Mapping[int, int]) -> None:
    """Number the ops of boxes without a name, as sentences do, if another box in the same frame has the same op."""
    ops = {node: (calls_of_nodes.get(node), box.op) for node, box in boxes.items() if not box.leaf}
    counts = Counter(ops.values())
    for node, op in ops.items():
        if not boxes[node].names and (counts[op] > 1 or node in trace.outside):
            boxes[node].op = trace.name(node)


def format_data(trace: TraceData, index: int | None) -> str:
    """Format the numbers of a tensor if they fit, else its shape; ``index`` is the number of its value."""
    value = trace.value(index)
    if not isinstance(value, Value):
        return ""
    line = value.line(DIGITS)
    return str(value.shape) if value.note is None and (line is None or len(line) > MAX_VALUE) else format_values(value)


def _make_node_pins(trace: TraceData, pass_id: int, node: int, tensors: list[TensorRow]) -> Iterator[Pin]:
    """Make the pins of a node's box, in the order in which the hooks fire."""
    hooks, box_id = trace.lookup.hooks(pass_id).by_node.get(node, ()), ids.box_id("node", node)
    for kind in NODE_PIN_KINDS:
        if kind == "retain_grad":
            for row in tensors:
                if row.retains_grad:
                    yield Pin(ids.part_id("retain_pin", box_id, row.output), "retain_grad", None)
        for index in hooks:
            if trace.hook_rows[index].kind == kind:
                hook = trace.hook(index, trace.place(index, pass_id))
                text = fit_on_line(label_of_hook(kind, hook.label), MAX_LABEL)
                yield Pin(ids.part_id("pin", box_id, index), f"{format_hook_position(hook.place)} {text}", index)


def label_of_hook(kind: str, name: str) -> str:
    """Return the label of a hook on a node's box; if its place among the hooks is special, the label says so."""
    return f"{_(HOOK_FACTS[kind].prefix)} {name}" if kind in HOOK_FACTS and HOOK_FACTS[kind].prefix else name


# -- module calls


@dataclass
class CallBox:
    """The box of one module call."""

    id: str
    call: int
    """The call's number in the trace."""
    name: str
    """Its name, which may be relative to the call around it, and cut."""
    full_name: str
    kind: str
    """The module's class."""
    parent: int | None
    """The call in which it was made, or in which its first run was made."""
    is_recomputed: bool = False
    """Whether checkpointing made it during a backward pass."""
    nodes: list[int] = field(default_factory=list)
    """The nodes that it created itself, not through a module inside it, and its parameters' AccumulateGrads."""
    created_nodes: list[int] = field(default_factory=list)
    """``nodes`` without the AccumulateGrads."""
    children: list["CallBox"] = field(default_factory=list)
    group_ids: list[str] = field(default_factory=list)
    """The ids of the closed boxes in it."""
    pins: list[Pin] = field(default_factory=list)
    longest_text: str = ""
    """The longest text of its output."""
    longest_input: str = ""
    """The longest text of its input."""

    @property
    def box_ids(self) -> list[str]:
        """The ids of the boxes directly in it, not in a call inside it."""
        return [*(ids.box_id("node", node) for node in self.nodes), *self.group_ids]

    def pins_at(self, trace: TraceData, *, output: bool) -> list[Pin]:
        """Return the pins at its output, or the pins at its inputs."""
        return [pin for pin in self.pins if (_kind_of(trace, pin) in OUTPUT_SIDE_KINDS) == output]


def _kind_of(trace: TraceData, pin: Pin) -> str:
    """Return the kind of the hook of a pin on a module call: such a pin has a hook, or an unfired one."""
    if pin.hook is not None:
        return trace.hook_rows[pin.hook].kind
    assert pin.unfired is not None
    return trace.unfired_rows[pin.unfired].kind


def make_call_boxes(
    trace: TraceData,
    pass_id: int,
    calls: Collection[int],
    calls_of_nodes: Mapping[int, int],
    first_of_several: Collection[int],
    *,
    has_relative_names: bool = False,
) -> dict[int, CallBox]:
    """Make the boxes of ``calls``, each with its nodes (``calls_of_nodes``: node → call) and its hooks.

    Args:
        trace: the trace.
        pass_id: the pass.
        calls: the calls that are drawn.
        calls_of_nodes: node → the innermost of ``calls`` around it.
        first_of_several: the calls that are the first of several of their modules in the pass.
        has_relative_names: whether the name of a call inside another is relative to that one.
    """
    first_runs = find_first_runs(trace, pass_id, calls)
    parents = {call: trace.calls[first_runs.get(call, call)].parent for call in sorted(calls)}
    boxes = {
        call: _make_call_box(trace, call, parent, calls if has_relative_names else ())
        for call, parent in parents.items()
    }
    for call in boxes.keys() & first_of_several:
        boxes[call].name = name_first_call(boxes[call].name)
    for box in boxes.values():
        if box.parent in boxes:
            boxes[box.parent].children.append(box)
    for node, call in calls_of_nodes.items():
        boxes[call].nodes.append(node)
        if trace.ops[node] != "AccumulateGrad":
            boxes[call].created_nodes.append(node)
    for call, hook in _list_call_hooks(trace, pass_id, boxes):
        kind = HOOK_FACTS[trace.hook_rows[hook].kind].prefix
        boxes[call].pins.append(_make_pin(trace, boxes[call].id, hook, kind, MAX_CALL_LABEL))
    return boxes


def _make_call_box(trace: TraceData, call: int, parent: int | None, frames: Collection[int]) -> CallBox:
    """Make the box of a call; if its ``parent`` is one of ``frames``, its name is relative to that."""
    row = trace.calls[call]
    kind, full_name = trace.modules[row.module].kind, trace.call(call)
    frame = "" if parent is None or parent not in frames else trace.call_path(parent)
    name = relative_name(full_name, frame)
    return CallBox(ids.box_id("call", call), call, name, full_name, fit_on_line(kind, MAX_NAME), parent, row.recomputed)


def name_first_call(name: str) -> str:
    """Return the name of a call of a module that is called again in the same pass: that one has a number as well."""
    return _("{module} (call {number})").format(module=name, number=1)


def _list_call_hooks(trace: TraceData, pass_id: int, boxes: dict[int, CallBox]) -> Iterator[tuple[int, int]]:
    """List (call, hook) in the order of the pins: hooks that ran in a call, and registered hooks that did not."""
    ran = {(call, hook) for call in boxes for hook in trace.lookup.fired_hooks.get((pass_id, call), ())}
    registered = trace.lookup.hooks(pass_id).by_module
    modules = ((call, trace.calls[call].module) for call in boxes)
    extra_runs = list_extra_runs(trace, boxes)  # no gradient passes these, so that no backward hook is to fire
    not_run = {
        (call, hook)
        for call, module in modules
        for hook in registered.get(module, ())
        if call not in extra_runs or trace.hook_rows[hook].kind in FORWARD_HOOK_KINDS
    }
    module_hooks = ((call, hook) for call, hook in ran | not_run if trace.hook_rows[hook].kind in MODULE_HOOK_KINDS)
    return iter(sorted(module_hooks, key=lambda pair: (pair[0], *_hook_sort_key(trace, pair[1]))))


def _hook_sort_key(trace: TraceData, hook: int) -> tuple[int, bool, int]:
    """Sort hooks as they fire: by kind, global ones first, then by their number."""
    row = trace.hook_rows[hook]
    return MODULE_HOOK_KINDS.index(row.kind), "global" not in row.flags, hook


def _make_pin(trace: TraceData, box_id: str, index: int, kind: str, max_chars: int) -> Pin:
    """Make the pin of a hook of a module or an optimizer, with the words for its kind before its name."""
    hook = trace.hook(index)
    label = f"{_(kind)} {format_hook_position(hook.place)} {fit_on_line(hook.label, max_chars)}"
    return Pin(ids.part_id("pin", box_id, index), label, index)


def mark_call(
    box: CallBox, step: Step, elements: Iterable[str], list_arrows_along: Callable[[int, int], list[Arrow]]
) -> Mark:
    """Make the mark of a step about a module call.

    Args:
        box: the box of the call.
        step: the step.
        elements: the ids of the elements that stand for the node of the step, if it has one.
        list_arrows_along: node, input → the arrows that pass along that edge.
    """
    mark = Mark([box.id])
    pin = ids.part_id("pin", box.id, step.row.hook)
    if step.hook is not None:
        mark.elements.insert(0, pin)
        if step.kind == "exception":
            mark.write(ids.part_id("value", pin), _("raised"))
        else:
            mark.write_change(ids.part_id("value", pin), step.before, step.after)
    mark.elements += elements
    if step.node is not None and step.effect == "replaced":
        _write_replaced_gradients(mark, step, list_arrows_along)
    value = format_values(step.after)
    if step.kind in ("call", "forward_pre_hook"):
        mark.write(ids.part_id("input", box.id), _("input {value}").format(value=value), value)
    elif step.kind in ("forward", "forward_hook"):
        mark.write(ids.part_id("output", box.id), _("output {value}").format(value=value), value)
    if step.kind == "forward":
        mark.related = tuple(ids.box_id("node", node) for node in box.created_nodes)
    return mark


def _write_replaced_gradients(mark: Mark, step: Step, list_arrows_along: Callable[[int, int], list[Arrow]]) -> None:
    """Write on the arrows of the node through which torch calls a full hook which gradients the hook replaced.

    That node passes on as many gradients as the module has tensors there.
    """
    before, after = ((values if isinstance(values, tuple) else (values,)) for values in (step.before, step.after))
    slots = [slot for slot, _ignored in step.trace.lookup.next_nodes.get(step.row.own_node, ())]
    if len(slots) == len(before) == len(after):
        for slot, old, new in zip(sorted(slots), before, after, strict=True):
            arrows = list_arrows_along(step.row.own_node, slot)
            if len(arrows) == 1 and old != new:  # several arrows carry gradients that are added up before the hook
                mark.write_change(ids.part_id("value", arrows[0].id), old, new)


# -- optimizers


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
        name, kind = (fit_name(text, MAX_NAME) for text in (optimizer.name, optimizer.kind))
        new = OptimizerBox(ids.box_id("optimizer", row.optimizer), name, kind)
        box = boxes.setdefault(row.optimizer, new)
        if ids.part_id("pin", box.id, row.hook) not in [pin.id for pin in box.pins]:
            words = HOOK_FACTS[trace.hook_rows[row.hook].kind].name
            box.pins.append(_make_pin(trace, box.id, row.hook, words, MAX_LABEL))
    return boxes


def mark_optimizer(box: OptimizerBox, step: Step) -> Mark:
    """Make the mark of a step about an optimizer: its hooks say what they did."""
    mark = Mark([box.id])
    if step.row.hook is None:
        return mark
    pin = ids.part_id("pin", box.id, step.row.hook)
    mark.elements.append(pin)
    if step.kind == "exception":
        mark.write(ids.part_id("value", pin), _("raised"))
    elif step.before or step.after:
        mark.write_change(ids.part_id("value", pin), step.before, step.after)
    else:
        mark.write(ids.part_id("value", pin), name_of_effect(step.effect))
    return mark
