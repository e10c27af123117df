"""The layer of Python tensors: each stands on top of its node, and every hook stands where it is kept."""

from collections.abc import Callable, Mapping

from hookviz.picture import element_ids as ids
from hookviz.picture.html_labels import QUIET, SMALL, Style, cell, pin, room_for, row, small, words
from hookviz.picture.primitives import LABEL_ROOM, NAME_ROOM, SPACE, Box, Pin, short, tiny
from hookviz.picture.scene import Scene
from hookviz.support.messages import say
from hookviz.support.messages.text import Text
from hookviz.trace import TensorRow

ON_TENSOR = ("tensor_hook", "post_accumulate_hook")
"""Kinds that a leaf keeps on the tensor; those of an intermediate tensor are handed to its node."""


def with_tensors(scene: Scene, box: Box, look: Style, frame: Callable[[Box, Style, str], str]) -> str:
    """The tensors of a node one below the other, and the node under them; the gradient meets them in this order."""
    shown = [tensor for tensor in box.tensors if tensor.name]
    own = {tensor.output: [p for p in box.pins if box.leaf and _on_tensor(scene, p, tensor)] for tensor in shown}
    elsewhere = {p.id for pins in own.values() for p in pins}
    tables = [_tensor(scene, box, tensor, own[tensor.output], look) for tensor in shown]
    node = frame(box, look, _node(scene, box, [p for p in box.pins if p.id not in elsewhere], look))
    plain = 'BORDER="0" CELLBORDER="0" CELLSPACING="1" CELLPADDING="0"'
    return f"<TABLE {plain}>{''.join(f'<TR><TD>{table}</TD></TR>' for table in [*tables, node])}</TABLE>"


def _on_tensor(scene: Scene, shown: Pin, tensor: TensorRow) -> bool:
    hook = None if shown.hook is None else scene.trace.hook_rows[shown.hook]
    return hook is not None and hook.kind in ON_TENSOR and hook.output == tensor.output


def _node(scene: Scene, box: Box, pins: list[Pin], look: Style) -> str:
    """The node's op, its list of pre-hooks, and the hooks that it calls."""
    rows = [row(cell(ids.op(box.id), small(say("picture.node", op=box.op)), colspan=2))]
    rows.append(row(pre_hooks(scene, box)))
    return "".join([*rows, *(row(pin(shown, look)) for shown in pins)])


def pre_hooks(scene: Scene, box: Box) -> str:
    """The node's list of pre-hooks: the dict of an intermediate tensor's hooks is one of them, a leaf's is not."""
    hooks = [hook for hook in scene.trace.hook_rows if hook.node == box.node]
    owners = {
        short(scene.trace.name(hook.node, hook.output), NAME_ROOM) for hook in hooks if hook.kind == "tensor_hook"
    }
    listed = [] if box.leaf else [f"{owner}._backward_hooks" for owner in sorted(owners)]
    listed += [short(hook.name, LABEL_ROOM) for hook in hooks if hook.kind == "node_pre_hook"]
    text = say("picture.pre_hooks", hooks=", ".join(listed)) if listed else say("picture.no_pre_hooks")
    return cell(ids.pre_hooks(box.id), small(text), colspan=2)


def _tensor(scene: Scene, box: Box, tensor: TensorRow, pins: list[Pin], look: Style) -> str:
    """A tensor's facts, two a row, and below them the hooks that hang on it."""
    before = say("name.none") if tensor.grad is None else tiny(scene.trace.value(tensor.grad))
    room = room_for(max([before, *(_written(final) or "" for _, final in _grads(box, tensor))], key=len))
    facts = [
        _fact("data", *_data(scene, box, tensor)),
        # The player begins with the first value, and writes the others by itself.
        _fact("grad", before, room, ids.grad(box.id, tensor.output))
        if look.final
        else _fact("grad", _grad(box, tensor, look) or before, room),
        _fact("grad_fn", say("name.none") if tensor.leaf else box.op),
        _fact("is_leaf", str(tensor.leaf)),
        _fact("requires_grad", "True"),
        _fact("_backward_hooks", _hooks(scene, tensor)),
    ]
    name = words(say("picture.tensor", name=short(tensor.name, NAME_ROOM)), point_size=17)
    rows = [row(cell(ids.name(box.id), f"<B>{name}</B>", colspan=2))]
    rows += [row(left, right) for left, right in zip(facts[::2], facts[1::2], strict=True)]
    rows += [row(pin(shown, look)) for shown in pins]
    return f'<TABLE BORDER="1" COLOR="{QUIET}" CELLBORDER="0" CELLSPACING="2" CELLPADDING="1">{"".join(rows)}</TABLE>'


def _data(scene: Scene, box: Box, tensor: TensorRow) -> tuple[str, int, str]:
    """What a tensor holds. Where that is other in another variant, the player writes it, and needs room for both."""
    shown, spot = tiny(scene.trace.value(tensor.data)), ids.data(box.id, tensor.output)
    return (shown, room_for(scene.wide[spot]), spot) if spot in scene.wide else (shown, 0, "")


def _fact(name: str, value: str, room: int = 0, spot: str = "") -> str:
    """A cell ``name value``, with room for a value that may grow."""
    width = room_for(name) + room if room else 0
    text = f"{small(name + SPACE)}{words(value + 3 * SPACE, point_size=SMALL)}"
    return cell(spot, text, width=width) if spot else f'<TD ALIGN="LEFT" WIDTH="{width}">{text}</TD>'


def _hooks(scene: Scene, tensor: TensorRow) -> str:
    found = [hook for hook in scene.trace.hook_rows if hook[:3] == ("tensor_hook", tensor.node, tensor.output)]
    if not found:
        return say("name.none")
    return say("picture.hook" if len(found) == 1 else "picture.hooks", count=len(found))


def _grad(box: Box, tensor: TensorRow, look: Style) -> str | None:
    """The tensor's ``.grad`` as it was written last, if it was by this step."""
    shown = (_written(look.texts.get(spot, "")) for spot, _ in _grads(box, tensor))
    return next((text for text in shown if text), None)


def _grads(box: Box, tensor: TensorRow) -> list[tuple[str, str]]:
    """The spots that tell of a tensor's ``.grad``, each with the longest text that it shows."""
    mine = ids.retained(box.id, tensor.output)
    retained = [(ids.value(mine), pin.final) for pin in box.pins if pin.id == mine]
    return [*retained, (ids.gradient(box.id), box.final)] if box.leaf else retained


def grads(texts: Mapping[str, str]) -> dict[str, str]:
    """What the texts of a step say of ``.grad``: id of the tensor's fact → its value from now on.

    >>> grads({"n1-r0-v": say("picture.grad", value="10"), "n1-p0-v": "8 → 10"})
    {'n1-f0': '10'}
    """
    found = ((ids.grad_of(spot), _written(text)) for spot, text in texts.items())
    return {spot: value for spot, value in found if value is not None}


def _written(text: str) -> str | None:
    """The value that a text gives to ``.grad``; None where it speaks of something else."""
    if isinstance(text, Text) and text.key == "picture.grad" and isinstance(text.arguments, Mapping):
        return text.arguments["value"]
    return None
