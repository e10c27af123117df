"""The passes to measure: a function or module, its input, and the number of repetitions."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from hookviz.course.vision import resnet18


@dataclass(frozen=True)
class Case:
    """One pass: ``run(input)``, summed, and backward."""

    name: str
    run: Callable[[torch.Tensor], torch.Tensor]
    input: torch.Tensor
    times: int = 1
    """Repetitions in one measurement, for passes that are too short for the clock."""
    part: str = ""
    """The torch function whose outputs a tool saves when it records a part only; the last function of the pass."""

    def root(self) -> torch.Tensor:
        """Clear the gradients, run forward, and return the sum of the output."""
        for leaf in (self.input, *(self.run.parameters() if isinstance(self.run, nn.Module) else ())):
            leaf.grad = None
        return self.run(self.input).sum()

    def module(self) -> nn.Module:
        """Return ``run`` as a module."""
        return self.run if isinstance(self.run, nn.Module) else AsModule(self.run)


class AsModule(nn.Module):
    """Wraps a function for tools that need a module."""

    def __init__(self, run: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.run = run

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Call the function."""
        return self.run(x)


def _scalars(a: torch.Tensor) -> torch.Tensor:
    """Compute the graph a to e of the lessons."""
    b, d = (torch.tensor(x, requires_grad=True) for x in (3.0, 4.0))
    return a * b * d


def chain(x: torch.Tensor, length: int = 10_000) -> torch.Tensor:
    """Multiply ``x`` by a number ``length`` times."""
    for _ in range(length):
        x = x * 1.0001
    return x


def fan(x: torch.Tensor) -> torch.Tensor:
    """Stack ten thousand products of ``x`` into one tensor."""
    return torch.stack([x * 1.0001 for _ in range(10_000)])


def scalar() -> torch.Tensor:
    """Make a leaf with a single number."""
    return torch.tensor(1.5, requires_grad=True)


def _perceptron() -> nn.Module:
    return nn.Sequential(*(module for _ in range(6) for module in (nn.Linear(512, 512), nn.ReLU())))


def encoder(layers: int = 12) -> nn.Module:
    """Make a transformer encoder, 256 wide with 8 heads."""
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True), layers)


CASES: dict[str, Callable[[], Case]] = {
    "scalars": lambda: Case("six scalars", _scalars, scalar(), 100, "mul"),
    "mlp": lambda: Case("MLP, 6 × 512, batch 256", _perceptron(), torch.randn(256, 512), 2, "relu"),
    "resnet": lambda: Case("ResNet-18, 8 × 3 × 64 × 64", resnet18(), torch.randn(8, 3, 64, 64), part="linear"),
    "encoder": lambda: Case(
        "encoder, 12 layers, (8, 128, 256)", encoder(), torch.randn(8, 128, 256), part="layer_norm"
    ),
    "deep": lambda: Case("encoder, 48 layers, (8, 128, 256)", encoder(48), torch.randn(8, 128, 256)),
    "chain": lambda: Case("chain of 10,000 ops", chain, scalar()),
    "fan": lambda: Case("fan of 10,000 ops", fan, scalar()),
}
"""Short name → function that makes the case."""
