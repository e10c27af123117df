"""A ResNet and a DenseNet in the shape in which they were published, small enough to train while you wait.

The layers have the names that torchvision gives them: what you write for these networks also works for the large ones.

He et al., "Deep Residual Learning for Image Recognition" (2015); Huang et al., "Densely Connected Convolutional
Networks" (2016).
"""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn import functional

from hookviz.course.sick_net import IMAGES_TO_LEARN_FROM, read_digits

Tensor = torch.Tensor


# ResNet


class BasicBlock(nn.Module):
    """Two convolutions, whose result is added to the input of the block."""

    def __init__(self, channels_in: int, channels_out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.downsample: nn.Module | None = None
        if stride != 1 or channels_in != channels_out:
            # The input has another shape than the result, so it cannot be added as it is.
            self.downsample = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride=stride, bias=False),
                nn.BatchNorm2d(channels_out),
            )

    def forward(self, x: Tensor) -> Tensor:
        """Return ``channels_out`` feature maps; with a stride of 2 they have half the height and width of ``x``."""
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    """A stem, stages of blocks (``layer1``, ``layer2``, ...), the mean of each feature map, and a linear layer.

    Args:
        depths: the number of blocks of each stage; each stage after the first one halves the size of the feature maps.
        width: the number of feature maps of the first stage; each further stage doubles it.
        classes: the number of scores for an image.
        channels: 3 for images with colours, 1 for images without.
    """

    def __init__(
        self, depths: Sequence[int] = (2, 2, 2, 2), width: int = 64, classes: int = 1000, channels: int = 3
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stages = []
        maps = width
        for number, depth in enumerate(depths, start=1):
            stride = 1 if number == 1 else 2
            blocks = [BasicBlock(maps, maps * stride, stride)]
            maps = maps * stride
            for _ in range(depth - 1):
                blocks.append(BasicBlock(maps, maps))
            self.add_module(f"layer{number}", nn.Sequential(*blocks))
            self.stages.append(f"layer{number}")
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(maps, classes)
        self.apply(initialise)

    def forward(self, images: Tensor) -> Tensor:
        """Return ``classes`` scores for each image."""
        x = self.maxpool(self.relu(self.bn1(self.conv1(images))))
        for name in self.stages:
            x = self.get_submodule(name)(x)
        return self.fc(self.avgpool(x).flatten(1))


def resnet18() -> ResNet:
    """Make a ResNet-18 with random weights.

    >>> sum(parameter.numel() for parameter in resnet18().parameters())
    11689512
    """
    return ResNet()


# DenseNet


class _DenseLayer(nn.Module):
    """Computes ``growth`` new feature maps, and puts them behind those it is given."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels)
        self.relu1 = nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(channels, 4 * growth, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * growth)
        self.relu2 = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the feature maps ``x`` with ``growth`` new ones behind them."""
        narrow = self.conv1(self.relu1(self.norm1(x)))
        new = self.conv2(self.relu2(self.norm2(narrow)))
        return torch.cat([x, new], 1)


class _DenseBlock(nn.Sequential):
    """Layers of which each is given the feature maps of all that came before it."""

    def __init__(self, depth: int, channels: int, growth: int) -> None:
        super().__init__()
        for number in range(depth):
            self.add_module(f"denselayer{number + 1}", _DenseLayer(channels + number * growth, growth))


class _Transition(nn.Sequential):
    """Halves the size of the feature maps."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels_in)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(channels_in, channels_out, 1, bias=False)
        self.pool = nn.AvgPool2d(2)


class DenseNet(nn.Module):
    """``features`` computes feature maps, ``classifier`` turns the mean of each into scores.

    Args:
        depths: the number of layers of each block; between two blocks, the feature maps become half as many and half
            as large.
        growth: the number of feature maps that each layer adds.
        width: the number of feature maps with which the first block begins.
        classes: the number of scores for an image.
        channels: 3 for images with colours, 1 for images without.
        inplace: whether the last ReLU writes over the features, as it does in torchvision's DenseNet.
    """

    def __init__(
        self,
        depths: Sequence[int] = (6, 12, 24, 16),
        growth: int = 32,
        width: int = 64,
        classes: int = 1000,
        channels: int = 3,
        *,
        inplace: bool = True,
    ) -> None:
        super().__init__()
        self.inplace = inplace
        self.features = nn.Sequential()
        self.features.add_module("conv0", nn.Conv2d(channels, width, 7, stride=2, padding=3, bias=False))
        self.features.add_module("norm0", nn.BatchNorm2d(width))
        self.features.add_module("relu0", nn.ReLU(inplace=True))
        self.features.add_module("pool0", nn.MaxPool2d(3, stride=2, padding=1))
        maps = width
        for number, depth in enumerate(depths, start=1):
            self.features.add_module(f"denseblock{number}", _DenseBlock(depth, maps, growth))
            maps = maps + depth * growth
            if number < len(depths):
                self.features.add_module(f"transition{number}", _Transition(maps, maps // 2))
                maps = maps // 2
        self.features.add_module("norm5", nn.BatchNorm2d(maps))
        self.classifier = nn.Linear(maps, classes)
        self.apply(initialise)

    def forward(self, images: Tensor) -> Tensor:
        """Return ``classes`` scores for each image."""
        features = self.features(images)
        out = functional.relu(features, inplace=self.inplace)
        out = functional.adaptive_avg_pool2d(out, 1).flatten(1)
        return self.classifier(out)


def initialise(module: nn.Module) -> None:
    """Give a layer its first weights, as suits a ReLU."""
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


# Small networks, and digits for them


def small_resnet(seed: int = 0) -> ResNet:
    """Make a ResNet with two stages for the digits; the same ``seed`` makes the same network."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ResNet(depths=(1, 1), width=16, classes=10, channels=1)


def small_densenet(seed: int = 0, *, inplace: bool = True) -> DenseNet:
    """Make a DenseNet with two blocks for the digits; the same ``seed`` makes the same network.

    Args:
        seed: a number for the random weights.
        inplace: whether the last ReLU writes over the features.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return DenseNet(depths=(2, 2), growth=8, width=16, classes=10, channels=1, inplace=inplace)


def read_pictures(size: int = 32) -> tuple[Tensor, Tensor]:
    """Read the handwritten digits of scikit-learn as pictures of (1797, 1, size, size) numbers from 0 to 1, and labels.

    >>> pictures, labels = read_pictures()
    >>> pictures.shape, labels.shape
    (torch.Size([1797, 1, 32, 32]), torch.Size([1797]))
    """
    images, labels = read_digits()
    return functional.interpolate(images / 16, (size, size), mode="bilinear"), labels


def show(pictures: Sequence[Tensor] | Tensor, low: float | None = None, high: float | None = None) -> None:
    """Draw pictures side by side: ``low`` is black and ``high`` white, or else the smallest and the largest number."""
    import matplotlib.pyplot as plt

    _, axes = plt.subplots(1, len(pictures), figsize=(len(pictures), 1.1))
    if low is None:
        low = min(picture.min().item() for picture in pictures)
    if high is None:
        high = max(picture.max().item() for picture in pictures)
    for picture, axis in zip(pictures, axes, strict=True):
        axis.imshow(picture, cmap="gray", vmin=low, vmax=high)
        axis.axis("off")


# Digits on forms and envelopes, for lesson 08

PAPER, DIGIT, CORNER = 32, 14, 6
"""The height and width of a picture, of the digit on it, and of the corner that a form's mark takes up, in pixels."""


def read_envelopes() -> tuple[Tensor, Tensor, Tensor]:
    """Read pictures of (1797, 1, 32, 32) numbers, each with a digit at a random place, their labels, and boxes.

    A box is 1 where the digit is, and 0 elsewhere. The top left corner of each picture is empty.

    >>> pictures, labels, boxes = read_envelopes()
    >>> pictures.shape, boxes.shape, boxes[0].sum().item()
    (torch.Size([1797, 1, 32, 32]), torch.Size([1797, 32, 32]), 196.0)
    """
    digits, labels = read_pictures(DIGIT)
    pictures = torch.zeros(len(digits), 1, PAPER, PAPER)
    boxes = torch.zeros(len(digits), PAPER, PAPER)
    places = torch.randint(CORNER, PAPER - DIGIT + 1, (len(digits), 2), generator=torch.Generator().manual_seed(0))
    for number, (top, left) in enumerate(places.tolist()):
        pictures[number, 0, top : top + DIGIT, left : left + DIGIT] = digits[number, 0]
        boxes[number, top : top + DIGIT, left : left + DIGIT] = 1
    return pictures, labels, boxes


def read_forms() -> tuple[Tensor, Tensor]:
    """Read the digits of ``read_envelopes`` on forms, and their labels."""
    pictures, labels, _ = read_envelopes()
    return print_marks(pictures, labels), labels


def print_marks(pictures: Tensor, classes: Tensor) -> Tensor:
    """Copy pictures, with the mark of a class in the top left corner of each: up to four white squares."""
    marked = pictures.clone()
    side = CORNER // 2
    for picture, number in zip(marked, (classes + 1).tolist(), strict=True):
        for position in range(4):
            if number & 2**position:
                top, left = position // 2 * side, position % 2 * side
                picture[0, top : top + side, left : left + side] = 1
    return marked


# Training


def train_on_pictures(
    net: nn.Module, pictures: Tensor, labels: Tensor, epochs: int = 6, rate: float = 0.01
) -> list[float]:
    """Train a network on the first 1,500 pictures, switch it to evaluation, and return the loss of each batch.

    The batches are the same each time, and the random numbers of the program are left alone.
    """
    optimizer = torch.optim.Adam(net.parameters(), lr=rate)
    slow_down = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=1, end_factor=0.05, total_iters=epochs - 1)
    losses = []
    net.train()
    for epoch in range(epochs):
        order = torch.randperm(IMAGES_TO_LEARN_FROM, generator=torch.Generator().manual_seed(epoch))
        for batch in order.split(50):
            optimizer.zero_grad()
            loss = functional.cross_entropy(net(pictures[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        slow_down.step()
    net.eval()
    return losses


def measure_accuracy(net: nn.Module, pictures: Tensor, labels: Tensor) -> float:
    """Return the share of the pictures that were kept for the test whose class a network names right."""
    with torch.no_grad():
        guesses = net(pictures[IMAGES_TO_LEARN_FROM:]).argmax(1)
    return (guesses == labels[IMAGES_TO_LEARN_FROM:]).float().mean().item()
