"""Recordings of many passes: the cost is linear in the number of steps, and equal passes share a picture."""

import re
import tracemalloc
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from scenes import count_calls, leaf
from shown import in_english, outline, shown_notes, unpack_chunk
from torch import nn

import hookviz as hv
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.picture.dot_source import build_figure
from hookviz.picture.grouping import MAX_VISIBLE_BOXES, BoxTree
from hookviz.player.html_page import page
from hookviz.player.trace_content import TraceContent, is_large
from hookviz.trace.lookup import Lookup
from hookviz.trace.rows import TensorRow
from hookviz.trace.tensor_names import TensorNames
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


def record_new_hooks(count: int) -> hv.Trace:
    """Record passes that each put a hook on a new tensor."""
    a, b = leaf(2.0), leaf(3.0)
    with hv.record() as trace:
        for _ in range(count):
            c = a * b
            c.register_hook(lambda grad: grad * 2)
            (c * a).backward()
    return trace


def record_shared_graph(count: int) -> hv.Trace:
    """Record many passes over the same graph."""
    a, b = leaf(2.0), leaf(3.0)
    with hv.record() as trace:
        e = a * b * a
        for _ in range(count):
            torch.autograd.grad(e, (a, b), retain_graph=True)
    return trace


def record_forward_calls(count: int) -> hv.Trace:
    """Record many calls of a model, without a backward pass."""
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with hv.record(model) as trace:
        for _ in range(count):
            model(torch.ones(1, 2))
    return trace


def record_nan_weight(count: int) -> hv.Trace:
    """Record passes in which a weight is NaN."""
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.fill_(float("nan"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hv.record(model) as trace:
        for _ in range(count):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    return trace


PROGRAMS = (record_training, record_new_hooks, record_shared_graph, record_forward_calls, record_nan_weight)
cached_trace = cache(lambda make, count: make(count))
"""Traces shared by several tests."""

VIEWS: dict[str, Callable[[hv.Trace], object]] = {
    "player": lambda trace: TraceContent(trace).content(),
    "output": lambda trace: TraceContent(trace).brief_content(),
    "troubles": lambda trace: trace.troubles,
    "findings": lambda trace: trace.findings,
    "quiz": lambda trace: trace.quiz(),
    "diff": lambda trace: trace.diff(trace),
    "why": lambda trace: [trace.why(step) for step in range(0, len(trace.rows), 50)],
}


def is_linear(costs: list[int]) -> bool:
    return all(more <= MAX_COST_RATIO * less for less, more in pairwise(costs))


@pytest.mark.parametrize("make", PROGRAMS)
def test_the_cost_of_recording_is_linear_in_the_passes(make: Callable[[int], hv.Trace]) -> None:
    make(2)
    assert is_linear([count_calls(lambda count=count: make(count)) for count in COUNTS])  # type: ignore[misc]


def record_multi_grad_hooks(count: int) -> hv.Trace:
    """Record passes in which a hook on a named and an unnamed tensor fires."""
    a, b = leaf(2.0), leaf(3.0)
    with hv.record() as trace:
        for _ in range(count):
            products = [{"of a": a * b}]
            torch.autograd.graph.register_multi_grad_hook([b, products[0]["of a"]], lambda grads: None)
            (products[0]["of a"] * a).backward()
    return trace


@pytest.mark.parametrize("make", [*PROGRAMS, record_multi_grad_hooks])
def test_recording_never_builds_a_lookup_over_all_tables(
    make: Callable[[int], hv.Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[int] = []
    original_init = Lookup.__init__
    monkeypatch.setattr(
        Lookup, "__init__", lambda self, trace: (built.append(len(trace.rows)), original_init(self, trace))[1]
    )
    trace = make(COUNTS[0])
    assert built == [] and trace.lookup.passes and built == [len(trace.rows)]


def test_tensor_names_of_growing_tables_match_the_full_tables() -> None:
    trace = cached_trace(record_multi_grad_hooks, 3)
    ops: list[str] = []
    tensors: list[TensorRow] = []
    growing = TensorNames(ops, tensors)
    for op in trace.ops:
        ops.append(op)
        assert growing.update(ops, tensors) and (op in growing.repeated) == (ops.count(op) > 1)
    for row in trace.tensors:
        tensors.append(row)
        names = (
            tensor.name for tensor in tensors if tensor.name and (tensor.node, tensor.output) == (row.node, row.output)
        )
        assert growing.update(ops, tensors) and growing.tensors.get((row.node, row.output)) == next(names, None)
    assert growing.update(ops, tensors) and not growing.update(ops, trace.tensors)


class SearchCountingList(list[int]):
    """A list that counts its linear searches."""

    searches = 0

    def __contains__(self, thing: object) -> bool:
        self.searches += 1
        return super().__contains__(thing)


def test_hooks_of_an_earlier_pass_are_not_looked_up_by_linear_search(monkeypatch: pytest.MonkeyPatch) -> None:
    leaves = [leaf(1.0) for _ in range(COUNTS[1])]
    for x in leaves:
        x.register_hook(lambda grad: None)
    original_init = GraphSnapshot.__init__

    def counting_init(self: GraphSnapshot, *given: Any) -> None:
        original_init(self, *given)
        self.trace.hooked[-1] = SearchCountingList()

    monkeypatch.setattr(GraphSnapshot, "__init__", counting_init)
    with hv.record() as trace:
        for _ in range(2):
            torch.stack(leaves).sum().backward()
    first, second = trace.hooked
    assert isinstance(second, SearchCountingList) and second.searches == 0
    assert len(first) == COUNTS[1] and first == second


@pytest.mark.parametrize("make", [record_training, record_nan_weight])
def test_the_cost_of_saving_and_loading_is_linear_in_the_passes(
    make: Callable[[int], hv.Trace], tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    save_costs, load_costs = [], []
    for count in COUNTS:
        trace = cached_trace(make, count)
        save_costs.append(count_calls(lambda trace=trace: trace.save(path)))  # type: ignore[misc]
        load_costs.append(count_calls(lambda: hv.load(path)))
    assert is_linear(save_costs) and is_linear(load_costs)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("make", [record_training, record_nan_weight])
def test_the_cost_of_each_view_is_linear_in_the_passes(make: Callable[[int], hv.Trace], view: str) -> None:
    VIEWS[view](cached_trace(make, 2))
    assert is_linear([count_calls(lambda count=count: VIEWS[view](cached_trace(make, count))) for count in COUNTS])  # type: ignore[misc]


@pytest.mark.parametrize("make", [record_new_hooks, record_shared_graph, record_forward_calls])
def test_the_cost_of_a_page_is_linear_in_the_passes(make: Callable[[int], hv.Trace]) -> None:
    assert is_linear([count_calls(lambda count=count: page(cached_trace(make, count))) for count in COUNTS])  # type: ignore[misc]


def test_the_memory_for_a_page_is_linear_in_the_passes() -> None:
    assert is_linear([peak_memory(lambda count=count: page(cached_trace(record_new_hooks, count))) for count in COUNTS])  # type: ignore[misc]


def peak_memory(work: Callable[[], object]) -> int:
    """Peak of Python's traced memory while ``work`` runs, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_page_builds_the_box_tree_of_each_pass_once_or_twice_for_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []
    original = BoxTree._nest_calls
    monkeypatch.setattr(BoxTree, "_nest_calls", lambda self: (built.append(self.pass_id), original(self))[1])
    page(cached_trace(record_shared_graph, COUNTS[0]))
    assert sorted(built) == [*range(COUNTS[0]), COUNTS[0] - 1]


# -- one picture for each pass


@pytest.fixture(scope="module")
def large() -> TraceContent:
    return TraceContent(cached_trace(record_shared_graph, 200))


def test_a_trace_with_more_passes_than_visible_boxes_is_large() -> None:
    few, many = (record_shared_graph(count) for count in (MAX_VISIBLE_BOXES, MAX_VISIBLE_BOXES + 1))
    assert len(many.rows) < 400 and is_large(many) and not is_large(few)


def test_the_first_and_the_last_picture_are_sent_first_for_any_number_of_passes(large: TraceContent) -> None:
    content = large.content()
    assert len(content["svgs"]) == 2 and set(content["chunks"]) == {"0/", "199/", "steps0"}
    assert content["notes"] == []


def test_each_step_belongs_to_the_picture_of_its_pass(large: TraceContent) -> None:
    columns = outline(large.content())
    assert columns["views"] == [f"{pass_id}/" for pass_id in range(200)]
    assert columns["picture"] == [row.pass_id for row in large.trace.rows]
    for pass_id in (0, 25, 199):
        steps, view = large.trace.lookup.steps(pass_id), large.chunk(f"{pass_id}/")
        assert view["visible_steps"] == [(steps[0], steps[-1])]
        breadcrumbs = [(name, in_english(title)) for name, title in view["breadcrumbs"]]
        assert breadcrumbs == [(f"{pass_id}/", f"Pass {pass_id + 1}")]


def test_an_output_has_the_pictures_of_the_first_passes_and_says_so(large: TraceContent) -> None:
    content = large.brief_content()
    pictures = {name for name in content["chunks"] if name.endswith("/")}
    assert pictures == {*(f"{pass_id}/" for pass_id in range(MAX_VISIBLE_BOXES)), "199/"}
    assert f"the first {MAX_VISIBLE_BOXES} boxes" in shown_notes(content)[-1]


def test_the_index_lists_passes(large: TraceContent) -> None:
    columns = large.chunk("index")
    labels = map(in_english, columns["label"])
    rows = list(zip(columns["kind"], labels, columns["view"], columns["steps"], strict=True))
    assert ("pass", "Pass 26", "25/", [large.trace.lookup.steps(25)[0]]) in rows


def test_an_unknown_group_or_pass_raises_keyerror(large: TraceContent) -> None:
    for name in ("0/g999", "200/", "-1/"):
        with pytest.raises(KeyError):
            large.chunk(name)


# -- passes of equal structure share a picture


def ids_and_fixed_texts(svg: str) -> tuple[list[str], list[str]]:
    """The ids of a picture, and the texts that no step overwrites."""
    root = ET.fromstring(svg)
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    fixed_texts = [text.text or "" for text in texts if not re.search(r"-[vgaic]$", text.get("id", ""))]
    return [element.attrib["id"] for element in root.iter() if "id" in element.attrib], fixed_texts


def test_each_pass_has_its_own_ids_and_texts_in_the_shared_picture() -> None:
    large = TraceContent(cached_trace(record_training, COUNTS[0]))
    for pass_id in (0, 1, 44):
        own = large._pictures._pass_pictures(pass_id)
        alone = build_figure(own.scene(own.views.view_of(own.groups[""])), None, for_player=True).svg()
        assert ids_and_fixed_texts(picture(large, f"{pass_id}/")) == ids_and_fixed_texts(alone)


def test_a_page_stores_the_picture_of_equal_passes_once() -> None:
    content = TraceContent(cached_trace(record_shared_graph, COUNTS[0])).full_content()
    parts = content["chunks"]
    sent: list[Any] = [unpack_chunk(content, name)["svg"] for name in parts if re.fullmatch(r"\d+/", name)]
    shared = [svg for svg in sent if svg not in (0, 1)]
    assert len(shared) == len(sent) - 2, "only the first and the last picture are sent whole"
    assert sum("pieces" in svg for svg in shared) == 1 and all("fill" in svg for svg in shared)
    assert max(len(part) for name, part in parts.items() if re.fullmatch(r"[1-9]\d*/", name)) < 2_500


def test_a_view_requested_again_still_carries_the_shared_picture() -> None:
    large = TraceContent(cached_trace(record_shared_graph, COUNTS[0]))
    assert large.chunk("7/")["svg"].keys() == large.chunk("7/")["svg"].keys() == {"pieces", "fill"}
    assert large.chunk("1/")["svg"]["like"] == "7/"
