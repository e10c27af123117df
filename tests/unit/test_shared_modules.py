"""A module that is called several times in a frame is drawn once, around its calls and the parameters they share."""

from typing import Any

import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.picture.scene import Scene
from hookviz.picture.shared_modules import SharedModule, SharedModules
from tests.picture_faults import PicturePlan


class Siamese(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 3))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.encoder(x) - self.encoder(y)


class Again(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(torch.tanh(self.fc(x)))


def times_two(_module: Any, grad_input: Any, _grad_output: Any) -> Any:
    return tuple(grad * 2 for grad in grad_input)


def record(net: nn.Module, *inputs: Tensor) -> hv.Trace:
    with hv.record(net) as trace:
        net(*inputs).sum().backward()
    return trace


def record_siamese() -> hv.Trace:
    net = Siamese()
    net.encoder.register_full_backward_hook(times_two)
    return record(net, torch.ones(2, 2, requires_grad=True), torch.zeros(2, 2, requires_grad=True))


def shared_of(trace: hv.Trace) -> list[SharedModule]:
    found = SharedModules(Scene.from_trace(trace._data)).by_frame
    return [module for modules in found.values() for module in modules]


def test_a_module_with_two_inputs_of_its_own_is_one_frame_with_its_calls_and_parameters() -> None:
    trace = record_siamese()
    (encoder,) = shared_of(trace)
    assert (encoder.name, encoder.kind, len(encoder.calls), len(encoder.leaves)) == ("net.encoder", "Sequential", 2, 4)
    plan = PicturePlan(trace.figure().svg())
    frame = plan.frames[encoder.id]
    assert all(frame.contains(plan.areas[element]) for element in (*encoder.calls, *encoder.leaves))
    for call in encoder.calls:
        assert not any(plan.areas[call].overlaps(plan.areas[leaf]) for leaf in encoder.leaves)
    head = " ".join(words.text for words in plan.words if words.holder == f"{encoder.id}-h")
    assert head.split() == ["net.encoder", "Sequential", "·", "2", "calls"]


def test_a_module_whose_output_comes_back_through_other_boxes_is_drawn_at_each_call() -> None:
    trace = record(Again(), torch.ones(2, 2))
    assert shared_of(trace) == []
    names = [box.name for box in Scene.from_trace(trace._data).calls.values()]
    assert names == ["net", "net.fc (call 1)", "net.fc (call 2)"]


def test_a_module_without_parameters_and_hooks_has_no_frame_around_its_calls() -> None:
    act = nn.ReLU()
    net = nn.ModuleDict({"a": nn.Linear(2, 2), "b": nn.Linear(2, 2), "act": act})
    with hv.record(net) as trace:
        x = torch.ones(1, 2)
        (act(net["a"](x)) + act(net["b"](x))).sum().backward()
    assert shared_of(trace) == []
