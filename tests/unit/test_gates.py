"""Where the size of a gradient is compared: at activations, never at what a layer computes its weight with."""

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv
from hookviz.analysis.findings.values.bottlenecks import find_gates
from hookviz.analysis.findings.values.pass_statistics import PassStatistics


class Graph(nn.Module):
    """A graph network: constant edges stand before the product with each layer's weight."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.tanh(torch.eye(5) @ layer(x))
        return x


def list_gates(net: nn.Module, x: Tensor) -> list[str]:
    """List the ops of the gates of a pass, from the loss on."""
    with hv.record(net) as trace:
        net(x).sum().backward()
    data = trace._data
    statistics = PassStatistics(data, list(range(len(data.rows))), data.tensors)
    return [data.ops[gate.node].partition("Backward")[0] for gate in find_gates(statistics)]


NETS = {
    "data with a gradient": (nn.Linear(4, 6), torch.rand(5, 4, requires_grad=True), "Addmm"),
    "weight norm": (nn.utils.parametrizations.weight_norm(nn.Linear(4, 6)), torch.rand(5, 4), "Addmm"),
}


@pytest.mark.parametrize(("net", "x", "last"), NETS.values(), ids=NETS)
def test_the_gate_at_the_data_is_the_product_with_it(net: nn.Module, x: Tensor, last: str) -> None:
    assert list_gates(net, x)[-1] == last


def test_constant_factors_are_passed() -> None:
    assert list_gates(Graph(), torch.rand(5, 4)).count("Tanh") == 3
