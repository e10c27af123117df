"""The layer of Python tensors: each tensor stands above its node, and each hook on the object that stores it."""

from collections.abc import Callable

from hookviz.picture import element_ids as ids
from hookviz.picture.html_labels import (
    GREY,
    SMALL_FONT_SIZE,
    Style,
    format_small,
    format_text,
    make_cell,
    make_pin_cell,
    make_row,
    text_width,
)
from hookviz.picture.primitives import MAX_LABEL, MAX_NAME, SPACE, Box, Pin, fit_on_line, format_values
from hookviz.picture.scene import Scene
from hookviz.support.messages import _
from hookviz.trace import TensorRow
from hookviz.trace.hook_facts import TENSOR_HOOK_KINDS


def make_tensors_label(scene: Scene, box: Box, style: Style, frame: Callable[[Box, Style, str], str]) -> str:
    """Make the label of a box: the named tensors of a node, and below them the node in ``frame``.

    The gradient reaches them in this order.
    """
    tensors = [tensor for tensor in box.tensors if tensor.name]
    pins_by_output = {
        tensor.output: [pin for pin in box.pins if box.leaf and _is_on_tensor(scene, pin, tensor)] for tensor in tensors
    }
    on_tensors = {pin.id for pins in pins_by_output.values() for pin in pins}
    tables = [_make_tensor_table(scene, box, tensor, pins_by_output[tensor.output], style) for tensor in tensors]
    node = frame(box, style, _make_node_rows(scene, box, [pin for pin in box.pins if pin.id not in on_tensors], style))
    plain = 'BORDER="0" CELLBORDER="0" CELLSPACING="1" CELLPADDING="0"'
    return f"<TABLE {plain}>{''.join(f'<TR><TD>{table}</TD></TR>' for table in [*tables, node])}</TABLE>"


def _is_on_tensor(scene: Scene, pin: Pin, tensor: TensorRow) -> bool:
    hook = None if pin.hook is None else scene.trace.hook_rows[pin.hook]
    return hook is not None and hook.kind in TENSOR_HOOK_KINDS and hook.output == tensor.output


def _make_node_rows(scene: Scene, box: Box, pins: list[Pin], style: Style) -> str:
    """Make the rows of a node: its op, its list of pre-hooks, and the pins of the hooks that it calls."""
    rows = [make_row(make_cell(ids.op_id(box.id), format_small(_("node {op}").format(op=box.op)), colspan=2))]
    rows.append(make_row(make_pre_hooks_cell(scene, box)))
    return "".join([*rows, *(make_row(make_pin_cell(hook_pin, style)) for hook_pin in pins)])


def make_pre_hooks_cell(scene: Scene, box: Box) -> str:
    """Make the cell with a node's list of pre-hooks.

    The dict with the hooks of an intermediate tensor is one of them; the dict of a leaf is not.
    """
    hooks = [hook for hook in scene.trace.hook_rows if hook.node == box.node]
    owners = {
        fit_on_line(scene.trace.name(hook.node, hook.output), MAX_NAME) for hook in hooks if hook.kind == "tensor_hook"
    }
    listed = [] if box.leaf else [f"{owner}._backward_hooks" for owner in sorted(owners)]
    listed += [fit_on_line(hook.name, MAX_LABEL) for hook in hooks if hook.kind == "node_pre_hook"]
    text = _("pre-hooks: {hooks}").format(hooks=", ".join(listed)) if listed else _("pre-hooks: none")
    return make_cell(ids.pre_hooks_id(box.id), format_small(text), colspan=2)


def _make_tensor_table(scene: Scene, box: Box, tensor: TensorRow, pins: list[Pin], style: Style) -> str:
    """Make the table of a tensor: its facts, two in a row, and below them the hooks that it stores."""
    first_grad = "None" if tensor.grad is None else format_values(scene.trace.value(tensor.grad))
    grad_id = ids.grad_id(box.id, tensor.output)
    # The player begins with the first value, and writes the others by itself.
    grad = first_grad if style.for_player else style.texts.get(grad_id, first_grad)
    width = text_width(max(first_grad, scene.reserved_texts.get(grad_id, ""), key=len))
    facts = [
        _make_fact_cell("data", *_describe_data(scene, box, tensor)),
        _make_fact_cell("grad", grad, width, grad_id if style.for_player else ""),
        _make_fact_cell("grad_fn", "None" if tensor.leaf else box.op),
        _make_fact_cell("is_leaf", str(tensor.leaf)),
        _make_fact_cell("requires_grad", "True"),
        _make_fact_cell("_backward_hooks", _count_tensor_hooks(scene, tensor)),
    ]
    name = format_text(_("tensor {name}").format(name=fit_on_line(tensor.name, MAX_NAME)), point_size=17)
    rows = [make_row(make_cell(ids.name_id(box.id), f"<B>{name}</B>", colspan=2))]
    rows += [make_row(left, right) for left, right in zip(facts[::2], facts[1::2], strict=True)]
    rows += [make_row(make_pin_cell(hook_pin, style)) for hook_pin in pins]
    return f'<TABLE BORDER="1" COLOR="{GREY}" CELLBORDER="0" CELLSPACING="2" CELLPADDING="1">{"".join(rows)}</TABLE>'


def _describe_data(scene: Scene, box: Box, tensor: TensorRow) -> tuple[str, int, str]:
    """Return a tensor's value, the width to reserve for it, and its id.

    Width and id are empty unless the value differs between variants: only then the player writes it.
    """
    value, data_id = format_values(scene.trace.value(tensor.data)), ids.data_id(box.id, tensor.output)
    if data_id not in scene.reserved_texts:
        return value, 0, ""
    return value, text_width(scene.reserved_texts[data_id]), data_id


def _make_fact_cell(name: str, value: str, value_width: int = 0, element_id: str = "") -> str:
    """Make a cell ``name value`` with room for a value of ``value_width`` points."""
    width = text_width(name) + value_width if value_width else 0
    text = f"{format_small(name + SPACE)}{format_text(value + 3 * SPACE, point_size=SMALL_FONT_SIZE)}"
    return make_cell(element_id, text, width=width) if element_id else f'<TD ALIGN="LEFT" WIDTH="{width}">{text}</TD>'


def _count_tensor_hooks(scene: Scene, tensor: TensorRow) -> str:
    hooks = [hook for hook in scene.trace.hook_rows if hook[:3] == ("tensor_hook", tensor.node, tensor.output)]
    if not hooks:
        return "None"
    return (_("1 hook") if len(hooks) == 1 else _("{count} hooks")).format(count=len(hooks))
