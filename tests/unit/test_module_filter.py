"""``record(only=...)`` records the chosen modules as usual, and notes state what was left out."""

from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import Doubled, Net, describe_steps, leaf, plain, steps_of, stored_gradients
from shown import shown_notes
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


def record_only(*only: str, net: nn.Module | None = None, **options: Any) -> hv.Trace:
    net = ResidualNet() if net is None else net
    with hv.record(net, only=only, **options) as trace:
        net(leaf(1.0)).backward()
    assert find_fault(trace) == ""
    return trace


def test_chosen_modules_have_the_same_steps_as_in_a_full_recording() -> None:
    with hv.record(net := ResidualNet()) as full_trace:
        net(leaf(1.0)).backward()
    trace = record_only("layers.2.*")
    chosen = [line for line in describe_steps(full_trace, "call", "forward") if line[1].startswith("net.layers.2.")]
    assert describe_steps(trace, "call", "forward") == chosen and len(chosen) == 4
    grads = {on: grad for on, grad in stored_gradients(full_trace).items() if on.startswith("net.layers.2.")}
    assert stored_gradients(trace) == grads and set(grads) == {"net.layers.2.l1.weight", "net.layers.2.l2.weight"}


def test_only_the_nodes_of_chosen_modules_have_backward_steps() -> None:
    trace = record_only("layers.2.*")
    assert {step.on for step in steps_of(trace, "compute")} == {"MulBackward0 #3", "MulBackward0 #5"}
    first, *_ = [step for step in trace.steps if step.kind == "arrive"]
    assert first.parts == () and "arrives at MulBackward0 #5" in first.sentence
    assert {trace.ops[node] for node in trace.outside} == {"ReluBackward0", "AddBackward0"}
    assert any("to ReluBackward0 (not recorded)" in step.sentence for step in steps_of(trace, "compute"))


def test_a_chosen_module_owns_the_nodes_of_its_unrecorded_children() -> None:
    trace = record_only("layers.1")
    assert {step.on for step in steps_of(trace, "call")} == {"net.layers.1"}
    assert {trace.call(call) for call in trace.owners.values()} == {"net.layers.1"}
    assert [step.on.partition(" ")[0] for step in steps_of(trace, "compute")] == [
        "MulBackward0", "ReluBackward0", "MulBackward0",
    ]  # fmt: skip
    assert set(stored_gradients(trace)) == {"net.layers.1.l1.weight", "net.layers.1.l2.weight"}


def test_parameters_of_a_chosen_module_that_is_never_called_are_recorded() -> None:
    net = nn.MultiheadAttention(2, 1, batch_first=True)
    x = torch.ones(1, 2, 2)
    with hv.record(net, only="out_proj") as trace:
        net(x, x, x)[0].sum().backward()
    assert set(stored_gradients(trace)) == {"net.out_proj.weight", "net.out_proj.bias"}
    assert trace.notes[-1] == "None of the modules that record(only=...) chose (out_proj) was called inside record()."


def test_several_patterns_apply_to_several_models() -> None:
    first_net, second_net = Net(), Net()
    with hv.record(first_net, second_net, only=["l1", "l2"]) as trace:
        second_net(first_net(leaf(1.0))).backward()
    assert [step.on for step in steps_of(trace, "call")] == [
        "first_net.l1",
        "first_net.l2",
        "second_net.l1",
        "second_net.l2",
    ]
    with hv.record(first_net, second_net, only="l2") as trace:
        second_net(first_net(leaf(1.0))).backward()
    assert [step.on for step in steps_of(trace, "call")] == ["first_net.l2", "second_net.l2"]


def test_a_module_with_two_names_is_found_by_either() -> None:
    net = Net()
    net.l2 = net.l1
    trace = record_only("l2", net=net)
    assert [step.on for step in steps_of(trace, "call")] == ["net.l1", "net.l1 (call 2)"]


def test_only_hooks_of_chosen_modules_are_recorded() -> None:
    net = ResidualNet()
    ran: list[str] = []
    for name in ("1", "2"):
        layer = net.get_submodule(f"layers.{name}.l1")
        layer.register_forward_hook(lambda *_, name=name: ran.append(f"forward {name}"))
        layer.register_full_backward_hook(lambda *_, name=name: ran.append(f"backward {name}"))
        layer.weight.register_hook(lambda grad, name=name: ran.append(f"weight {name}"))
    trace = record_only("layers.2.l1", net=net)
    assert sorted(ran) == [f"{kind} {name}" for kind in ("backward", "forward", "weight") for name in "12"]
    assert [step.kind for step in trace.firings] == ["forward_hook", "tensor_hook", "full_backward_hook"]
    assert {step.hook.on for step in trace.firings} == {"net.layers.2.l1", "net.layers.2.l1.weight"}
    assert len(trace.hook_rows) == 3


def test_a_partly_observed_gradient_is_not_reported_as_a_sum_or_an_unknown_hook() -> None:
    """The input of layer 2 also skips it: only one of its two gradients is observed."""
    net = nn.Sequential(Doubled(), Doubled())

    def skip_second(x: torch.Tensor) -> torch.Tensor:
        middle = net[0](x)
        return net[1](middle) + middle

    with hv.record(net, only=("0", "1")) as trace:
        skip_second(leaf(3.0)).backward()
    arrivals = [step for step in steps_of(trace, "arrive") if step.node is not None and step.parts == ()]
    assert [plain(step.after) for step in arrivals] == [1, 3]
    assert not steps_of(trace, "unknown_hook")


def test_an_edit_of_a_shared_storage_is_found_inside_a_chosen_module() -> None:
    class AddsBoth(nn.Module):
        def forward(self, c: torch.Tensor, d: torch.Tensor) -> Any:
            c, d = c * 1, d * 1
            d.register_hook(lambda grad: grad.mul_(100) and None)
            return c + d

    net = nn.ModuleDict({"both": AddsBoth(), "rest": Doubled()})
    with hv.record(net, only="both") as trace:
        net["rest"](net["both"](leaf(1.0), leaf(2.0))).backward()
    assert len(steps_of(trace, "aliased")) == 1


def test_requested_gradients_of_unrecorded_tensors_are_reported_where_observed() -> None:
    net = Net()
    x = leaf(2.0)
    with hv.record(net, only="l1") as trace:
        torch.autograd.grad(net(x), [x, net.l2.weight])
    returned = steps_of(trace, "returned")
    assert [(step.on, plain(step.after)) for step in returned] == [("x (not recorded)", 4)]


def test_a_pass_without_chosen_modules_has_no_steps() -> None:
    net, second_net = Net(), Net()
    with hv.record(net, only="l1") as trace:
        second_net(leaf(1.0)).backward()
        net(leaf(1.0)).backward()
    assert len(trace.roots) == 2 and {step.pass_id for step in steps_of(trace, "compute")} == {1}
    assert trace.figure().pipe("svg") and trace.player().steps == len(trace.steps)


def test_notes_and_player_state_what_was_left_out(tmp_path: Path) -> None:
    trace = record_only("layers.2.*")
    assert trace.notes == [
        "This trace holds the modules that record(only=...) chose (layers.2.*: 2 of 14) and, of each backward pass, "
        "the nodes that they made. Everything else ran unobserved, hooks included: gradients come in from nodes that "
        "are not shown, and go out to nodes marked as not recorded.",
        "record(only=...) observed 4 of the 25 nodes of the last backward pass.",
    ]
    player = trace.player()
    assert shown_notes(player.content) == trace.notes and "(not recorded)" in player.content["svgs"][0]
    trace.save(tmp_path / "trace.json")
    assert hv.load(tmp_path / "trace.json") == trace and trace.outside


def test_an_old_file_without_the_outside_field_loads(tmp_path: Path) -> None:
    import json

    from hookviz.storage.files import encode_trace

    data = encode_trace(record_only("layers.2.*"))
    del data["outside"]
    (tmp_path / "old.json").write_text(json.dumps(data))
    assert hv.load(tmp_path / "old.json").outside == set()


def test_a_file_with_an_unknown_outside_node_is_refused(tmp_path: Path) -> None:
    import json

    from hookviz.storage.files import encode_trace

    data = encode_trace(record_only("layers.2.*")) | {"outside": [999]}
    (tmp_path / "broken.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match="names an unobserved node that is not in the graph"):
        hv.load(tmp_path / "broken.json")


def test_retained_passes_keep_their_outside_nodes() -> None:
    net = ResidualNet()
    with hv.record(net, only="layers.2.*", keep=1) as trace:
        for _ in range(5):
            net(leaf(1.0)).backward()
    assert find_fault(trace) == ""
    one_pass = record_only("layers.2.*")
    assert {trace.ops[node] for node in trace.outside} == {one_pass.ops[node] for node in one_pass.outside}
    assert [step.kind for step in trace.steps] == [step.kind for step in one_pass.steps]


def test_values_of_unrecorded_modules_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from hookviz.recorder import argument_probe, gradient_probe

    shapes_read: list[Any] = []
    measure_or_defer, append = argument_probe.measure_or_defer, gradient_probe.append_value

    def measure_and_log(tensor: Any, *options: Any) -> Any:
        shapes_read.append(tensor.shape)
        return measure_or_defer(tensor, *options)

    def append_and_log(rows: list[Any], tensor: Any, options: Any) -> int:
        shapes_read.append(tensor.shape)
        return append(rows, tensor, options)

    monkeypatch.setattr(argument_probe, "measure_or_defer", measure_and_log)
    monkeypatch.setattr(gradient_probe, "append_value", append_and_log)
    record_only("layers.2.*")
    chosen_reads = len(shapes_read)
    shapes_read.clear()
    record_only("*")
    assert 0 < chosen_reads < len(shapes_read) / 3


def test_filtered_recording_does_not_change_gradients() -> None:
    gradients = []
    for only in (None, "layers.2.*"):
        net = ResidualNet()
        if only is None:
            net(leaf(1.0)).backward()
        else:
            record_only(only, net=net)
        gradients.append([parameter.grad for parameter in net.parameters()])
    assert all(torch.equal(*pair) for pair in zip(*gradients, strict=True))


@pytest.mark.parametrize(
    ("only", "kind", "message"),
    [
        ("layer.2", ValueError, "No module is called layer.2: .* Similar names: layers.2, "),
        (("layers.0", "nowhere"), ValueError, "No module is called nowhere: .* Similar names: layers"),
        ((), ValueError, "is empty: give a module name"),
        (3, TypeError, "takes a module name .*; this is an int"),
        (("layers.0", None), TypeError, "this is a NoneType"),
    ],
)
def test_an_invalid_or_unmatched_choice_is_refused(only: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message), hv.record(ResidualNet(), only=only):
        pass


def test_a_model_without_submodules_has_no_similar_names() -> None:
    with pytest.raises(ValueError, match="Similar names: None"), hv.record(nn.ReLU(), only="x"):
        pass


def test_only_requires_a_model() -> None:
    with pytest.raises(ValueError, match="pass the model, too"), hv.record(only="layers.*"):
        pass
