"""A follower hears the events that it defines, in order, and its faults reach nobody's program."""

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.recorder.follower import Followers, PassStart
from hookviz.recorder.followers.hook_ledger import HookLedger


def test_a_training_step_tells_its_events_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    tell = Followers.tell

    def listen(self: Followers, event: str, *arguments: object) -> None:
        heard.append(event)
        tell(self, event, *arguments)

    monkeypatch.setattr(Followers, "tell", listen)
    net = nn.Linear(1, 1)
    with hv.record(net):
        net(torch.ones(1)).backward()
    calls = ["call_begins", "call_written", "call_takes", "call_returned", "call_ended", "rows_may_move"]
    passes = ["pass_opened", "pass_begins", "accumulated", "accumulated", "pass_returned", "pass_ended"]
    ends = ["rows_may_move", "recording_ends", "rows_may_move", "close"]
    assert heard == ["recording_begins", *calls, *passes, *ends]


def test_a_fault_of_a_follower_is_noted_and_the_next_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: HookLedger, start: PassStart) -> None:
        raise ValueError("no")

    monkeypatch.setattr(HookLedger, "pass_begins", fail)
    x = torch.tensor(3.0, requires_grad=True)
    with pytest.warns(hv.HookvizWarning, match="no"), hv.record() as trace:
        (x * x).backward()
    assert x.grad == 6 and trace.steps[-1].kind == "accumulate"
    assert len(trace._data.lines) == 1
