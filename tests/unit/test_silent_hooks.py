"""Hooks that are easily taken for silent, or for silent for the wrong cause."""

from typing import Any

import torch
from torch import nn
from torch.autograd.graph import register_multi_grad_hook

import hookviz as hv
from tests.reasons import reasons


def leaf() -> torch.Tensor:
    return torch.ones(2, requires_grad=True)


def lost(*_: object) -> None:
    """A hook that does not fire."""


def listed(trace: hv.Trace) -> list[tuple[str, str]]:
    """Return name and cause of the hooks that did not fire."""
    return [(row.name, row.cause) for row in reasons(trace) if not row.fired]


def test_hook_above_what_a_pass_asks_for_is_partial_though_its_tensor_is_gone() -> None:
    net = nn.Linear(2, 2)

    def feature() -> torch.Tensor:
        above = net(torch.ones(1, 2))
        above.register_hook(lost)
        return above.relu()

    with hv.record(net) as trace:
        middle = feature()
        torch.autograd.grad((middle * 2).sum(), middle)
    assert listed(trace) == [("lost", "partial")]


def test_hook_named_by_the_repr_of_what_it_wraps_has_a_name_without_an_address() -> None:
    def wrapper(*_: object) -> None:
        lost()

    wrapper.__name__ = repr(lost)
    net = nn.Linear(2, 2)
    net.register_forward_hook(wrapper)
    with hv.record(net) as trace:
        net(torch.ones(1, 2))
    assert [step.hook.name for step in trace.firings if step.hook] == ["lost"]


def test_multi_grad_hook_that_removes_itself_has_fired() -> None:
    a, b = leaf(), leaf()
    handles: list[Any] = []

    def remove(_: object) -> None:
        handles[0].remove()

    handles.append(register_multi_grad_hook((a, b), remove, mode="any"))
    with hv.record() as trace:
        (a * b).sum().backward()
    assert listed(trace) == []


def test_backward_hooks_that_come_after_each_call_and_go_after_each_pass_are_late_in_all_rounds() -> None:
    net = nn.Linear(2, 2)
    with hv.record(net) as trace:
        for _ in range(3):
            loss = net(torch.ones(1, 2)).sum()
            handle = net.register_full_backward_hook(lost)
            loss.backward()
            handle.remove()
    [finding] = [finding for finding in trace.findings if finding.hooks]
    assert finding.kind == "late" and len(finding.hooks) == 3
    assert "It was registered there 3 times." in finding.sentence


def test_backward_hook_that_goes_after_a_pass_through_another_module_is_removed_too_early() -> None:
    net, other = nn.Linear(2, 2), nn.Linear(2, 2)
    with hv.record(net, other) as trace:
        net(torch.ones(1, 2))
        handle = net.register_full_backward_hook(lost)
        other(torch.ones(1, 2)).sum().backward()
        handle.remove()
        net(torch.ones(1, 2))
    assert listed(trace)[0] == ("lost", "removed")
