"""A large trace in parts: small to open, and nothing is lost."""

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


class Answers(Player):
    """A player that keeps what it sends."""

    def __init__(self, **traits: Any) -> None:
        super().__init__(**traits)
        self.sent: list[Any] = []

    def send(self, content: Any, buffers: Any = None) -> None:
        self.sent.append(content)


def passed(loss: torch.Tensor) -> hv.Trace:
    with hv.record() as trace:
        loss.backward()
    return trace


def layers(count: int = 30, hook: Callable[..., Any] | None = None) -> hv.Trace:
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(count)))
    if hook is not None:
        model[3].register_full_backward_hook(hook)
        model[4].weight.register_hook(lambda grad: grad * 2)
    with hv.record(model) as trace:
        model(torch.ones(2, 4)).sum().backward()
    return trace


@pytest.fixture(scope="module")
def large() -> TraceContent:
    return TraceContent(layers(hook=lambda module, grad_input, grad_output: None))


def views_of(large: TraceContent) -> dict[str, Any]:
    return {name: large.chunk(name) for name in large.chunk_names() if "/" in name}


def test_only_what_is_large_is_sent_in_parts() -> None:
    assert not is_large(recorded()) and is_large(layers()) and is_large(passed(chain(MAX_UNSPLIT_STEPS)))
    small = TraceContent(recorded())
    assert set(small.chunk_names()) == {"steps0", "0/", "index"} == small.content()["chunks"].keys()
    assert small.full_content() == small.content() == small.brief_content()


def test_the_words_of_all_steps_are_those_of_the_trace(large: TraceContent) -> None:
    chunks = [large.chunk(name)["steps"] for name in large.chunk_names() if name.startswith("steps")]
    assert [len(chunk) for chunk in chunks[:-1]] == [CHUNK_SIZE] * (len(chunks) - 1)
    told = [in_english(words["sentence"]) for chunk in chunks for words in chunk]
    assert told == [step.sentence for step in large.trace.steps]


def test_the_outline_has_every_step(large: TraceContent) -> None:
    known = outline(large.content())
    assert known["kind"] == [row.kind for row in large.trace.rows]
    assert known["glyph"].count("hook") == len(large.trace.firings) == 2
    arrived = [norm for kind, norm in zip(known["kind"], known["norm"], strict=True) if kind == "arrive"]
    assert arrived and all(isinstance(norm, float) for norm in arrived)


def test_every_step_of_a_node_or_call_is_marked_in_exactly_one_view(large: TraceContent) -> None:
    views = views_of(large)
    told = [
        step
        for view in views.values()
        for step in {s for spot, at in view["steps"].items() if spot[0] in "nm" for s in at}
    ]
    about = [i for i, row in enumerate(large.trace.rows) if row.node >= 0 or row.call >= 0]
    assert set(told) >= set(about)


def test_a_closed_box_holds_the_steps_of_what_is_inside(large: TraceContent) -> None:
    views = views_of(large)
    for view in views.values():
        for box, spans in view["spans"].items():
            assert views[view["links"][box]]["visible_steps"] == spans


def test_the_trail_leads_from_the_whole_to_the_box(large: TraceContent) -> None:
    for name, view in views_of(large).items():
        (first, title), *_ = view["breadcrumbs"]
        assert (first, in_english(title)) == ("0/", "the whole pass") and view["breadcrumbs"][-1][0] == name


def test_a_box_tells_how_many_hooks_are_in_it_and_how_many_fired(large: TraceContent) -> None:
    top = large.chunk("0/")
    counts = [texts for spot, texts in top["texts"].items() if spot.endswith("-c")]
    told = sorted([in_english(text) for _, text in texts] for texts in counts)
    assert told == [["1 hook, 0 fired", "1 hook, 1 fired"]] * 2


def test_a_box_tells_the_range_of_the_norms_in_it() -> None:
    trace = passed(fan(50) * 3)
    top = TraceContent(trace).chunk("0/")
    (texts,) = [texts for spot, texts in top["texts"].items() if spot == "g0-g"]
    assert in_english(texts[-1][1]) == "gradient norm 3"


def test_a_box_tells_how_many_gradients_are_none() -> None:
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    y = x.log()
    for _ in range(60):
        y = y * 1.1
    top = TraceContent(passed(y.sum() * float("nan"))).chunk("0/")
    ends = [
        in_english(texts[-1][1]) for spot, texts in top["texts"].items() if spot.endswith("-g") and spot.startswith("g")
    ]
    assert ends and all("with NaN or Inf" in end for end in ends)


def test_a_port_says_what_lies_outside(large: TraceContent) -> None:
    top = large.chunk("0/")
    box = list(top["spans"])[2]
    svg = picture(large, f"0/{box}")
    assert "from " in svg and "to " in svg and "hv-port" in svg


class Join(nn.Module):
    """Adds up what it is given, in many steps."""

    def forward(self, *parts: torch.Tensor) -> torch.Tensor:
        total = sum(parts, torch.zeros(1))
        for _ in range(50):
            total = total * 1.01
        return total


def test_ports_to_many_places_are_one() -> None:
    parts, join = nn.ModuleList(nn.Linear(1, 1) for _ in range(5)), Join()
    with hv.record(parts, join) as trace:
        join(*(part(torch.ones(1)) for part in parts)).backward()
    last = len(trace.calls) - 1
    assert "to 5 places" in picture(TraceContent(trace), f"0/m{last}")


def test_what_lies_inside_goes_by_its_name_there(large: TraceContent) -> None:
    box = next(iter(large.chunk("0/")["spans"]))
    svg = picture(large, f"0/{box}")
    assert ">weight<" in svg and ">bias<" in svg and "AccumulateGrad" in svg


def test_a_part_that_is_not_there_is_an_error_and_the_player_says_so(large: TraceContent) -> None:
    with pytest.raises(KeyError):
        large.chunk("0/m999")
    player = Answers.showing(large.content())
    for asked in ("0/m999", "stepsx", "steps999", "9/"):
        player.answer(large, {"chunk": asked})
    assert [sent["packed"] for sent in player.sent] == [None] * 4  # type: ignore[attr-defined]


def test_the_player_answers_with_the_part_that_it_is_asked_for(large: TraceContent) -> None:
    player = Answers.showing(large.content())
    player.answer(large, {"chunk": "steps0"})
    assert player.sent == [{"chunk": "steps0", "packed": pack(large.chunk("steps0"))}]  # type: ignore[attr-defined]
    assert player.steps == len(large.trace.rows)


def index_of(large: TraceContent) -> list[dict[str, Any]]:
    index = large.chunk("index")
    names = ("kind", "label", "note", "number", "view", "steps")
    rows = [dict(zip(names, row, strict=True)) for row in zip(*(index[name] for name in names), strict=True)]
    return [{**row, "label": in_english(row["label"]), "note": in_english(row["note"])} for row in rows]


def picture(large: TraceContent, name: str) -> str:
    """The SVG of a view, as the player puts it together."""
    sent = large.chunk(name)["svg"]
    if isinstance(sent, int):
        return large.content()["svgs"][sent]
    if isinstance(sent, str):
        return sent
    pieces = sent["pieces"] if "pieces" in sent else large.chunk(sent["like"])["svg"]["pieces"]
    return "".join(sent["fill"][piece] if isinstance(piece, int) else piece for piece in pieces)


def drawn(large: TraceContent, name: str) -> set[str]:
    """The ids in the picture of a view."""
    return set(re.findall(r'id="([^"]+)"', picture(large, name)))


def nested() -> hv.Trace:
    """Two passes of a model that is two modules deep, with hooks of a module and of a parameter."""
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


@pytest.mark.parametrize("make", [nested, lambda: passed(chain(1000)), lambda: passed(fan(300))])
def test_whatever_the_index_names_is_drawn_in_the_view_that_it_names(make: Callable[[], hv.Trace]) -> None:
    large = TraceContent(make())
    views = views_of(large)
    ids = {name: drawn(large, name) for name in views}
    for entry in index_of(large):
        if entry["number"] >= 0:
            assert f"n{entry['number']}" in ids[entry["view"]]
        for step in entry["steps"]:
            assert any(first <= step <= last for first, last in views[entry["view"]]["visible_steps"])


@pytest.mark.parametrize("make", [nested, lambda: passed(chain(1000))])
def test_the_index_has_every_node_module_call_and_hook(make: Callable[[], hv.Trace]) -> None:
    large = TraceContent(make())
    found = index_of(large)
    nodes = {entry["number"] for entry in found if entry["kind"] in ("node", "leaf")}
    assert nodes == set(range(len(large.trace.ops))) - large.trace.outside
    calls = [entry["label"] for entry in found if entry["kind"] == "module"]
    assert sorted(calls) == sorted(large.trace.call(index) for index in range(len(large.trace.calls)))
    first = {entry["steps"][0] for entry in found if entry["kind"] == "hook"}
    fired = {(row.pass_id, row.hook): i for i, row in reversed([*enumerate(large.trace.rows)]) if row.hook is not None}
    assert first == set(fired.values())


def test_the_steps_of_a_node_are_those_at_which_a_gradient_arrives(large: TraceContent) -> None:
    norms = outline(large.content())["norm"]
    told = sorted(step for entry in index_of(large) if entry["number"] >= 0 for step in entry["steps"])
    assert told == [step for step, norm in enumerate(norms) if norm is not None]


def test_things_are_found_under_the_names_that_a_person_knows_them_by() -> None:
    found = {(entry["kind"], entry["label"], entry["note"]) for entry in index_of(TraceContent(nested()))}
    assert {
        ("hook", "print_nothing", "model.4.0.weight"),
        ("module", "model.4.0", "Linear"),
        ("module", "model.4.0 (call 2)", "Linear"),
        ("leaf", "model.4.0.weight", "AccumulateGrad"),
    } <= found


def test_a_hook_that_does_not_fire_is_found_without_a_step() -> None:
    x, w = leaf(1.0), leaf(2.0)
    w.register_hook(print_nothing)
    y = w * x
    for _ in range(50):
        y = y * 1.1
    with hv.record() as trace:
        y.backward(inputs=[x])
    (hook,) = [entry for entry in index_of(TraceContent(trace)) if entry["kind"] == "hook"]
    assert (hook["label"], hook["note"], hook["steps"]) == ("print_nothing", "w", [])


def test_the_index_is_sent_only_when_it_is_asked_for() -> None:
    large = TraceContent(passed(chain(10_000)))
    assert "index" not in large.content()["chunks"] and "index" in large.brief_content()["chunks"]
    assert len(pack(large.chunk("index"))) < 150_000


def test_the_index_of_four_times_the_steps_takes_four_times_the_work() -> None:
    some, more = (count_calls(partial(TraceContent(passed(chain(count))).chunk, "index")) for count in (1000, 4000))
    assert some < 115 * 1000 and more < 4.1 * some


def test_a_port_knows_the_view_of_what_lies_there() -> None:
    views = views_of(TraceContent(nested()))
    ports = [(name, to) for name, view in views.items() for spot, to in view["links"].items() if spot.startswith("o")]
    assert ports and all(to in views and to != name for name, to in ports)


def test_a_page_has_all_parts_and_an_output_the_first(large: TraceContent) -> None:
    whole = large.full_content()
    assert set(whole["chunks"]) == set(large.chunk_names())
    many = TraceContent(passed(chain(3000)))
    some = many.brief_content()
    assert sum(name.startswith("steps") for name in some["chunks"]) == OUTPUT_CHUNKS
    assert sum("/" in name for name in some["chunks"]) == OUTPUT_BOXES
    assert f"the first {OUTPUT_BOXES} boxes" in shown_notes(some)[-1]
    assert TraceContent(passed(chain(100))).brief_content()["notes"] == []


def test_the_still_picture_is_the_end_of_the_pass(large: TraceContent) -> None:
    html = page(large.trace)
    assert "1 hook, 1 fired" in html and "1 hook, 0 fired" not in html.partition("<script")[0]
    assert set(mimebundle(large.trace)) == {"text/html", "image/svg+xml", "text/plain"}


def test_a_table_of_very_many_firings_says_how_many_there_are() -> None:
    x = leaf(1.0)
    with hv.record() as trace:
        for _ in range(MAX_FIRINGS + 1):
            x = x * 1.0
            x.register_hook(lambda grad: None)
        x.backward()
    shown = TraceContent(trace).content()
    assert len(shown["runs"][0]["firings"]) == MAX_FIRINGS
    assert shown_notes(shown) == ["1,001 hooks fired; the table shows the first 1,000."]


@pytest.mark.parametrize(("loss", "most"), [(lambda: chain(10_000), 1_500_000), (lambda: fan(10_000), 1_500_000)])
def test_what_is_sent_to_open_ten_thousand_nodes_is_small(loss: Callable[[], torch.Tensor], most: int) -> None:
    assert len(json.dumps(TraceContent(passed(loss())).content())) <= most


def test_several_passes_have_a_picture_each() -> None:
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(20)))
    with hv.record(model) as trace:
        for _ in range(3):
            model(torch.ones(1, 2)).sum().backward()
    shown = TraceContent(trace).content()
    assert list(shown["chunks"])[:3] == ["0/", "1/", "2/"] and len(shown["svgs"]) == 3
    assert [(name, in_english(title)) for name, title in unpack_chunk(shown, "1/")["breadcrumbs"]] == [("1/", "Pass 2")]


def test_a_gradient_sent_to_ten_thousand_places_is_told_in_a_few_lines() -> None:
    trace = passed(fan(10_000))
    told = map(words_in_english, TraceContent(trace).chunk("steps0")["steps"])
    (words,) = [words for words in told if words["title"] == "StackBackward0 computes"]
    assert len(json.dumps(words)) < 10_000
    assert words["gradients"][-1] == ["", "… 9,976 more"]
    assert "… 9,992 more" in words["sentence"]


def passes_of_a_large_graph(count: int) -> hv.Trace:
    """Passes that each go through three nodes of one graph of hundreds."""
    start = torch.ones(1, requires_grad=True)
    many = torch.cat([start * k for k in range(300)])
    with hv.record() as trace:
        for _ in range(count):
            h = many * 2
            torch.autograd.grad(h.sum(), h)
    return trace


def test_a_pass_through_a_part_of_a_large_graph_has_a_picture_of_that_part_and_says_so() -> None:
    few, more = (TraceContent(passes_of_a_large_graph(count)) for count in (2, 8))
    assert say("trace.unreached", most=MAX_UNREACHED_NODES) in shown_notes(few.content())
    views = few._pictures._pass_pictures(0).views
    reached = {row.node for row in few.trace.rows if row.pass_id == 0} - {-1}
    assert reached < set(views.tree.nodes) and len(views.tree.nodes) == len(reached) + MAX_UNREACHED_NODES
    pages = [sum(len(str(large.chunk(name))) for name in large.chunk_names()) for large in (few, more)]
    assert pages[1] < 5 * pages[0]
    assert say("trace.unreached", most=MAX_UNREACHED_NODES) not in shown_notes(TraceContent(layers()).content())
