"""The layer of Python tensors: each tensor stands above its node, and each hook on the object that stores it."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from hookviz.picture import element_ids as ids
from hookviz.picture.box_parts import GAP, Column, Framed, Line, Outline, Part, SideBySide, Words
from hookviz.picture.letters import LARGE
from hookviz.picture.primitives import MAX_LABEL, MAX_NAME, SPACE, Box, Pin, fit_on_line, format_values
from hookviz.picture.scene import Scene
from hookviz.picture.styles import GREY, Style
from hookviz.support.messages import _
from hookviz.trace import TensorRow
from hookviz.trace.hook_facts import TENSOR_HOOK_KINDS


class TensorParts(NamedTuple):
    """The named tensors of a node, and the pins that stand on them rather than on the node."""

    parts: list[Part]
    pin_ids: set[str]


def make_tensor_parts(scene: Scene, box: Box, style: Style, make_pin: Callable[[Pin], Part]) -> TensorParts:
    """Make the parts of the named tensors of a node, in the order in which the gradient reaches them."""
    parts: list[Part] = []
    pin_ids: set[str] = set()
    for tensor in box.tensors:
        if tensor.name:
            pins = [pin for pin in box.pins if box.leaf and _is_on_tensor(scene, pin, tensor)]
            parts.append(_make_tensor(scene, box, tensor, style, [make_pin(pin) for pin in pins]))
            pin_ids.update(pin.id for pin in pins)
    return TensorParts(parts, pin_ids)


def _is_on_tensor(scene: Scene, pin: Pin, tensor: TensorRow) -> bool:
    hook = None if pin.hook is None else scene.trace.hook_rows[pin.hook]
    return hook is not None and hook.kind in TENSOR_HOOK_KINDS and hook.output == tensor.output


def make_pre_hooks_line(scene: Scene, box: Box) -> Line:
    """Make the line with a node's list of pre-hooks.

    The dict with the hooks of an intermediate tensor is one of them; the dict of a leaf is not.
    """
    hooks = [hook for hook in scene.trace.hook_rows if hook.node == box.node]
    owners = {
        fit_on_line(scene.trace.name(hook.node, hook.output), MAX_NAME) for hook in hooks if hook.kind == "tensor_hook"
    }
    listed = [] if box.leaf else [f"{owner}._backward_hooks" for owner in sorted(owners)]
    listed += [fit_on_line(hook.name, MAX_LABEL) for hook in hooks if hook.kind == "node_pre_hook"]
    text = _("pre-hooks: {hooks}").format(hooks=", ".join(listed)) if listed else _("pre-hooks: none")
    return Line([Words(text, "hv-text", color=GREY)])


def _make_tensor(scene: Scene, box: Box, tensor: TensorRow, style: Style, pins: list[Part]) -> Part:
    """Make the box of a tensor: its facts, two on a line, and below them the hooks that it stores."""
    name = _("tensor {name}").format(name=fit_on_line(tensor.name, MAX_NAME))
    title = Line([Words(name, "hv-name", size=LARGE, bold=True)])
    facts = [*_list_facts(scene, box, tensor, style)]
    columns = SideBySide([Column(facts[::2]), Column(facts[1::2])], gap=GAP)
    return Framed(
        Column([title, columns, *pins]),
        ids.part_id("tensor_box", box.id, tensor.output),
        "hv-tensor",
        Outline("hv-tensor-box", "white", GREY, 1),
        padding=(8, 5),
    )


def _list_facts(scene: Scene, box: Box, tensor: TensorRow, style: Style) -> Iterator[Part]:
    """Yield what PyTorch says of a tensor: the name of each attribute, and its value."""
    trace = scene.trace
    data_id, grad_id = ids.part_id("data", box.id, tensor.output), ids.part_id("grad", box.id, tensor.output)
    first_grad = "None" if tensor.grad is None else format_values(trace.value(tensor.grad))
    data = format_values(trace.value(tensor.data))
    # The player writes a value only if it differs between variants.
    yield _make_fact("data", data, scene.reserved_texts.get(data_id, ""), data_id)
    yield _make_fact("grad", style.texts.get(grad_id, first_grad), scene.reserved_texts.get(grad_id, ""), grad_id)
    yield _make_fact("grad_fn", "None" if tensor.leaf else box.op)
    yield _make_fact("is_leaf", str(tensor.leaf))
    yield _make_fact("requires_grad", "True")
    yield _make_fact("_backward_hooks", _count_tensor_hooks(scene, tensor))


def _make_fact(name: str, value: str, longest: str = "", fact_id: str = "") -> Part:
    """Make a fact; one that steps write has an id, and its value is its last text."""
    line = Line([Words(name + SPACE, "hv-fact-name", color=GREY), Words(value, "hv-fact-value", longest)])
    return Framed(line, fact_id, "hv-fact", padding=(0, 0)) if fact_id else line


def _count_tensor_hooks(scene: Scene, tensor: TensorRow) -> str:
    hooks = [hook for hook in scene.trace.hook_rows if hook[:3] == ("tensor_hook", tensor.node, tensor.output)]
    if not hooks:
        return "None"
    return (_("1 hook") if len(hooks) == 1 else _("{count} hooks")).format(count=len(hooks))
