"""Random networks and the pictures of their passes: each has all elements, none on another, room for all texts."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.picture import graphviz_client, layered_layout
from hookviz.picture.figure import Figure, draw_for_player
from hookviz.picture.graphviz_client import Answer, Job, NoWorkerError, WorkerDiedError
from hookviz.picture.pass_pictures import PassPictures
from hookviz.picture.scene import Scene
from hookviz.picture.visible_graph import make_visible_graph

MODULE_HOOKS = ("forward_pre", "forward", "full_backward_pre", "full_backward")
LEAVES = ("linear", "norm", "relu", "drop", "softmax", "weighted")
HOLDERS = ("chain", "residual", "branches", "attention", "twice", "split", "recurrent", "unused", "detaching")


class Weighted(nn.Module):
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
    def looks(*_: Any) -> None:
        return None

    modules, parameters = list(net.modules()), list(net.parameters())
    for _ in range(rng.choice((0, 0, 1, 3, 8))):
        if parameters and rng.random() < 0.3:
            rng.choice(parameters).register_hook(looks)
        else:
            getattr(rng.choice(modules), f"register_{rng.choice(MODULE_HOOKS)}_hook")(looks)


def record_network(seed: int) -> hv.Trace:
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


class Drawn(NamedTuple):
    svg: str
    scene: Scene


def draw_pictures(trace: hv.Trace, max_views: int = 12) -> Iterator[Drawn]:
    """Yield the pictures of ``trace``: whole, with the layer of tensors, and of its collapsed boxes."""
    for pass_id, internal in product(sorted({row.pass_id for row in trace._data.rows}), (False, True)):
        pictures = PassPictures(make_visible_graph(trace._data, pass_id, internal=internal))
        for view in pictures.views.list_views()[:max_views]:
            scene = pictures.scene(view)
            yield Drawn(draw_for_player(scene).svg, scene)
        scene = Scene.from_trace(trace._data, pass_id, internal=internal)
        if scene.box_count <= 60:
            yield Drawn(draw_for_player(scene).svg, scene)
            yield Drawn(draw_for_player(scene, tensors=True).svg, scene)
        yield Drawn(Figure(scene, None).svg(), scene)


@contextmanager
def count_deaths() -> Iterator[Counter[str]]:
    """Count the times that Graphviz died of a picture of hookviz, or could not run."""
    deaths: Counter[str] = Counter()

    def draw(job: Job) -> Answer:
        try:
            return graphviz_client.draw_in_worker(job)
        except (NoWorkerError, WorkerDiedError) as error:
            deaths[f"{type(error).__name__}: {error}"] += 1
            raise

    original = layered_layout.draw_in_worker
    layered_layout.draw_in_worker = draw
    try:
        yield deaths
    finally:
        layered_layout.draw_in_worker = original
