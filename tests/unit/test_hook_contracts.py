"""Exceptions that PyTorch raises about hooks are explained by what it gives each kind of hook and takes back."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.analysis.findings import Finding

Register = Callable[[Any], object]


def find_exception(register: Register, batch: int = 1) -> Finding:
    """Run a small net that ends with an exception, and return the finding about it."""
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    register(net)
    with pytest.raises(Exception), hv.record() as trace:  # noqa: B017, PT011 - each has its own
        net(torch.ones(batch, 3)).sum().backward()
    finding = trace.findings[0]
    assert finding.kind == "exception"
    return finding


def bare_tensor(_module: Any, grad_input: Any, _grad_output: Any) -> Any:
    return grad_input[0] * 2


def bare_output(_module: Any, grad_output: Any) -> Any:
    return grad_output[0] * 2


def two_arguments(_module: Any, _inputs: Any) -> None:
    """What a forward pre-hook takes."""


REFUSED: dict[str, tuple[Register, str]] = {
    "a tensor for a tuple": (lambda net: net[1].register_full_backward_hook(bare_tensor), "a tensor in its place"),
    "a tensor for grad_output": (lambda net: net[1].register_full_backward_pre_hook(bare_output), "grad_output"),
    "another size": (lambda net: net[0].weight.register_hook(lambda grad: grad[0]), "What a tensor hook returns"),
    "another type": (lambda net: net[0].weight.register_hook(lambda grad: grad.double()), "takes the place"),
    "a tuple for a tensor": (lambda net: net[0].weight.register_hook(lambda grad: (grad,)), "takes the place"),
    "from a post-accumulate hook": (
        lambda net: net[0].weight.register_post_accumulate_grad_hook(lambda param: param.grad * 2),
        "post-accumulate hook runs after",
    ),
    "no input requires grad": (
        lambda net: net[0].register_full_backward_hook(lambda _module, _grad_input, grad_output: grad_output),
        "No input of net.0 requires grad",
    ),
    "args alone": (
        lambda net: net[0].register_forward_pre_hook(lambda _module, args, _kwargs: args, with_kwargs=True),
        "with_kwargs=True returns all inputs",
    ),
    "too few parameters": (
        lambda net: net[0].register_forward_hook(two_arguments),
        r"a forward hook with \(module, args, output\)",
    ),
}


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_hook_is_told_what_pytorch_takes(name: str) -> None:
    register, cause = REFUSED[name]
    finding = find_exception(register)
    assert re.search(cause, finding.cause)
    assert finding.advice and "Fix the exception first" not in finding.advice
    assert finding.line_role in ("hook", "returns")


def test_the_rows_of_a_bare_tensor_are_too_many() -> None:
    finding = find_exception(lambda net: net[1].register_full_backward_hook(bare_tensor), batch=2)
    assert "got 2, but expected 1" in finding.sentence
    assert finding.cause == "bare_tensor returned 2 items, and PyTorch expects 1 gradient: a tensor counts as its rows."


def test_an_exception_of_the_hooks_own_code_is_not_pytorchs() -> None:
    def own(grad: torch.Tensor) -> None:
        raise RuntimeError("has changed the size of value")

    finding = find_exception(lambda net: net[0].weight.register_hook(own))
    assert not finding.cause
    assert finding.line_role == "raises"


def test_a_hook_that_replaced_what_the_next_layer_cannot_take_is_named() -> None:
    finding = find_exception(lambda net: net[0].register_forward_hook(lambda _module, _inputs, output: [output]))
    assert "replaced the output of net.0" in finding.cause
    assert [hook.on for hook in finding.hooks] == ["net.0"]


class Log:
    """A hook whose writer was never made."""

    writer: Any = None

    def __call__(self, _module: Any, _grad_input: Any, grad_output: Any) -> None:
        self.writer.add(grad_output[0].norm())


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_a_hook_that_fails_for_another_none_is_not_told_of_its_inputs() -> None:
    assert "grad_input" not in find_exception(lambda net: net[0].register_full_backward_hook(Log())).cause


def test_a_function_that_a_hook_calls_with_too_few_arguments_is_not_the_hook() -> None:
    listeners: list[Callable[..., None]] = [lambda name, value: None]

    def notify(_module: Any, _inputs: Any, _output: Any) -> None:
        for listener in listeners:
            call(listener)

    def call(listener: Callable[..., None]) -> None:
        listener(1)

    assert not find_exception(lambda net: net[0].register_forward_hook(notify)).cause


def test_a_key_that_is_missing_does_not_come_of_what_a_hook_returned() -> None:
    class Staged(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.body(x) * {"low": 0.5}["high"]

    net = Staged()
    net.body.register_forward_hook(lambda _module, _inputs, output: output.double())
    with pytest.raises(KeyError), hv.record(net) as trace:
        net(torch.ones(1, 2))
    assert not trace.findings[0].cause


def test_the_module_whose_wrapped_output_is_edited_is_the_last_one_that_returned() -> None:
    class Edits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last, self.first = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.last(self.first(x))
            x += 1
            return x

    net = Edits()
    for layer in net.children():
        layer.register_full_backward_hook(lambda _module, _grad_input, _grad_output: None)
    with pytest.raises(RuntimeError), hv.record(net) as trace:
        net(torch.ones(1, 2))
    assert "torch wraps what net.last returns" in trace.findings[0].cause


def test_a_hook_that_returns_the_same_form_is_not_blamed() -> None:
    net = nn.Linear(2, 1)
    net.register_forward_hook(lambda _module, _inputs, output: output * 2)
    with pytest.raises(ValueError, match="invalid literal"), hv.record() as trace:
        int(str(net(torch.ones(1, 2)).shape))
    assert not trace.findings[0].cause


def test_a_hook_that_pools_the_rows_returns_another_shape_and_loses_no_row() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    net[0].register_forward_hook(lambda _module, _inputs, output: output.mean(0))
    with hv.record(net) as trace:
        net(torch.ones(4, 2)).sum().backward()
    assert [row.kind for row in trace.findings] == ["reshaped"]


@pytest.mark.parametrize("loses", [True, False])
def test_a_row_in_place_of_the_output_is_a_finding_and_its_twin_is_none(loses: bool) -> None:
    def scale(_module: Any, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
        return (output[0] if loses else output) * 2

    def program() -> None:
        net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
        net[0].register_forward_hook(scale)
        net(torch.ones(4, 2)).sum().backward()

    with hv.record() as trace:
        program()
    found = [(row.kind, row.severity, row.line_role) for row in trace.findings]
    assert found == ([("lost_rows", "warning", "returns")] if loses else [])
