"""``record(keep=n)`` keeps the last passes only: the trace stays consistent, and memory stays flat."""

import gc
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import Net, c_hook, leaf, plain
from shown import shown_steps
from torch import nn

import hookviz as hv
from hookviz.recorder.followers import retention
from hookviz.storage.integrity import find_fault

STEPS = int(os.environ.get("HOOKVIZ_KEPT_STEPS", 200))
"""The steps over which memory has to stay flat; set it higher for a longer search."""


class TrainingLoop:
    """A training loop with hooks of several kinds; the input of each step is its number."""

    def __init__(self) -> None:
        self.net = Net()
        self.net.l1.register_forward_hook(lambda module, args, output: output.register_hook(c_hook) and None)
        self.net.l2.register_full_backward_hook(lambda module, grad_input, grad_output: None)
        self.net.l2.weight.register_hook(lambda grad: grad * 2)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.0)
        self.opt.register_step_post_hook(lambda *given: None)
        self.number = 0

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.number += 1
            self.opt.zero_grad()
            self.net(leaf(float(self.number))).backward()
            self.opt.step()


def without_number(name: str) -> str:
    """``name`` without the running number of a node or of a call."""
    return re.sub(r" \(call \d+\)| #\d+", "", name)


def trace_facts(trace: hv.Trace) -> list[Any]:
    """All facts of a trace except the running numbers of nodes and calls."""
    data = trace._data
    steps = [
        (s.index, s.pass_id, s.kind, without_number(s.on), plain(s.before), plain(s.after), s.effect,
         s.hook and (s.hook.name, without_number(s.hook.kept_in), s.hook.place, s.hook.total), len(s.parts))
        for s in trace.steps
    ]  # fmt: skip
    owners = sorted((data.ops[node], data.module(data.calls[call].module)) for node, call in data.owners.items())
    parents = [call.parent for call in data.calls]
    graph = sorted((data.ops[a], slot, data.ops[b], output) for (a, slot), (b, output) in data.edges.items())
    hooked = [sorted(data.hook_rows[i].name for i in indices) for indices in data.hooked]
    return [steps, owners, parents, graph, hooked, len(data.roots), len(data.values), len(data.hook_rows)]


def test_a_trimmed_trace_equals_a_recording_begun_later() -> None:
    """An optimizer step after a dropped pass belongs to that pass and is dropped with it."""
    keep, steps = 3, 9
    loop = TrainingLoop()
    with hv.record(loop.net, keep=keep) as trace:
        loop.run(steps)
    loop = TrainingLoop()
    loop.run(steps - keep)
    with hv.record(loop.net) as expected:
        loop.run(keep)
    assert trace_facts(trace) == trace_facts(expected)
    assert trace.dropped == steps - keep and expected.dropped == 0
    assert find_fault(trace._data) == ""


def test_a_trimmed_trace_is_saved_drawn_and_played_and_notes_what_was_dropped(tmp_path: Path) -> None:
    loop = TrainingLoop()
    with hv.record(loop.net, keep=2) as trace:
        loop.run(20)
        assert len(trace._data.roots) <= 4 and len(trace.notes) == 1
    note = "record(keep=...) kept the last 2 passes and dropped the 18 before them, with their forward steps."
    assert trace.notes == [note]
    trace.save(tmp_path / "trace.json")
    loaded = hv.load(tmp_path / "trace.json")
    assert loaded == trace and loaded.dropped == 18
    player = loaded.player()
    assert len(player.content["svgs"]) == 2 and player.steps == len(trace.steps)
    assert note in player.content["notes"]
    assert {frame["picture"] for frame in shown_steps(player.content)} == {0, 1}
    assert trace.figure(0).pipe("svg") and "c_hook" in player.content["svgs"][1]


def count_entries() -> int:
    """Count what all containers of the process hold; dicts of plain numbers are known to what refers to them only."""
    gc.collect()
    objects = (other for one in gc.get_objects() for other in (one, *gc.get_referents(one)))
    containers = {id(one): one for one in objects if type(one) in (dict, list, set)}
    return sum(map(len, containers.values()))


@pytest.mark.slow
def test_memory_stays_flat_over_many_steps() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    net[0].register_forward_hook(lambda module, args, output: output.register_hook(lambda grad: grad * 2) and None)
    opt = torch.optim.SGD(net.parameters(), lr=0.001)
    entries: list[int] = []
    with hv.record(net, keep=3) as trace:
        for step in range(STEPS):
            opt.zero_grad()
            net(torch.ones(1, 2)).sum().backward()
            opt.step()
            if step % (STEPS // 2) >= STEPS // 2 - 4:
                entries.append(count_entries())
    assert trace.dropped == STEPS - 3 and len(trace._data.rows) < 200
    grown = min(entries[4:]) - min(entries[:4])  # passes are dropped several at a time
    assert grown < STEPS // 4, entries  # one entry that each step leaves behind is twice as much


def train(passes: int, **options: Any) -> hv.Trace:
    net = nn.Linear(1, 1)
    with hv.record(net, **options) as trace:
        for _ in range(passes):
            net(torch.ones(1, 1)).sum().backward()
    return trace


@pytest.fixture
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "MANY_STEPS", 200)
    monkeypatch.setattr(retention, "MIN_REPEATS", 10)


def test_an_unbounded_recording_warns_once_with_remedies(low_limits: None) -> None:
    with pytest.warns(hv.HookvizWarning, match=r"record\(keep=10\).*record\(every=100\).*end the with block") as caught:
        trace = train(100)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert str(caught[0].message).startswith("This recording holds 20")
    assert trace.notes == []


def test_an_unbounded_loop_of_forward_calls_adds_a_note(low_limits: None) -> None:
    net = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    with hv.record(net, keep=1) as trace:
        for _ in range(200):
            net(torch.ones(1, 1))
    note = " ".join(trace.notes)
    assert re.match(r"This recording holds 20\d steps, about 1 KB each, and keeps growing\.", note)
