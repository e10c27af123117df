"""Pictures of equal passes are laid out once; each still has its own ids, names and numbers."""

from collections.abc import Callable

import pytest
import torch
from scenes import leaf
from torch import nn

import hookviz as hv
from hookviz.picture import shared_layouts
from hookviz.picture.dot_source import build_figure
from hookviz.picture.scene import Scene
from hookviz.picture.shared_layouts import SharedLayouts
from hookviz.player.grouped_views import PassPictures

PASSES = 60
"""More than fit into one picture, so that passes are grouped."""


def list_scenes(trace: hv.Trace) -> list[Scene]:
    """The scenes of all views of all passes."""
    pictures = [PassPictures(trace, pass_id) for pass_id in trace.lookup.passes]
    return [own.scene(view) for own in pictures for view in own.views.list_views()]


def train_network(lr: float = 0.05) -> hv.Trace:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
    net[0].weight.register_hook(lambda grad: grad * 2)
    net[2].register_full_backward_hook(lambda module, grad_input, grad_output: None)
    opt = torch.optim.SGD(net.parameters(), lr=lr)
    with hv.record(net) as trace:
        for _ in range(PASSES):
            opt.zero_grad()
            net(torch.randn(4, 3)).square().mean().backward()
            opt.step()
    return trace


def hook_new_tensors() -> hv.Trace:
    a = leaf(2.0)
    with hv.record(names={"<n1> & e2-0-3": a}) as trace:
        for number in range(PASSES):
            c = a * number
            c.register_hook(lambda grad: grad * 2)
            (c * a).backward()
    return trace


def go_through_large_graphs() -> hv.Trace:
    """Graphs of groups, with ports and bundles."""
    x = leaf(1.0)
    net = nn.Sequential(*[nn.Sequential(nn.Linear(1, 1), nn.Sigmoid()) for _ in range(25)])
    with hv.record(net) as trace:
        for _ in range(4):
            net(x.reshape(1)).backward()
    return trace


def switch_branches() -> hv.Trace:
    a, b = leaf(2.0), leaf(3.0)
    with hv.record() as trace:
        for number in range(PASSES):
            (a * b if number % 3 else a + b * b).backward()
    return trace


@pytest.mark.parametrize("make", [train_network, hook_new_tensors, go_through_large_graphs, switch_branches])
def test_a_shared_picture_equals_the_picture_drawn_alone(make: Callable[[], hv.Trace]) -> None:
    layouts = SharedLayouts()
    for number, scene in enumerate(list_scenes(make())):
        alone = build_figure(scene, None, for_player=True).svg()
        assert layouts.draw(scene, str(number)).svg == alone


def test_graphviz_draws_equal_passes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []
    original = shared_layouts.draw_source
    monkeypatch.setattr(
        shared_layouts, "draw_source", lambda source, format: (drawn.append(source), original(source, format))[1]
    )
    layouts = SharedLayouts()
    scenes = list_scenes(train_network(lr=0.0))  # the values of parameters stay equally long
    pictures = {layouts.draw(scene, str(number)).svg for number, scene in enumerate(scenes)}
    assert len(pictures) == len(scenes) == PASSES  # each has its own numbers
    assert len(drawn) <= PASSES / 3


def test_a_picture_that_graphviz_cannot_draw_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_error(*_: object) -> bytes:
        raise shared_layouts.NoPictureError("No picture.")

    monkeypatch.setattr(shared_layouts, "draw_source", raise_error)
    monkeypatch.setattr("hookviz.picture.graphviz_digraph.draw_source", raise_error)
    scene, *_ = list_scenes(switch_branches())
    assert "No picture." in SharedLayouts().draw(scene, "0/").svg
