"""The cures of lesson 09, finished. If you take the course, write your own first, and read on when you are stuck."""

from collections.abc import Collection

import torch
from torch import nn
from torch.nn import functional

from hookviz.course.sick_net import BATCH, IMAGES_TO_LEARN_FROM, SickNet, Tensor, read_digits, train


class ReluBlocks(SickNet):
    """The blocks of its body bend with a ReLU."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        for block in self.body:
            block.bend = nn.ReLU()


class LivingUnits(ReluBlocks):
    """No unit of the ReLU is dead because of its bias."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        nn.init.zeros_(self.neck.bias)


class Repaired(LivingUnits):
    """Its stem gets numbers from 0 to 1 and gradients, and no call leaves a hook behind."""

    def forward(self, images: Tensor) -> Tensor:
        """Return ten scores for each image."""
        features = self.body(self.stem(images / 16))
        features = self.pool(features).flatten(1)
        return self.head(self.relu(self.neck(features)))  # type: ignore[no-any-return]


class Unhooked(Repaired):
    """No hook changes the gradient of the head."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.head.weight = nn.Parameter(self.head.weight.detach().clone())


def train_all(net: nn.Module, epochs: int = 3, rate: float = 0.02) -> list[float]:
    """Train all parameters of a network on the digits, and return the loss of each batch."""
    images, labels = read_digits()
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9)
    losses = []
    for epoch in range(epochs):
        order = torch.randperm(IMAGES_TO_LEARN_FROM, generator=torch.Generator().manual_seed(epoch))
        for batch in order.split(BATCH):  # type: ignore[no-untyped-call]
            optimizer.zero_grad()
            loss = functional.cross_entropy(net(images[batch]), labels[batch])
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.item())
    return losses


# Any choice of faults

SIGMOIDS, DEAD, BLACK = "sigmoids", "dead units", "black images"
CUT, PILE, HOOK, NOT_HELD = "graph cut", "hooks pile up", "hook on head", "head not held"
FAULTS = (SIGMOIDS, DEAD, BLACK, CUT, PILE, HOOK, NOT_HELD)
"""The seven faults of the sick network and its training."""


class Cured(SickNet):
    """The sick network without its faults, except those in ``left``.

    >>> Cured(left={"dead units"}).neck.bias.min().item(), Cured().neck.bias.min().item()
    (-5.0, 0.0)
    """

    def __init__(self, seed: int = 0, left: Collection[str] = ()) -> None:
        super().__init__(seed)
        if unknown := set(left) - set(FAULTS):
            raise ValueError(f"not a fault: {unknown}; the faults are {FAULTS}")
        self.left = frozenset(left)
        if SIGMOIDS not in left:
            for block in self.body:
                block.bend = nn.ReLU()
        if DEAD not in left:
            nn.init.zeros_(self.neck.bias)
        if HOOK not in left:
            self.head.weight = nn.Parameter(self.head.weight.detach().clone())

    def forward(self, images: Tensor) -> Tensor:
        """Return ten scores for each image."""
        if PILE in self.left:
            self.relu.register_forward_hook(self.remember)
        features = self.stem(images / (255 if BLACK in self.left else 16))
        features = self.body(features.detach() if CUT in self.left else features)
        features = self.pool(features).flatten(1)
        return self.head(self.relu(self.neck(features)))  # type: ignore[no-any-return]


def train_with(left: Collection[str], seed: int = 0) -> Cured:
    """Make a network that has the faults in ``left`` and no others, train it for three epochs, and return it.

    Raises:
        ValueError: one of ``left`` is not a fault.
    """
    net = Cured(seed, left)
    if NOT_HELD in left:
        train(net)
    else:
        train_all(net)
    return net
