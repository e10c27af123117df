"""Random networks and the pictures of their passes, to test the layout by Graphviz.

``python -m tests.proof.pictures 20000`` draws 20,000 different pictures, and counts the layout methods that could draw
them.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any

import torch
from hookviz.picture.dot_source import Figure, build_figure
from torch import Tensor, nn

import hookviz as hv
from hookviz.picture import layout
from hookviz.picture.graphviz_client import Job
from hookviz.picture.scene import Scene
from hookviz.player.grouped_views import PassPictures

MODULE_HOOKS = ("forward_pre", "forward", "full_backward_pre", "full_backward")
LEAVES = ("linear", "norm", "relu", "drop", "softmax", "weighted")
HOLDERS = ("chain", "residual", "branches", "attention", "twice", "split", "recurrent", "unused", "detaching")


class Weighted(nn.Module):
    """A module with one parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((4,), 1.5))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight


class Holder(nn.Module):
    """Calls its inner modules in a pattern that is typical of models."""

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
        """Use the output of the first module only."""
        used, *_ = [module(x) for module in self.inside]
        return used

    def _detaching(self, x: Tensor) -> Tensor:
        return self._chain(x).detach() + x


def network(rng: random.Random, depth: int, max_children: int) -> nn.Module:
    """A random module with at most ``depth`` levels of nesting, and at most ``max_children`` children a level."""
    if depth and rng.random() < 0.65:
        count = rng.randint(1, max_children)
        return Holder(rng.choice(HOLDERS), [network(rng, depth - 1, max_children) for _ in range(count)])
    made: dict[str, Any] = {
        "linear": lambda: nn.Linear(4, 4), "norm": lambda: nn.LayerNorm(4), "relu": nn.ReLU,
        "drop": lambda: nn.Dropout(rng.choice((0.0, 0.5))), "softmax": lambda: nn.Softmax(-1), "weighted": Weighted,
    }  # fmt: skip
    module: nn.Module = made[rng.choice(LEAVES)]()
    return module.eval() if rng.random() < 0.2 else module


def register_random_hooks(rng: random.Random, net: nn.Module) -> None:
    """Register up to eight hooks on modules and parameters."""

    def looks(*_: Any) -> None:
        return None

    modules, parameters = list(net.modules()), list(net.parameters())
    for _ in range(rng.choice((0, 0, 1, 3, 8))):
        if parameters and rng.random() < 0.3:
            rng.choice(parameters).register_hook(looks)
        else:
            getattr(rng.choice(modules), f"register_{rng.choice(MODULE_HOOKS)}_hook")(looks)


def record_network(seed: int) -> hv.Trace:
    """Record the passes of network number ``seed``."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    net = nn.Sequential(*(network(rng, rng.randint(1, 4), rng.randint(1, 4)) for _ in range(rng.randint(1, 3))))
    register_random_hooks(rng, net)
    needs_grad, backward = rng.random() < 0.5, rng.random() < 0.9
    models = [net] if rng.random() < 0.5 else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with hv.record(*models) as trace:
            for _ in range(rng.choice((1, 1, 1, 2))):
                x = torch.ones(3, 4, requires_grad=needs_grad)
                loss = net(x).sum()
                if backward and loss.requires_grad:
                    loss.backward()
    return trace


def figures(trace: hv.Trace, max_views: int = 12) -> Iterator[Figure]:
    """Yield the pictures of ``trace``: whole, with each layer, at a step, and of its collapsed boxes."""
    for pass_id in sorted({row.pass_id for row in trace._data.rows}):
        pictures = PassPictures(trace._data, pass_id)
        for view in pictures.views.list_views()[:max_views]:
            yield build_figure(pictures.scene(view), None, for_player=True)
        scene = Scene.from_trace(trace._data, pass_id)
        if scene.box_count <= 60:
            yield from (
                build_figure(scene, None, for_player=True, **layer)
                for layer in ({}, {"tensors": True}, {"pre_hooks": True})
            )
        yield build_figure(scene, max(scene.marks, default=0))


def layout_method(source: str) -> str:
    """The method that draws ``source``, as named by ``layout_method_of_outcome``."""
    return layout_method_of_outcome(layout._draw_by_any_method(Job(source, "svg", "dot")))


def layout_method_of_outcome(made: layout._Outcome) -> str:
    """The name of the method of a layout; ``none`` if there is no picture."""
    return "none" if made.failure else made.method


def main(picture_count: int) -> None:
    """Draw ``picture_count`` different pictures, and count the layout methods."""
    torch.set_num_threads(1)
    hashes: set[int] = set()
    methods: Counter[str] = Counter()
    for seed in count():
        for figure in figures(record_network(seed)):
            if hash(figure.source) not in hashes:
                hashes.add(hash(figure.source))
                methods[layout_method(figure.source)] += 1
        if len(hashes) >= picture_count:
            break
    print(f"{len(hashes):,} pictures of {seed + 1:,} networks: {dict(methods)}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
