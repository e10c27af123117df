"""What a hook returns, or forgets to return, is a finding; the healthy twin has none."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv

SEEN: list[Any] = []


def read_line(finding: hv.Finding) -> str:
    """Return the code of the line of a finding in this file."""
    with open(__file__, encoding="utf-8") as file:
        return file.read().splitlines()[(finding.line or 0) - 1].strip()


def add_noise(_module: nn.Module, args: tuple[Tensor, ...]) -> None:
    x = args[0]
    if x.dim() == 2:
        x = x + torch.ones(())


def scale_output(_module: nn.Module, _args: Any, output: Tensor) -> None:
    output = torch.mul(output, 2)


def scale_gradient(grad: Tensor) -> None:
    grad * 0.1


def flip(_module: nn.Module, _args: Any, output: Tensor) -> None:
    flipped = tuple(-row if row.dim() else row for row in output)  # noqa: F841


def drop_in_place(_module: nn.Module, _args: Any, output: Tensor) -> None:
    output = nn.functional.dropout(output, 0.0, inplace=True)


def clamp_in_place(grad: Tensor) -> None:
    grad.clamp_(-0.1, 0.1)


# fmt: off
def keep_on_one_line(_module: nn.Module, _args: Any, output: Tensor) -> None: output = output * 2; SEEN.append(output)  # noqa: E702

# fmt: on


def return_doubled(grad: Tensor) -> Tensor:
    grad = grad * 2
    return grad if grad.dim() else grad[None]


def record_hook(hook: Callable[..., Any]) -> hv.Trace:
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))
    with hv.record(net) as trace:
        if "args" in hook.__code__.co_varnames[:2]:
            net[2].register_forward_pre_hook(hook)
        elif hook.__code__.co_argcount >= 3:
            net[0].register_forward_hook(hook)
        else:
            net[0].weight.register_hook(hook)
        for _ in range(2):
            net(torch.ones(2, 3)).square().sum().backward()
    return trace


def list_kinds(trace: hv.Trace) -> list[str]:
    return [finding.kind for finding in trace.findings]


@pytest.mark.parametrize(
    ("hook", "code"),
    [
        (add_noise, "x = x + torch.ones(())"),
        (scale_output, "output = torch.mul(output, 2)"),
        (scale_gradient, "grad * 0.1"),
        (flip, "flipped = tuple(-row if row.dim() else row for row in output)  # noqa: F841"),
    ],
)
def test_a_new_value_that_a_hook_does_not_return_is_a_warning_with_its_line(hook: Any, code: str) -> None:
    (finding,) = record_hook(hook).findings
    assert (finding.kind, finding.severity) == ("unreturned", "warning")
    assert code in read_line(finding)
    assert finding.advice == f"Return the new value from {hook.__name__}."


@pytest.mark.parametrize(
    "hook",
    [
        *(drop_in_place, clamp_in_place, return_doubled, keep_on_one_line),
    ],
)
def test_hooks_that_use_or_return_what_they_compute_are_healthy(hook: Any) -> None:
    assert list_kinds(record_hook(hook)) == []


def average(_module: nn.Module, _args: Any, output: Tensor) -> Tensor:
    return output.mean(0, keepdim=True)


def double(_module: nn.Module, _args: Any, output: Tensor) -> Tensor:
    return output * 2


def test_an_output_of_another_shape_is_a_remark_with_the_line_that_returns_it() -> None:
    (finding,) = record_hook(average).findings
    assert (finding.kind, finding.severity, read_line(finding)) == (
        "reshaped",
        "remark",
        "return output.mean(0, keepdim=True)",
    )
    assert "a tensor of shape (1, 3) in the place of the output of shape (2, 3)" in finding.sentence
    assert list_kinds(record_hook(double)) == []


def scale_two_gradients(factor: float) -> hv.Trace:
    def scale(grad: Tensor) -> Tensor:
        return grad * factor

    net = nn.Linear(3, 3)
    with hv.record(net) as trace:
        for _ in range(2):
            features = net(torch.ones(2, 3))
            left, right = torch.tanh(features), torch.sigmoid(features)
            left.register_hook(scale)
            right.register_hook(scale)
            (left + right + features).sum().backward()
    return trace


def test_a_hook_that_always_puts_zeros_in_the_place_of_a_gradient_is_a_remark() -> None:
    (finding,) = scale_two_gradients(0.0).findings
    assert (finding.kind, finding.severity, finding.passes) == ("zero", "remark", (0, 1))
    assert finding.sentence == (
        "scale on right, left put zeros in the place of the gradient, each of the 4 times that it fired."
    )
    assert list_kinds(scale_two_gradients(0.5)) == []
