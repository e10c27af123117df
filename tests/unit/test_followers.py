"""A follower hears the events that it defines, in order, and its faults reach nobody's program."""

from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.recorder.follower import EVENTS, Follower, Followers, PassStart
from hookviz.recorder.followers.hook_ledger import HookLedger
from hookviz.recorder.session import Session
from hookviz.trace import TraceData


def test_a_follower_is_told_only_of_the_events_that_it_defines() -> None:
    heard: list[Any] = []

    class Listener(Follower):
        def dropped(self, count: int) -> None:
            heard.append(count)

    followers = Followers(Session(TraceData(), 1))
    listener = followers.add(Listener())
    for event in EVENTS:
        followers.tell(event, *([3] if event == "dropped" else []))
    assert isinstance(listener, Listener) and heard == [3]


def test_a_training_step_tells_its_events_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    tell = Followers.tell

    def listen(self: Followers, event: str, *arguments: Any) -> None:
        heard.append(event)
        tell(self, event, *arguments)

    monkeypatch.setattr(Followers, "tell", listen)
    net = nn.Linear(1, 1)
    with hv.record(net):
        net(torch.ones(1)).backward()
    assert heard == [
        *(
            "recording_begins",
            "call_begins",
            "call_written",
            "call_takes",
            "call_returned",
            "call_ended",
            "rows_may_move",
            "pass_opened",
            "pass_begins",
            "accumulated",
            "accumulated",
            "pass_returned",
            "pass_ended",
            "rows_may_move",
            "recording_ends",
            "rows_may_move",
            "close",
        ),
    ]


def test_a_fault_of_a_follower_is_noted_and_the_next_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: HookLedger, start: PassStart) -> None:
        raise ValueError("no")

    monkeypatch.setattr(HookLedger, "pass_begins", fail)
    x = torch.tensor(3.0, requires_grad=True)
    with pytest.warns(hv.HookvizWarning, match="no"), hv.record() as trace:
        (x * x).backward()
    assert x.grad == 6 and trace.steps[-1].kind == "accumulate"
    assert len(trace._data.lines) == 1
