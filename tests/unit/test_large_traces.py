"""A large trace is sent in chunks: opening it is cheap, and no step is lost."""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from scenes import count_calls, leaf, recorded
from shown import in_english, outline, shown_notes, unpack_chunk, words_in_english
from torch import nn

import hookviz as hv
from hookviz.player.compression import pack
from hookviz.player.html_page import mimebundle, page
from hookviz.player.payload import CHUNK_SIZE
from hookviz.player.trace_content import (
    MAX_FIRINGS,
    MAX_UNSPLIT_STEPS,
    OUTPUT_BOXES,
    OUTPUT_CHUNKS,
    TraceContent,
    is_large,
)
from hookviz.player.widget import Player
from hookviz.support.messages import say
from hookviz.trace.traversal import MAX_UNREACHED_NODES
from tests.unit.test_grouping import chain, fan

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
    return TraceContent(record_layers(hook=lambda module, grad_input, grad_output: None))


def views_of(large: TraceContent) -> dict[str, Any]:
    return {name: large.chunk(name) for name in large.chunk_names() if "/" in name}


def test_only_large_traces_are_split_into_chunks() -> None:
    assert (
        not is_large(recorded()) and is_large(record_layers()) and is_large(record_backward(chain(MAX_UNSPLIT_STEPS)))
    )
    small = TraceContent(recorded())
    assert set(small.chunk_names()) == {"steps0", "0/", "index"} == small.content()["chunks"].keys()
    assert small.full_content() == small.content() == small.brief_content()


def test_step_chunks_hold_every_sentence_of_the_trace(large: TraceContent) -> None:
    chunks = [large.chunk(name)["steps"] for name in large.chunk_names() if name.startswith("steps")]
    assert [len(chunk) for chunk in chunks[:-1]] == [CHUNK_SIZE] * (len(chunks) - 1)
    sentences = [in_english(words["sentence"]) for chunk in chunks for words in chunk]
    assert sentences == [step.sentence for step in large.trace.steps]


def test_the_outline_has_every_step(large: TraceContent) -> None:
    columns = outline(large.content())
    assert columns["kind"] == [row.kind for row in large.trace.rows]
    assert columns["glyph"].count("hook") == len(large.trace.firings) == 2
    arrival_norms = [norm for kind, norm in zip(columns["kind"], columns["norm"], strict=True) if kind == "arrive"]
    assert arrival_norms and all(isinstance(norm, float) for norm in arrival_norms)


def test_every_step_of_a_node_or_call_is_marked_in_a_view(large: TraceContent) -> None:
    views = views_of(large)
    marked_steps = [
        step
        for view in views.values()
        for step in {s for spot, at in view["steps"].items() if spot[0] in "nm" for s in at}
    ]
    node_and_call_steps = [i for i, row in enumerate(large.trace.rows) if row.node is not None or row.call is not None]
    assert set(marked_steps) >= set(node_and_call_steps)


def test_a_collapsed_box_spans_the_visible_steps_of_its_view(large: TraceContent) -> None:
    views = views_of(large)
    for view in views.values():
        for box, spans in view["spans"].items():
            assert views[view["links"][box]]["visible_steps"] == spans


def test_breadcrumbs_lead_from_the_whole_pass_to_the_view(large: TraceContent) -> None:
    for name, view in views_of(large).items():
        (first, title), *_ = view["breadcrumbs"]
        assert (first, in_english(title)) == ("0/", "the whole pass") and view["breadcrumbs"][-1][0] == name


def test_a_box_counts_its_hooks_and_those_that_fired(large: TraceContent) -> None:
    top = large.chunk("0/")
    counts = [texts for spot, texts in top["texts"].items() if spot.endswith("-c")]
    labels = sorted([in_english(text) for _, text in texts] for texts in counts)
    assert labels == [["1 hook, 0 fired", "1 hook, 1 fired"]] * 2


def test_a_box_shows_the_range_of_its_gradient_norms() -> None:
    trace = record_backward(fan(50) * 3)
    top = TraceContent(trace).chunk("0/")
    (texts,) = [texts for spot, texts in top["texts"].items() if spot == "g0-g"]
    assert in_english(texts[-1][1]) == "gradient norm 3"


def test_a_box_reports_nan_or_inf_gradients() -> None:
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    y = x.log()
    for _ in range(60):
        y = y * 1.1
    top = TraceContent(record_backward(y.sum() * float("nan"))).chunk("0/")
    labels = [
        in_english(texts[-1][1]) for spot, texts in top["texts"].items() if spot.endswith("-g") and spot.startswith("g")
    ]
    assert labels and all("with NaN or Inf" in label for label in labels)


def test_a_port_names_its_neighbours_outside_the_box(large: TraceContent) -> None:
    top = large.chunk("0/")
    box = list(top["spans"])[2]
    svg = picture(large, f"0/{box}")
    assert "from " in svg and "to " in svg and "hv-port" in svg


class Join(nn.Module):
    """Adds its inputs, then multiplies the sum many times."""

    def forward(self, *parts: torch.Tensor) -> torch.Tensor:
        total = sum(parts, torch.zeros(1))
        for _ in range(50):
            total = total * 1.01
        return total


def test_ports_to_many_modules_are_merged_into_one() -> None:
    parts, join = nn.ModuleList(nn.Linear(1, 1) for _ in range(5)), Join()
    with hv.record(parts, join) as trace:
        join(*(part(torch.ones(1)) for part in parts)).backward()
    last = len(trace.calls) - 1
    assert "to 5 places" in picture(TraceContent(trace), f"0/m{last}")


def test_parameters_inside_a_module_box_have_short_names(large: TraceContent) -> None:
    box = next(iter(large.chunk("0/")["spans"]))
    svg = picture(large, f"0/{box}")
    assert ">weight<" in svg and ">bias<" in svg and "AccumulateGrad" in svg


def test_an_unknown_chunk_raises_keyerror_and_the_player_answers_none(large: TraceContent) -> None:
    with pytest.raises(KeyError):
        large.chunk("0/m999")
    player = RecordingPlayer.showing(large.content())
    for name in ("0/m999", "stepsx", "steps999", "9/"):
        player.answer({"chunk": name}, None, large.chunk)
    assert [message["packed"] for message in player.sent] == [None] * 4  # type: ignore[attr-defined]


def test_the_player_answers_with_the_requested_chunk(large: TraceContent) -> None:
    player = RecordingPlayer.showing(large.content())
    player.answer({"chunk": "steps0"}, None, large.chunk)
    assert player.sent == [{"chunk": "steps0", "packed": pack(large.chunk("steps0"))}]  # type: ignore[attr-defined]
    assert player.steps == len(large.trace.rows)


def index_of(large: TraceContent) -> list[dict[str, Any]]:
    index = large.chunk("index")
    names = ("kind", "label", "note", "number", "view", "steps")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(index[name] for name in names), strict=True)]
    return [{**row, "label": in_english(row["label"]), "note": in_english(row["note"])} for row in rows]


def picture(large: TraceContent, name: str) -> str:
    """The SVG of a view, assembled as in the player."""
    svg = large.chunk(name)["svg"]
    if isinstance(svg, int):
        return large.content()["svgs"][svg]
    if isinstance(svg, str):
        return svg
    pieces = svg["pieces"] if "pieces" in svg else large.chunk(svg["like"])["svg"]["pieces"]
    return "".join(svg["fill"][piece] if isinstance(piece, int) else piece for piece in pieces)


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


@pytest.mark.parametrize(
    "make", [record_nested_modules, lambda: record_backward(chain(1000)), lambda: record_backward(fan(300))]
)
def test_each_index_entry_is_drawn_in_the_view_it_names(make: Callable[[], hv.Trace]) -> None:
    large = TraceContent(make())
    views = views_of(large)
    ids = {name: element_ids(large, name) for name in views}
    for entry in index_of(large):
        if entry["number"] >= 0:
            assert f"n{entry['number']}" in ids[entry["view"]]
        for step in entry["steps"]:
            assert any(first <= step <= last for first, last in views[entry["view"]]["visible_steps"])


@pytest.mark.parametrize("make", [record_nested_modules, lambda: record_backward(chain(1000))])
def test_the_index_has_every_node_module_call_and_hook(make: Callable[[], hv.Trace]) -> None:
    large = TraceContent(make())
    entries = index_of(large)
    nodes = {entry["number"] for entry in entries if entry["kind"] in ("node", "leaf")}
    assert nodes == set(range(len(large.trace.ops))) - large.trace.outside
    calls = [entry["label"] for entry in entries if entry["kind"] == "module"]
    assert sorted(calls) == sorted(large.trace.call(index) for index in range(len(large.trace.calls)))
    first = {entry["steps"][0] for entry in entries if entry["kind"] == "hook"}
    fired = {(row.pass_id, row.hook): i for i, row in reversed([*enumerate(large.trace.rows)]) if row.hook is not None}
    assert first == set(fired.values())


def test_index_steps_of_nodes_are_the_gradient_arrivals(large: TraceContent) -> None:
    norms = outline(large.content())["norm"]
    steps = sorted(step for entry in index_of(large) if entry["number"] >= 0 for step in entry["steps"])
    assert steps == [step for step, norm in enumerate(norms) if norm is not None]


def test_the_index_uses_hook_module_and_parameter_names() -> None:
    entries = {
        (entry["kind"], entry["label"], entry["note"]) for entry in index_of(TraceContent(record_nested_modules()))
    }
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
    (hook,) = [entry for entry in index_of(TraceContent(trace)) if entry["kind"] == "hook"]
    assert (hook["label"], hook["note"], hook["steps"]) == ("print_nothing", "w", [])


def test_the_index_is_sent_only_on_request() -> None:
    large = TraceContent(record_backward(chain(10_000)))
    assert "index" not in large.content()["chunks"] and "index" in large.brief_content()["chunks"]
    assert len(pack(large.chunk("index"))) < 150_000


def test_the_cost_of_the_index_is_linear_in_the_steps() -> None:
    cost_of_1000, cost_of_4000 = (
        count_calls(partial(TraceContent(record_backward(chain(count))).chunk, "index")) for count in (1000, 4000)
    )
    assert cost_of_1000 < 115 * 1000 and cost_of_4000 < 4.1 * cost_of_1000


def test_a_port_links_to_the_view_of_its_neighbour() -> None:
    views = views_of(TraceContent(record_nested_modules()))
    ports = [(name, to) for name, view in views.items() for spot, to in view["links"].items() if spot.startswith("o")]
    assert ports and all(to in views and to != name for name, to in ports)


def test_a_page_embeds_all_chunks_and_a_cell_output_the_first_ones(large: TraceContent) -> None:
    full_content = large.full_content()
    assert set(full_content["chunks"]) == set(large.chunk_names())
    long_trace = TraceContent(record_backward(chain(3000)))
    brief_content = long_trace.brief_content()
    assert sum(name.startswith("steps") for name in brief_content["chunks"]) == OUTPUT_CHUNKS
    assert sum("/" in name for name in brief_content["chunks"]) == OUTPUT_BOXES
    notes = shown_notes(brief_content)
    assert f"the first {OUTPUT_CHUNKS * CHUNK_SIZE} steps" in notes[-2]
    assert f"the first {OUTPUT_BOXES} boxes" in notes[-1]
    assert TraceContent(record_backward(chain(100))).brief_content()["notes"] == []


def test_the_static_picture_shows_the_end_of_the_pass(large: TraceContent) -> None:
    html = page(large.trace)
    assert "1 hook, 1 fired" in html and "1 hook, 0 fired" not in html.partition("<script")[0]
    assert set(mimebundle(large.trace)) == {"text/html", "image/svg+xml", "text/plain"}


def test_a_truncated_firings_table_states_the_total() -> None:
    x = leaf(1.0)
    with hv.record() as trace:
        for _ in range(MAX_FIRINGS + 1):
            x = x * 1.0
            x.register_hook(lambda grad: None)
        x.backward()
    content = TraceContent(trace).content()
    assert len(content["runs"][0]["firings"]) == MAX_FIRINGS
    assert shown_notes(content) == ["1,001 hooks fired; the table shows the first 1,000."]


@pytest.mark.parametrize(("loss", "max_length"), [(lambda: chain(10_000), 1_500_000), (lambda: fan(10_000), 1_500_000)])
def test_the_initial_payload_of_ten_thousand_nodes_is_small(loss: Callable[[], torch.Tensor], max_length: int) -> None:
    assert len(json.dumps(TraceContent(record_backward(loss())).content())) <= max_length


def test_each_pass_has_its_own_picture() -> None:
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(20)))
    with hv.record(model) as trace:
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
    content = TraceContent(trace).content()
    assert list(content["chunks"])[:2] == ["0/", "2/"] and len(content["svgs"]) == 2
    assert [(name, in_english(title)) for name, title in unpack_chunk(content, "2/")["breadcrumbs"]] == [
        ("2/", "Pass 3")
    ]


def test_a_gradient_sent_to_ten_thousand_edges_is_abbreviated() -> None:
    trace = record_backward(fan(10_000))
    steps = map(words_in_english, TraceContent(trace).chunk("steps0")["steps"])
    (words,) = [words for words in steps if words["title"] == "StackBackward0 computes"]
    assert len(json.dumps(words)) < 10_000
    assert words["gradients"][-1] == ["", "… 9,976 more"]
    assert "… 9,992 more" in words["sentence"]


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
    few, more = (TraceContent(record_passes_through_a_large_graph(count)) for count in (2, 8))
    assert say("trace.unreached", most=MAX_UNREACHED_NODES) in shown_notes(few.content())
    views = few._pictures._pass_pictures(0).views
    reached = {row.node for row in few.trace.rows if row.pass_id == 0} - {None}
    assert reached < set(views.tree.nodes) and len(views.tree.nodes) == len(reached) + MAX_UNREACHED_NODES
    pages = [sum(len(str(large.chunk(name))) for name in large.chunk_names()) for large in (few, more)]
    assert pages[1] < 5 * pages[0]
    assert say("trace.unreached", most=MAX_UNREACHED_NODES) not in shown_notes(TraceContent(record_layers()).content())
