"""``record(model.layers[3])`` records a part of a model as a full recording does, and says what was left out."""

from pathlib import Path
from typing import Any

import torch
from scenes import Net, describe_steps, leaf, steps_of, stored_gradients
from torch import nn

import hookviz as hv
from hookviz.storage.integrity import find_fault


class ResidualNet(nn.Module):
    """Layers in a list, each with a skip connection."""

    def __init__(self, layers: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Net() for _ in range(layers))

    def forward(self, x: torch.Tensor) -> Any:
        for layer in self.layers:
            x = x + layer(x)
        return x


def record_layer(number: int, **options: Any) -> hv.Trace:
    """Record one layer of a residual net."""
    net = ResidualNet()
    with hv.record(net.layers[number], **options) as trace:
        net(leaf(1.0)).backward()
    assert find_fault(trace._data) == ""
    return trace


def test_a_part_has_the_same_steps_as_in_a_full_recording() -> None:
    with hv.record(net := ResidualNet()) as full_trace:
        net(leaf(1.0)).backward()
    trace = record_layer(2)
    expected = [line for line in describe_steps(full_trace, "call", "forward") if line[1].startswith("net.layers.2")]
    assert describe_steps(trace, "call", "forward") == expected and len(expected) == 6
    grads = {on: grad for on, grad in stored_gradients(full_trace).items() if on.startswith("net.layers.2.")}
    computed = steps_of(trace, "compute")
    assert [step.on.partition(" ")[0] for step in computed] == ["MulBackward0", "ReluBackward0", "MulBackward0"]
    assert {trace._data.ops[node] for node in trace._data.outside} == {"AddBackward0"}
    assert any("to AddBackward0 (not recorded)" in step.sentence for step in computed)
    assert stored_gradients(trace) == grads and set(grads) == {"net.layers.2.l1.weight", "net.layers.2.l2.weight"}


def test_only_hooks_of_a_part_are_recorded() -> None:
    net = ResidualNet()
    ran: list[str] = []
    for number in (1, 2):
        layer = net.get_submodule(f"layers.{number}.l1")
        layer.register_forward_hook(lambda *_, number=number: ran.append(f"forward {number}"))
        layer.register_full_backward_hook(lambda *_, number=number: ran.append(f"backward {number}"))
        layer.weight.register_hook(lambda grad, number=number: ran.append(f"weight {number}"))
    with hv.record(net.layers[2]) as trace:
        net(leaf(1.0)).backward()
    assert sorted(ran) == [f"{kind} {number}" for kind in ("backward", "forward", "weight") for number in (1, 2)]
    assert [step.kind for step in trace.firings] == ["forward_hook", "tensor_hook", "full_backward_hook"]
    assert {step.hook.on for step in trace.firings} == {"net.layers.2.l1", "net.layers.2.l1.weight"}


def test_a_wrapper_with_no_parameters_of_its_own_is_not_a_larger_model() -> None:
    """As DDP, what torch.compile makes, and a Lightning module around a model."""
    net = Net()
    wrapper = nn.Sequential(net, nn.ReLU())
    with hv.record(net) as trace:
        wrapper(leaf(1.0)).backward()
    assert trace.notes == [] and trace._data.outside == set()
    assert "ReluBackward0" in {
        trace._data.ops[step.node] for step in steps_of(trace, "compute") if step.node is not None
    }


def test_note_and_player_state_what_was_left_out(tmp_path: Path) -> None:
    trace = record_layer(2)
    assert trace.notes == [
        "What was given to record() is a part of a model, ResidualNet. This trace holds its calls and, of each "
        "backward pass, the nodes that they made. Everything else ran unobserved, hooks "
        "included: gradients come in from nodes that are not shown, and go out to nodes marked as not recorded."
    ]
    player = trace.player()
    assert player.content["notes"] == trace.notes and "(not recorded)" in player.content["svgs"][0]
    trace.save(tmp_path / "trace.json")
    assert hv.load(tmp_path / "trace.json") == trace and trace._data.outside
