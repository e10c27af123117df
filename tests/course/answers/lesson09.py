"""Right and wrong answers to what lesson 09 asks."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from hookviz.course import course_tools
from hookviz.course.sick_net import SickNet, read_digits, train
from tests.course.answers.common import changed_tool, raises

# The cures


class ReluBlocks(SickNet):
    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        for block in self.body:
            block.bend = nn.ReLU()


def living_units(make: type[SickNet] = ReluBlocks, weight: float | None = None, bias: float | None = 0.0) -> Any:
    """A class that changes the numbers of ``neck``."""

    class LivingUnits(make):  # type: ignore[misc, valid-type]
        def __init__(self, seed: int = 0) -> None:
            super().__init__(seed)
            if bias is not None:
                nn.init.constant_(self.neck.bias, bias)
            if weight is not None:
                nn.init.constant_(self.neck.weight, weight)

    return LivingUnits


def no_net(seed: int = 0) -> nn.Module:
    return nn.Linear(2, 2)


class FewScores(ReluBlocks):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return super().forward(images)[:, :3]


LivingUnits: Any = living_units()


def repaired(scale: float = 16.0, cut: str = "", leak: bool = False, bends: bool = True) -> Any:
    """A class with another forward, which is cut after the stem or after the body, or leaks."""

    class Repaired(LivingUnits):  # type: ignore[misc]
        def forward(self, images: torch.Tensor) -> torch.Tensor:
            if leak:
                self.relu.register_forward_hook(self.remember)
            features = self.stem(images / scale)
            features = self.body(features.detach() if cut == "stem" else features)
            features = self.pool(features.detach() if cut == "body" else features).flatten(1)
            features = self.neck(features)
            return self.head(self.relu(features) if bends else features)  # type: ignore[no-any-return]

    return Repaired


def trains(part: str = "", momentum: float = 0.9, steps: bool = True, result: Any = None) -> Callable[..., Any]:
    """A function that trains the parameters whose names begin with ``part``."""

    def train_all(net: nn.Module, epochs: int = 3, rate: float = 0.02) -> Any:
        images, labels = read_digits()
        parameters = [parameter for name, parameter in net.named_parameters() if name.startswith(part)]
        optimizer = torch.optim.SGD(parameters, lr=rate, momentum=momentum)
        losses = []
        for epoch in range(epochs):
            order = torch.randperm(1_500, generator=torch.Generator().manual_seed(epoch))
            for batch in order.split(50):  # type: ignore[no-untyped-call]
                optimizer.zero_grad()
                loss = functional.cross_entropy(net(images[batch]), labels[batch])
                torch.autograd.backward(loss)
                if steps:
                    optimizer.step()
                losses.append(loss.item())
        return result or losses

    return train_all


# Instruments


TRAIN = "with register_optimizer_step_post_hook(compare):\n        training(net)"
stand_still = partial(changed_tool, course_tools.stand_still)


RIGHT: dict[str, Any] = {
    "09.1": "stem, head",
    "09.2": LivingUnits,
    "09.3": repaired(),
    "09.4": 0,
    "09.5": trains(),
    "09.6": course_tools.stand_still,
}
WRONG: dict[str, list[Any]] = {
    "09.1": ["stem", "head", "stem, body, neck, head", "body", "legs"],
    "09.2": [
        no_net,
        FewScores,
        ReluBlocks,
        living_units(bias=-0.5),
        living_units(weight=0.5),
        living_units(SickNet),
        raises,
    ],
    "09.3": [
        no_net,
        FewScores,
        repaired(255.0),
        repaired(1.0),
        repaired(leak=True),
        repaired(cut="body"),
        repaired(cut="stem"),
        repaired(bends=False),
    ],
    "09.4": [86, 7, "a little"],
    "09.5": [train, trains(steps=False), trains(result=[1.0]), trains(momentum=0.0), raises],
    "09.6": [
        stand_still(("if name not in moved", "if name in moved")),
        stand_still((TRAIN, "training(net)\n    compare(None, (), {})")),
        stand_still(
            ("for name in before if name not in moved", "for name, p in net.named_parameters() if p.grad is None")
        ),
        stand_still(
            (
                "not torch.equal(parameter, before[name])",
                'any(parameter is one for one in optimizer.param_groups[0]["params"])',
            ),
        ),
        lambda net, training: course_tools.stand_still(net, training)[::-1],
        stand_still(
            ("moved: set[str] = set()", "moved = set()\n    register_optimizer_step_post_hook(lambda *given: None)")
        ),
        stand_still((TRAIN, f"training(net)\n    {TRAIN}")),
        lambda net, training: training(net),
        lambda net, training: training(net) or ["a"],
    ],
}
