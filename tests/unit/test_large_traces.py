"""A large trace is sent in chunks: opening it is cheap, and no step is lost."""

import json
import random
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from scenes import Doubled, chain, count_calls, fan, leaf, recorded
from shown import shown_words, unpack_chunk
from torch import nn

import hookviz as hv
from hookviz.picture.visible_graph import MAX_UNREACHED_NODES, make_visible_graph
from hookviz.player import trace_content
from hookviz.player.compression import pack
from hookviz.player.payload import CHUNK_SIZE
from hookviz.player.trace_content import (
    MAX_UNSPLIT_STEPS,
    OUTPUT_BOXES,
    OUTPUT_CHUNKS,
    TraceContent,
)
from hookviz.player.widget import Player
from tests.unit.test_views import MAX_BOXES

pytestmark = pytest.mark.slow


class RecordingPlayer(Player):
    """A player that records the messages it sends."""

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.sent: list[Any] = []

    def send(self, content: Any, buffers: Any = None) -> None:
        self.sent.append(content)


def record_backward(loss: torch.Tensor) -> hv.Trace:
    with hv.record() as trace:
        loss.backward()
    return trace


UNREACHED = (
    "A pass reached only a small part of its graph. Its picture shows that part and, of the rest, the "
    f"{MAX_UNREACHED_NODES} nodes nearest to where the pass began."
)


def record_layers(count: int = 30, hook: Callable[..., Any] | None = None) -> hv.Trace:
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(count)))
    if hook is not None:
        model[3].register_full_backward_hook(hook)
        model[4].weight.register_hook(lambda grad: grad * 2)
    with hv.record(model) as trace:
        model(torch.ones(2, 4)).sum().backward()
    return trace


@pytest.fixture(scope="module")
def large() -> TraceContent:
    return TraceContent.of(record_layers(hook=lambda module, grad_input, grad_output: None)._data)


@pytest.fixture(scope="module")
def long() -> TraceContent:
    return TraceContent.of(record_backward(chain(3000))._data)


@pytest.fixture(scope="module")
def nested() -> TraceContent:
    return TraceContent.of(record_nested_modules()._data)


def views_of(large: TraceContent) -> dict[str, Any]:
    return {name: large.chunk(name) for name in large.chunk_names() if "/" in name}


def test_only_large_traces_are_split_into_chunks() -> None:
    large = record_layers(), record_backward(chain(MAX_UNSPLIT_STEPS // 2))
    assert all(TraceContent.of(trace._data).is_large for trace in large)
    small = TraceContent.of(recorded()._data)
    assert not small.is_large
    assert set(small.chunk_names()) == {"steps0", "0/", "index"} == small.content()["chunks"].keys()
    assert small.full_content() == small.content() == small.brief_content()


# -- boxes of a view


class Nested(nn.Module):
    """Modules nested ``depth`` levels deep."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.inner = Nested(depth - 1) if depth > 1 else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x * self.scale
        return x if self.inner is None else self.inner(x)


def runs_of_ops() -> torch.Tensor:
    x = leaf(0.5)
    for function in (torch.sin, torch.exp, torch.tanh):
        for _ in range(30):
            x = function(x)
    return x


def irregular_graph() -> torch.Tensor:
    """Return the result of random ops, each of which may use any earlier result."""
    choose = random.Random(0).choice
    tensors = [leaf(1.0), leaf(2.0)]
    while len(tensors) < 300:
        tensors.append(choose([torch.add, torch.mul, torch.sub, torch.maximum])(choose(tensors), choose(tensors[-8:])))
    return tensors[-1]


def record_calls(model: nn.Module, x: torch.Tensor) -> hv.Trace:
    with hv.record(model) as trace:
        model(x).sum().backward()
    return trace


LARGE: dict[str, tuple[Callable[[], hv.Trace], list[str]]] = {
    "a chain": (lambda: record_backward(chain(500)), ["1 – 25", "AddBackward0, MulBackward0 · 25 nodes", "476 – 500"]),
    "a chain of three ops": (lambda: record_backward(chain(100, ops=3)), []),
    "a fan": (lambda: record_backward(fan(120)), ["AccumulateGrad · 20 nodes"]),
    "runs": (lambda: record_backward(runs_of_ops()), ["ExpBackward0 · 10 nodes", "SinBackward0 · 10 nodes"]),
    "an irregular graph": (lambda: record_backward(irregular_graph()), []),
    "equal layers": (
        lambda: record_calls(nn.Sequential(*(nn.Linear(2, 2) for _ in range(60))), torch.ones(1, 2)),
        ["model 0 – 59 × 60"],
    ),
    "nested modules": (lambda: record_calls(Nested(180), torch.ones(1)), []),
    "one layer": (
        lambda: record_calls(nn.Sequential(*[nn.Linear(2, 2)] * 60), torch.ones(1, 2)),
        ["model.0 × 60"],
    ),
}


@pytest.mark.parametrize(("make", "labels"), LARGE.values(), ids=LARGE)
def test_each_view_has_few_boxes_and_each_node_has_a_box_in_one_of_them(
    make: Callable[[], hv.Trace], labels: list[str]
) -> None:
    large = TraceContent.of(make()._data)
    boxes = [BOX.findall(picture(large, name)) for name in views_of(large)]
    assert len(boxes) > 1 and max(map(len, boxes)) <= MAX_BOXES
    for internal in {name.endswith("+") for name in views_of(large)}:
        names = [name for name in views_of(large) if name.endswith("+") == internal]
        nodes = {int(spot[1:]) for name in names for spot in BOX.findall(picture(large, name)) if spot[0] == "n"}
        assert nodes == set(make_visible_graph(large.trace, 0, internal=internal, whole=True).nodes)
    texts = re.findall(">([^<>]+)<", picture(large, "0/"))
    assert [label for label in labels if label not in texts] == []


def test_a_bar_of_a_stack_opens_its_layer_and_is_as_high_as_the_gradient_that_arrived_there() -> None:
    large = TraceContent.of(record_calls(nn.Sequential(*(Doubled() for _ in range(45))), torch.ones(2))._data)
    (bars,) = large.chunk("0/")["stacks"].values()
    views = views_of(large)
    assert [bar["count"] for bar in bars] == [2] * 22 + [1]
    assert all(bar["view"] in views and bar["spans"] for bar in bars)
    heights = [bar["heights"][-1][1] for bar in bars]
    assert heights == sorted(heights, reverse=True) and (heights[0], heights[-1]) == (1.0, 0.1)


def test_a_bar_of_a_gradient_with_nan_has_no_height(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_content, "MAX_UNSPLIT_STEPS", 10)
    model = nn.Sequential(*(Doubled() for _ in range(21)))
    model[3].register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * float("nan"),))
    trace = record_calls(model, leaf(1.0))
    (bars,) = TraceContent.of(trace._data).chunk("0/")["stacks"].values()
    assert [bar["heights"][0][1] for bar in bars][:4] == [-1, -1, -1, 1.0]


# -- chunks


def test_step_chunks_hold_every_sentence_of_the_trace(large: TraceContent) -> None:
    chunks = [large.chunk(name)["steps"] for name in large.chunk_names() if name.startswith("steps")]
    assert [len(chunk) for chunk in chunks[:-1]] == [CHUNK_SIZE] * (len(chunks) - 1)
    sentences = [words["sentence"] for chunk in chunks for words in chunk]
    assert sentences == [step.sentence for step in large.trace.steps]


def test_every_step_of_a_node_or_call_is_marked_in_a_view(large: TraceContent) -> None:
    views = views_of(large)
    marked_steps = [
        step
        for view in views.values()
        for step in {s for spot, at in view["steps"].items() if spot[0] in "nm" for s in at}
    ]
    node_and_call_steps = [i for i, row in enumerate(large.trace.rows) if row.node is not None or row.call is not None]
    assert set(marked_steps) >= set(node_and_call_steps)


def test_a_box_counts_its_hooks_and_those_that_fired(large: TraceContent) -> None:
    top = large.chunk("0/")
    counts = [texts for spot, texts in top["texts"].items() if spot.endswith("-c")]
    labels = sorted([text for _, text, _ in texts] for texts in counts)
    assert labels == [["2 hooks, 0 fired", "2 hooks, 1 fired", "2 hooks, 2 fired"]]


def test_a_box_shows_the_range_of_its_gradient_norms() -> None:
    trace = record_backward(fan(50) * 3)
    top = TraceContent.of(trace._data).chunk("0/")
    (texts,) = [texts for spot, texts in top["texts"].items() if spot == "g1-g"]
    assert texts[-1][1] == "norm 3"


def test_a_box_reports_nan_or_inf_gradients() -> None:
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    y = x.log()
    for _ in range(60):
        y = y * 1.1
    top = TraceContent.of(record_backward(y.sum() * float("nan"))._data).chunk("0/")
    labels = [texts[-1][1] for spot, texts in top["texts"].items() if spot.endswith("-g") and spot.startswith("g")]
    assert labels and all("with NaN or Inf" in label for label in labels)


def test_the_player_answers_with_the_requested_chunk(large: TraceContent) -> None:
    player = RecordingPlayer.showing(large.content())
    for name in ("steps0", "0/m999", "steps999", "9/"):
        player.answer({"chunk": name}, None, large.chunk)
    sent, *unknown = player.sent  # type: ignore[attr-defined]
    assert sent == {"chunk": "steps0", "packed": pack(large.chunk("steps0"))}
    assert [message["packed"] for message in unknown] == [None] * 3
    assert player.steps == len(large.trace.rows)


def index_of(large: TraceContent) -> list[dict[str, Any]]:
    index = large.chunk("index")
    names = ("kind", "label", "note", "number", "view", "steps")
    return [dict(zip(names, row, strict=True)) for row in zip(*(index[name] for name in names), strict=True)]


def picture(large: TraceContent, name: str) -> str:
    """The SVG of a view, assembled as in the player."""
    svg = large.chunk(name)["svg"]
    if isinstance(svg, int):
        return large.content()["svgs"][svg]
    if isinstance(svg, str):
        return svg
    pieces = svg["pieces"] if "pieces" in svg else large.chunk(svg["like"])["svg"]["pieces"]
    return "".join(svg["fill"][piece] if isinstance(piece, int) else piece for piece in pieces)


BOX = re.compile(r'<g id="(\w+)"[^>]* class="hv-(?:node(?! hv-parameter)|fold|module)')
"""The ids of the boxes of a picture; the rows of parameters in them are no boxes."""


def element_ids(large: TraceContent, name: str) -> set[str]:
    """The ids in the picture of a view."""
    return set(re.findall(r'id="([^"]+)"', picture(large, name)))


def record_nested_modules() -> hv.Trace:
    """Record two passes of a two-level model with a module hook and a parameter hook."""
    torch.manual_seed(0)
    block = [nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout()) for _ in range(30)]
    model = nn.Sequential(*block).eval()
    model[3].register_forward_hook(lambda module, args, output: None)
    model[4][0].weight.register_hook(print_nothing)
    with hv.record(model) as trace:
        for _ in range(2):
            model(torch.ones(2, 4)).sum().backward()
    return trace


def print_nothing(grad: torch.Tensor) -> None:
    """A hook with a name."""


def test_each_index_entry_is_drawn_in_the_view_it_names(nested: TraceContent) -> None:
    views = views_of(nested)
    ids = {name: element_ids(nested, name) for name in views}
    graphs = [make_visible_graph(nested.trace, pass_id, whole=True) for pass_id in (0, 1)]
    for entry in index_of(nested):
        if entry["number"] >= 0:
            boxes = graphs[int(entry["view"][0])].boxes
            assert f"n{boxes.get(entry['number'], entry['number'])}" in ids[entry["view"]]
        for step in entry["steps"]:
            assert any(first <= step <= last for first, last in views[entry["view"]]["visible_steps"])


def record_forward_alone() -> hv.Trace:
    model = nn.Sequential(*(nn.ReLU() for _ in range(60)))
    with hv.record(model) as trace:
        model(torch.ones(2))
    return trace


@pytest.mark.parametrize("make", [record_nested_modules, record_forward_alone])
def test_the_index_has_every_node_module_call_and_hook(make: Callable[[], hv.Trace]) -> None:
    large = TraceContent.of(make()._data)
    entries = index_of(large)
    nodes = {entry["number"] for entry in entries if entry["kind"] in ("node", "leaf")}
    assert nodes == set(range(len(large.trace.ops))) - large.trace.outside
    calls = [entry["label"] for entry in entries if entry["kind"] == "module"]
    assert sorted(calls) == sorted(large.trace.call(index) for index in range(len(large.trace.calls)))
    first = {entry["steps"][0] for entry in entries if entry["kind"] == "hook"}
    fired = {(row.pass_id, row.hook): i for i, row in reversed([*enumerate(large.trace.rows)]) if row.hook is not None}
    assert first == set(fired.values())


def test_the_index_uses_hook_module_and_parameter_names(nested: TraceContent) -> None:
    entries = {(entry["kind"], entry["label"], entry["note"]) for entry in index_of(nested)}
    assert {
        ("hook", "print_nothing", "model.4.0.weight"),
        ("module", "model.4.0", "Linear"),
        ("module", "model.4.0 (call 2)", "Linear"),
        ("leaf", "model.4.0.weight", "AccumulateGrad"),
    } <= entries


def test_the_index_lists_an_unfired_hook_without_steps() -> None:
    x, w = leaf(1.0), leaf(2.0)
    w.register_hook(print_nothing)
    y = w * x
    for _ in range(50):
        y = y * 1.1
    with hv.record() as trace:
        y.backward(inputs=[x])
    (hook,) = [entry for entry in index_of(TraceContent.of(trace._data)) if entry["kind"] == "hook"]
    assert (hook["label"], hook["note"], hook["steps"]) == ("print_nothing", "w", [])


def test_the_index_is_sent_only_on_request(long: TraceContent) -> None:
    assert "index" not in long.content()["chunks"] and "index" in long.brief_content()["chunks"]
    assert len(pack(long.chunk("index"))) < 45_000 and len(json.dumps(long.content())) < 450_000


def test_the_cost_of_the_index_is_linear_in_the_steps() -> None:
    cost_of_1000, cost_of_4000 = (
        count_calls(partial(TraceContent.of(record_backward(chain(count))._data).chunk, "index"))
        for count in (1000, 4000)
    )
    assert cost_of_1000 < 115 * 1000 and cost_of_4000 < 4.1 * cost_of_1000


def test_a_closed_box_links_to_another_view(nested: TraceContent) -> None:
    views = views_of(nested)
    links = [(name, to) for name, view in views.items() for to in view["links"].values()]
    assert links and all(to in views and to != name for name, to in links)


def test_a_page_embeds_all_chunks_and_a_cell_output_the_first_ones(large: TraceContent, long: TraceContent) -> None:
    full_content = large.full_content()
    assert set(full_content["chunks"]) == set(large.chunk_names())
    brief_content = long.brief_content()
    assert sum(name.startswith("steps") for name in brief_content["chunks"]) == OUTPUT_CHUNKS
    assert sum("/" in name for name in brief_content["chunks"]) == OUTPUT_BOXES
    notes = brief_content["notes"]
    assert f"the first {OUTPUT_CHUNKS * CHUNK_SIZE} steps" in notes[-2]
    assert f"the first {OUTPUT_BOXES} boxes" in notes[-1]
    assert TraceContent.of(record_backward(chain(100))._data).brief_content()["notes"] == []


def test_a_truncated_firings_table_states_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookviz.player.hook_texts.MAX_FIRINGS", 10)
    x = leaf(1.0)
    with hv.record() as trace:
        for _ in range(11):
            x = x * 1.0
            x.register_hook(lambda grad: None)
        x.backward()
    content = TraceContent.of(trace._data).content()
    assert len(content["runs"][0]["firings"]) == 10
    assert content["notes"] == ["11 hooks fired; the table shows the first 10."]


def test_each_pass_has_its_own_picture() -> None:
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(20)))
    with hv.record(model) as trace:
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
    content = TraceContent.of(trace._data).content()
    assert list(content["chunks"])[:2] == ["0/", "2/"] and len(content["svgs"]) == 2
    assert unpack_chunk(content, "2/")["breadcrumbs"] == [["2/", "Pass 3"]]


def test_a_gradient_sent_to_many_edges_is_abbreviated() -> None:
    trace = record_backward(fan(1_000))
    steps = map(shown_words, TraceContent.of(trace._data).chunk("steps0")["steps"])
    (words,) = [words for words in steps if words["title"] == "StackBackward0 computes"]
    assert len(json.dumps(words)) < 10_000
    assert words["gradients"][-1] == ["", "… 976 more"]
    assert "… 992 more" in words["sentence"]


def record_passes_through_a_large_graph(count: int) -> hv.Trace:
    """Record passes that each visit three nodes of a graph with hundreds of nodes."""
    start = torch.ones(1, requires_grad=True)
    many = torch.cat([start * k for k in range(300)])
    with hv.record() as trace:
        for _ in range(count):
            h = many * 2
            torch.autograd.grad(h.sum(), h)
    return trace


def test_a_pass_through_part_of_a_large_graph_draws_that_part_with_a_note() -> None:
    few, more = (TraceContent.of(record_passes_through_a_large_graph(count)._data) for count in (2, 8))
    assert UNREACHED in few.content()["notes"]
    reached = {f"n{row.node}" for row in few.trace.rows if row.pass_id == 0 and row.node is not None}
    drawn = {spot for name in views_of(few) if name[0] == "0" for spot in element_ids(few, name) if spot[0] == "n"}
    assert reached < {spot for spot in drawn if "-" not in spot}
    assert len({spot for spot in drawn if "-" not in spot}) == len(reached) + MAX_UNREACHED_NODES
    pages = [sum(len(str(large.chunk(name))) for name in large.chunk_names()) for large in (few, more)]
    assert pages[1] < 5 * pages[0]
    whole = TraceContent.of(record_layers()._data).content()
    assert UNREACHED not in whole["notes"]
