"""Findings report what is wrong with the gradients of a trace, and nothing for healthy traces."""

import math
from collections.abc import Callable

import pytest
import torch
from scenes import chain, fan, leaf, recorded
from torch import nn

import hookviz as hv
from hookviz.analysis.findings import Finding
from hookviz.player.html_page import page
from tests.requirements import needs_saved_tensors


def record_training(net: nn.Module, x: torch.Tensor | None = None) -> hv.Trace:
    torch.manual_seed(1)
    x = torch.randn(8, 4) if x is None else x
    with hv.record(net) as trace:
        net(x).square().mean().backward()
    return trace


def record_backward(loss: torch.Tensor) -> hv.Trace:
    with hv.record() as trace:
        loss.backward()
    return trace


def only_finding(trace: hv.Trace) -> Finding:
    (finding,) = trace.findings.values
    return finding


def small_mlp() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))


# -- NaN and Inf


@pytest.mark.parametrize(
    ("size", "held"),
    [
        (4, "its parameter net.0.weight held NaN before backward began."),
        (40, "its own net.0.weight held NaN."),
    ],
)
def test_a_nan_weight_is_reported_for_any_size_also_if_it_is_frozen(size: int, held: str) -> None:
    net = nn.Sequential(nn.Linear(size, size), nn.Linear(size, 1))
    with torch.no_grad():
        net[0].weight[0, 0] = math.nan
    net[0].requires_grad_(size == 4)
    finding = only_finding(record_training(net, torch.ones(2, size)))
    assert finding.sentence == f"net.0 (Linear) returns NaN: {held}"


class Between(nn.Module):
    """Takes the logarithm between two modules."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.second((self.first(x) - 100).log())
        return out


def test_nan_between_modules_and_from_forward_hooks_is_reported() -> None:
    finding = only_finding(record_training(Between()))
    assert "net.second (Linear) is called with NaN, although no module recorded" in finding.sentence
    net = small_mlp()
    net[1].register_forward_hook(lambda module, args, output: output * math.nan)
    trace = record_training(net)
    assert trace.steps[only_finding(trace).step].kind == "forward_hook"
    assert only_finding(trace).sentence.startswith("NaN begins here: λ output * math.nan on net.1")


def logarithm_of_a_negative_number(x: torch.Tensor) -> None:
    scaled = (x - 2).log() * 2  # fault
    scaled.sum().backward()


def share_of_nothing(x: torch.Tensor) -> None:
    positive = (x - 2).relu()
    share = positive / positive.sum()  # fault
    (share * 2).sum().backward()


def exponential_of_a_large_number(x: torch.Tensor) -> None:
    e = (x * 100).exp()  # fault
    e.sum().log().backward()


def product_of_large_numbers(x: torch.Tensor) -> None:
    product = (x * 1e20) @ (x * 1e20).T  # fault
    product.sum().backward()


@needs_saved_tensors
@pytest.mark.parametrize(
    ("program", "kind", "said"),
    [
        (logarithm_of_a_negative_number, "nan", "it takes the logarithm of numbers below 0, the smallest -1."),
        (share_of_nothing, "nan", "divides 0 by 0"),
        (exponential_of_a_large_number, "inf", "exponential of numbers above 88.7"),
        (product_of_large_numbers, "inf", "adds up 2 products of numbers up to 1e+20 and 1e+20, which can go beyond"),
    ],
)
def test_nan_and_inf_have_their_cause_and_their_line(
    program: Callable[[torch.Tensor], None], kind: str, said: str
) -> None:
    with hv.record() as trace:
        program(torch.ones(1, 2, requires_grad=True))
    finding = trace.findings[0]
    assert finding.kind == kind and finding.is_bad
    assert said in finding.text
    with open(__file__, encoding="utf-8") as file:
        line = file.read().splitlines()[(finding.line or 0) - 1]
    assert line.endswith("# fault")


@needs_saved_tensors
def test_a_node_that_produces_inf_is_reported_with_its_saved_values() -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    finding = only_finding(record_backward(x.sqrt().sum()))
    assert finding.sentence == (
        "Inf begins at SqrtBackward0: it takes the gradient [1, 1] and sends [inf, 0.5] to leaf #0. "
        "It divides by the result of the forward: the square root has no finite slope at 0. "
        "In the forward pass, the node saved result: [0, 1]."
    )


@needs_saved_tensors
@pytest.mark.parametrize(("number", "is_end"), [(1.0, True), (-1.0, True), (0.99, False)])
def test_the_slope_of_arccos_is_said_to_be_infinite_at_its_ends_alone(number: float, is_end: bool) -> None:
    x = torch.tensor([0.5, number], requires_grad=True)
    sentences = [finding.text for finding in record_backward(x.acos().sum()).findings]
    assert ["The arccos has no finite slope at 1 and -1" in sentence for sentence in sentences] == [True] * is_end


def test_a_cause_in_an_earlier_pass_is_listed_first() -> None:
    net, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.rand(8, 4)
    sgd = torch.optim.SGD(net.parameters(), 0.1)
    with hv.record(net) as trace:
        for factor in (1, 0, 1):
            sgd.zero_grad()
            (net(x).abs() * factor).sqrt().mean().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            sgd.step()
    cause, effect = trace.findings.values
    assert (cause.kind, effect.kind) == ("inf", "nan") and "Inf begins at SqrtBackward0" in cause.sentence
    step = max(step.index for step in trace.steps[: effect.step] if step.kind == "optimizer_step")
    assert effect.sentence.endswith(
        "its parameter net.0.weight held NaN before backward began, but not when the previous "
        "recorded pass began. In between, "
        f"sgd took its step ({step + 1}). The gradient of net.0.weight held NaN or Inf then."
    )
    assert cause.severity == effect.severity == "error"


def test_mask_that_leaves_a_query_no_key_is_the_cause_of_nan() -> None:
    attention, x = nn.MultiheadAttention(4, 2, batch_first=True), torch.randn(2, 3, 4)
    mask = torch.tensor([[False, False, True], [True, True, True]])
    with hv.record(attention) as trace:
        attention(x, x, x, key_padding_mask=mask)[0].sum().backward()
    assert "its key_padding_mask hides every key in row 1, counted from 0" in trace.findings[0].sentence


# -- gradients that become 0, vanish or explode


@pytest.mark.parametrize(("times", "kind"), [(math.nan, "nan"), (math.inf, "inf"), (0.0, "zero"), (1e-6, "vanishing")])
def test_a_harmful_full_backward_hook_is_reported(times: float, kind: str) -> None:
    net = small_mlp()
    net[1].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * times,))
    trace = record_training(net)
    finding = only_finding(trace)
    assert finding.kind == kind and trace.steps[finding.step].kind == "full_backward_hook"
    assert "λ (grad_input[0] * times,) on net.1" in finding.sentence


@pytest.mark.parametrize("in_place", [True, False])
def test_a_hook_that_sets_a_gradient_in_the_same_memory_to_zero_is_a_warning(in_place: bool) -> None:
    first, second, x = nn.Linear(2, 2), nn.Linear(2, 2), torch.ones(1, 2)
    with hv.record() as trace:
        left, right = first(x), second(x)
        right.register_hook(torch.Tensor.zero_ if in_place else torch.zeros_like)
        (left + right).square().sum().backward()
    finding = only_finding(trace)
    assert (finding.kind, finding.severity) == ("zero", "warning" if in_place else "remark")
    shared = "also set to 0 what shares the memory: the gradient of AddmmBackward0 (left) of first (Linear)"
    assert (shared in finding.sentence) == in_place


def test_a_gradient_that_also_flows_along_another_path_is_not_reported_as_zero() -> None:
    x = leaf(3.0)
    y = x * 2
    assert not record_backward(y * 0 + y).findings.values
    assert "Beyond it, a gradient of 0 goes to leaf #0." in only_finding(record_backward(x * 0)).sentence


def test_the_second_derivative_of_a_leaky_relu_is_no_trouble() -> None:
    torch.manual_seed(0)
    critic = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(), nn.Linear(8, 1))
    x = torch.randn(4, 2, requires_grad=True)
    with hv.record(critic) as trace:
        (grad,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        (grad.norm(dim=1) - 1).square().mean().backward()
    assert not trace.findings.values


# -- healthy traces, and the places that show findings


def record_large_inputs() -> hv.Trace:
    net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 32), nn.ReLU(), nn.Linear(32, 5), nn.LogSoftmax(1))
    return record_training(net, torch.rand(16, 3, 32, 32) * 255)


@pytest.mark.parametrize(
    "record", [recorded, record_large_inputs, lambda: record_backward(chain(500)), lambda: record_backward(fan(500))]
)
def test_healthy_traces_have_no_findings(record: Callable[[], hv.Trace]) -> None:
    trace = record()
    assert list(trace.findings.values) == []
    assert str(trace.findings.values).startswith("Nothing was found.")


def test_an_empty_trace_is_not_reported_as_healthy() -> None:
    assert str(hv.Trace().findings.values) == "This trace holds no gradients to check."


def test_findings_are_in_the_player_and_the_html_page() -> None:
    net = small_mlp()
    nn.init.constant_(net[0].weight, math.nan)
    trace = record_training(net)
    finding = trace.findings[0]
    shown = trace.content()["findings"][0]
    assert (shown["text"], shown["step"]) == (f"Step {finding.step + 1}, error: {finding.sentence}", finding.step)
    assert finding.sentence in page(trace._data).replace("\n", " ")  # the content for the script is packed
