"""Nodes that nobody wrote are hidden until asked for, and steps about them mark what stands for them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.picture.scene import Scene


def look(*_: Any) -> None:
    """A hook that changes nothing."""


def record_pass(net: nn.Module, *inputs: torch.Tensor) -> hv.Trace:
    with hv.record(net) as trace:
        net(*inputs).square().sum().backward()
    return trace


def make_network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def ops_of(scene: Scene) -> list[str]:
    """The texts of the boxes from the root on."""
    return [box.op for box in scene.boxes.values()]


def scene_of(trace: hv.Trace, *, internal: bool = False) -> Scene:
    return Scene.from_trace(trace._data, internal=internal)


class Written(nn.Module):
    """Calls a function that the test wrote."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.ones(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, self.weight)


# -- hidden nodes


def test_a_linear_is_one_box_with_weight_and_bias_in_it_unless_all_nodes_are_asked_for() -> None:
    trace = record_pass(make_network(), torch.ones(5, 3))
    scene, whole = scene_of(trace), scene_of(trace, internal=True)
    assert ops_of(scene) == ["SumBackward0", "PowBackward0", "AddmmBackward0", "ReluBackward0", "AddmmBackward0"]
    linear = list(scene.boxes.values())[-1]
    assert [(row.name, row.value.strip()) for row in linear.parameters] == [("weight", "(4, 3)"), ("bias", "(4,)")]
    assert sorted(whole.boxes) == list(range(len(trace._data.ops)))
    assert not any(box.parameters for box in whole.boxes.values())
    assert "TBackward0" in trace.figure(internal=True).svg() and "TBackward0" not in trace.figure().svg()


def test_draw_hides_internal_nodes_if_parameters_have_their_names() -> None:
    net = make_network()
    output = net(torch.ones(5, 3))
    names = dict(net.named_parameters())
    assert "TBackward0" not in hv.draw(output, names=names).svg()
    assert "TBackward0" in hv.draw(output, names=names, internal=True).svg()


@pytest.mark.parametrize(
    ("write", "op", "is_shown"),
    [
        (lambda x, w: x * w.t().t(), "TBackward0", False),
        (lambda x, w: (x * w).clone() + 1, "CloneBackward0", True),
        (lambda x, w: (x * w)[0] * 2, "SelectBackward0", True),
    ],
)
def test_layouts_are_hidden_and_what_somebody_wrote_is_shown(write: Any, op: str, is_shown: bool) -> None:
    ops = {box.op for box in scene_of(record_pass(Written(write), torch.ones(2, 3))).boxes.values()}
    assert (op in ops) == is_shown


def test_a_hidden_node_with_a_hook_a_name_or_a_retained_gradient_has_a_box() -> None:
    alive = []

    def write(act: Callable[[torch.Tensor], Any]) -> set[str]:
        def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            turned = w.t()
            act(turned)
            alive.append(turned)
            return x.t() * turned

        return {*ops_of(scene_of(record_pass(Written(function), torch.ones(2, 3))))}

    assert "TBackward0" not in write(look)
    assert "TBackward0" in write(lambda turned: turned.register_hook(look))
    assert "TBackward0" in write(lambda turned: turned.grad_fn.register_prehook(look))
    assert "TBackward0" in write(lambda turned: turned.retain_grad())


# -- steps


def test_steps_of_a_hidden_node_mark_the_arrow_over_it_and_write_what_it_sends() -> None:
    trace = record_pass(Written(lambda x, w: (x * w).expand(4, 2, 3) * 2), torch.ones(2, 3))
    scene = scene_of(trace)
    hidden = [step for step in trace.steps if step.node is not None and trace._data.ops[step.node] == "ExpandBackward0"]
    (arrow,) = {element for step in hidden for element in scene.marks[step.index].elements}
    assert arrow in {drawn.id for drawn in scene.arrows.values()}
    sent = [scene.marks[step.index].texts.get(f"{arrow}-v") for step in trace.steps if step.kind == "compute"]
    assert [text for text in sent if text] == ["norm 39.19", "norm 78.38"]


def test_all_time_steps_of_a_recurrent_module_are_one_box_with_its_parameters() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.GRU(2, 3))
    net[1].weight_hh_l0.register_hook(look)
    with hv.record(net) as trace:
        results, last = net(torch.ones(9, 1, 2))
        (results.sum() + last.sum()).backward()
    scene = scene_of(trace)
    (call,) = [call for call in scene.calls.values() if call.kind == "GRU"]
    (box,) = [box for box in map(scene.boxes.get, call.nodes) if box and box.parameters]
    assert {row.name for row in box.parameters} == {
        f"{kind}_{of}_l0" for kind in ("weight", "bias") for of in ("ih", "hh")
    }
    hidden = [node for node, at in scene.graph.joined.items() if at == box.node]
    assert box.op == f"{len(hidden)} nodes"
    assert len(hidden) > 9 > len(call.nodes)
    firing = trace.firings[0].index
    assert scene.marks[firing].elements[0] == next(row.id for row in box.parameters if row.pins)
    steps = [step for step in trace.steps if step.row.node in hidden]
    assert {scene.marks[step.index].elements[0] for step in steps} == {box.id}
    assert all(start in scene.boxes and end in scene.boxes for start, _slot, end in scene.graph.edges)
    assert len(scene_of(trace, internal=True).boxes) > len(hidden)


def test_dropout_in_evaluation_has_no_frame_unless_it_has_a_hook() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Dropout(), nn.Linear(4, 4), nn.Dropout(), nn.Linear(4, 2)).eval()
    net[3].register_forward_hook(look)
    scene = scene_of(record_pass(net, torch.ones(5, 3)))
    assert [call.kind for call in scene.calls.values()].count("Dropout") == 1


def test_hooks_of_a_parameter_are_pins_on_its_row() -> None:
    net = make_network()
    net[0].weight.register_hook(lambda grad: grad * 2)
    net[0].weight.register_post_accumulate_grad_hook(look)
    trace = record_pass(net, torch.ones(5, 3))
    scene = scene_of(trace)
    (row,) = [row for box in scene.boxes.values() for row in box.parameters if row.pins]
    assert (row.name, len(row.pins)) == ("weight", 2)
    for firing, pin in zip(trace.firings, row.pins, strict=True):
        assert scene.marks[firing.index].elements == [row.id, pin.id]
    assert row.longest_text.startswith("gradient norm")
    with hv.record(net) as trace:
        torch.autograd.grad(net(torch.ones(5, 3)).sum(), [net[2].weight])
    pins = [pin for box in scene_of(trace).boxes.values() for row in box.parameters for pin in row.pins]
    assert [pin.longest_text for pin in pins] == ["did not fire"] * 2


# -- parameters


def test_a_shared_parameter_and_a_leaf_of_the_user_keep_their_boxes() -> None:
    linear = nn.Linear(3, 3)
    trace = record_pass(nn.Sequential(linear, linear), torch.ones(1, 3, requires_grad=True))
    leaves = [box for box in scene_of(trace).boxes.values() if box.leaf]
    assert sorted(name for box in leaves for name, _ in box.names) == ["inputs[0]", "net.0.bias", "net.0.weight"]
