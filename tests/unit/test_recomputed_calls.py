"""A call that checkpointing makes again stands below its first run, and says so; its hooks are those that can fire."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from hookviz.picture.pass_pictures import PassPictures
from hookviz.picture.scene import Scene
from hookviz.picture.visible_graph import make_visible_graph


class Checkpointed(nn.Module):
    """Blocks that are checkpointed one by one; a block may stand in it several times."""

    def __init__(self, *blocks: nn.Module, use_reentrant: bool = False) -> None:
        super().__init__()
        self.blocks, self.use_reentrant = nn.ModuleList(blocks), use_reentrant

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=self.use_reentrant)  # type: ignore[no-untyped-call]
        return x


def keep(*_ignored: Any) -> None:
    """Look and keep."""


def make_block() -> nn.Module:
    block = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    block[0].register_full_backward_hook(keep)
    block[0].register_forward_hook(keep)
    return block


def record(net: nn.Module) -> hv.Trace:
    with hv.record(net) as trace:
        net(torch.randn(3, 2, requires_grad=True)).sum().backward()
    return trace


def pairs(scene: Scene) -> dict[str, str]:
    names = {box.id: box.name for box in (*scene.calls.values(), *scene.group_boxes)}
    return {names[first]: names[second] for first, second in scene.second_runs.items()}


def test_a_second_run_stands_below_the_first_one_with_a_dashed_outline() -> None:
    trace = record(Checkpointed(make_block(), make_block()))
    scene = Scene.from_trace(trace._data)
    assert pairs(scene) == {"net.blocks.0": "net.blocks.0 (call 2)", "net.blocks.1": "net.blocks.1 (call 2)"}
    svg = trace.figure().svg()
    assert svg.count(">Sequential · recomputed</text>") == 2
    assert svg.count("hv-module hv-again") == 6 and svg.count("hv-joint") == 2


def test_of_a_module_that_is_called_twice_each_call_has_its_own_second_run() -> None:
    block = make_block()
    data = record(Checkpointed(block, block))._data
    numbers = {call: data.calls[call].number for call in range(len(data.calls))}
    scene = Scene.from_trace(data)
    joined = {numbers[int(first[1:])]: numbers[int(second[1:])] for first, second in scene.second_runs.items()}
    assert joined == {1: 4, 2: 3}  # backward needs the last call first


@pytest.mark.parametrize(("count", "layers", "pairs_shown"), [(2, 10, 2), (12, 3, 1)])
def test_closed_boxes_and_stacks_are_paired_as_well(count: int, layers: int, pairs_shown: int) -> None:
    blocks = [nn.Sequential(*(make_block() for _ in range(layers))) for _ in range(count)]
    pictures = PassPictures(make_visible_graph(record(Checkpointed(*blocks))._data, 0))
    scenes = map(pictures.scene, pictures.views.list_views())
    outer = max(scenes, key=lambda scene: len(scene.second_runs))
    assert len(outer.second_runs) == pairs_shown
    second_ids = {*outer.second_runs.values()}
    assert all(box.is_recomputed for box in outer.group_boxes if box.id in second_ids)


def hooks_of(scene: Scene, is_recomputed: Callable[[int], bool]) -> set[str]:
    rows = scene.trace.hook_rows
    boxes = (box for call, box in scene.calls.items() if is_recomputed(call))
    return {rows[pin.hook].kind for box in boxes for pin in box.pins if pin.hook is not None}


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_backward_hook_has_its_pin_at_the_run_that_made_the_graph(use_reentrant: bool) -> None:
    data = record(Checkpointed(make_block(), use_reentrant=use_reentrant))._data
    scenes = [Scene.from_trace(data, pass_id) for pass_id in range(len(data.roots))]
    again = set[str]().union(*(hooks_of(scene, lambda call: data.calls[call].recomputed) for scene in scenes))
    first = set[str]().union(*(hooks_of(scene, lambda call: not data.calls[call].recomputed) for scene in scenes))
    both = {"forward_hook", "full_backward_hook"}
    assert (first, again) == (({"forward_hook"}, both) if use_reentrant else (both, {"forward_hook"}))
