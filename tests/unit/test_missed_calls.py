"""Why a forward did not call one of its parts, read in its text: each program keeps its objects to itself."""

import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import hookviz as hv
from hookviz.analysis.findings import Finding
from tests.marked_lines import find_line


def look(*_: Any) -> None:
    """A hook that changes nothing."""


def find_silent(program: Any) -> Finding:
    """Record a program and return the finding about its hook."""
    with hv.record() as trace:
        program()
    (finding,) = [row for row in trace.findings if row.hooks]
    return finding


class Attention(nn.Module):
    """Has a part that only its slow path calls."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.drop, self.fused = nn.Linear(4, 4), nn.Dropout(0.1), True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query = self.query(x)
        if self.fused:
            return F.scaled_dot_product_attention(query, query, query)
        return self.drop(query) @ x.transpose(-1, -2)  # type: ignore[no-any-return]


def test_the_flag_that_leads_past_a_call_is_the_line() -> None:
    def program() -> None:
        net = Attention()
        net.drop.register_forward_hook(look)
        net(torch.ones(2, 3, 4)).sum().backward()

    finding = find_silent(program)
    assert finding.line == find_line(__file__, "if self.fused:")
    assert "which did not run. What decides is if self.fused" in finding.cause


class Stack(nn.Module):
    """Copies the layer that it is given, as ``nn.TransformerEncoder`` does."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.same = nn.Linear(4, 4), nn.Linear(4, 4)
        self.layers = nn.Sequential(copy.deepcopy(self.layer), nn.ReLU(), nn.Linear(4, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(self.same(x))  # type: ignore[no-any-return]


def test_modules_elsewhere_that_may_be_copies_of_a_silent_one_are_named() -> None:
    def program() -> None:
        net = Stack()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        net.layer.register_forward_hook(look)
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()

    finding = find_silent(program)
    assert "does not name layer. Modules of the same class, with parameters of the same shapes, were" in finding.cause
    assert "called and may be copies: net.layers.0. " in finding.cause, "neither what is beside it, nor another shape"


def test_what_called_the_parts_of_a_module_is_named_though_both_are_gone() -> None:
    def program() -> None:
        net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
        net.register_forward_hook(look)
        features = nn.Sequential(*list(net.children())[:-1])
        features(torch.ones(1, 2)).sum().backward()

    finding = find_silent(program)
    assert finding.kind == "bypassed"
    assert "features.0 was called by features, a Sequential" in finding.cause


class Gated(nn.Module):
    """Uses a parameter only where a flag is set."""

    def __init__(self, *, on: bool = False) -> None:
        super().__init__()
        self.linear, self.gate, self.on = nn.Linear(2, 2), nn.Parameter(torch.ones(2)), on

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.linear(x)
        if self.on:
            hidden = hidden * self.gate
        return hidden  # type: ignore[no-any-return]


class GatedAndCut(Gated):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.ones(2)
        if self.on:
            gate = self.gate.exp()
        return self.linear(x) * gate.detach()  # type: ignore[no-any-return]


def test_an_if_is_named_only_if_nothing_else_can_be_why_a_parameter_is_not_used() -> None:
    for kind, on in ((Gated, False), (GatedAndCut, True)):
        net = kind(on=on)
        with hv.record(net) as trace:
            net(torch.ones(2)).sum().backward()
        (finding,) = [row for row in trace.findings if "net.gate" in row.parameters]
        assert ("decides whether they are used" in finding.cause) == (kind is Gated)


class Spare(nn.Module):
    """Has a parameter that its forward leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.spare = nn.Linear(2, 2), nn.Parameter(torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)  # type: ignore[no-any-return]


class SpareByText(Spare):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * getattr(self, "sp" + "are").data  # type: ignore[no-any-return]


def test_what_a_forward_reaches_without_its_name_is_not_said_to_be_left_out() -> None:
    for kind in (Spare, SpareByText):
        net = kind()
        with hv.record(net) as trace:
            net(torch.ones(2)).sum().backward()
        (finding,) = [row for row in trace.findings if "net.spare" in row.parameters]
        assert ("does not name spare" in finding.cause) == (kind is Spare)
