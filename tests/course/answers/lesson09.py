"""Right and wrong answers to what lesson 09 asks."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.optim.optimizer import register_optimizer_step_post_hook

from hookviz.course.sick_net import SickNet, read_digits, train
from tests.course.answers.common import raises

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


def copies(net: nn.Module) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in net.named_parameters()}


def stand_still(net: nn.Module, training: Callable[[Any], Any]) -> list[str]:
    before = copies(net)
    moved: set[str] = set()

    def compare(optimizer: Any, args: Any, kwargs: Any) -> None:
        moved.update(name for name, now in net.named_parameters() if not torch.equal(now, before[name]))

    with register_optimizer_step_post_hook(compare):
        training(net)
    return [name for name in before if name not in moved]


def compares_the_ends(net: nn.Module, training: Callable[[Any], Any]) -> list[str]:
    before = copies(net)
    training(net)
    return [name for name, now in net.named_parameters() if torch.equal(now, before[name])]


def names_what_moves(net: nn.Module, training: Callable[[Any], Any]) -> list[str]:
    still = stand_still(net, training)
    return [name for name, _ in net.named_parameters() if name not in still]


def leaves_its_hook(net: nn.Module, training: Callable[[Any], Any]) -> list[str]:
    register_optimizer_step_post_hook(lambda optimizer, args, kwargs: None)
    return stand_still(net, training)


def without_gradient(net: nn.Module, training: Callable[[Any], Any]) -> list[str]:
    training(net)
    return [name for name, parameter in net.named_parameters() if parameter.grad is None]


def not_held(net: nn.Module, training: Callable[[Any], Any]) -> list[str]:
    held: list[Any] = []
    with register_optimizer_step_post_hook(lambda optimizer, *_: held.extend(optimizer.param_groups[0]["params"])):
        training(net)
    return [name for name, parameter in net.named_parameters() if not any(parameter is one for one in held)]


def trains_twice(net: nn.Module, training: Callable[[Any], Any]) -> list[str]:
    training(net)
    return stand_still(net, training)


RIGHT: dict[str, Any] = {
    "09.1": "stem, head",
    "09.2": LivingUnits,
    "09.3": repaired(),
    "09.4": 0,
    "09.5": trains(),
    "09.6": stand_still,
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
        names_what_moves,
        compares_the_ends,
        without_gradient,
        not_held,
        lambda net, training: stand_still(net, training)[::-1],
        leaves_its_hook,
        trains_twice,
        lambda net, training: training(net),
        lambda net, training: training(net) or ["a"],
    ],
}
