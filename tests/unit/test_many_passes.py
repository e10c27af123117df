"""Recordings of many passes: the cost is linear in the number of steps, and equal passes share a picture."""

import re
import xml.etree.ElementTree as ET
from functools import partial
from typing import Any

import pytest
import torch
from scenes import count_calls, leaf
from shown import overview, unpack_chunk
from torch import nn

import hookviz as hv
from hookviz.picture.visible_graph import make_visible_graph
from hookviz.player.trace_content import TraceContent
from tests.unit.test_large_traces import picture

pytestmark = pytest.mark.slow

COUNTS = (45, 90)
"""Numbers of passes, the second twice the first: both exceed the number of visible boxes."""
MAX_COST_RATIO = 2.2
"""Doubling the passes may multiply the cost by at most this factor."""


def record_training(count: int) -> hv.Trace:
    """Record the fitting of two numbers, one with a hook: the values differ from pass to pass."""
    a, b = leaf(2.0), leaf(3.0)
    a.register_hook(lambda grad: grad * 2)
    optimizer = torch.optim.SGD([a, b], lr=1e-3)
    with hv.record() as trace:
        for _ in range(count):
            optimizer.zero_grad()
            ((a * b - 7) ** 2).backward()
            optimizer.step()
    return trace


def record_shared_graph(count: int) -> hv.Trace:
    """Record many passes over the same graph."""
    a, b = leaf(2.0), leaf(3.0)
    with hv.record() as trace:
        e = a * b * a
        for _ in range(count):
            torch.autograd.grad(e, (a, b), retain_graph=True)
    return trace


def test_the_cost_of_recording_and_of_the_player_is_linear_in_the_passes() -> None:
    traces = {count: record_training(count)._data for count in COUNTS}
    for work in (record_training, lambda count: TraceContent.of(traces[count]).content()):
        work(COUNTS[0])  # fills caches
        less, more = (count_calls(partial(work, count)) for count in COUNTS)
        assert more <= MAX_COST_RATIO * less


# -- one picture for each pass


@pytest.fixture(scope="module")
def large() -> TraceContent:
    return TraceContent.of(record_shared_graph(200)._data)


def test_the_first_and_the_last_picture_are_sent_first_for_any_number_of_passes(large: TraceContent) -> None:
    content = large.content()
    assert len(content["svgs"]) == 2 and set(content["chunks"]) == {"0/", "199/", "steps0"}
    assert content["notes"] == []


def test_each_step_belongs_to_the_picture_of_its_pass(large: TraceContent) -> None:
    columns = overview(large.content())
    assert columns["views"] == [f"{pass_id}/" for pass_id in range(200)]
    assert columns["view"] == [row.pass_id for row in large.trace.rows]
    steps, view = large.trace.lookup.steps(25), large.chunk("25/")
    assert view["visible_steps"] == [(steps[0], steps[-1])]
    assert [tuple(crumb) for crumb in view["breadcrumbs"]] == [("25/", "Pass 26")]


# -- passes of equal structure share a picture


def record_network(count: int) -> hv.Trace:
    """Record a training whose first weights and module boxes have hooks."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
    net.add_module('<n1>&"', nn.Identity())
    net[0].weight.register_hook(lambda grad: grad * 2)
    net[2].register_full_backward_hook(lambda module, grad_input, grad_output: None)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    with hv.record(net) as trace:
        for _ in range(count):
            optimizer.zero_grad()
            net(torch.randn(4, 3)).square().mean().backward()
            optimizer.step()
    return trace


def test_each_pass_has_its_own_ids_and_texts_in_the_shared_picture() -> None:
    trace = record_network(COUNTS[0])
    large = TraceContent.of(trace._data)
    for pass_id in (0, 1, 44):
        root = ET.fromstring(picture(large, f"{pass_id}/"))
        ids = [element.attrib["id"] for element in root.iter() if "id" in element.attrib]
        own_steps = [step for step in trace.steps if step.pass_id == pass_id]
        graph = make_visible_graph(trace._data, pass_id, whole=True)
        nodes = {*graph.nodes, *(row for rows in graph.parameters.values() for row in rows)}
        assert {spot for spot in ids if re.fullmatch(r"n\d+", spot)} == {f"n{node}" for node in nodes}
        calls = {step.row.call for step in own_steps} - {None, *graph.idle_calls}
        assert {spot for spot in ids if re.fullmatch(r"m\d+", spot)} == {f"m{call}" for call in calls}
        assert len(set(ids)) == len(ids) and sum("-p" in spot and spot[-2:] != "-v" for spot in ids) == 2
        texts = [(text.text or "").strip() for text in root.iter("{http://www.w3.org/2000/svg}text")]
        number = f" (call {pass_id + 1})" if pass_id else ""
        calls = [f"{name}{number}" for name in ("net", "net.0", "net.1", "net.2")]
        assert [call for call in calls if call not in texts] == []
        ops = {trace._data.ops[node] for node in graph.nodes}
        assert [op for op in ops if not any(text.startswith(op) for text in texts)] == []


def test_a_page_stores_the_picture_of_equal_passes_once() -> None:
    content = TraceContent.of(record_shared_graph(COUNTS[0])._data).full_content()
    parts = content["chunks"]
    sent: list[Any] = [unpack_chunk(content, name)["svg"] for name in parts if re.fullmatch(r"\d+/", name)]
    shared = [svg for svg in sent if svg not in (0, 1)]
    assert len(shared) == len(sent) - 2, "only the first and the last picture are sent whole"
    assert sum("pieces" in svg for svg in shared) == 1 and all("fill" in svg for svg in shared)
    assert max(len(part) for name, part in parts.items() if re.fullmatch(r"[1-9]\d*/", name)) < 2_500
