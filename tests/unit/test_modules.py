"""Module calls are recorded forward and backward, with their inputs, outputs and hooks in execution order."""

import gc
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from scenes import Doubled, Net, leaf, plain, silent
from torch import nn

import hookviz as hv
from hookviz.recorder.modules import module_hooks


def test_a_modules_backward_hooks_run_in_torchs_order() -> None:
    """The input requires grad: output's tensor hook, full pre-hook, weight's hooks, full hook, input's hook."""
    net, x = Doubled(), leaf(3.0)
    net.register_full_backward_pre_hook(lambda module, grad_output: None)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    net.weight.register_hook(lambda grad: None)
    net.weight.register_post_accumulate_grad_hook(lambda parameter: None)
    x.register_hook(lambda grad: None)
    with hv.record(net) as trace:
        y = net(x)
        y.register_hook(lambda grad: None)
        y.backward()
    assert [(step.kind, step.on) for step in trace.firings] == [
        ("tensor_hook", "y"),
        ("full_backward_pre_hook", "net"),
        ("tensor_hook", "net.weight"),
        ("post_accumulate_hook", "net.weight"),
        ("full_backward_hook", "net"),
        ("tensor_hook", "x"),
    ]


def test_calls_are_nested_and_counted() -> None:
    net = Net()
    net.l2 = net.l1
    with hv.record() as trace:
        net(leaf(3.0))
        for layer in (nn.Identity(), nn.Identity()):
            layer(leaf(1.0))
    names = [step.on for step in trace.steps if step.kind == "call"]
    assert names == ["net", "net.l1", "net.l1 (call 2)", "layer", "layer 2"]
    assert [(call.number, call.parent) for call in trace._data.calls][:3] == [(1, None), (1, 0), (2, 0)]


@dataclass
class Pair:
    """A dataclass as a container."""

    first: Any
    second: Any


def test_arguments_that_are_not_tensors_are_shown_with_their_labels() -> None:
    class Mixed(nn.Module):
        def forward(self, x: Any, scale: float, *rest: Any, mask: Any = None, **more: Any) -> Any:
            return {"x": x, "pair": Pair((x, 1), None), "n": [], "o": object()}

    net = Mixed()
    with hv.record(net) as trace:
        net(leaf(1.0, 2.0), 0.5, "rest", mask=None, key={"k": (True,)})
    call_step, forward_step = trace.steps
    assert call_step.row.labels[1] == ("x", "scale", "args[2]", "mask", "key['k'][0]")
    assert call_step.sentence == "net is called with x=[1, 2], scale=0.5, args[2]='rest', mask=None, key['k'][0]=True."
    assert forward_step.row.labels[1] == (
        "output['x']", "output['pair'].first[0]", "output['pair'].first[1]", "output['pair'].second", "output['n']",
        "output['o']",
    )  # fmt: skip
    assert forward_step.sentence.endswith("output['n']=[], output['o']=<object>.")


def test_code_of_the_users_is_not_run_to_show_an_argument_and_a_large_structure_is_truncated() -> None:
    class RaisesInRepr:
        def __repr__(self) -> str:
            raise AssertionError("called")

    net = nn.Identity()
    with hv.record(net) as trace:
        net(RaisesInRepr())
        net(list(range(100)))
    assert trace.steps[0].sentence == "net is called with <RaisesInRepr>."
    assert trace.steps[2].row.labels[1][-1] == "input[…]"
    assert trace.steps[2].sentence.endswith("36 more, not recorded one by one.")


def test_an_in_place_edit_of_the_output_is_distinguished_from_a_new_output() -> None:
    def edit(module: nn.Module, args: Any, output: torch.Tensor) -> None:
        output.add_(1)

    net = Doubled()
    net.register_forward_hook(edit)
    net.register_forward_hook(lambda module, args, output: output)
    with hv.record(net) as trace:
        net(leaf(3.0))
    assert [(s.effect, plain(s.before), plain(s.after)) for s in trace.firings] == [("edited", 6, 7), ("kept", 7, 7)]


def test_a_write_that_bypasses_torch_is_an_edit() -> None:
    net = nn.Identity()
    net.register_forward_pre_hook(lambda module, args: args[0].detach().numpy().fill(3))
    net.register_forward_pre_hook(silent("look"))
    with hv.record(net) as trace:
        net(torch.ones(100))
    assert [s.effect for s in trace.firings] == ["edited", "kept"]
    assert [s.after.mean for s in trace.steps] == [1, 3, 3, 3]


def test_an_exception_in_forward_ends_the_trace_with_a_step_on_its_module() -> None:
    class Breaks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise KeyError("gone")

    net = nn.Sequential(Doubled(), Breaks())
    with hv.record(net) as trace, pytest.raises(KeyError):
        net(leaf(1.0))
    last = trace.steps[-1]
    assert (last.kind, last.on, last.row.error) == ("exception", "net.1", "KeyError: 'gone'")
    assert [step.kind for step in trace.steps].count("exception") == 1


def test_a_trace_keeps_no_reference_to_modules_and_activations() -> None:
    net, x = Net(), leaf(3.0)
    with hv.record() as trace:
        y = net(x)
        y.backward()
    references = [weakref.ref(target) for target in (net, x, y, net.l1.weight)]
    del net, x, y
    gc.collect()
    assert [reference() for reference in references] == [None] * 4
    assert trace._data.modules


def test_an_edit_of_grad_output_is_reported() -> None:
    def wipe(module: nn.Module, grad_input: Any, grad_output: Any) -> None:
        grad_output[0].zero_()

    layer = nn.Linear(1, 1, bias=False)
    layer.register_full_backward_hook(wipe)
    with warnings.catch_warnings(action="ignore"), hv.record(layer) as trace:
        layer(torch.tensor([[2.0]])).backward()
    (step,) = trace.firings
    assert (step.effect, plain(step.before), plain(step.after)) == ("edited", [[1]], [[0]])
    assert "edited grad_output in place: ([[1]],) → ([[0]],)" in step.sentence
    assert (trace.steps[step.index + 1].kind, plain(trace.steps[step.index + 1].after)) == ("arrive", [[0]])


def test_other_variables_do_not_rename_a_parameter() -> None:
    first = nn.Linear(1, 1)
    net = nn.Sequential(first, nn.Linear(1, 1))
    with hv.record() as trace:
        net(torch.ones(1, 1)).backward()
    names = {"net.0.weight", "net.0.bias", "net.1.weight", "net.1.bias"}
    assert {step.on for step in trace.steps if step.kind == "accumulate"} == names
    assert "net.0" in [module.name for module in trace._data.modules]


def test_the_parameters_of_a_new_model_belong_to_its_own_call() -> None:
    """A model of a function is gone when the next one is made, whose parameters may get the addresses of its own."""

    def train() -> None:
        net = nn.Linear(2, 2)
        net(torch.ones(1, 2)).sum().backward()

    with hv.record() as trace:
        for _ in range(6):
            train()
    data = trace._data
    owners = [
        {data.owners[row.node] for row in data.tensors if row.pass_id == number and row.name} for number in range(6)
    ]
    assert owners == [{number} for number in range(6)]


@pytest.mark.parametrize("wrap", [nn.DataParallel, lambda net: torch.compile(net, backend="eager")])
def test_a_wrapper_of_torch_adds_nothing_to_the_names_of_the_model(wrap: Callable[[nn.Module], Any]) -> None:
    model = wrap(nn.Sequential(nn.Linear(2, 1)))
    model(torch.ones(1, 2))
    net = nn.Sequential(nn.Linear(2, 1))
    wrapped = wrap(net)
    with hv.record(model, wrapped) as trace:
        (model(torch.ones(1, 2)) + wrapped(torch.ones(1, 2))).sum().backward()
    leaves = {step.on for step in trace.steps if step.kind == "accumulate"}
    assert leaves == {"model.0.weight", "model.0.bias", "net.0.weight", "net.0.bias"}


def test_a_call_that_cannot_be_observed_leaves_no_step_and_no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    original = module_hooks.ModuleHooksObserver.install

    def failing(observer: Any) -> None:
        original(observer)
        if observer.dict is net[0]._forward_hooks:
            raise OSError("out of order")

    net, later = nn.Sequential(Doubled()), Doubled()
    net[0].register_forward_hook(silent("lost"))
    for module in (net, later):
        module.register_forward_hook(silent("kept"))
    monkeypatch.setattr(module_hooks.ModuleHooksObserver, "install", failing)
    with hv.record() as trace:
        with pytest.warns(hv.HookvizWarning, match="out of order"):
            net(leaf(3.0))
        assert len(net[0]._forward_hooks) == 1
        later(leaf(1.0))
    assert [(s.hook.name, s.on) for s in trace.firings if s.hook] == [("kept", "net"), ("kept", "later")]
    assert [note.partition(" (")[0] for note in trace.notes] == ["A call of net.0 could not be observed"]
