"""The views of a pass: the whole pass is drawn in each, with one group opened in place."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice

import pytest
import torch
from torch import nn

import hookviz as hv
from hookviz.analysis.findings.hooks.silent_hooks import list_silent_hooks
from hookviz.picture.grouping import MAX_VISIBLE_BOXES, Group, View
from hookviz.picture.grouping.views import MAX_AROUND, MAX_BOXES_BESIDE_MODEL, MAX_LEVELS_AROUND
from hookviz.picture.pass_pictures import PassPictures
from hookviz.picture.scene import Scene
from hookviz.picture.visible_graph import make_visible_graph
from hookviz.player.grouped_views import GroupedViews
from hookviz.player.hook_texts import list_reasons
from tests.proof.pictures import record_network

SEEDS = range(4)
MAX_BOXES = MAX_VISIBLE_BOXES + MAX_BOXES_BESIDE_MODEL + MAX_LEVELS_AROUND * (MAX_AROUND + 1)
"""Of the opened group, and around it."""


def record_backward(model: nn.Module, x: torch.Tensor) -> hv.Trace:
    with hv.record(model) as trace:
        model(x).sum().backward()
    return trace


class Deep(nn.Module):
    """Modules nested ``depth`` levels deep, each with a step before and after the inner one."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.inner = Deep(depth - 1) if depth else nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(12):
            x = x.sin()
        return self.inner(x).cos().exp()


MODELS = {
    "deep": lambda: record_backward(Deep(10), torch.ones(4)),
    "layers": lambda: record_backward(
        nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4)) for _ in range(50))), torch.ones(4)
    ),
    "encoder": lambda: record_backward(
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, dropout=0.0), 6, enable_nested_tensor=False),
        torch.ones(3, 2, 8),
    ),
}


def list_views() -> Iterator[tuple[PassPictures, View]]:
    for make in (*MODELS.values(), *(partial(record_network, seed) for seed in SEEDS)):
        trace = make()._data
        for pass_id in trace.lookup.passes:
            pictures = PassPictures(make_visible_graph(trace, pass_id))
            yield from ((pictures, view) for view in pictures.views.list_views())


def walk(members: list[int | Group]) -> Iterator[int]:
    for member in members:
        yield from (member,) if isinstance(member, int) else walk(member.members)


def nearest_frame(scene: Scene, call: int | None) -> int | None:
    while call is not None and call not in scene.calls:
        call = scene.trace.calls[call].parent
    return call


@pytest.mark.filterwarnings("ignore")
def test_each_view_shows_the_whole_pass_in_few_boxes() -> None:
    for pictures, view in list_views():
        assert Counter(walk(view.boxes)) == Counter(view.tree.nodes)
        assert len(view.boxes) + len(view.opened_calls) <= MAX_BOXES
        scene = pictures.scene(view)
        assert_each_edge_is_inside_a_box_or_an_arrow(scene, view)
        assert_each_box_is_in_the_frame_of_the_innermost_call_around_it(scene, view)
        near = islice(view.group.chain_outwards(), MAX_LEVELS_AROUND + 1)
        around = [group for group in near if group.call is not None][::-1]
        assert view.opened_calls[: len(around)] == around, "the outermost first"


def assert_each_edge_is_inside_a_box_or_an_arrow(scene: Scene, view: View) -> None:
    arrows = {(arrow.start, arrow.end) for arrow in scene.all_arrows}
    box_of = {node: box if isinstance(box, int) else box.id for box in view.boxes for node in walk([box])}
    names = {node: f"n{box}" if isinstance(box, int) else box for node, box in box_of.items()}
    for start, _slot, end in view.tree.trace.lookup.out_edges(view.tree.nodes):
        if end in names and names[start] != names[end]:
            assert (names[start], names[end]) in arrows


def assert_each_box_is_in_the_frame_of_the_innermost_call_around_it(scene: Scene, view: View) -> None:
    calls = view.tree.calls_of_nodes
    framed = {box_id: call for call, box in scene.calls.items() for box_id in box.box_ids}
    for node in scene.boxes:
        assert framed.get(f"n{node}") == nearest_frame(scene, calls.get(node))
    for group in view.closed_groups:
        assert {nearest_frame(scene, calls.get(node)) for node in group.nodes} <= {framed.get(group.id)}


# -- stacks


class Looped(nn.Module):
    """A cell in a loop, whose outputs go through a head."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(2, 3), nn.Linear(3, 1)

    def forward(self, xs: torch.Tensor) -> torch.Tensor:
        state, outputs = None, []
        for x in xs:
            state = self.cell(x, state)
            outputs.append(self.head(state[0]))
        return torch.stack(outputs)


class Numbered(nn.Module):
    """Equal layers, of which the first one has no number: ``conv``, ``conv2`` … ``conv7``."""

    def __init__(self) -> None:
        super().__init__()
        for number in range(1, 8):
            self.add_module("conv" if number == 1 else f"conv{number}", nn.Linear(2, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.children():
            x = layer(x)
        return x


def encoder(count: int) -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 8)
    return nn.TransformerEncoder(layer, count, enable_nested_tensor=False)


def with_hook(model: nn.Module, index: int) -> nn.Module:
    model.get_submodule(f"layers.{index}").register_full_backward_hook(lambda *_: None)
    return model


SEQUENCE = torch.ones(3, 2, 8)
STACKED: dict[str, tuple[Callable[[], nn.Module], torch.Tensor, list[str]]] = {
    "layers": (lambda: with_hook(encoder(12), 2), SEQUENCE, ["layers 0 – 11 × 12"]),
    "a loop of two": (Looped, torch.ones(30, 1, 2), ["head × 30", "cell × 30"]),
    "a first one without a number": (Numbered, torch.ones(2), ["conv 2 – 7 × 6"]),
    "unequal layers": (lambda: nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2)), torch.ones(2), []),
}


@pytest.mark.parametrize(("make", "x", "names"), STACKED.values(), ids=STACKED)
def test_three_or_more_equal_calls_are_one_stack(
    make: Callable[[], nn.Module], x: torch.Tensor, names: list[str]
) -> None:
    pictures = PassPictures(make_visible_graph(record_backward(make(), x)._data, 0))
    scene = pictures.scene(pictures.views.view_of(pictures.views.tree.root))
    assert [box.name for box in scene.group_boxes] == names


def test_an_opened_layer_has_the_layers_before_and_after_it_as_stacks_beside_it() -> None:
    pictures = PassPictures(make_visible_graph(record_backward(encoder(6), SEQUENCE)._data, 0))
    calls = {pictures.views.tree.trace.call(call): group for call, group in pictures.views.tree.calls.items()}
    names = {}
    for index in (0, 1, 3, 5):
        view = pictures.views.view_of(calls[f"model.layers.{index}"])
        around = [box.name for box in pictures.scene(view).group_boxes if "layers" in box.name]
        names[index] = around
    assert names == {
        0: ["layers 1 – 5 × 5"],
        1: ["layers 2 – 5 × 4", "layers.0"],
        3: ["layers 4 – 5 × 2", "layers 0 – 2 × 3"],
        5: ["layers 0 – 4 × 5"],
    }


def test_every_hook_of_a_pass_is_drawn_in_the_view_that_its_stacks_lead_to() -> None:
    trace = record_backward(with_hook(encoder(12), 7), SEQUENCE)._data
    pictures = GroupedViews(trace, list_reasons(list_silent_hooks(trace)))
    hooks = {row: index for index, row in enumerate(trace.lookup.hooks_that_ran)}
    for step in [index for index, row in enumerate(trace.rows) if row.hook is not None]:
        view = pictures.view("0/", hooks)
        while box := next((box for box, spans in view["spans"].items() if is_within(spans, step)), None):
            bars = view["stacks"].get(box, [])
            (name,) = [bar["view"] for bar in bars if is_within(bar["spans"], step)] or [view["links"][box]]
            view = pictures.view(name, hooks)
        assert any(step in view["steps"].get(pin, ()) for pin in view["pins"])


def is_within(spans: list[tuple[int, int]], step: int) -> bool:
    return any(first <= step <= last for first, last in spans)
