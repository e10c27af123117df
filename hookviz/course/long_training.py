"""Thirty epochs of lesson 14, with the loss on the images that are learned from and on new ones."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.optim import SGD
from torch.optim.lr_scheduler import StepLR

from hookviz.course.sick_net import BATCH, IMAGES_TO_LEARN_FROM, Tensor, read_digits

Curves = dict[str, list[float]]
Examples = tuple[Tensor, Tensor]
"""Images and their labels."""
Save = Callable[[int, nn.Module, SGD, StepLR], object]


def train_long(net: nn.Module, save: Save | None = None, weight_decay: float = 0.0, epochs: int = 30) -> Curves:
    """Train on the digits, and return the losses after each epoch."""
    known, new = split_digits()
    optimizer = SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=weight_decay)
    schedule = StepLR(optimizer, step_size=10, gamma=0.1)
    curves: Curves = {"training": [], "validation": []}
    for epoch in range(epochs):
        train_epoch(net, optimizer, known, epoch)
        schedule.step()
        curves["training"].append(loss_on(net, *known))
        curves["validation"].append(loss_on(net, *new))
        if save is not None and curves["validation"][-1] == min(curves["validation"]):
            save(epoch + 1, net, optimizer, schedule)
    return curves


def split_digits() -> tuple[Examples, Examples]:
    """Return the images to learn from and the other ones, each with their labels."""
    images, labels = read_digits()
    count = IMAGES_TO_LEARN_FROM
    return (images[:count], labels[:count]), (images[count:], labels[count:])


def train_epoch(net: nn.Module, optimizer: SGD, examples: Examples, epoch: int) -> None:
    """Make a step for each batch; the number of the epoch gives the order of the images."""
    net.train()
    images, labels = examples
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
    for batch in order.split(BATCH):  # type: ignore[no-untyped-call]
        optimizer.zero_grad()
        functional.cross_entropy(net(images[batch]), labels[batch]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def loss_on(net: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Return the loss of a network on images, in evaluation mode and without a graph."""
    net.eval()
    with torch.no_grad():
        return functional.cross_entropy(net(images), labels).item()


def show_losses(curves: Curves) -> None:
    """Draw the loss after each epoch, with a line for each curve."""
    import matplotlib.pyplot as plt

    plt.figure(figsize=(7, 3))
    for name, losses in curves.items():
        plt.semilogy(range(1, len(losses) + 1), losses, label=name)
    plt.xlabel("epoch")
    plt.ylabel("loss")
    plt.legend()
    plt.show()
