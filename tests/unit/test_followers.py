"""A follower hears the events that it defines, in order, and its faults reach nobody's program."""

import pytest
import torch

import hookviz as hv
from hookviz.recorder.follower import PassStart
from hookviz.recorder.followers.hook_ledger import HookLedger


def test_a_fault_of_a_follower_is_noted_and_the_next_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: HookLedger, start: PassStart) -> None:
        raise ValueError("no")

    monkeypatch.setattr(HookLedger, "pass_begins", fail)
    x = torch.tensor(3.0, requires_grad=True)
    with pytest.warns(hv.HookvizWarning, match="no"), hv.record() as trace:
        (x * x).backward()
    assert x.grad == 6 and trace.steps[-1].kind == "accumulate"
    assert len(trace._data.lines) == 1
