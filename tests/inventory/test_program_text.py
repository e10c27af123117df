"""What is read from the recorded text of a program: short enough here that all of it is recorded."""

import copy
import inspect
import linecache
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv
from tests.missing import missing_gradients


def two_layers() -> tuple[nn.Module, nn.Module]:
    return nn.Linear(2, 2), nn.Linear(2, 2)


def score(critic: nn.Module, samples: torch.Tensor) -> Any:
    rows = samples.data.flatten(1)
    return critic(rows)


def smooth(features: torch.Tensor) -> torch.Tensor:
    return blur(features)


def blur(features: torch.Tensor) -> torch.Tensor:
    return features.detach()


def encode(encoder: nn.Module, x: torch.Tensor) -> Any:
    return encoder(x)


def train_through_a_function_that_calls(encoder: nn.Module, head: nn.Module) -> None:
    features = encode(encoder, torch.ones(2, 2))
    score(head, features).sum().backward()


def train_through_a_function_that_is_called(encoder: nn.Module, head: nn.Module) -> None:
    features = encoder(torch.ones(2, 2))
    head(smooth(features)).sum().backward()


def train_through_a_function_of_another_module(encoder: nn.Module, head: nn.Module) -> None:
    features = encode(encoder, torch.ones(2, 2)).detach()
    head(copy.copy(features)).sum().backward()


@pytest.mark.parametrize(
    ("train", "code", "is_proven"),
    [
        (train_through_a_function_that_is_called, "features.detach()", True),
        (train_through_a_function_of_another_module, "torch.ones(2, 2)).detach()", False),
    ],
)
def test_functions_of_the_program_are_read_where_they_are_called(
    train: Callable[[nn.Module, nn.Module], None], code: str, is_proven: bool
) -> None:
    encoder, head = two_layers()
    with hv.record(encoder, head) as trace:
        train(encoder, head)
    [row] = missing_gradients(trace)
    assert row.place == "between" and row.is_proven == is_proven and row.file is not None and row.line is not None
    assert code in linecache.getline(__file__, row.line)


def test_code_between_two_functions_that_do_not_call_each_other_is_not_guessed() -> None:
    encoder, head = two_layers()
    with hv.record(encoder, head) as trace:
        train_through_a_function_that_calls(encoder, head)
    [row] = missing_gradients(trace)
    assert (row.place, row.line) == ("between", None)


class Scaled(nn.Module):
    """Uses two parameters as numbers, and another one not at all."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.log_scale, self.shift = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
        self.slope = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> Any:
        scale = self.log_scale.exp().item()
        slope = self.slope
        return self.layer(x) * scale * slope.item()


def test_forward_is_read_for_a_parameter_that_no_op_uses() -> None:
    net = Scaled()
    with hv.record(net) as trace:
        net(torch.ones(2)).sum().backward()
    number, unnamed, elsewhere = missing_gradients(trace)
    assert number.parameters == ("net.log_scale",) and number.place == "within"
    assert "self.log_scale.exp().item()" in linecache.getline(__file__, number.line or 0)
    assert unnamed.parameters == ("net.shift",) and unnamed.place == "unnamed"
    assert unnamed.line == inspect.getsourcelines(Scaled.forward)[1]
    assert elsewhere.parameters == ("net.slope",) and elsewhere.place == "unused" and "--cuts" in elsewhere.advice


class Net(nn.Module):
    """Computes more than a loss of its first layer uses."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.rest = nn.Sequential(nn.Linear(2, 2), nn.Tanh()), nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> Any:
        return self.rest(self.first(x))


class Tap:
    """Keeps an output without its graph."""

    def keep(self, _module: nn.Module, _inputs: object, output: torch.Tensor) -> None:
        self.kept = output.detach()


def test_cut_of_a_layer_is_found_though_the_rest_of_the_net_ran_in_vain() -> None:
    net, head, tap = Net(), nn.Linear(2, 1), Tap()
    net.first.register_forward_hook(tap.keep)

    def train() -> None:
        net(torch.ones(2))
        head(tap.kept).sum().backward()

    with hv.record(net, head) as trace:
        train()
    first, rest = missing_gradients(trace)
    assert first.place == "between" and first.is_proven
    assert "output.detach()" in linecache.getline(__file__, first.line or 0)
    assert rest.parameters[0].startswith("net.rest") and rest.line is None
