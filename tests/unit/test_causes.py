"""The cause of NaN or Inf in a module's output is reported only if the recorded numbers show it."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.analysis.findings.values.torchless_numbers import LARGEST, broadcast_pairs, largest_number, rows_along
from hookviz.trace.values import Value
from tests.requirements import needs_saved_tensors
from tests.unit.test_findings import only_finding, record_backward

INF = math.inf


def record_sum(net: nn.Module, x: torch.Tensor) -> hv.Trace:
    with hv.record(net) as trace:
        net(x).sum().backward()
    return trace


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


def mean_of_none(x: torch.Tensor) -> torch.Tensor:
    """A mean of roots, of which the mask leaves none; the roots that are NaN are left out before."""
    root, weight = torch.where(x > 0, x.sqrt(), 0.0), (x - 100).relu()
    return (root * weight).sum() / weight.sum()


LOG_OF_ZERO = "The Inf arises where it takes the logarithm of 0, which is -Inf."
CAUSES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], Any, str]] = {
    "entropy": (entropy, [[-1.0, 200.0]], f"NaN: it multiplies 0 by -Inf. {LOG_OF_ZERO}"),
    "log": (torch.log, [-1.0, 5.0], "NaN: it takes the logarithm of numbers below 0, the smallest -1."),
    "log1p": (torch.log1p, [-2.0, 5.0], "NaN: it takes the logarithm of numbers below -1, the smallest -2."),
    "root": (torch.sqrt, [-4.0, 5.0], "NaN: it takes the square root of negative numbers, the smallest -4."),
    "1 ÷ root": (torch.rsqrt, [0.0, 5.0], "Inf: it divides by 0."),
    "1 ÷ 0": (lambda x: 1 / x, [0.0, 5.0], "Inf: it divides by 0."),
    "share": (lambda x: x / x.abs().sum(-1, keepdim=True), [[-1.0, 5.0], [0.0, 0.0]], "NaN: it divides 0 by 0."),
    "exp": (
        lambda x: (x * 100).exp(),
        [-1.0, 5.0],
        "Inf: it takes the exponential of numbers above 88.7, which is too large for float32.",
    ),
    "Inf - Inf": (
        lambda x: x.exp() - x.exp(),
        [1000.0],
        "NaN: it subtracts Inf from Inf. The Inf arises where it takes the exponential of numbers above 88.7, "
        "which is too large for float32.",
    ),
    "Inf ÷ Inf": (
        lambda x: x.exp() / x.exp(),
        [1000.0],
        "NaN: it divides Inf by Inf. The Inf arises where it takes the exponential of numbers above 88.7, "
        "which is too large for float32.",
    ),
    "softmax": (lambda x: x.softmax(-1), [[-INF, -INF]], "NaN: it takes the softmax of numbers that are all -Inf."),
    "softmax of Inf": (
        lambda x: x.exp().softmax(-1),
        [[1000.0, 1.0]],
        "NaN: it takes the softmax of numbers with Inf among them. The Inf arises where it takes the exponential "
        "of numbers above 88.7, which is too large for float32.",
    ),
    "0 ÷ 0 behind a mask": (mean_of_none, [-1.0, 5.0], "NaN: it divides 0 by 0."),
    "a mask that leaves NaN": (
        lambda x: torch.where(x < 9, x.log(), 0.0).abs(),
        [-1.0, 5.0],
        "NaN. NaN begins in the forward, at LogBackward0 of net (Does): it takes the logarithm of numbers below 0, the "
        "smallest -1.",
    ),
    "power": (lambda x: x**0.5, [-4.0, 4.0], "NaN: it raises a negative number, -4, to the power 0.5."),
    "power of 0": (lambda x: x**-2, [0.0, 4.0], "Inf: it raises 0 to the power -2."),
    "half": (to_float16, [70000.0], "Inf: it turns 70000 into float16, whose largest number is 65,504."),
    "half product": (
        lambda x: x * x,
        torch.tensor([300.0], dtype=torch.float16),
        "Inf: it multiplies numbers (300 and 300) whose product is beyond 65,504, the largest number of float16.",
    ),
    "unseen": (
        lambda x: (x - 5).sqrt(),
        [1.0, 9.0],
        "NaN: its input held none (minimum 1, maximum 9); the cause was not seen. The first op known to have "
        "produced it is SqrtBackward0 of net (Does).",
    ),
    "unseen entropy": (
        entropy,
        200.0 * torch.eye(20),
        "NaN. As far as the statistics of its inputs tell, MulBackward0 of net (Does) multiplies 0 by -Inf. The Inf "
        "begins at LogBackward0 of net (Does), which takes the logarithm of 0, which is -Inf.",
    ),
}


@needs_saved_tensors
@pytest.mark.parametrize("name", CAUSES)
def test_the_cause_of_nan_or_inf_follows_from_the_numbers(name: str) -> None:
    function, numbers, sentence = CAUSES[name]
    assert record_function(function, numbers).findings.values[0].sentence == f"net (Does) returns {sentence}"


@pytest.mark.parametrize("size", [4, 40])
def test_a_layer_whose_sums_overflow_float16_is_reported(size: int) -> None:
    net = nn.Linear(size, 2).half()
    nn.init.ones_(net.weight)
    assert only_finding(record_sum(net, torch.full((1, size), 30000.0, dtype=torch.float16))).sentence == (
        "net (Linear) returns Inf: its sums of products go beyond 65,504, the largest number of float16, though its "
        "input and its parameters are finite."
    )


class Adapter(nn.Module):
    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4, 4), weight).half(), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + x) @ self.weight


@needs_saved_tensors
@pytest.mark.parametrize(("number", "weight", "is_shown"), [(2e4, 1.0, True), (4e4, 0.01, False)])
def test_a_product_overflows_only_if_what_it_takes_does_not(number: float, weight: float, is_shown: bool) -> None:
    x = torch.full((2, 4), number).half().requires_grad_()
    net = Adapter(weight)
    with hv.record(net) as trace:
        out = net(x)
        out.sum().backward()
    finding = only_finding(trace)
    assert ("it adds up 4 products of numbers up to" in finding.text) == is_shown
    assert is_shown or "the cause was not seen" in finding.text
    assert (finding.certainty, finding.line_role) == ("proven" if is_shown else "open", "begins")


def test_a_mask_is_no_cause_of_nan_behind_a_sum_that_overflows() -> None:
    numbers = torch.full((2, 2), 4e4).half()
    mask = torch.eye(2, dtype=torch.bool)
    trace = record_function(lambda x: (x + x).masked_fill(mask, -1e4).softmax(-1), numbers)
    text = trace.findings.values[0].text
    assert "MaskedFillBackward0" not in text and "the cause was not seen" in text


@pytest.mark.parametrize("is_chosen", [True, False])
def test_zero_times_inf_behind_where_is_said_only_of_nan(is_chosen: bool) -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    chosen = torch.where(x < 9, x.sqrt(), x) if is_chosen else torch.where(x > 0, x.sqrt(), x)
    finding = only_finding(record_backward(chosen.sum()))
    assert finding.kind == ("inf" if is_chosen else "nan")
    assert ("0 times Inf is NaN" in finding.sentence) != is_chosen


@needs_saved_tensors
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: ((100 * x).exp() + 1) / (x.relu() * ((100 * x).exp() + 1)), "divides Inf by Inf"),
        (lambda x: x.relu() / (x.relu() * 2), "divides 0 by 0"),
    ],
)
def test_a_quotient_of_many_numbers_is_explained_by_what_both_hold(
    function: Callable[[torch.Tensor], torch.Tensor], words: str
) -> None:
    torch.manual_seed(0)
    net, x = nn.Linear(64, 200), torch.randn(50, 64)
    h = net(x)
    with hv.record() as trace:
        out = function(h)
        out.mean().backward()
    [sentence] = [finding.sentence for finding in trace.findings.values if finding.kind == "nan"]
    assert words in sentence


def test_numbers_that_a_cast_makes_infinite_are_no_sums_that_overflow() -> None:
    net = nn.Linear(4, 2)
    nn.init.constant_(net.weight, 1e-3)
    with hv.record(net) as trace, torch.autocast("cpu", torch.float16):
        net(torch.full((3, 4), 1e5)).float().mean().backward()
    assert "sums of products" not in only_finding(trace).text


class Masked(nn.Module):
    def __init__(self, number: float) -> None:
        super().__init__()
        self.number = number

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (x * 2).masked_fill(mask, self.number).softmax(-1)


@needs_saved_tensors
@pytest.mark.parametrize(("number", "largest", "is_named"), [(-INF, 1.0, True), (-1e9, 3e38, False)])
@pytest.mark.parametrize("size", [2, 20])
def test_a_mask_explains_nan_only_in_the_rows_that_it_hides(
    number: float, largest: float, is_named: bool, size: int
) -> None:
    x, mask = torch.ones(2, size, 3), torch.zeros(2, 2, 3, dtype=torch.bool)
    mask[1, 1], x[0, 0] = True, largest
    if size > 2:
        x, mask = x.view(2, 2, -1, 3).transpose(1, 2).contiguous(), mask[:, None]
    net = Masked(number)
    with hv.record(net) as trace:
        net(x.requires_grad_(), mask).sum().backward()
    finding = trace.findings.values[0]
    row = "(1, 0, 1)" if size > 2 else "(1, 1)"
    assert finding.kind == "nan"
    assert (f"hides every number of row {row}, counted from 0" in finding.text) == is_named


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


class Buffered(nn.Module):
    def __init__(self, number: float) -> None:
        super().__init__()
        self.register_buffer("mask", torch.tensor([0.0, number]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + self.mask).softmax(-1) / (x * 0)


@needs_saved_tensors
@pytest.mark.parametrize(("number", "why"), [(-INF, "it divides 0 by 0."), (math.nan, "its own net.mask held NaN.")])
def test_a_buffer_with_inf_is_no_cause_of_nan_as_one_with_nan_is(number: float, why: str) -> None:
    net = Buffered(number)
    assert only_finding(record_sum(net, torch.ones(2, requires_grad=True))).sentence == (
        f"net (Buffered) returns NaN: {why}"
    )


def set_weight_to_nan(net: nn.Sequential) -> None:
    net[0].weight.data[0, 0] = math.nan


def test_an_optimizer_is_not_blamed_for_changes_in_unrecorded_passes() -> None:
    net, x = chain_layers(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.rand(8, 4)
    sgd = torch.optim.SGD(net.parameters(), 0.01)
    with hv.record(net, every=10) as trace:
        for number in range(11):
            if number == 5:
                set_weight_to_nan(net)
            sgd.zero_grad()
            net(x).square().mean().backward()
            sgd.step()
    assert trace.findings.values[0].sentence == (
        "net.0 (call 2) (Linear) returns NaN: its parameter net.0.weight held NaN before backward began, but not "
        "when the previous recorded pass began. In between, passes ran that were not recorded: record(every=10) "
        "records one of 10."
    )


def test_a_parameter_changed_without_an_optimizer_step_is_reported() -> None:
    net, x = chain_layers(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.rand(8, 4)
    with hv.record(net) as trace:
        for _ in range(2):
            net(x).square().mean().backward()
            set_weight_to_nan(net)
    assert trace.findings.values[0].sentence.endswith("but not when the previous recorded pass began.")


# -- severity


@pytest.mark.parametrize(
    "function", [torch.log, lambda x: ((x + 2).pow(2) * 1).masked_fill(torch.tensor([True, False]), INF)]
)
def test_what_the_loss_leaves_out_is_a_remark(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    net = Does(function)
    with hv.record(net) as trace:
        net(x)[1].backward()
    finding = only_finding(trace)
    assert finding.severity == "remark"
    assert "PowBackward0" not in finding.text or "MaskedFillBackward0" in finding.text
    with hv.record(net) as trace:
        net(x).mean().backward()
    assert only_finding(trace).severity in ("error", "warning")


def test_nan_in_a_loss_or_a_gradient_is_an_error() -> None:
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    assert only_finding(record_function(torch.log, [-1.0, 1.0])).severity == "error"
    assert only_finding(record_backward((x.abs() * 0 * x.log()).sum())).severity == "error"


def test_inf_before_a_softmax_is_a_remark() -> None:
    net = Does(lambda x: x.masked_fill(x < 0, -INF))
    x = torch.tensor([[-1.0, 1.0, 2.0]], requires_grad=True)
    with hv.record(net) as trace:
        net(x).softmax(-1)[0, 1].backward()
    finding = trace.findings.values[0]
    assert any(step.after.inf for step in trace.steps if step.kind == "forward")
    assert (finding.kind, finding.severity) == ("inf", "remark")
    inner = nn.Sequential(net, nn.Softmax(-1))
    with hv.record(inner) as trace:
        inner(x)[0, 1].backward()
    finding = trace.findings.values[0]
    assert (finding.kind, finding.severity) == ("inf", "remark") and "reaches no gradient of a leaf" in finding.sentence


def test_a_mask_is_not_blamed_for_nan_that_arises_elsewhere() -> None:
    net = Does(lambda x: x.masked_fill(x < 0, -INF))
    x = torch.tensor([[-1.0, 1.0, 2.0]], requires_grad=True)
    with hv.record(net) as trace:
        (net(x).softmax(-1)[0, 1] + (x * 0).sqrt().sum()).backward()
    worst, *others = trace.findings.values
    assert (worst.severity, trace.steps[worst.step].kind) == ("error", "compute") and "SqrtBackward0" in worst.sentence
    assert all(other.severity == "remark" for other in others)


def test_gradients_that_overflow_when_added_are_reported() -> None:
    x = torch.tensor(1.0, requires_grad=True)
    with hv.record() as trace:
        (x * 3e38).backward()
        (x * 3e38).backward()
    finding = only_finding(trace)
    assert (finding.severity, trace.steps[finding.step].kind) == ("error", "accumulate")
    x.grad, y = None, x * 1e-3
    with hv.record() as trace:
        (y * 3e38 + y * 3e38).backward()
    finding = only_finding(trace)
    assert (finding.severity, trace.steps[finding.step].kind) == ("error", "arrive")
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


def test_of_several_optimizers_the_one_that_holds_a_nan_parameter_is_named() -> None:
    net = chain_layers(nn.Linear(2, 2), nn.Linear(2, 1))
    first, second = (torch.optim.SGD(layer.parameters(), lr=0.1) for layer in net)
    with hv.record(net) as trace:
        net(torch.ones(1, 2)).sum().backward()
        net[1].weight.grad.fill_(math.nan)
        second.step()
        first.step()
        net(torch.ones(1, 2)).sum().backward()
    step = next(step.index + 1 for step in trace.steps if step.kind == "optimizer_step" and step.on == "second")
    assert trace.findings.values[0].sentence == (
        "net.1 (call 2) (Linear) returns NaN: its parameter net.1.weight held NaN before backward began, but not "
        f"when the previous recorded pass began. In between, second took its step ({step})."
    )


# -- numbers without torch

DTYPES = {dtype for name in dir(torch) if isinstance(dtype := getattr(torch, name), torch.dtype)}
SHAPES = [(), (1,), (3,), (2, 1), (2, 3), (1, 3), (4, 2, 1), (0,), (2, 0)]


def arange_of_shape(shape: tuple[int, ...]) -> torch.Tensor:
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32).reshape(shape)


def test_the_largest_number_of_a_dtype_matches_torch() -> None:
    """Fails for a torch with a new dtype, so that it is added to the table."""
    for dtype in DTYPES:
        name = str(dtype).removeprefix("torch.")
        try:
            assert largest_number(name) == (torch.finfo(dtype).max if dtype.is_floating_point else torch.inf), name
        except NotImplementedError:  # torch itself has no limits for it
            assert name not in LARGEST


def test_broadcast_pairs_match_torch() -> None:
    for first_shape, second_shape in itertools.product(SHAPES, SHAPES):
        first, second = arange_of_shape(first_shape), arange_of_shape(second_shape) + 0.5
        try:
            broadcast = torch.broadcast_tensors(first, second)  # type: ignore[no-untyped-call]
            expected = list(zip(*(tensor.flatten().tolist() for tensor in broadcast), strict=True))
        except RuntimeError:
            expected = []
        assert list(broadcast_pairs(Value.of(first), Value.of(second))) == expected, (first_shape, second_shape)


def test_rows_along_a_dimension_match_torch() -> None:
    for shape in SHAPES[1:]:
        tensor = arange_of_shape(shape)
        for dim in range(-len(shape), len(shape)):
            expected = tensor.movedim(dim, -1).reshape(-1, shape[dim]).tolist() if tensor.numel() else []
            assert rows_along(Value.of(tensor), dim) == expected, (shape, dim)
