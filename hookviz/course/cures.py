"""The cures of lesson 09, finished. If you take the course, write your own first, and read on when you are stuck."""

from collections.abc import Callable

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


# Each cure alone


class OnlyLivingUnits(SickNet):
    """The sick network with biases of 0."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        nn.init.zeros_(self.neck.bias)


class OnlyRepaired(SickNet):
    """The sick network with the repaired forward."""

    forward = Repaired.forward


class OnlyUnhooked(SickNet):
    """The sick network without the hook of the head."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self.head.weight = nn.Parameter(self.head.weight.detach().clone())


ALONE: dict[str, tuple[type[SickNet], Callable[..., list[float]]]] = {
    "ReLU blocks": (ReluBlocks, train),
    "living units": (OnlyLivingUnits, train),
    "repaired forward": (OnlyRepaired, train),
    "no hook": (OnlyUnhooked, train),
    "all held": (SickNet, train_all),
}
"""Each cure alone: the network to make, and the function that trains it."""
