"""Hooks that did not fire, or are easily taken for silent: what a trace keeps of them, and what the player says."""

import re
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.player.payload import Content
from hookviz.player.trace_content import TraceContent
from hookviz.recorder.followers import unfired_hooks
from hookviz.trace.redaction import redact
from tests.reasons import reasons


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


# -- what a trace keeps of them


def test_redaction_of_the_source_leaves_no_place_of_a_hook() -> None:
    net = nn.Linear(2, 2)
    with hv.record(net) as trace:
        net.register_forward_hook(lost).remove()
        net.register_forward_hook(lambda *_: None)
        net(torch.ones(1, 2))
        net.register_forward_hook(lambda *_: None)
    assert {row.removed_at is None for row in trace._data.unfired_rows} == {True, False}
    assert all(row.registered_at for row in trace._data.unfired_rows)
    rows = redact(trace._data, source=False).unfired_rows  # type: ignore[attr-defined]
    assert {(row.file, row.line, row.text) for row in rows} == {(None, None, None)}
    assert {(row.removed_at, row.registered_at) for row in rows} == {(None, None)}
    assert {row.name for row in rows} == {"lost", "lambda"}


def test_a_recording_of_a_part_says_that_it_did_not_look_at_the_rest() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Flatten(), nn.Linear(2, 1))
    with hv.record(net[0]) as trace:
        net(torch.ones(1, 2)).sum().backward()
    assert "Not looked at: the other parts of the model" in str(trace.findings)


def test_many_hooks_are_limited_and_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfired_hooks, "MAX_HOOKS", 3)
    net = nn.Linear(2, 2)
    for _ in range(5):
        net.register_full_backward_hook(lost)
    with hv.record(net) as trace, torch.no_grad():
        net(torch.ones(1, 2))
    assert len(reasons(trace)) == 3
    assert any("it does not show of 2 whether they fired" in note for note in trace.notes)


def test_removed_hook_is_a_warning_if_it_was_registered_in_the_recording() -> None:
    net = nn.Linear(1, 1)
    older = net.register_forward_hook(lost)
    with hv.record(net) as trace:
        older.remove()
        net.register_forward_hook(lost).remove()
        net(torch.ones(1)).backward()
    assert [row.cause for row in reasons(trace)] == ["removed"] * 2
    assert sorted(finding.severity for finding in trace.findings) == ["remark", "warning"]


def test_older_hooks_that_have_nothing_to_do_with_the_pass_are_no_findings() -> None:
    unrelated = torch.ones(1, requires_grad=True) * 2
    unrelated.register_hook(lost)
    idle = nn.Linear(1, 1)
    idle.weight.register_hook(lost)
    idle.bias.register_hook(lost)
    idle.bias.requires_grad_(False)
    x = torch.ones(1, requires_grad=True)
    with hv.record() as trace:
        (x * 2).backward()
    assert {row.on for row in reasons(trace)} == {"unrelated", "idle.weight", "idle.bias"}
    assert list(trace.findings) == []


# -- in the player


class Branches(nn.Module):
    """Has a branch that its forward leaves out."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.branch = nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2))

    def forward(self, x: torch.Tensor) -> Any:
        return self.used(x)


def test_a_hook_in_a_module_that_was_not_called_follows_from_that_of_the_module() -> None:
    net = Branches()
    net.branch[0].register_forward_hook(lambda *_: None)
    net.branch.register_forward_hook(lost)
    with hv.record(net) as trace:
        net(torch.ones(1, 2)).sum().backward()
    [finding] = [finding for finding in trace.findings if finding.hooks]
    assert [hook.on for hook in finding.hooks] == ["net.branch", "net.branch.0"]
    assert re.search(r"For the same reason .* on net\.branch\.0 .*did not fire", finding.cause)


def record_late_hook() -> hv.Trace:
    a = torch.tensor(2.0, requires_grad=True)
    with hv.record() as trace:
        (a * a).backward()
        a.register_hook(lost)
    return trace


def full_content(trace: hv.Trace) -> Content:
    return TraceContent.of(trace._data).full_content()


def reasons_at_pins(content: Content) -> list[str]:
    views = [view for view in content["chunks"].values() if isinstance(view, dict) and "pins" in view]
    pins = [pin for view in views for pin in view["pins"].values()]  # type: ignore[typeddict-item]
    return [pin["reason"] for pin in pins if "reason" in pin]


def test_a_hook_that_was_registered_too_late_has_a_pin() -> None:
    content = full_content(record_late_hook())
    (reason,) = reasons_at_pins(content)
    assert reason.startswith("lost on a did not fire.") and reason.endswith("Register it before you call backward().")
    (finding,) = content["findings"]
    assert f"{finding['text']} {finding['more']}".endswith(reason)


def test_a_hook_of_a_module_that_was_called_has_a_pin_on_its_box() -> None:
    net = nn.Linear(1, 1)
    with hv.record(net) as trace:
        output = net(torch.ones(1))
        net.register_forward_hook(lost)
        output.backward()
    assert len(reasons_at_pins(full_content(trace))) == 1
