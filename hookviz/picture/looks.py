"""Which scenes look alike: runs of one program share their pictures."""

from collections.abc import Hashable, Iterator

from hookviz.picture.primitives import Box, Parameter
from hookviz.picture.scene import Scene


def key_of_shape(scene: Scene) -> Hashable:
    """Return the boxes, pins and arrows of a scene: two scenes with equal keys have the same ids."""
    boxes = sorted((box.id, box.op, *_list_parts(box)) for box in scene.boxes.values())
    calls = sorted((box.id, *(pin.id for pin in box.pins), *box.nodes) for box in scene.calls.values())
    optimizers = sorted((box.id, *(pin.id for pin in box.pins)) for box in scene.optimizer_boxes.values())
    arrows = [*scene.arrows.values(), *scene.forward_arrows]
    return scene.pass_id, tuple(boxes), tuple(calls), tuple(optimizers), tuple(sorted(arrow.id for arrow in arrows))


def key_of_look(scene: Scene) -> Hashable:
    """Return the shape of a scene and all its names: two scenes with equal keys can share one picture."""
    names = ((node, *_list_names(box)) for node, box in sorted(scene.boxes.items()))
    return key_of_shape(scene), tuple(names)


def _list_parts(box: Box) -> Iterator[str]:
    """Yield the ids of the pins and parameters of a box."""
    holders: list[Box | Parameter] = [box, *box.parameters]
    for holder in holders:
        yield from (holder.id, *(pin.id for pin in holder.pins))


def _list_names(box: Box) -> Iterator[str]:
    """Yield the names of the tensors and parameters of a box."""
    yield from (name for name, _value in box.names)
    yield from (parameter.name for parameter in box.parameters)
