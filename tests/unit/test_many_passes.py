"""Recordings of very many passes: what they cost grows with the steps, and passes are folded as modules are."""

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
from shown import in_english, shown_notes, unpack_chunk
from torch import nn

import hookviz as hv
from hookviz.autograd.graph_snapshot import GraphSnapshot
from hookviz.picture.dot_source import build_figure
from hookviz.picture.grouping import MAX_VISIBLE_BOXES, BoxTree
from hookviz.player.html_page import page
from hookviz.player.pass_views import GROUP_PREFIX
from hookviz.player.trace_content import TraceContent, is_large
from hookviz.trace.lookup import Lookup
from hookviz.trace.rows import TensorRow
from hookviz.trace.tensor_names import TensorNames
from tests.unit.test_large_traces import picture

pytestmark = pytest.mark.slow

COUNTS = (45, 90)
"""Passes, and twice as many: more than are seen at once."""
DOUBLED = 2.2
"""Twice the passes cost at most so many times."""


def trained(count: int) -> hv.Trace:
    """Two numbers that are fitted, with a hook: each pass has other values."""
    a, b = leaf(2.0), leaf(3.0)
    a.register_hook(lambda grad: grad * 2)
    optimizer = torch.optim.SGD([a, b], lr=1e-3)
    with hv.record() as trace:
        for _ in range(count):
            optimizer.zero_grad()
            ((a * b - 7) ** 2).backward()
            optimizer.step()
    return trace


def hooked_anew(count: int) -> hv.Trace:
    """In every pass a tensor of its own has a hook."""
    a, b = leaf(2.0), leaf(3.0)
    with hv.record() as trace:
        for _ in range(count):
            c = a * b
            c.register_hook(lambda grad: grad * 2)
            (c * a).backward()
    return trace


def over_one_graph(count: int) -> hv.Trace:
    """Many passes over one and the same graph."""
    a, b = leaf(2.0), leaf(3.0)
    with hv.record() as trace:
        e = a * b * a
        for _ in range(count):
            torch.autograd.grad(e, (a, b), retain_graph=True)
    return trace


def forwards(count: int) -> hv.Trace:
    """A model that is called many times, without a backward pass."""
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with hv.record(model) as trace:
        for _ in range(count):
            model(torch.ones(1, 2))
    return trace


def ill(count: int) -> hv.Trace:
    """A weight is NaN in every pass."""
    model = nn.Linear(2, 1)
    with torch.no_grad():
        model.weight.fill_(float("nan"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with hv.record(model) as trace:
        for _ in range(count):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
    return trace


PROGRAMS = (trained, hooked_anew, over_one_graph, forwards, ill)
kept = cache(lambda make, count: make(count))
"""A recording that several tests look at."""

SHOWN: dict[str, Callable[[hv.Trace], object]] = {
    "player": lambda trace: TraceContent(trace).content(),
    "output": lambda trace: TraceContent(trace).brief_content(),
    "troubles": lambda trace: trace.troubles,
    "quiz": lambda trace: trace.quiz(),
    "diff": lambda trace: trace.diff(trace),
    "why": lambda trace: [trace.why(step) for step in range(0, len(trace.rows), 50)],
}


def linear(costs: list[int]) -> bool:
    return all(more <= DOUBLED * less for less, more in pairwise(costs))


@pytest.mark.parametrize("make", PROGRAMS)
def test_recording_twice_the_passes_is_twice_the_work(make: Callable[[int], hv.Trace]) -> None:
    make(2)
    assert linear([count_calls(lambda count=count: make(count)) for count in COUNTS])  # type: ignore[misc]


def multi_grad(count: int) -> hv.Trace:
    """A hook on two tensors, one of which has no name, fires in every pass."""
    a, b = leaf(2.0), leaf(3.0)
    with hv.record() as trace:
        for _ in range(count):
            products = [{"of a": a * b}]
            torch.autograd.graph.register_multi_grad_hook([b, products[0]["of a"]], lambda grads: None)
            (products[0]["of a"] * a).backward()
    return trace


@pytest.mark.parametrize("make", [*PROGRAMS, multi_grad])
def test_nothing_reads_all_tables_while_they_grow(
    make: Callable[[int], hv.Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    begin = Lookup.__init__
    monkeypatch.setattr(Lookup, "__init__", lambda self, trace: (made.append(len(trace.rows)), begin(self, trace))[1])
    trace = make(COUNTS[0])
    assert made == [] and trace.lookup.passes and made == [len(trace.rows)]


def test_names_that_are_asked_for_while_tables_grow_are_those_of_the_whole_tables() -> None:
    whole = kept(multi_grad, 3)
    ops: list[str] = []
    tensors: list[TensorRow] = []
    growing = TensorNames(ops, tensors)
    for op in whole.ops:
        ops.append(op)
        assert growing.update(ops, tensors) and (op in growing.repeated) == (ops.count(op) > 1)
    for row in whole.tensors:
        tensors.append(row)
        there = (known.name for known in tensors if known.name and (known.node, known.output) == (row.node, row.output))
        assert growing.update(ops, tensors) and growing.tensors.get((row.node, row.output)) == next(there, None)
    assert growing.update(ops, tensors) and not growing.update(ops, whole.tensors)


class Counted(list[int]):
    """A list that counts how often it is searched from end to end."""

    searches = 0

    def __contains__(self, thing: object) -> bool:
        self.searches += 1
        return super().__contains__(thing)


def test_hooks_known_from_an_earlier_pass_are_not_searched_for_in_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    leaves = [leaf(1.0) for _ in range(COUNTS[1])]
    for x in leaves:
        x.register_hook(lambda grad: None)
    made = GraphSnapshot.__init__

    def counted(self: GraphSnapshot, *given: Any) -> None:
        made(self, *given)
        self.trace.hooked[-1] = Counted()

    monkeypatch.setattr(GraphSnapshot, "__init__", counted)
    with hv.record() as trace:
        for _ in range(2):
            torch.stack(leaves).sum().backward()
    first, second = trace.hooked
    assert isinstance(second, Counted) and second.searches == 0
    assert len(first) == COUNTS[1] and first == second


@pytest.mark.parametrize("make", [trained, ill])
def test_saving_and_loading_twice_the_passes_is_twice_the_work(make: Callable[[int], hv.Trace], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    saved, loaded = [], []
    for count in COUNTS:
        trace = kept(make, count)
        saved.append(count_calls(lambda trace=trace: trace.save(path)))  # type: ignore[misc]
        loaded.append(count_calls(lambda: hv.load(path)))
    assert linear(saved) and linear(loaded)


@pytest.mark.parametrize("what", SHOWN)
@pytest.mark.parametrize("make", [trained, ill])
def test_showing_twice_the_passes_is_twice_the_work(make: Callable[[int], hv.Trace], what: str) -> None:
    SHOWN[what](kept(make, 2))
    assert linear([count_calls(lambda count=count: SHOWN[what](kept(make, count))) for count in COUNTS])  # type: ignore[misc]


@pytest.mark.parametrize("make", [hooked_anew, over_one_graph, forwards])
def test_a_page_of_twice_the_passes_is_twice_the_work(make: Callable[[int], hv.Trace]) -> None:
    assert linear([count_calls(lambda count=count: page(kept(make, count))) for count in COUNTS])  # type: ignore[misc]


def test_a_page_of_twice_the_passes_takes_twice_the_memory() -> None:
    assert linear([peak(lambda count=count: page(kept(hooked_anew, count))) for count in COUNTS])  # type: ignore[misc]


def peak(work: Callable[[], object]) -> int:
    """The most memory that Python held while ``work`` ran."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_page_makes_the_tree_of_each_pass_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    grow = BoxTree._nest_calls
    monkeypatch.setattr(BoxTree, "_nest_calls", lambda self: (made.append(self.pass_id), grow(self))[1])
    page(kept(over_one_graph, COUNTS[0]))
    assert made == list(range(COUNTS[0]))


# -- passes are folded


@pytest.fixture(scope="module")
def large() -> TraceContent:
    return TraceContent(kept(over_one_graph, 200))


def test_a_recording_of_more_passes_than_are_seen_at_once_is_large() -> None:
    few, many = (over_one_graph(count) for count in (MAX_VISIBLE_BOXES, MAX_VISIBLE_BOXES + 1))
    assert len(many.rows) < 400 and is_large(many) and not is_large(few)


def test_what_is_sent_has_one_picture_however_many_passes_there_are(large: TraceContent) -> None:
    content = large.content()
    assert len(content["svgs"]) == 1 and set(content["chunks"]) == {GROUP_PREFIX, "steps0"}
    (note,) = [note for note in shown_notes(content) if "200 passes" in note]
    assert "shown in groups" in note and "record(keep=" in note


def test_every_pass_is_behind_a_box_of_a_picture_that_one_can_take_in(large: TraceContent) -> None:
    waiting, passes = [GROUP_PREFIX], []
    for name in waiting:  # grows while it is read
        view = large.chunk(name)
        assert 0 < len(view["links"]) <= MAX_VISIBLE_BOXES and view["links"].keys() == view["spans"].keys()
        waiting += [to for to in view["links"].values() if to.startswith(GROUP_PREFIX)]
        passes += [to for to in view["links"].values() if not to.startswith(GROUP_PREFIX)]
    assert passes == [f"{pass_id}/" for pass_id in range(200)]
    assert set(waiting) == {name for name in large.chunk_names() if name.startswith(GROUP_PREFIX)}


def test_a_group_holds_the_steps_of_its_passes_and_says_how_large_their_gradients_are(large: TraceContent) -> None:
    top = large.chunk(GROUP_PREFIX)
    assert top["visible_steps"] == [(0, len(large.trace.rows) - 1)]
    (box, to), *_ = top["links"].items()
    assert large.chunk(to)["visible_steps"] == top["spans"][box]
    assert in_english(top["texts"][f"{box}-g"][-1][1]).startswith("gradient norm ")
    svg = picture(large, GROUP_PREFIX)
    assert "Passes 1 – 10" not in svg and re.findall(r"Passes \d+ – \d+", svg)[0] == "Passes 1 – 20"


def test_the_trail_leads_from_all_passes_to_the_pass(large: TraceContent) -> None:
    trail = large.chunk("25/")["breadcrumbs"]
    assert [in_english(title) for _, title in trail] == ["All 200 passes", "Passes 21 – 40", "Pass 26"]
    assert [name for name, _ in trail] == [GROUP_PREFIX, trail[1][0], "25/"]
    assert large.chunk(trail[1][0])["breadcrumbs"] == trail[:2]


def test_passes_can_be_searched_for(large: TraceContent) -> None:
    columns = large.chunk("index")
    labels = map(in_english, columns["label"])
    rows = list(zip(columns["kind"], labels, columns["view"], columns["steps"], strict=True))
    assert ("pass", "Pass 26", "25/", [large.trace.lookup.steps(25)[0]]) in rows


def test_a_hook_that_fires_in_every_pass_is_counted_once() -> None:
    top = TraceContent(kept(trained, COUNTS[1])).chunk(GROUP_PREFIX)
    (texts, *_) = [texts for spot, texts in top["texts"].items() if spot.endswith("-c")]
    assert [in_english(text) for _, text in texts] == ["1 hook, 0 fired", "1 hook, 1 fired"]


def test_a_group_that_is_not_there_is_an_error(large: TraceContent) -> None:
    for name in (f"{GROUP_PREFIX}g999", "200/", "-1/"):
        with pytest.raises(KeyError):
            large.chunk(name)


# -- passes of equal structure share a picture


def written(svg: str) -> tuple[list[str], list[str]]:
    """The ids of a picture, and the texts that no step writes anew."""
    root = ET.fromstring(svg)
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    still = [text.text or "" for text in texts if not re.search(r"-[vgaic]$", text.get("id", ""))]
    return [element.attrib["id"] for element in root.iter() if "id" in element.attrib], still


def test_each_pass_has_its_own_ids_and_texts_in_the_picture_that_it_shares() -> None:
    large = TraceContent(kept(trained, COUNTS[0]))
    for pass_id in (0, 1, 44):
        own = large._pictures._pass_pictures(pass_id)
        alone = build_figure(own.scene(own.views.view_of(own.groups[""])), None, for_player=True).svg()
        assert written(picture(large, f"{pass_id}/")) == written(alone)


def test_a_page_has_the_picture_of_passes_of_equal_structure_once() -> None:
    content = TraceContent(kept(over_one_graph, COUNTS[0])).full_content()
    parts = content["chunks"]
    sent: list[Any] = [unpack_chunk(content, name)["svg"] for name in parts if re.fullmatch(r"\d+/", name)]
    assert sum("pieces" in svg for svg in sent) == 1 and all("fill" in svg for svg in sent)
    assert max(len(part) for name, part in parts.items() if re.fullmatch(r"[1-9]\d*/", name)) < 2_500


def test_where_a_view_is_asked_for_again_the_first_of_its_structure_still_has_the_picture() -> None:
    large = TraceContent(kept(over_one_graph, COUNTS[0]))
    assert large.chunk("7/")["svg"].keys() == large.chunk("7/")["svg"].keys() == {"pieces", "fill"}
    assert large.chunk("0/")["svg"]["like"] == "7/"
