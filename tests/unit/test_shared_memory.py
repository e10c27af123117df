"""Where a hook edits a gradient in place that another one shares its memory with, both boxes say so from then on."""

import torch
from scenes import leaf

import hookviz as hv
from hookviz.picture import element_ids as ids
from hookviz.picture.primitives import Box
from hookviz.picture.scene import Scene


def times_ten(grad: torch.Tensor) -> None:
    grad.mul_(10)


def record(hooked: str) -> hv.Trace:
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    with hv.record(names={"a": a, "b": b}) as trace:
        c, d = a * 2, b * 3
        {"c": c, "d": d}[hooked].register_hook(times_ten)
        e = c + d
        (e * e).sum().backward()
    return trace


def test_both_boxes_name_each_other_from_the_edit_on() -> None:
    trace = record("d")  # backward reaches d first
    scene = Scene.from_trace(trace._data)
    boxes = {name: box for box in scene.boxes.values() for name, _value in box.names}
    assert isinstance(boxes["c"], Box) and boxes["c"].memory == "same memory as d"
    assert boxes["d"].memory == "same memory as c"
    (edit,) = [step.index for step in trace.steps if step.kind == "tensor_hook"]
    written = {index for index, mark in scene.marks.items() if ids.part_id("memory", boxes["c"].id) in mark.texts}
    assert written == {edit} and {box for box in boxes if boxes[box].memory} == {"c", "d"}
    assert "same memory as d" not in trace.figure(edit - 1).svg() and "same memory as d" in trace.figure(edit).svg()


def test_an_edit_that_changes_no_other_gradient_says_nothing() -> None:
    assert not any(box.memory for box in Scene.from_trace(record("c")._data).boxes.values())
