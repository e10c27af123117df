"""The workloads of the comparison, from six scalars to a node with ten thousand inputs."""

from collections.abc import Callable

import torch

from benchmarks.cases import CASES, Case, chain, encoder, scalar


def _chain(x: torch.Tensor) -> torch.Tensor:
    return chain(x, 4_999).neg()


def _fan(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([x * number for number in range(10_000)])


def _deep() -> Case:
    return Case("encoder, 48 layers, (2, 64, 256)", encoder(48), torch.randn(2, 64, 256), part="layer_norm")


WORKS: dict[str, Callable[[], Case]] = {
    **{name: CASES[name] for name in ("scalars", "mlp", "resnet", "encoder")},
    "encoder48": _deep,
    "chain": lambda: Case("chain of 5,000 ops", _chain, scalar(), part="neg"),
    "fan": lambda: Case("fan of 10,000 ops into one", _fan, scalar(), part="stack"),
}
"""Short name → function that makes the case; "scalars" is the graph a to e of the lessons."""
