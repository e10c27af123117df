"""Small programs that cut parameters off, with the line that does it marked by ``# cut``."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from tests.proof.unfired_programs import ones

Recorder = Callable[..., AbstractContextManager[Any]]
"""Makes the block around a program: one that records, or one that does nothing."""
Outcome = tuple[hv.Trace | None, list[Tensor]]
"""The trace, if one was recorded, and the values that recording must not change."""


class Program(NamedTuple):
    """A program, the parameters that its marked lines cut off, and the place."""

    name: str
    code: Callable[..., Tensor]
    """The function with the marked lines."""
    run: Callable[[Recorder], Outcome]
    parameters: tuple[str, ...]
    place: str


PROGRAMS: list[Program] = []


def cuts_off(*parameters: str, place: str = "op") -> Callable[[Callable[..., Tensor]], None]:
    """Register a program, which makes a loss with two layers, and the first parameter of each row that it leads to."""

    def add(code: Callable[..., Tensor]) -> None:
        PROGRAMS.append(Program(code.__name__, code, lambda record: run_layers(code, record), parameters, place))

    return add


def run_layers(code: Callable[..., Tensor], record: Recorder) -> Outcome:
    first, second = nn.Linear(2, 2), nn.Linear(2, 1)
    with record(first, second) as trace:
        loss = code(first, second)
        loss.backward()
    return trace, [loss, *gradients(first, second)]


def gradients(*modules: nn.Module) -> list[Tensor]:
    """Return the gradients of the parameters; where there is none, an empty tensor."""
    parameters = [parameter for module in modules for parameter in module.parameters()]
    return [torch.empty(0) if parameter.grad is None else parameter.grad for parameter in parameters]


@cuts_off("first.weight")
def detached_between_two_modules(first: nn.Module, second: nn.Module) -> Any:
    h = first(ones())
    kept = F.relu(h.detach())  # cut
    return second(kept).sum()


@cuts_off("first.weight")
def detached_after_a_module_with_a_full_backward_hook(first: nn.Module, second: nn.Module) -> Any:
    """torch sends the output through an ``autograd.Function``, in whose forward a view has no graph at first."""
    first.register_full_backward_hook(lambda *_: None)
    h = first(ones())
    return second(h.detach()).sum()  # cut


@cuts_off("first.weight")
def data_attribute(first: nn.Module, second: nn.Module) -> Any:
    h = first(ones()) * 2
    return second(h.data + 1).sum()  # cut


@cuts_off("first.weight")
def number_back_into_a_tensor(first: nn.Module, second: nn.Module) -> Any:
    scale = first(ones()).sum().item()  # cut
    return (second(ones()) * torch.tensor(scale)).sum()


@cuts_off("first.weight")
def numpy_round_trip(first: nn.Module, second: nn.Module) -> Any:
    array = first(ones()).detach().numpy()  # cut
    np.maximum(array, 0.25, out=array)
    return second(torch.from_numpy(array[:, :2])).sum()


@cuts_off("first.weight")
def argmax_chooses_the_class(first: nn.Module, second: nn.Module) -> Any:
    scores = first(ones())
    token = scores.argmax(-1)  # cut
    return second(F.one_hot(token, 2).float()).sum()


@cuts_off("first.weight")
def log_prob_of_chosen_actions(first: nn.Module, second: nn.Module) -> Any:
    """``log_prob`` broadcasts the actions, which have no graph, with the logits, which have one."""
    policy = torch.distributions.Categorical(logits=first(ones()))
    log_prob = policy.log_prob(torch.tensor(1))
    return second(ones()).sum() - log_prob.detach()  # cut


@cuts_off("first.weight", place="no_grad")
def part_runs_in_no_grad(first: nn.Module, second: nn.Module) -> Any:
    with torch.no_grad():  # off
        features = first(ones())  # cut
        features = features / features.norm()
    return second(features).sum()


@cuts_off("first.weight", place="inference")
def part_runs_in_inference_mode(first: nn.Module, second: nn.Module) -> Any:
    with torch.inference_mode():  # off
        features = first(ones())  # cut
    return second(features.clone()).sum()


@cuts_off("first.weight", place="checkpoint")
def reentrant_checkpoint_of_a_plain_input(first: nn.Module, second: nn.Module) -> Any:
    def encode(x: Tensor) -> Any:
        return first(x)  # cut

    return second(checkpoint(encode, ones(), use_reentrant=True)).sum()


@cuts_off()
def logged_copy_is_innocent(first: nn.Module, second: nn.Module) -> Any:
    h = first(ones())
    loss = second(h).sum()
    loss.detach().clone()
    h.detach().norm().item()
    return loss


@cuts_off()
def one_of_two_paths_carries_the_gradient(first: nn.Module, second: nn.Module) -> Any:
    h = first(ones())
    return (second(h) * h.detach().mean()).sum()


@cuts_off("first.weight")
def both_of_two_paths_are_cut(first: nn.Module, second: nn.Module) -> Any:
    h = first(ones())
    left = second(h.detach())  # cut
    right = second(torch.tensor(h.tolist()))  # cut
    return (left + right).sum()


@cuts_off("first.weight")
def loop_with_several_passes(first: nn.Module, second: nn.Module) -> Any:
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        h = first(ones())
        loss = second(h.detach()).square().sum()  # cut
        loss.backward(retain_graph=True)
    return loss


@cuts_off()
def rounding_has_a_gradient_of_zero(first: nn.Module, second: nn.Module) -> Any:
    h = first(ones())
    return second(h.round() + h.sign() + torch.floor(h)).sum()


class Doubled(torch.autograd.Function):
    """Multiplies by 2, with ops that torch does not record."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x + x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] * 2


@cuts_off("first.weight")
def function_of_the_user_is_not_blamed(first: nn.Module, second: nn.Module) -> Any:
    h = Doubled.apply(first(ones()))
    return second(h.detach()).sum()  # cut


@cuts_off("first.weight")
def sampled_without_a_graph(first: nn.Module, second: nn.Module) -> Any:
    normal = torch.distributions.Normal(first(ones()), 1.0)
    return second(normal.sample()).sum()  # cut


def free_function(w: Tensor) -> Tensor:
    kernel = w.exp()
    return kernel.detach()  # cut


def run_free_function(record: Recorder) -> Outcome:
    """Cut off a leaf without a module, which is a view."""
    w, v = torch.ones(2, 2)[0].requires_grad_(), ones(grad=True)
    with record() as trace:
        loss = (free_function(w) * v).sum()
        loss.backward()
    assert v.grad is not None
    return trace, [loss, v.grad]


PROGRAMS.append(Program("free_function", free_function, run_free_function, ("w",), "op"))
