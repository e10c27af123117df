"""A call that checkpointing makes again stands below its first run, and says so; its hooks are those that can fire."""

from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from hookviz.picture.scene import Scene


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
