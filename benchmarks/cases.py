"""The passes that are measured: what runs, on which input, and how often in one measurement."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from benchmarks.resnet import ResNet18


@dataclass(frozen=True)
class Case:
    """One pass: ``run(input)`` is summed up and goes backward."""

    name: str
    run: Callable[[torch.Tensor], torch.Tensor]
    input: torch.Tensor
    times: int = 1
    """So often in one measurement, for passes that are too short for the clock."""

    def root(self) -> torch.Tensor:
        """Run forward, with no gradient left from before."""
        for leaf in (self.input, *(self.run.parameters() if isinstance(self.run, nn.Module) else ())):
            leaf.grad = None
        return self.run(self.input).sum()


class AsModule(nn.Module):
    """A function where only a module will do."""

    def __init__(self, run: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.run = run

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What the function makes of ``x``."""
        return self.run(x)


def _scalars(a: torch.Tensor) -> torch.Tensor:
    """The a to e of the lessons."""
    b, d = (torch.tensor(x, requires_grad=True) for x in (3.0, 4.0))
    return a * b * d


def _chain(x: torch.Tensor) -> torch.Tensor:
    """``x`` times a number, again and again."""
    for _ in range(10_000):
        x = x * 1.0001
    return x


def _leaf() -> torch.Tensor:
    return torch.tensor(1.5, requires_grad=True)


def _perceptron() -> nn.Module:
    return nn.Sequential(*(part for _ in range(6) for part in (nn.Linear(512, 512), nn.ReLU())))


def _encoder() -> nn.Module:
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True), 12)


CASES: dict[str, Callable[[], Case]] = {
    "scalars": lambda: Case("six scalars", _scalars, _leaf(), 100),
    "mlp": lambda: Case("MLP, 6 × 512, batch 256", _perceptron(), torch.randn(256, 512), 2),
    "resnet": lambda: Case("ResNet-18, 8 × 3 × 64 × 64", ResNet18(), torch.randn(8, 3, 64, 64)),
    "encoder": lambda: Case("encoder, 12 layers, (8, 128, 256)", _encoder(), torch.randn(8, 128, 256)),
    "chain": lambda: Case("chain of 10,000 ops", _chain, _leaf()),
}
"""Short name → what makes the case anew."""
