"""Exceptions that PyTorch raises about hooks are explained by what it gives each kind of hook and takes back."""

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


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize(
    ("register", "cause"),
    [
        (lambda net: net[1].register_full_backward_hook(bare_tensor), "a tensor in its place"),
        (lambda net: net[1].register_full_backward_pre_hook(bare_output), "grad_output"),
        (lambda net: net[0].weight.register_hook(lambda grad: (grad,)), "What a tensor hook returns"),
        (lambda net: net[0].weight.register_post_accumulate_grad_hook(lambda param: param.grad), "hook runs after"),
        (lambda net: net[0].register_full_backward_hook(lambda *given: given[2]), "No input of net.0 requires grad"),
        (
            lambda net: net[0].register_forward_pre_hook(lambda *given: given[1], with_kwargs=True),
            "with_kwargs=True returns all inputs",
        ),
        (lambda net: net[0].register_forward_hook(two_arguments), "a forward hook with (module, args, output)"),
    ],
)
def test_a_refused_hook_is_told_what_pytorch_takes(register: Register, cause: str) -> None:
    finding = find_exception(register)
    assert cause in finding.cause
    assert finding.advice and "Fix the exception first" not in finding.advice
    assert finding.line_role in ("hook", "returns")


def raise_as_pytorch(_grad: Any) -> None:
    raise RuntimeError("has changed the size of value")


def look_up(_module: Any, _grad_input: Any, _grad_output: Any) -> None:
    None.norm()  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize(
    "register",
    [
        lambda net: net[0].weight.register_hook(raise_as_pytorch),
        lambda net: net[0].register_full_backward_hook(look_up),
    ],
)
def test_an_exception_of_the_hooks_own_code_is_not_pytorchs(register: Register) -> None:
    finding = find_exception(register)
    assert not finding.cause
    assert finding.line_role == "raises"


def test_a_hook_that_replaced_what_the_next_layer_cannot_take_is_named() -> None:
    finding = find_exception(lambda net: net[0].register_forward_hook(lambda _module, _inputs, output: [output]))
    assert "replaced the output of net.0" in finding.cause
    assert [hook.on for hook in finding.hooks] == ["net.0"]


def test_a_hook_that_replaced_an_output_is_not_blamed_for_another_exception() -> None:
    net = nn.Linear(2, 1)
    net.register_forward_hook(lambda _module, _inputs, output: output.double())
    with pytest.raises(KeyError), hv.record() as trace:
        {"low": 0.5}[str(net(torch.ones(1, 2)).dtype)]
    assert not trace.findings[0].cause


def test_the_module_whose_wrapped_output_is_edited_is_the_last_one_that_returned() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    for layer in net:
        layer.register_full_backward_hook(lambda _module, _grad_input, _grad_output: None)
    with pytest.raises(RuntimeError), hv.record(net) as trace:
        net(torch.ones(1, 2)).add_(1)
    assert "torch wraps what net.1 returns" in trace.findings[0].cause


def take_the_first_row(_module: Any, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
    return output[0] * 2


def pool_the_rows(_module: Any, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
    return output.mean(0)


def scale(_module: Any, _inputs: Any, output: torch.Tensor) -> torch.Tensor:
    return output * 2


@pytest.mark.parametrize(
    ("hook", "found"),
    [
        (take_the_first_row, [("lost_rows", "warning", "returns")]),
        (pool_the_rows, [("reshaped", "remark", "returns")]),
        (scale, []),
    ],
)
def test_a_row_in_place_of_the_output_is_a_finding_and_its_twin_is_none(
    hook: Callable[..., torch.Tensor], found: list[tuple[str, str, str]]
) -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    net[0].register_forward_hook(hook)
    with hv.record() as trace:
        net(torch.ones(4, 2)).sum().backward()
    assert [(row.kind, row.severity, row.line_role) for row in trace.findings] == found
