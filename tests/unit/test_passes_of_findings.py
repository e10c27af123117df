"""In which passes a finding about values holds."""

import torch
from torch import Tensor, nn

import hookviz as hv


class Blocking(nn.Module):
    """Registers a hook in each forward that sets the gradient of one branch to 0."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(2, 3), nn.Linear(2, 3)

    def forward(self, x: Tensor) -> Tensor:
        right = self.right(x)
        right.register_hook(torch.zeros_like)
        left: Tensor = self.left(x)
        return left + right


def test_zeros_of_a_hook_that_each_forward_registers_are_counted_in_all_passes() -> None:
    net = Blocking()
    with hv.record(net) as trace:
        for _ in range(3):
            net(torch.ones(1, 2)).square().sum().backward()
    assert [finding.when for finding in trace.findings if finding.kind == "zero"] == ["in 3 of 3 passes"]


def test_inf_that_becomes_nan_in_later_passes_is_inf_in_its_own_pass_only() -> None:
    weight = nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    with hv.record() as trace:
        for _ in range(2):
            optimizer.zero_grad()
            weight.sqrt().sum().backward()
            optimizer.step()
    assert {finding.kind: finding.when for finding in trace.findings.values}["inf"] == "only in pass 1"
