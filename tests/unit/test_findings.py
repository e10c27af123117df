"""Findings report what is wrong with the gradients of a trace, and nothing for healthy traces."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from scenes import chain, count_calls, fan, leaf, recorded
from torch import nn

import hookviz as hv
from hookviz.analysis.findings import Finding
from hookviz.player.html_page import page
from hookviz.trace import Note
from tests.requirements import needs_saved_tensors

Loss = Callable[[torch.Tensor], torch.Tensor]


class Log(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.log()


class Between(nn.Module):
    """Takes the logarithm between two modules."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.second((self.first(x) - 100).log())
        return out


def mean_square(y: torch.Tensor) -> torch.Tensor:
    return y.square().mean()


def mlp(*layers: nn.Module, factor: float = 1.0) -> nn.Sequential:
    torch.manual_seed(0)
    model = nn.Sequential(*layers)
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= factor
    return model


def record_training(net: nn.Module, x: torch.Tensor | None = None, loss: Loss = mean_square) -> hv.Trace:
    torch.manual_seed(1)
    x = torch.randn(8, 4) if x is None else x
    with hv.record(net) as trace:
        loss(net(x)).backward()
    return trace


def record_backward(loss: torch.Tensor) -> hv.Trace:
    with hv.record() as trace:
        loss.backward()
    return trace


def only_finding(trace: hv.Trace) -> Finding:
    (finding,) = trace.findings.values
    return finding


def alternate_layers(count: int, activation: Callable[[], nn.Module]) -> list[nn.Module]:
    return [layer for _ in range(count) for layer in (nn.Linear(4, 4), activation())]


def small_mlp() -> nn.Sequential:
    return mlp(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))


@pytest.mark.parametrize("size", [4, 40])
def test_a_nan_weight_is_reported_for_any_size(size: int) -> None:
    net = mlp(nn.Linear(size, size))
    with torch.no_grad():
        net[0].weight[0, 0] = math.nan
    finding = only_finding(record_training(net, torch.ones(2, size)))
    assert finding.sentence == "net.0 (Linear) returns NaN: its parameter net.0.weight held NaN before backward began."


def test_inf_in_a_weight_is_named_where_its_module_returns_nan() -> None:
    net = nn.Sequential(nn.Linear(2, 1))
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[math.inf, -math.inf]]))
    finding = only_finding(record_training(net, torch.ones(1, 2)))
    assert finding.sentence == "net.0 (Linear) returns NaN: its parameter net.0.weight held Inf before backward began."


def test_nan_between_modules_and_from_forward_hooks_is_reported() -> None:
    assert (
        "net.second (Linear) is called with NaN, although no module recorded"
        in only_finding(record_training(Between())).sentence
    )
    net = small_mlp()
    net[1].register_forward_hook(lambda module, args, output: output * math.nan)
    trace = record_training(net)
    assert trace.steps[only_finding(trace).step].kind == "forward_hook"
    assert only_finding(trace).sentence.startswith("NaN begins here: λ output * math.nan on net.1")


def test_a_tensor_with_nan_before_backward_is_reported() -> None:
    loss = leaf(-1.0).log() * 2
    assert only_finding(record_backward(loss)).sentence == (
        "NaN begins in the forward, at LogBackward0: it takes the logarithm of numbers below 0, the smallest -1."
    )


@needs_saved_tensors
def test_a_node_that_produces_inf_is_reported_with_its_saved_values() -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    finding = only_finding(record_backward(x.sqrt().sum()))
    assert finding.sentence == (
        "Inf begins at SqrtBackward0: it takes the gradient [1, 1] and sends [inf, 0.5] to leaf #0. "
        "It divides by the result of the forward where that is 0: the square root has no finite slope at 0. "
        "In the forward pass, the node saved result: [0, 1]."
    )


@pytest.mark.parametrize(("times", "kind"), [(math.nan, "nan"), (math.inf, "inf"), (0.0, "zero"), (1e-6, "vanishing")])
def test_a_harmful_full_backward_hook_is_reported(times: float, kind: str) -> None:
    net = small_mlp()
    net[1].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * times,))
    trace = record_training(net)
    finding = only_finding(trace)
    assert finding.kind == kind and trace.steps[finding.step].kind == "full_backward_hook"
    assert "λ (grad_input[0] * times,) on net.1" in finding.sentence


@needs_saved_tensors
def test_a_dead_relu_is_reported_with_the_parameters_that_get_zero_gradient() -> None:
    net = mlp(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    with torch.no_grad():
        net[0].bias.fill_(-100)
    finding = only_finding(record_training(net))
    assert finding.kind == "zero" and "at ReluBackward0 of net.1 (ReLU)" in finding.sentence
    assert "Beyond it, net.0.bias, net.0.weight get a gradient of 0." in finding.sentence
    assert "net.0 (Linear) returned no number above 0: they lie between -100.8 and -98.59." in finding.sentence
    assert finding.sentence.endswith("net.0.bias is -100 everywhere; without it, they would reach 1.405.")


@needs_saved_tensors
def test_a_zero_weight_is_reported_though_its_own_gradient_is_not_zero() -> None:
    net = mlp(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    nn.init.zeros_(net[2].weight)
    finding = only_finding(record_training(net))
    assert finding.kind == "zero" and "at AddmmBackward0 #8 of net.2 (Linear)" in finding.sentence
    assert "Beyond it, net.0.bias, net.0.weight get" in finding.sentence
    assert finding.sentence.endswith("It multiplies by net.2.weight: all 0.")


def test_a_weight_that_stays_zero_in_each_pass_is_a_warning() -> None:
    net = mlp(nn.Linear(4, 8), nn.Linear(8, 2, bias=False), nn.Linear(2, 1, bias=False))
    for layer in (net[1], net[2]):
        nn.init.zeros_(layer.weight)
    sgd = torch.optim.SGD(net.parameters(), 0.1)
    with hv.record(net) as trace:
        for _ in range(3):
            sgd.zero_grad()
            (net(torch.rand(8, 4)) - 1).square().mean().backward()
            sgd.step()
    [finding] = trace.findings.values
    assert (finding.kind, finding.severity) == ("zero", "warning")
    assert "It is so in each pass, after 2 steps" in finding.sentence


def test_a_cause_in_an_earlier_pass_is_listed_first() -> None:
    net, x = mlp(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.rand(8, 4)
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
        f"sgd took its step ({step + 1}), and the gradient of net.0.weight held NaN or Inf then."
    )
    assert cause.severity == effect.severity == "error"


@pytest.mark.parametrize("in_place", [True, False])
def test_a_hook_that_sets_a_gradient_in_the_same_memory_to_zero_is_a_warning(in_place: bool) -> None:
    first, second, x = nn.Linear(2, 2), nn.Linear(2, 2), torch.ones(1, 2)
    with hv.record() as trace:
        left, right = first(x), second(x)
        right.register_hook(torch.Tensor.zero_ if in_place else torch.zeros_like)
        (left + right).square().sum().backward()
    [finding] = trace.findings.values
    assert (finding.kind, finding.severity) == ("zero", "warning" if in_place else "remark")
    shared = "also set to 0 what shares the memory: the gradient of AddmmBackward0 (left) of first (Linear)"
    assert (shared in finding.sentence) == in_place
    assert ("and 1 more" if in_place else "second.bias, second.weight get") in finding.sentence


def test_a_part_of_a_concatenation_that_was_zero_before_is_not_blamed_on_the_concatenation() -> None:
    alive, dead = torch.ones(2, 3, requires_grad=True), torch.full((2, 3), -1.0, requires_grad=True)
    with hv.record() as trace:
        torch.relu(torch.ones(4, 3) @ torch.cat([alive, dead]).T).sum().backward()
    assert not trace.findings.values


def test_a_hook_that_zeroes_the_gradient_of_a_concatenation_is_blamed() -> None:
    parts = [torch.ones(2, requires_grad=True) for _ in range(2)]
    joined = torch.cat(parts)
    joined.register_hook(torch.zeros_like)
    with hv.record() as trace:
        (joined * 2).sum().backward()
    assert [finding.kind for finding in trace.findings.values] == ["zero"]


def test_the_second_derivative_of_a_leaky_relu_is_no_trouble() -> None:
    torch.manual_seed(0)
    critic = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.LeakyReLU(), torch.nn.Linear(8, 1))
    x = torch.randn(4, 2, requires_grad=True)
    with hv.record(critic) as trace:
        (grad,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
        (grad.norm(dim=1) - 1).square().mean().backward()
    assert not trace.findings.values


def test_a_gradient_that_also_flows_along_another_path_is_not_reported_as_zero() -> None:
    x = leaf(3.0)
    y = x * 2
    assert not record_backward(y * 0 + y).findings.values
    assert "Beyond it, leaf #0 gets a gradient of 0." in only_finding(record_backward(x * 0)).sentence


class Attention(nn.Module):
    """Attention as in an untrained transformer: q and k get small gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(32, 32) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = (self.q(x) @ self.k(x).mT).softmax(-1)
        return x + weights @ self.v(x)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("activation", "found"), [(nn.Sigmoid, ["vanishing"]), (nn.Tanh, []), (nn.ReLU, [])])
def test_sigmoid_layers_whose_weights_get_smaller_and_smaller_gradients_are_found(
    activation: Callable[[], nn.Module], found: list[str], seed: int
) -> None:
    torch.manual_seed(seed)
    sizes = [100, 64, 32, 32, 16, 10]
    layers = [part for pair in pairwise(sizes) for part in (nn.Linear(*pair), activation())]
    net = nn.Sequential(*layers[:-1])
    with hv.record(net) as trace:
        nn.functional.cross_entropy(net(torch.rand(32, 100)), torch.randint(10, (32,))).backward()
    assert [finding.kind for finding in trace.findings] == found


def test_a_branch_with_small_gradients_is_not_reported_as_vanishing() -> None:
    net = nn.Sequential(*(Attention() for _ in range(3)))
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.001)
    trace = record_training(net, torch.randn(2, 7, 32))
    norms = {step.on: step.after.norm for step in trace.steps if step.kind == "accumulate"}
    assert 0 < norms["net.0.q.weight"] < 1e-3 * norms["net.0.v.bias"]
    assert not trace.findings.values


def record_image_model(net: nn.Module) -> hv.Trace:
    return record_training(net, torch.rand(16, 3, 32, 32) * 255, lambda y: y.logsumexp(1).mean())


def record_encoder() -> hv.Trace:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    net = nn.TransformerEncoder(layer, 12, norm=nn.LayerNorm(32), enable_nested_tensor=False)
    return record_training(net, torch.randn(2, 6, 32), lambda y: nn.functional.mse_loss(y, torch.randn_like(y)))


HEALTHY_TRACES: dict[str, Callable[[], hv.Trace]] = {
    "a…e": recorded,
    "large inputs": lambda: record_image_model(
        nn.Sequential(nn.Flatten(), nn.Linear(3072, 32), nn.ReLU(), nn.Linear(32, 5))
    ),
    "encoder": record_encoder,
    "chain": lambda: record_backward(chain(500)),
    "fan": lambda: record_backward(fan(500)),
}


@pytest.mark.parametrize("name", HEALTHY_TRACES)
def test_healthy_traces_have_no_findings(name: str) -> None:
    trace = HEALTHY_TRACES[name]()
    assert list(trace.findings.values) == []
    assert str(trace.findings.values).startswith("Nothing was found.")


def test_an_empty_trace_is_not_reported_as_healthy() -> None:
    assert str(hv.Trace().findings.values) == "This trace holds no gradients to check."


def test_findings_are_in_the_player_and_the_html_page() -> None:
    trace = record_training(mlp(Log(), *alternate_layers(20, nn.Tanh)))
    trace._data.remarks.append(Note.verbatim("Something else."))
    content, finding = trace.content(), trace.findings.values[0]
    expected_finding = (f"Step {finding.step + 1}, {finding.severity}: {finding.sentence}", finding.step)
    first = content["findings"][0]
    assert (first["text"], first["step"]) == expected_finding and content["grouped"]
    assert content["notes"] == ["Something else."] and f"{finding.step + 1} of" in str(trace.findings.values)
    small_trace = record_training(mlp(Log(), *alternate_layers(3, nn.Tanh)))
    expected = [
        (f"Step {row.step + 1}, {row.severity}: {row.sentence}", row.step) for row in small_trace.findings.values
    ]
    assert [
        (finding["text"], finding["step"]) for finding in small_trace.content()["findings"]
    ] == expected and not small_trace.content()["grouped"]
    assert finding.sentence in page(trace._data).replace("\n", " ")  # the content for the script is packed


def test_the_cost_of_findings_grows_linearly_with_the_steps() -> None:
    small_trace, large_trace = (record_backward(chain(count)) for count in (1000, 4000))
    small_cost = count_calls(lambda: small_trace.findings.values)
    assert small_cost < 90 * 1000 and count_calls(lambda: large_trace.findings.values) < 4.1 * small_cost
    assert not large_trace.findings.values


@pytest.mark.parametrize("as_numbers", [False, True])
def test_mask_that_leaves_a_query_no_key_is_the_cause_of_nan(as_numbers: bool) -> None:
    attention, x = nn.MultiheadAttention(4, 2, batch_first=True), torch.randn(2, 3, 4)
    mask = torch.tensor([[False, False, True], [True, True, True]])
    given = torch.zeros(2, 3).masked_fill(mask, -math.inf) if as_numbers else mask
    with hv.record(attention) as trace:
        attention(x, x, x, key_padding_mask=given)[0].sum().backward()
    assert "its key_padding_mask hides every key in row 1, counted from 0" in trace.findings[0].sentence
