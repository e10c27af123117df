"""Thirty epochs of lesson 09, with the loss on the images that are learned from and on new ones."""

from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.optim import SGD
from torch.optim.lr_scheduler import StepLR

from hookviz.course.sick_net import BATCH, IMAGES_TO_LEARN_FROM, Tensor, read_digits

Curves = dict[str, list[float]]
Save = Callable[[int, nn.Module, SGD, StepLR], object]


def train_long(net: nn.Module, save: Save | None = None, weight_decay: float = 0.0, epochs: int = 30) -> Curves:
    """Train a network on the digits, and return its losses in training and in validation after each epoch.

    The learning rate is 0.02 at first, and is divided by ten after every tenth epoch. Whenever the loss in validation
    is lower than ever before, ``save`` gets the number of epochs so far, the network, the optimizer and the schedule.
    """
    images, labels = read_digits()
    optimizer = SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=weight_decay)
    schedule = StepLR(optimizer, step_size=10, gamma=0.1)
    training: list[float] = []
    validation: list[float] = []
    for epoch in range(epochs):
        order = torch.randperm(IMAGES_TO_LEARN_FROM, generator=torch.Generator().manual_seed(epoch))
        for batch in order.split(BATCH):  # type: ignore[no-untyped-call]
            optimizer.zero_grad()
            functional.cross_entropy(net(images[batch]), labels[batch]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        schedule.step()
        training.append(loss_on(net, images[:IMAGES_TO_LEARN_FROM], labels[:IMAGES_TO_LEARN_FROM]))
        validation.append(loss_on(net, images[IMAGES_TO_LEARN_FROM:], labels[IMAGES_TO_LEARN_FROM:]))
        if save is not None and validation[-1] == min(validation):
            save(epoch + 1, net, optimizer, schedule)
    return {"training": training, "validation": validation}


def loss_on(net: nn.Module, images: Tensor, labels: Tensor) -> float:
    """Return the loss of a network on images, without a graph."""
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
