"""The network that does not learn: the lessons look for its faults. If you take the course, do not read on yet.

Its code looks like that of a network that several people worked on. Seven things are wrong with it and its training.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

Tensor = torch.Tensor
CLASSES, BLOCKS, BATCH = 10, 5, 50
IMAGES_TO_LEARN_FROM = 1_500
"""The other 297 of the 1,797 images are kept for the test."""


def read_digits() -> tuple[Tensor, Tensor]:
    """Read the handwritten digits that scikit-learn ships: images of (1797, 1, 8, 8) numbers from 0 to 16, and labels.

    Raises:
        ModuleNotFoundError: scikit-learn is not installed.

    >>> images, labels = read_digits()
    >>> images.shape, labels.shape, images.max().item()
    (torch.Size([1797, 1, 8, 8]), torch.Size([1797]), 16.0)
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = torch.randperm(len(digits.target), generator=torch.Generator().manual_seed(0))
    return torch.tensor(digits.images, dtype=torch.float32)[order, None], torch.tensor(digits.target)[order]


class SickNet(nn.Module):
    """Reads a digit in an image of 8 × 8 pixels, or would if it learned.

    The same ``seed`` makes the same network; it does not touch the random numbers of the program.

    >>> net = SickNet()
    >>> net(read_digits()[0][:3]).shape
    torch.Size([3, 10])
    """

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.stem = nn.Conv2d(1, 8, 3, padding=1)
            self.body = nn.Sequential(*[Block(8) for _ in range(BLOCKS)])
            self.pool = nn.AvgPool2d(2)
            self.neck = nn.Linear(128, 32)
            self.relu = nn.ReLU()
            self.head = nn.Linear(32, CLASSES)
            self.apply(initialise)
        nn.init.constant_(self.neck.bias[:24], -5.0)
        self.head.weight.register_hook(keep_small)
        self.seen: list[Tensor] = []

    def forward(self, images: Tensor) -> Tensor:
        """Return ten scores for each image."""
        self.relu.register_forward_hook(self.remember)
        features = self.stem(images / 255)
        features = self.body(features.detach())
        features = self.pool(features).flatten(1)
        return self.head(self.relu(self.neck(features)))

    def remember(self, module: nn.Module, args: Any, output: Tensor) -> None:
        """Keep what the layer computed, to look at it later."""
        self.seen.append(output)


class Block(nn.Module):
    """A convolution and what bends its result."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.bend = nn.Sigmoid()

    def forward(self, features: Tensor) -> Tensor:
        """Return as many channels of the same size."""
        return self.bend(self.conv(features))


def initialise(module: nn.Module) -> None:
    """Give a layer its first weights."""
    if isinstance(module, nn.Conv2d | nn.Linear):
        nn.init.kaiming_normal_(module.weight)
        nn.init.constant_(module.bias, 0.0)  # type: ignore[arg-type]


def keep_small(grad: Tensor) -> Tensor:
    """Keep large gradients out of the last layer."""
    return grad.clamp(max=0)


def train(net: nn.Module, epochs: int = 3, rate: float = 0.02) -> list[float]:
    """Train a network on the digits, and return the loss of each batch.

    >>> losses = train(SickNet(), epochs=1)
    >>> len(losses), round(losses[-1], 1)
    (30, 2.3)
    """
    images, labels = read_digits()
    trained = [p for name, p in net.named_parameters() if not name.startswith("head")]
    optimizer = torch.optim.SGD(trained, lr=rate, momentum=0.9)
    losses = []
    for epoch in range(epochs):
        order = torch.randperm(IMAGES_TO_LEARN_FROM, generator=torch.Generator().manual_seed(epoch))
        for batch in order.split(BATCH):
            optimizer.zero_grad()
            loss = functional.cross_entropy(net(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def measure_accuracy(net: nn.Module) -> float:
    """Return the share of the images that were kept for the test whose digit a network reads right.

    >>> measure_accuracy(SickNet()) < 0.2
    True
    """
    images, labels = read_digits()
    with torch.no_grad():
        guesses = net(images[IMAGES_TO_LEARN_FROM:]).argmax(1)
    return (guesses == labels[IMAGES_TO_LEARN_FROM:]).float().mean().item()
