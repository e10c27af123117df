"""ResNet-18 in plain ``torch.nn``, after He et al., "Deep Residual Learning for Image Recognition" (2015)."""

from itertools import pairwise

import torch
from torch import nn


class Block(nn.Module):
    """Two 3 × 3 convolutions with a shortcut."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(outside)
        self.second = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Sequential()
        if stride > 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add the output of the convolutions to the shortcut of ``x``."""
        y = self.relu(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        y += self.shortcut(x)
        out: torch.Tensor = self.relu(y)
        return out


class ResNet18(nn.Module):
    """A stem, four stages of two blocks, and a linear layer after average pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, padding=3, bias=False),
            nn.BatchNorm2d(64),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, padding=1),
        )
        widths = (64, 64, 128, 256, 512)
        stages = []
        for number, (inside, outside) in enumerate(pairwise(widths)):
            stages.append(nn.Sequential(Block(inside, outside, 1 + (number > 0)), Block(outside, outside, 1)))
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(512, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Compute the scores of the classes for images ``x``."""
        out: torch.Tensor = self.head(self.stages(self.stem(x)).mean((2, 3)))
        return out
