"""Small programs in which ops cut parameters off, with the line that does it marked by ``# cut``."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from tests.proof.unfired_programs import Net, ones

Recorder = Callable[..., AbstractContextManager[Any]]
"""Makes the block around a program: one that records, or one that does nothing."""
Outcome = tuple[hv.Trace | None, list[torch.Tensor]]
"""The trace, if one was recorded, and the values that recording must not change."""


class Program(NamedTuple):
    """A program, the parameters that its marked lines cut off, and the place."""

    run: Callable[[Recorder], Outcome]
    parameters: tuple[str, ...]
    place: str

    @property
    def name(self) -> str:
        return self.run.__name__


PROGRAMS: list[Program] = []


def cuts_off(*parameters: str, place: str = "op") -> Callable[[Any], Any]:
    """Register a program with the first parameter of each row that it leads to."""

    def add(run: Callable[[Recorder], Outcome]) -> Callable[[Recorder], Outcome]:
        PROGRAMS.append(Program(run, parameters, place))
        return run

    return add


def gradients(*modules: nn.Module) -> list[torch.Tensor]:
    """Return the gradients of the parameters; where there is none, an empty tensor."""
    parameters = [parameter for module in modules for parameter in module.parameters()]
    return [torch.empty(0) if parameter.grad is None else parameter.grad for parameter in parameters]


def without_other_parameters(net: Net) -> None:
    """Take from a net what its forward does not use: ``net.a`` and ``net.b`` are then the whole model."""
    net.extra, net.body = nn.Identity(), nn.Identity()  # type: ignore[assignment]


def run_net(record: Recorder, net: Net, *followed: nn.Module) -> Outcome:
    without_other_parameters(net)
    with record(*(followed or (net.a, net.b))) as trace:
        loss = net(ones()).sum()
        loss.backward()
    return trace, [loss, *gradients(net)]


def pair() -> tuple[nn.Linear, nn.Linear]:
    return nn.Linear(2, 2), nn.Linear(2, 1)


@cuts_off(".weight")
def detached_between_two_modules(record: Recorder) -> Outcome:
    class Cut(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.a(x)
            kept = F.relu(h.detach())  # cut
            return self.b(kept)  # type: ignore[no-any-return]

    return run_net(record, Cut())


@cuts_off(".weight")
def detached_after_a_module_with_a_full_backward_hook(record: Recorder) -> Outcome:
    """torch sends the output through an ``autograd.Function``, in whose forward a view has no graph at first."""

    class Cut(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.a(x)
            return self.b(h.detach())  # type: ignore[no-any-return]  # cut

    net = Cut()
    net.a.register_full_backward_hook(lambda *_: None)
    return run_net(record, net)


@cuts_off(".weight")
def data_attribute(record: Recorder) -> Outcome:
    class Cut(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.a(x) * 2
            return self.b(h.data + 1)  # type: ignore[no-any-return]  # cut

    return run_net(record, Cut())


@cuts_off("first.weight")
def number_back_into_a_tensor(record: Recorder) -> Outcome:
    first, second = pair()
    with record(first, second) as trace:
        scale = first(ones()).sum().item()  # cut
        loss = (second(ones()) * torch.tensor(scale)).sum()
        loss.backward()
    return trace, [loss, *gradients(first, second)]


@cuts_off("first.weight")
def list_of_numbers_back_into_a_tensor(record: Recorder) -> Outcome:
    first, second = pair()
    with record(first, second) as trace:
        numbers = first(ones()).tolist()  # cut
        loss = second(torch.tensor(numbers)).sum()
        loss.backward()
    return trace, [loss, *gradients(first, second)]


@cuts_off("first.weight")
def numpy_round_trip(record: Recorder) -> Outcome:
    first, second = pair()
    with record(first, second) as trace:
        array = first(ones()).detach().numpy()  # cut
        np.maximum(array, 0.25, out=array)
        loss = second(torch.from_numpy(array[:, :2])).sum()
        loss.backward()
    return trace, [loss, *gradients(first, second)]


@cuts_off("first.weight")
def argmax_chooses_the_embedding(record: Recorder) -> Outcome:
    first, table = nn.Linear(2, 3), nn.Embedding(3, 2)
    with record(first, table) as trace:
        scores = first(ones())
        token = scores.argmax(-1)  # cut
        loss = table(token).sum()
        loss.backward()
    return trace, [loss, *gradients(first, table)]


@cuts_off("gate.weight")
def comparison_makes_a_mask(record: Recorder) -> Outcome:
    gate, body = nn.Linear(2, 2), nn.Linear(2, 2)
    with record(gate, body) as trace:
        is_open = gate(ones()) > 0.1  # cut
        loss = (body(ones()) * is_open).sum()
        loss.backward()
    return trace, [loss, *gradients(gate, body)]


@cuts_off("first.weight")
def indices_of_a_maximum(record: Recorder) -> Outcome:
    first, table = nn.Linear(2, 3), nn.Embedding(3, 2)
    with record(first, table) as trace:
        _, index = first(ones()).max(-1)  # cut
        loss = table(index).sum()
        loss.backward()
    return trace, [loss, *gradients(first, table)]


@cuts_off("encoder.weight", place="no_grad")
def part_runs_in_no_grad(record: Recorder) -> Outcome:
    encoder, head = pair()
    with record(encoder, head) as trace:
        with torch.no_grad():  # off
            features = encoder(ones())  # cut
            features = features / features.norm()
        loss = head(features).sum()
        loss.backward()
    return trace, [loss, *gradients(encoder, head)]


@cuts_off("encoder.weight", place="inference")
def part_runs_in_inference_mode(record: Recorder) -> Outcome:
    encoder, head = pair()
    with record(encoder, head) as trace:
        with torch.inference_mode():  # off
            features = encoder(ones())  # cut
        loss = head(features.clone()).sum()
        loss.backward()
    return trace, [loss, *gradients(encoder, head)]


@cuts_off("encoder.weight", place="checkpoint")
def reentrant_checkpoint_of_a_plain_input(record: Recorder) -> Outcome:
    encoder, head = pair()

    def encode(x: torch.Tensor) -> torch.Tensor:
        return encoder(x)  # type: ignore[no-any-return]  # cut

    with record(encoder, head) as trace:
        loss = head(checkpoint(encode, ones(), use_reentrant=True)).sum()
        loss.backward()
    return trace, [loss, *gradients(encoder, head)]


@cuts_off(".weight", place="no_grad")
def frozen_copy_in_a_buffer(record: Recorder) -> Outcome:
    class Cut(Net):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("copy", torch.zeros(2, 2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                self.copy.copy_(self.a.weight)  # cut
            return self.b(F.linear(x, self.copy, self.a.bias))  # type: ignore[no-any-return]

    net = Cut()
    return run_net(record, net, net.a, net.b)


@cuts_off()
def logged_copy_is_innocent(record: Recorder) -> Outcome:
    first, second = pair()
    losses = []
    with record(first, second) as trace:
        for _ in range(3):
            h = first(ones())
            loss = second(h).sum()
            losses.append(loss.detach().clone())
            h.detach().norm().item()
            loss.backward()
    return trace, [*losses, *gradients(first, second)]


@cuts_off("unused.weight", place="after")
def logged_copy_is_not_blamed_for_an_unused_result(record: Recorder) -> Outcome:
    unused, second = pair()
    with record(unused, second) as trace:
        aside = unused(ones())
        shown = aside.detach().abs().mean()
        loss = second(ones()).sum()
        loss.backward()
    return trace, [loss, shown, *gradients(unused, second)]


@cuts_off()
def one_of_two_paths_carries_the_gradient(record: Recorder) -> Outcome:
    first, second = pair()
    with record(first, second) as trace:
        h = first(ones())
        loss = (second(h) * h.detach().mean()).sum()
        loss.backward()
    return trace, [loss, *gradients(first, second)]


@cuts_off("first.weight")
def both_of_two_paths_are_cut(record: Recorder) -> Outcome:
    first, second = pair()
    with record(first, second) as trace:
        h = first(ones())
        left = second(h.detach())  # cut
        right = second(torch.tensor(h.tolist()))  # cut
        loss = (left + right).sum()
        loss.backward()
    return trace, [loss, *gradients(first, second)]


@cuts_off(".inner.a.weight")
def inside_a_nested_forward(record: Recorder) -> Outcome:
    class Inner(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.a(x)
            h = h.exp()
            h = h.detach()  # cut
            return self.b(h).tanh()  # type: ignore[no-any-return]

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.head = Inner(), nn.Linear(2, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.inner(x))  # type: ignore[no-any-return]

    net = Outer()
    net.inner.extra, net.inner.body = nn.Identity(), nn.Identity()  # type: ignore[assignment]
    with record(net) as trace:
        loss = net(ones()).sum()
        loss.backward()
    return trace, [loss, *gradients(net)]


@cuts_off("w")
def free_function_without_a_module(record: Recorder) -> Outcome:
    def scaled(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        kernel = weight.exp()
        return x * kernel.detach()  # cut

    w, v = ones(grad=True), ones(grad=True)
    with record() as trace:
        loss = (scaled(ones(), w) * v).sum()
        loss.backward()
    assert w.grad is None and v.grad is not None
    return trace, [loss, v.grad]


@cuts_off("net.weight")
def module_whose_weight_is_used_by_a_function(record: Recorder) -> Outcome:
    net, v = nn.Linear(2, 2, bias=False), ones(grad=True)
    with record(net) as trace:
        kernel = torch.tensor(net.weight.tolist())  # cut
        loss = (v @ kernel).sum()
        loss.backward()
    assert v.grad is not None
    return trace, [loss, v.grad]


@cuts_off(".a.weight")
def loop_with_several_passes(record: Recorder) -> Outcome:
    class Cut(Net):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            h = self.a(x)
            return self.b(h.detach())  # type: ignore[no-any-return]  # cut

    net = Cut()
    net.extra, net.body = nn.Identity(), nn.Identity()  # type: ignore[assignment]
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    losses = []
    with record(net) as trace:
        for _ in range(4):
            optimizer.zero_grad()
            loss = net(ones()).square().sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
    return trace, [*losses, *net.parameters(), *gradients(net)]


@cuts_off("first.weight")
def detached_in_place(record: Recorder) -> Outcome:
    first, second = pair()
    with record(first, second) as trace:
        h = first(ones())
        h.detach_()  # cut
        loss = second(h).sum()
        loss.backward()
    return trace, [loss, *gradients(first, second)]


@cuts_off("first.weight")
def frozen_while_it_is_used(record: Recorder) -> Outcome:
    first, second = pair()
    with record(first, second) as trace:
        first.weight.requires_grad_(False)  # cut
        loss = second(first(ones())).sum()
        loss.backward()
        first.weight.requires_grad_(True)
    return trace, [loss, *gradients(second)]


@cuts_off()
def rounding_has_a_gradient_of_zero(record: Recorder) -> Outcome:
    first, second = pair()
    with record(first, second) as trace:
        h = first(ones())
        loss = second(h.round() + h.sign() + torch.floor(h)).sum()
        loss.backward()
    return trace, [loss, *gradients(first, second)]


@cuts_off("unused.weight", place="after")
def shape_of_a_result_is_no_path(record: Recorder) -> Outcome:
    unused, second = pair()
    with record(unused, second) as trace:
        h = unused(ones())
        start = torch.zeros_like(h) + h.new_ones(2) + torch.ones(1, 2).expand_as(h)
        loss = second(start).sum()
        loss.backward()
    return trace, [loss, *gradients(unused, second)]


class Doubled(torch.autograd.Function):
    """Multiplies by 2, with ops that torch does not record."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x + x

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        return gradients[0] * 2


@cuts_off("first.weight")
def function_of_the_user_is_not_blamed(record: Recorder) -> Outcome:
    first, second = pair()
    with record(first, second) as trace:
        h = Doubled.apply(first(ones()))
        loss = second(h.detach()).sum()  # cut
        loss.backward()
    return trace, [loss, *gradients(first, second)]


@cuts_off("first.weight")
def sampled_without_a_graph(record: Recorder) -> Outcome:
    first, second = pair()
    with record(first, second) as trace:
        normal = torch.distributions.Normal(first(ones()), 1.0)
        loss = second(normal.sample()).sum()  # cut
        loss.backward()
    return trace, [loss, *gradients(first, second)]


@cuts_off("first.weight")
def copied_into_rows_of_a_tensor(record: Recorder) -> Outcome:
    first, second = pair()
    with record(first, second) as trace:
        rows = torch.zeros(3, 2)
        for row in rows:
            row.copy_(first(ones(2)).detach())  # cut
        loss = second(rows).sum()
        loss.backward()
    return trace, [loss, *gradients(first, second)]


@cuts_off("x")
def leaf_that_is_a_view(record: Recorder) -> Outcome:
    x, v = torch.ones(2, 2)[0].requires_grad_(), ones(grad=True)
    with record() as trace:
        loss = (v * x.exp().detach()).sum()  # cut
        loss.backward()
    assert v.grad is not None
    return trace, [loss, v.grad]
