"""Networks that nobody thought of, and every picture of their passes: what Graphviz is tried with.

``python -m tests.proof.pictures 20000`` draws so many different pictures, and prints how many of them Graphviz could
draw in which way.
"""

from __future__ import annotations

import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.picture import layout
from hookviz.picture.dot_source import Figure, build_figure
from hookviz.picture.graphviz_client import Job
from hookviz.picture.scene import Scene
from hookviz.player.grouped_views import PassPictures

MODULE_HOOKS = ("forward_pre", "forward", "full_backward_pre", "full_backward")
LEAVES = ("linear", "norm", "relu", "drop", "softmax", "weighted")
HOLDERS = ("chain", "residual", "branches", "attention", "twice", "split", "recurrent", "unused", "detaching")


class Weighted(nn.Module):
    """One parameter, which functions outside use as well."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 1.5))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class Holder(nn.Module):
    """Calls what is inside it in one of the ways that models do."""

    def __init__(self, kind: str, inside: list[nn.Module]) -> None:
        super().__init__()
        self.kind = kind
        self.inside = nn.ModuleList(inside)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = getattr(self, f"_{self.kind}")(x)
        return made

    def _chain(self, x: Tensor) -> Tensor:
        for module in self.inside:
            x = module(x)
        return x

    def _residual(self, x: Tensor) -> Tensor:
        for module in self.inside:
            x = x + module(x)
        return x

    def _branches(self, x: Tensor) -> Tensor:
        return torch.stack([module(x) for module in self.inside]).mean(0)

    def _attention(self, x: Tensor) -> Tensor:
        parts = [module(x) for module in self.inside]
        query, key, value = (parts * 3)[:3]
        return (query @ key.mT).softmax(-1) @ value

    def _twice(self, x: Tensor) -> Tensor:
        return self._chain(self._chain(x))

    def _split(self, x: Tensor) -> Tensor:
        parts = [part.repeat(1, 2) for part in x.split(2, dim=-1)]
        return sum((module(part) for module, part in zip(self.inside, parts * 9, strict=False)), x)

    def _recurrent(self, x: Tensor) -> Tensor:
        state = torch.zeros_like(x)
        for _ in range(3):
            state = torch.tanh(self._chain(state) + x)
        return state

    def _unused(self, x: Tensor) -> Tensor:
        """What the first returns is used, what the others return is not."""
        used, *_ = [module(x) for module in self.inside]
        return used

    def _detaching(self, x: Tensor) -> Tensor:
        return self._chain(x).detach() + x


def network(choose: random.Random, depth: int, widest: int) -> nn.Module:
    """A module, nested at most ``depth`` deep, with at most ``widest`` others directly inside one."""
    if depth and choose.random() < 0.65:
        count = choose.randint(1, widest)
        return Holder(choose.choice(HOLDERS), [network(choose, depth - 1, widest) for _ in range(count)])
    made: dict[str, Any] = {
        "linear": lambda: nn.Linear(4, 4), "norm": lambda: nn.LayerNorm(4), "relu": nn.ReLU,
        "drop": lambda: nn.Dropout(choose.choice((0.0, 0.5))), "softmax": lambda: nn.Softmax(-1), "weighted": Weighted,
    }  # fmt: skip
    module: nn.Module = made[choose.choice(LEAVES)]()
    return module.eval() if choose.random() < 0.2 else module


def hook_some(choose: random.Random, net: nn.Module) -> None:
    """Put up to eight hooks on modules and parameters."""

    def looks(*_: Any) -> None:
        return None

    modules, parameters = list(net.modules()), list(net.parameters())
    for _ in range(choose.choice((0, 0, 1, 3, 8))):
        if parameters and choose.random() < 0.3:
            choose.choice(parameters).register_hook(looks)
        else:
            getattr(choose.choice(modules), f"register_{choose.choice(MODULE_HOOKS)}_hook")(looks)


def recorded(seed: int) -> hv.Trace:
    """The passes of network number ``seed``."""
    choose = random.Random(seed)
    torch.manual_seed(seed)
    net = nn.Sequential(
        *(network(choose, choose.randint(1, 4), choose.randint(1, 4)) for _ in range(choose.randint(1, 3)))
    )
    hook_some(choose, net)
    needs_grad, backward = choose.random() < 0.5, choose.random() < 0.9
    models = [net] if choose.random() < 0.5 else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with hv.record(*models) as trace:
            for _ in range(choose.choice((1, 1, 1, 2))):
                x = torch.ones(3, 4, requires_grad=needs_grad)
                loss = net(x).sum()
                if backward and loss.requires_grad:
                    loss.backward()
    return trace


def figures(trace: hv.Trace, most: int = 12) -> Iterator[Figure]:
    """The pictures of ``trace``: whole, with each layer, at a step, and of each box that one can enter."""
    for pass_id in sorted({row.pass_id for row in trace.rows}):
        own = PassPictures(trace, pass_id)
        for view in own.views.list_views()[:most]:
            yield build_figure(own.scene(view), None, for_player=True)
        scene = Scene.from_trace(trace, pass_id)
        if scene.box_count <= 60:
            yield from (
                build_figure(scene, None, for_player=True, **layer)
                for layer in ({}, {"tensors": True}, {"pre_hooks": True})
            )
        yield build_figure(scene, max(scene.marks, default=0))


def way_of(source: str) -> str:
    """How Graphviz could draw ``source``, as ``way_of_drawn`` names it."""
    return way_of_drawn(layout._draw_by_any_method(Job(source, "svg", "dot")))


def way_of_drawn(made: layout._Outcome) -> str:
    """How an SVG was drawn: ``usual``, the key of what the picture lacks, or ``none``."""
    if made.failure:
        return "none"
    text = " ".join(re.findall(r">([^<]*)</text>", made.picture.decode()))
    return next((way.lost_message for way in layout.SIMPLER_METHODS if layout.say(way.lost_message) in text), "usual")


def main(wanted: int) -> None:
    """Draw so many different pictures, and count."""
    torch.set_num_threads(1)
    seen: set[int] = set()
    ways: Counter[str] = Counter()
    for seed in count():
        for figure in figures(recorded(seed)):
            if hash(figure.source) not in seen:
                seen.add(hash(figure.source))
                ways[way_of(figure.source)] += 1
        if len(seen) >= wanted:
            break
    print(f"{len(seen):,} pictures of {seed + 1:,} networks: {dict(ways)}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
