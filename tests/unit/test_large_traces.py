"""A large trace is sent in chunks: opening it is cheap, and no step is lost."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scenes import Doubled, chain, fan, recorded, silent
from torch import nn

import hookviz as hv
from hookviz.picture.visible_graph import MAX_UNREACHED_NODES, make_visible_graph
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


def record_backward(loss: torch.Tensor) -> TraceContent:
    with hv.record() as trace:
        loss.backward()
    return TraceContent.of(trace._data)


def record_calls(model: nn.Module, x: torch.Tensor, passes: int = 1) -> TraceContent:
    with hv.record(model) as trace:
        for _ in range(passes):
            model(x).sum().backward()
    return TraceContent.of(trace._data)


@pytest.fixture(scope="module")
def layers() -> TraceContent:
    """A pass through 30 layers with hooks on one of them and on a parameter of the next."""
    model = nn.Sequential(*(nn.Linear(4, 4) for _ in range(30)))
    model[3].register_full_backward_hook(silent("looks"))
    model[4].weight.register_hook(silent("sees"))
    return record_calls(model, torch.ones(2, 4))


@pytest.fixture(scope="module")
def long() -> TraceContent:
    return record_backward(chain(3000))


@pytest.fixture(scope="module")
def nested() -> TraceContent:
    """Two passes of a model of 30 blocks, with a hook on a block and on a parameter in the next."""
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Dropout()) for _ in range(30)]
    model = nn.Sequential(*blocks).eval()
    model[3].register_forward_hook(silent("watch"))
    model[4][0].weight.register_hook(silent("see"))
    return record_calls(model, torch.ones(2, 4), passes=2)


def views_of(large: TraceContent) -> dict[str, Any]:
    return {name: large.chunk(name) for name in large.chunk_names() if "/" in name}


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


def test_only_large_traces_are_split_into_chunks() -> None:
    assert record_backward(chain(MAX_UNSPLIT_STEPS // 2)).is_large
    small = TraceContent.of(recorded()._data)
    assert not small.is_large
    assert set(small.chunk_names()) == {"steps0", "0/", "index"} == small.content()["chunks"].keys()
    assert small.full_content() == small.content() == small.brief_content()


# -- boxes of a view


LARGE: dict[str, tuple[Callable[[], TraceContent], list[str]]] = {
    "a chain": (
        lambda: record_backward(chain(500)),
        ["1 – 25", "AddBackward0, MulBackward0 · 25 nodes", "476 – 500"],
    ),
    "equal layers": (
        lambda: record_calls(nn.Sequential(*(nn.Linear(2, 2) for _ in range(30))), torch.ones(1, 2)),
        ["model 0 – 29 × 30"],
    ),
}
BOX = re.compile(r'<g id="(\w+)"[^>]* class="hv-(?:node(?! hv-parameter)|fold|module)')
"""The ids of the boxes of a picture; the rows of parameters in them are no boxes."""


@pytest.mark.parametrize(("make", "labels"), LARGE.values(), ids=LARGE)
def test_each_view_has_few_boxes_and_each_node_has_a_box_in_one_of_them(
    make: Callable[[], TraceContent], labels: list[str]
) -> None:
    large = make()
    boxes = {name: BOX.findall(picture(large, name)) for name in views_of(large)}
    assert len(boxes) > 1 and max(map(len, boxes.values())) <= MAX_BOXES
    nodes = {int(spot[1:]) for found in boxes.values() for spot in found if spot[0] == "n"}
    assert nodes == set(make_visible_graph(large.trace, 0, whole=True).nodes)
    texts = re.findall(">([^<>]+)<", picture(large, "0/"))
    assert [label for label in labels if label not in texts] == []


def test_a_bar_of_a_stack_opens_its_layer_and_is_as_high_as_the_gradient_that_arrived_there() -> None:
    large = record_calls(nn.Sequential(*(Doubled() for _ in range(45))), torch.ones(2))
    (bars,) = large.chunk("0/")["stacks"].values()
    views = views_of(large)
    assert [bar["count"] for bar in bars] == [2] * 22 + [1]
    assert all(bar["view"] in views and bar["spans"] for bar in bars)
    heights = [bar["heights"][-1][1] for bar in bars]
    assert heights == sorted(heights, reverse=True) and (heights[0], heights[-1]) == (1.0, 0.1)


def texts_of_boxes(large: TraceContent, end: str) -> list[list[str]]:
    """The texts that the boxes of the first view show one after the other, at the places that end so."""
    top = large.chunk("0/")["texts"]
    return [[text for _, text, _ in texts] for spot, texts in top.items() if spot[0] == "g" and spot.endswith(end)]


def test_a_box_counts_its_hooks_and_those_that_fired(layers: TraceContent) -> None:
    assert [sorted(texts) for texts in texts_of_boxes(layers, "-c")] == [
        ["2 hooks, 0 fired", "2 hooks, 1 fired", "2 hooks, 2 fired"]
    ]


def test_a_box_shows_the_range_of_its_gradient_norms_and_nan_or_inf() -> None:
    assert texts_of_boxes(record_backward(fan(50) * 3), "g1-g")[0][-1] == "norm 3"
    y = torch.tensor([-1.0, 1.0], requires_grad=True).log()
    for _ in range(60):
        y = y * 1.1
    labels = [texts[-1] for texts in texts_of_boxes(record_backward(y.sum() * float("nan")), "-g")]
    assert labels and all("with NaN or Inf" in label for label in labels)


# -- chunks


def test_step_chunks_hold_every_sentence_of_the_trace(layers: TraceContent) -> None:
    chunks = [layers.chunk(name)["steps"] for name in layers.chunk_names() if name.startswith("steps")]
    assert [len(chunk) for chunk in chunks[:-1]] == [CHUNK_SIZE] * (len(chunks) - 1)
    sentences = [words["sentence"] for chunk in chunks for words in chunk]
    assert sentences == [step.sentence for step in layers.trace.steps]


def test_the_player_answers_with_the_requested_chunk(layers: TraceContent, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(Player, "send", lambda self, content, buffers=None: sent.append(content))
    player = Player.showing(layers.content())
    for name in ("steps0", "0/m999", "steps999", "9/"):
        player.answer({"chunk": name}, None, layers.chunk)
    assert sent[0] == {"chunk": "steps0", "packed": pack(layers.chunk("steps0"))}
    assert [message["packed"] for message in sent[1:]] == [None] * 3
    assert player.steps == len(layers.trace.rows)


def test_a_page_embeds_all_chunks_and_a_cell_output_the_first_ones(layers: TraceContent, long: TraceContent) -> None:
    assert set(layers.full_content()["chunks"]) == set(layers.chunk_names())
    brief_content = long.brief_content()
    assert sum(name.startswith("steps") for name in brief_content["chunks"]) == OUTPUT_CHUNKS
    assert sum("/" in name for name in brief_content["chunks"]) == OUTPUT_BOXES
    notes = brief_content["notes"]
    assert f"the first {OUTPUT_CHUNKS * CHUNK_SIZE} steps" in notes[-2]
    assert f"the first {OUTPUT_BOXES} boxes" in notes[-1]


# -- the index, for the search


def test_each_index_entry_is_drawn_in_the_view_it_names(nested: TraceContent) -> None:
    views = views_of(nested)
    ids = {name: element_ids(nested, name) for name in views}
    graphs = [make_visible_graph(nested.trace, pass_id, whole=True) for pass_id in (0, 1)]
    index = nested.chunk("index")
    for number, name, steps in zip(index["number"], index["view"], index["steps"], strict=True):
        if number >= 0:
            assert f"n{graphs[int(name[0])].boxes.get(number, number)}" in ids[name]
        for step in steps:
            assert any(first <= step <= last for first, last in views[name]["visible_steps"])
    assert {"model.4", "model.4.0 (call 2)", "model.4.0.weight", "see"} <= {*index["label"]}


def test_the_index_is_sent_only_on_request(long: TraceContent) -> None:
    assert "index" not in long.content()["chunks"] and "index" in long.brief_content()["chunks"]


# -- what is left out is said


UNREACHED = (
    "A pass reached only a small part of its graph. Its picture shows that part and, of the rest, the "
    f"{MAX_UNREACHED_NODES} nodes nearest to where the pass began."
)


def test_a_pass_through_part_of_a_large_graph_draws_that_part_with_a_note(layers: TraceContent) -> None:
    many = torch.cat([torch.ones(1, requires_grad=True) * k for k in range(300)])
    with hv.record() as trace:
        h = many * 2
        torch.autograd.grad(h.sum(), h)
    part = TraceContent.of(trace._data)
    assert UNREACHED in part.content()["notes"] and UNREACHED not in layers.content()["notes"]
    reached = {f"n{row.node}" for row in part.trace.rows if row.node is not None}
    drawn = {spot for name in views_of(part) for spot in element_ids(part, name) if re.fullmatch(r"n\d+", spot)}
    assert reached < drawn and len(drawn) == len(reached) + MAX_UNREACHED_NODES
