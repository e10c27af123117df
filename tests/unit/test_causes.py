"""The cause of NaN or Inf in a module's output is reported only if the recorded numbers show it."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv
from tests.requirements import needs_saved_tensors
from tests.unit.test_findings import only_finding, record_backward

INF = math.inf


def chain_layers(*layers: nn.Module) -> nn.Sequential:
    """A network with weights that are the same each time."""
    torch.manual_seed(0)
    model = nn.Sequential(*layers)
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
    return model


class Does(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def record_function(function: Callable[[torch.Tensor], torch.Tensor], numbers: Any) -> hv.Trace:
    x = torch.as_tensor(numbers).requires_grad_()
    net = Does(function)
    with hv.record(net) as trace:
        net(x).sum().backward()
    return trace


def entropy(x: torch.Tensor) -> torch.Tensor:
    p = x.softmax(-1)
    return -(p * p.log()).sum(-1)


def to_float16(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.float16)


LOG_OF_ZERO = "The Inf arises where it takes the logarithm of 0, which is -Inf."
CAUSES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Any, str]] = {
    "entropy": (entropy, [[-1.0, 200.0]], f"NaN: it multiplies 0 by -Inf. {LOG_OF_ZERO}"),
    "root": (torch.sqrt, [-4.0, 5.0], "NaN: it takes the square root of negative numbers, the smallest -4."),
    "1 ÷ 0": (lambda x: 1 / x, [0.0, 5.0], "Inf: it divides by 0."),
    "Inf - Inf": (
        lambda x: x.exp() - x.exp(),
        [1000.0],
        "NaN: it subtracts Inf from Inf. The Inf arises where it takes the exponential of numbers above 88.7, "
        "which is too large for float32.",
    ),
    "softmax": (lambda x: x.softmax(-1), [[-INF, -INF]], "NaN: it takes the softmax of numbers that are all -Inf."),
    "softmax of Inf": (
        lambda x: x.exp().softmax(-1),
        [[1000.0, 1.0]],
        "NaN: it takes the softmax of numbers with Inf among them. The Inf arises where it takes the exponential "
        "of numbers above 88.7, which is too large for float32.",
    ),
    "a mask that leaves NaN": (
        lambda x: torch.where(x < 9, x.log(), 0.0).abs(),
        [-1.0, 5.0],
        "NaN. NaN begins in the forward, at LogBackward0 of net (Does): it takes the logarithm of numbers below 0, the "
        "smallest -1.",
    ),
    "power": (lambda x: x**0.5, [-4.0, 4.0], "NaN: it raises a negative number, -4, to the power 0.5."),
    "half": (to_float16, [70000.0], "Inf: it turns 70000 into float16, whose largest number is 65,504."),
    "unseen": (
        lambda x: (x - 5).sqrt(),
        [1.0, 9.0],
        "NaN: its input held none (minimum 1, maximum 9); the cause was not seen. The first op known to have "
        "produced it is SqrtBackward0 of net (Does).",
    ),
}


@needs_saved_tensors
@pytest.mark.parametrize("name", CAUSES)
def test_the_cause_of_nan_or_inf_follows_from_the_numbers(name: str) -> None:
    function, numbers, sentence = CAUSES[name]
    assert record_function(function, numbers).findings.values[0].sentence == f"net (Does) returns {sentence}"


def test_a_layer_whose_sums_overflow_float16_is_reported() -> None:
    net = nn.Linear(40, 2).half()
    nn.init.ones_(net.weight)
    with hv.record(net) as trace:
        net(torch.full((1, 40), 30000.0).half()).sum().backward()
    assert only_finding(trace).sentence == (
        "net (Linear) returns Inf: its sums of products go beyond 65,504, the largest number of float16, though its "
        "input and its parameters are finite."
    )


class MultiheadAttention(nn.Module):
    """In whose mask True means: keep."""

    def forward(self, x: torch.Tensor, attn_mask: torch.Tensor) -> torch.Tensor:
        weights = (x @ x.t()).masked_fill(~attn_mask, -1e9).softmax(-1) @ x
        return weights / weights.sum()


@needs_saved_tensors
def test_an_attention_of_the_program_is_not_taken_for_that_of_torch() -> None:
    net, x = MultiheadAttention(), torch.zeros(3, 4, requires_grad=True)
    with hv.record(net) as trace:
        net(x, attn_mask=torch.ones(3, 3, dtype=torch.bool)).sum().backward()
    assert only_finding(trace).sentence == "net (MultiheadAttention) returns NaN: it divides 0 by 0."


def test_an_optimizer_is_not_blamed_for_changes_in_unrecorded_passes() -> None:
    net, x = chain_layers(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.rand(8, 4)
    sgd = torch.optim.SGD(net.parameters(), 0.01)
    with hv.record(net, every=10) as trace:
        for number in range(11):
            if number == 5:
                net[0].weight.data[0, 0] = math.nan
            sgd.zero_grad()
            net(x).square().mean().backward()
            sgd.step()
    assert trace.findings.values[0].sentence == (
        "net.0 (call 2) (Linear) returns NaN: its parameter net.0.weight held NaN before backward began, but not "
        "when the previous recorded pass began. In between, passes ran that were not recorded: record(every=10) "
        "records one of 10."
    )


# -- severity


def test_nan_in_the_loss_is_an_error_and_what_the_loss_leaves_out_is_a_remark() -> None:
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    net = Does(torch.log)
    with hv.record(net) as trace:
        net(x)[1].backward()
    assert only_finding(trace).severity == "remark"
    with hv.record(net) as trace:
        net(x).mean().backward()
    assert only_finding(trace).severity == "error"


def test_inf_before_a_softmax_is_a_remark() -> None:
    net = Does(lambda x: x.masked_fill(x < 0, -INF))
    x = torch.tensor([[-1.0, 1.0, 2.0]], requires_grad=True)
    with hv.record(net) as trace:
        net(x).softmax(-1)[0, 1].backward()
    finding = trace.findings.values[0]
    assert any(step.after.inf for step in trace.steps if step.kind == "forward")
    assert (finding.kind, finding.severity) == ("inf", "remark")


def test_gradients_that_overflow_when_added_are_reported() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    with hv.record() as trace:
        (x * 3e38).backward()
        (x * 3e38).backward()
    finding = only_finding(trace)
    assert (finding.severity, trace.steps[finding.step].kind) == ("error", "accumulate")
    x.grad = torch.tensor(math.nan)
    with hv.record() as trace:
        (x * 3).backward()
    assert only_finding(trace).sentence == ("x.grad held NaN before this pass, which adds a finite gradient to it.")


def test_inf_that_a_hook_removes_is_a_remark() -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    y = x * 1
    y.register_hook(lambda grad: grad.nan_to_num(posinf=0.0))
    finding = only_finding(record_backward(y.sqrt().sum()))
    assert (finding.kind, finding.severity) == ("inf", "remark")
