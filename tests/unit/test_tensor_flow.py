"""Where torch records no graph, a call says from which calls its tensors are, and the picture has arrows of that."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import torch
from torch import nn

import hookviz as hv
from hookviz.picture.scene import Scene


class Flattening(nn.Module):
    """A body of two layers, whose output is flattened for a head; a gate takes both of their outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU(inplace=True))
        self.head, self.gate = nn.Linear(6, 1), nn.Bilinear(6, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.body(x)
        x = x.flatten()  # the output of the body is freed
        return self.gate(x, self.head(x))  # type: ignore[no-any-return]


def sources(trace: hv.Trace) -> dict[str, list[str]]:
    """Call → the calls that returned its tensors, by name."""
    data = trace._data
    return {data.call(index): [data.call(call) for call in row.fed_by] for index, row in enumerate(data.calls)}


def record_flattening(mode: Callable[[], AbstractContextManager[object]]) -> hv.Trace:
    net = Flattening()
    with mode(), hv.record(net) as trace:
        net(torch.ones(2, 2))
    return trace


def test_without_a_graph_a_call_knows_which_calls_returned_its_tensors_and_the_picture_joins_them() -> None:
    trace = record_flattening(torch.no_grad)
    assert sources(trace) == {
        "net": [],
        "net.body": [],
        "net.body.0": [],
        "net.body.1": ["net.body.0"],
        "net.head": ["net.body"],
        "net.gate": ["net.body", "net.head"],
    }
    assert sources(record_flattening(torch.inference_mode)) == sources(trace)
    assert not any(sources(record_flattening(torch.enable_grad)).values())
    scene = Scene.from_trace(trace._data)
    assert arrows(scene) == [
        ("net.body.0", "net.body.1"),
        ("net.body", "net.head"),
        ("net.body", "net.gate"),
        ("net.head", "net.gate"),
    ]
    assert [arrow.id for arrow in scene.all_arrows] == ["em2-m3", "em1-m4", "em1-m5", "em4-m5"]
    assert scene.trace.steps[scene.bundle_steps["em1-m5"]].sentence.startswith("net.gate is called")


class Probed(nn.Module):
    """A body whose output goes to a head, and without its graph to a probe."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head, self.probe = nn.Linear(2, 3), nn.Linear(3, 1), nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.body(x)
        return self.head(h) + self.probe(h.detach())  # type: ignore[no-any-return]


def test_what_was_cut_off_a_call_is_an_arrow_that_names_the_cut() -> None:
    net = Probed()
    with hv.record(net) as trace:
        net(torch.ones(2, 2)).sum().backward()
    assert {data_call.cut_from for data_call in trace._data.calls} == {(), (1,)}
    line = Probed.forward.__code__.co_firstlineno + 2
    (cut,) = [arrow for arrow in Scene.from_trace(trace._data).all_arrows if arrow.is_forward]
    assert (cut.start, cut.end, cut.words) == ("m1", "m3", f"detach, line {line}")
    assert f">detach, line {line}</text>" in trace.figure().svg()
    (call,) = [step for step in trace.steps if step.kind == "call" and step.on == "net.probe"]
    assert call.sentence.endswith("The graph was cut after net.body: no gradient goes back there from here.")


def test_what_a_call_without_a_graph_returned_is_cut_where_a_graph_begins() -> None:
    body, head = nn.Linear(2, 3), nn.Linear(3, 1)
    line = 0
    with hv.record(body, head) as trace:
        with torch.no_grad():
            h = body(torch.ones(2))
        head(h).backward()
        line = sys._getframe().f_lineno - 3
    assert [arrow.words for arrow in Scene.from_trace(trace._data).forward_arrows] == [f"no_grad, line {line}"]


def arrows(scene: Scene) -> list[tuple[str, str]]:
    names = {box.id: box.name for box in (*scene.calls.values(), *scene.group_boxes)}
    return [(names[arrow.start], names[arrow.end]) for arrow in scene.all_arrows if arrow.is_forward]
