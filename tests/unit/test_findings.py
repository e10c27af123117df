"""What is wrong with the gradients of a trace is named, and nothing is named where nothing is wrong."""

import math
from collections.abc import Callable

import pytest
import torch
from scenes import calls, leaf, recorded
from shown import shown_findings, shown_notes
from torch import nn

import hookviz as hv
from benchmarks.resnet import ResNet18
from hookviz.analysis.findings import CHAIN_FACTOR, Trouble
from hookviz.player.html_page import page
from hookviz.trace import Note
from tests.unit.test_grouping import chain, fan

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


class Made(nn.Module):
    """Makes something of its weight alone."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(-torch.ones(3))

    def forward(self) -> torch.Tensor:
        return self.weight.log()


def squares(y: torch.Tensor) -> torch.Tensor:
    return y.square().mean()


def mlp(*layers: nn.Module, times: float = 1.0) -> nn.Sequential:
    torch.manual_seed(0)
    model = nn.Sequential(*layers)
    for layer in model:
        if isinstance(layer, nn.Linear):
            layer.reset_parameters()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= times
    return model


def passed(net: nn.Module, x: torch.Tensor | None = None, loss: Loss = squares) -> hv.Trace:
    torch.manual_seed(1)
    x = torch.randn(8, 4) if x is None else x
    with hv.record(net) as trace:
        loss(net(x)).backward()
    return trace


def backward(loss: torch.Tensor) -> hv.Trace:
    with hv.record() as trace:
        loss.backward()
    return trace


def only(trace: hv.Trace) -> Trouble:
    (found,) = trace.troubles
    return found


def layers(count: int, activation: Callable[[], nn.Module]) -> list[nn.Module]:
    return [layer for _ in range(count) for layer in (nn.Linear(4, 4), activation())]


def small() -> nn.Sequential:
    return mlp(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))


def test_a_log_of_negative_numbers_is_named() -> None:
    trace = passed(mlp(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), Log(), nn.Linear(4, 1)))
    found = only(trace)
    step = trace.steps[found.step]
    assert (found.kind, step.kind, step.on) == ("nan", "forward", "net.3")
    low = min(min(row) for row in trace.steps[found.step - 1].after.tolist())
    said = f"net.3 (Log) returns NaN: it takes the logarithm of numbers below 0, the smallest {low:.4g}."
    assert found.sentence == said


def test_twenty_sigmoids_are_named() -> None:
    trace = passed(mlp(*layers(20, nn.Sigmoid)))
    found = only(trace)
    assert found.kind == "vanishing" and trace.steps[found.step].on.startswith("SigmoidBackward0")
    assert found.severity == "warning"
    assert "net.39 (Sigmoid) to" in found.sentence and "each of 20 Sigmoid leaves about 0.2" in found.sentence


def test_weights_ten_times_too_large_are_named() -> None:
    trace = passed(mlp(*layers(10, nn.ReLU), times=10))
    found = only(trace)
    assert found.kind == "exploding" and trace.steps[found.step].on.startswith("AddmmBackward0")
    assert "Linear makes it about" in found.sentence


def test_inputs_of_zero_and_of_nothing_strange_are_told() -> None:
    zero = passed(mlp(nn.Linear(4, 4), nn.ReLU(), Log()), loss=torch.sum).troubles[0]
    assert (zero.kind, zero.sentence) == ("inf", "net.2 (Log) returns Inf: it takes the logarithm of 0, which is -Inf.")


@pytest.mark.parametrize("size", [4, 40])
def test_a_weight_that_holds_nan_is_named_however_large_it_is(size: int) -> None:
    net = mlp(nn.Linear(size, size))
    with torch.no_grad():
        net[0].weight[0, 0] = math.nan
    found = only(passed(net, torch.ones(2, size)))
    assert found.sentence == "net.0 (Linear) returns NaN: its parameter net.0.weight held it before backward began."


def test_a_module_without_an_input_is_named() -> None:
    net = Made()
    with hv.record(net) as trace:
        net().sum().backward()
    said = "net (Made) returns NaN: it takes the logarithm of numbers below 0, the smallest -1."
    assert only(trace).sentence == said


def test_nan_between_modules_and_from_forward_hooks_is_named() -> None:
    assert "net.second (Linear) is called with NaN, although no module recorded" in only(passed(Between())).sentence
    net = small()
    net[1].register_forward_hook(lambda module, args, output: output * math.nan)
    trace = passed(net)
    assert trace.steps[only(trace).step].kind == "forward_hook"
    assert only(trace).sentence.startswith("NaN begins here: λ output * math.nan on net.1")


def test_a_tensor_that_held_nan_before_is_named() -> None:
    loss = leaf(-1.0).log() * 2
    assert only(backward(loss)).sentence == "loss held NaN before backward began."


def test_a_node_that_makes_inf_is_named_with_what_it_saved() -> None:
    x = torch.tensor([0.0, 1.0], requires_grad=True)
    found = only(backward(x.sqrt().sum()))
    assert found.sentence == (
        "Inf begins at SqrtBackward0: it takes the gradient [1, 1] and sends [inf, 0.5] to leaf #0. "
        "It had saved result from forward: [0, 1]."
    )


def test_a_seed_of_nan_is_named() -> None:
    x = leaf(1.0)
    y = x * 2
    with hv.record() as trace:
        y.backward(torch.tensor(math.nan))
    assert only(trace).sentence.startswith("NaN begins here: Backward starts at y with the gradient nan")


@pytest.mark.parametrize(("times", "kind"), [(math.nan, "nan"), (math.inf, "inf"), (0.0, "zero"), (1e-6, "vanishing")])
def test_a_full_backward_hook_is_named(times: float, kind: str) -> None:
    net = small()
    net[1].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * times,))
    trace = passed(net)
    found = only(trace)
    assert found.kind == kind and trace.steps[found.step].kind == "full_backward_hook"
    assert "λ (grad_input[0] * times,) on net.1" in found.sentence


@pytest.mark.parametrize(("times", "kind"), [(math.nan, "nan"), (0.0, "zero")])
def test_a_tensor_hook_is_named(times: float, kind: str) -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: grad * times)
    trace = backward((y * y).sum())
    assert trace.steps[only(trace).step].kind == "tensor_hook" and only(trace).kind == kind


def test_a_dead_relu_is_named_with_what_it_leaves_without_gradient() -> None:
    net = mlp(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    with torch.no_grad():
        net[0].bias.fill_(-100)
    found = only(passed(net))
    assert found.kind == "zero" and "at ReluBackward0 of net.1 (ReLU)" in found.sentence
    assert "Beyond it, net.0.bias and 1 more get a gradient of 0." in found.sentence
    assert found.sentence.endswith("It had saved result from forward: (8, 4) norm 0.")


def test_a_weight_of_zeros_is_named_though_its_own_gradient_is_none() -> None:
    net = mlp(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    nn.init.zeros_(net[2].weight)
    found = only(passed(net))
    assert found.kind == "zero" and "at AddmmBackward0 #8 of net.2 (Linear)" in found.sentence
    assert (
        "Beyond it, net.0.bias and 1 more get" in found.sentence and "It had saved mat2 from forward" in found.sentence
    )


def test_the_cause_in_an_earlier_pass_stands_first() -> None:
    net, x = mlp(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.rand(8, 4)
    sgd = torch.optim.SGD(net.parameters(), 0.1)
    with hv.record(net) as trace:
        for times in (1, 0, 1):
            sgd.zero_grad()
            (net(x).abs() * times).sqrt().mean().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            sgd.step()
    cause, effect = trace.troubles
    assert (cause.kind, effect.kind) == ("inf", "nan") and "Inf begins at SqrtBackward0" in cause.sentence
    step = max(step.index for step in trace.steps[: effect.step] if step.kind == "optimizer_step")
    assert effect.sentence.endswith(
        "its parameter net.0.weight held it before backward began, but not when the recorded pass "
        "before that began. In between, "
        f"sgd took its step ({step + 1}), and the gradient of net.0.weight held NaN or Inf then."
    )
    assert cause.severity == effect.severity == "error"


def test_what_comes_by_another_way_too_is_not_dead() -> None:
    x = leaf(3.0)
    y = x * 2
    assert not backward(y * 0 + y).troubles
    assert "Beyond it, leaf #0 gets a gradient of 0." in only(backward(x * 0)).sentence


def test_what_one_layer_alone_does_is_no_chain() -> None:
    """A LayerNorm whose output is summed up, an RMSNorm of small numbers, one factor: most transformers have one."""
    net = mlp(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.LayerNorm(4))
    assert not passed(net, loss=torch.sum).troubles
    x = torch.ones(3, requires_grad=True)
    assert not backward((x * 2 * 1e6 * 3 * 2).sum()).troubles
    net = mlp(nn.Linear(4, 4), nn.RMSNorm(4), nn.Linear(4, 4))
    assert not passed(net, 1e-5 * torch.randn(8, 4)).troubles


class Attending(nn.Module):
    """Attention as in a transformer of which nothing is trained yet: q and k get little of the gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(32, 32) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = (self.q(x) @ self.k(x).mT).softmax(-1)
        return x + weights @ self.v(x)


def test_a_branch_in_which_little_of_the_gradient_goes_does_not_vanish() -> None:
    net = nn.Sequential(*(Attending() for _ in range(3)))
    for parameter in net.parameters():
        nn.init.normal_(parameter, std=0.001)
    trace = passed(net, torch.randn(2, 7, 32))
    norms = {step.on: step.after.norm for step in trace.steps if step.kind == "accumulate"}
    assert 0 < norms["net.0.q.weight"] < 1e-3 * norms["net.0.v.bias"]
    assert not trace.troubles


def test_a_chain_that_explodes_without_any_module_is_named() -> None:
    y = torch.ones(3, requires_grad=True)
    for _ in range(12):
        y = y * 4
    found = only(backward(y.sum()))
    assert found.severity == "warning" and "each of 11 MulBackward0 makes it about 4 times" in found.sentence


def images(net: nn.Module) -> hv.Trace:
    return passed(net, torch.rand(16, 3, 32, 32) * 255, lambda y: y.logsumexp(1).mean())


def encoder(norm_first: bool) -> hv.Trace:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=norm_first)
    net = nn.TransformerEncoder(layer, 12, norm=nn.LayerNorm(32), enable_nested_tensor=False)
    return passed(net, torch.randn(2, 6, 32), lambda y: nn.functional.mse_loss(y, torch.randn_like(y)))


HEALTHY: dict[str, Callable[[], hv.Trace]] = {
    "a…e": recorded,
    "mlp": lambda: passed(mlp(*layers(3, nn.ReLU))),
    "large inputs": lambda: images(nn.Sequential(nn.Flatten(), nn.Linear(3072, 32), nn.ReLU(), nn.Linear(32, 5))),
    "resnet": lambda: passed(ResNet18(), torch.randn(2, 3, 64, 64)),
    "encoder": lambda: encoder(False),
    "encoder, norm first": lambda: encoder(True),
    "chain": lambda: backward(chain(500)),
    "fan": lambda: backward(fan(500)),
    "dropout": lambda: passed(mlp(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2))),
    "batch norm": lambda: passed(mlp(*(part for _ in range(6) for part in (nn.Linear(4, 4), nn.BatchNorm1d(4))))),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_named_where_nothing_is_wrong(name: str) -> None:
    trace = HEALTHY[name]()
    assert list(trace.troubles) == []
    assert str(trace.troubles) == "Nothing is wrong with the gradients of this trace."


def test_where_nothing_was_recorded_nothing_is_called_right() -> None:
    assert str(hv.Trace().troubles) == "This trace holds no gradients to look at."


def test_findings_are_open_in_a_large_trace_and_stand_in_its_page() -> None:
    trace = passed(mlp(Log(), *layers(20, nn.Tanh)))
    trace.remarks.append(Note.verbatim("Something else."))
    content, found = trace.content(), trace.troubles[0]
    told = (f"Step {found.step + 1}, {found.severity}: {found.sentence}", found.step)
    assert shown_findings(content)[0] == told and content["grouped"]
    assert shown_notes(content) == ["Something else."] and f"{found.step + 1} of" in str(trace.troubles)
    small = passed(mlp(Log(), *layers(3, nn.Tanh)))
    expected = [(f"Step {row.step + 1}, {row.severity}: {row.sentence}", row.step) for row in small.troubles]
    assert shown_findings(small.content()) == expected and not small.content()["grouped"]
    assert found.sentence in page(trace).partition("<script")[0].replace("\n", " ")


def test_four_times_the_steps_take_four_times_the_work() -> None:
    some, more = (backward(chain(count)) for count in (1000, 4000))
    least = calls(lambda: some.troubles)
    assert least < 80 * 1000 and calls(lambda: more.troubles) < 4.1 * least
    assert not more.troubles and CHAIN_FACTOR == 1e4
