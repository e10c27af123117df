"""The views of a pass: the whole pass is drawn in each, with one group opened in place."""

import warnings
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice

import torch
from torch import nn

import hookviz as hv
from hookviz.picture.grouping import Group, View
from hookviz.picture.grouping.around import MAX_AROUND, MAX_LEVELS_AROUND
from hookviz.picture.scene import Scene
from hookviz.player.grouped_views import PassPictures
from tests.proof.pictures import record_network

SEEDS = range(12)
MAX_BOXES = 46 + MAX_LEVELS_AROUND * (MAX_AROUND + 1)
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


@cache
def traces() -> list[hv.Trace]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [*(make() for make in MODELS.values()), *(record_network(seed) for seed in SEEDS)]


def list_pictures() -> Iterator[PassPictures]:
    for trace in traces():
        yield from (PassPictures(trace._data, pass_id) for pass_id in trace._data.lookup.passes)


def list_views() -> Iterator[tuple[PassPictures, View]]:
    for pictures in list_pictures():
        yield from ((pictures, view) for view in pictures.views.list_views())


def walk(members: list[int | Group]) -> Iterator[int]:
    for member in members:
        yield from (member,) if isinstance(member, int) else walk(member.members)


def test_each_view_has_every_node_of_the_pass_in_one_box_and_few_boxes() -> None:
    for _, view in list_views():
        assert Counter(walk(view.boxes)) == Counter(view.tree.nodes)
        assert len(view.boxes) + len(view.opened_calls) <= MAX_BOXES


def test_each_edge_of_the_pass_is_inside_a_box_or_an_arrow() -> None:
    for pictures, view in list_views():
        scene = pictures.scene(view)
        arrows = {(arrow.start, arrow.end) for arrow in scene.all_arrows}
        box_of = {node: box if isinstance(box, int) else box.id for box in view.boxes for node in walk([box])}
        names = {node: f"n{box}" if isinstance(box, int) else box for node, box in box_of.items()}
        for start, _slot, end in view.tree.trace.lookup.out_edges(view.tree.nodes):
            if end in names and names[start] != names[end]:
                assert (names[start], names[end]) in arrows


def nearest_frame(scene: Scene, call: int | None) -> int | None:
    while call is not None and call not in scene.calls:
        call = scene.trace.calls[call].parent
    return call


def test_each_box_is_in_the_frame_of_the_innermost_call_around_it() -> None:
    for pictures, view in list_views():
        scene, tree = pictures.scene(view), view.tree
        framed = {box_id: call for call, box in scene.calls.items() for box_id in box.box_ids}
        for node in scene.boxes:
            assert framed.get(f"n{node}") == nearest_frame(scene, tree.calls_of_nodes.get(node))
        for group in view.closed_groups:
            frames = {nearest_frame(scene, tree.calls_of_nodes.get(node)) for node in group.nodes}
            assert frames <= {framed.get(group.id)}


def test_the_calls_around_the_opened_group_are_frames_the_outermost_first() -> None:
    for _, view in list_views():
        near = islice(view.group.chain_outwards(), MAX_LEVELS_AROUND + 1)
        around = [group for group in near if group.call is not None][::-1]
        assert view.opened_calls[: len(around)] == around


def test_a_level_around_the_opened_group_shows_its_neighbours_and_joins_what_is_far() -> None:
    model = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Tanh()) for _ in range(30)))
    pictures = PassPictures(record_backward(model, torch.ones(4))._data, 0)
    opened = pictures.views.tree.calls[1 + 4 * 20]
    names = [box.name for box in pictures.scene(pictures.views.view_of(opened)).group_boxes]
    assert names == ["7 more", "model.22", "model.21", "model.19", "model.18", "18 more"]
