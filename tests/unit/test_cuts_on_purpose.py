"""Cuts that a program makes on purpose are remarks, and a line that --cuts cannot see is still named."""

import torch
from torch import Tensor, nn

import hookviz as hv


def test_a_cut_that_makes_a_leaf_is_a_remark() -> None:
    embed, head = nn.Linear(3, 4), nn.Linear(4, 1)
    with hv.record() as trace:
        h = embed(torch.ones(2, 3)).detach().requires_grad_()
        head(h).sum().backward()
    assert [(finding.kind, finding.severity) for finding in trace.findings] == [("cut", "remark")]


def test_a_cut_before_what_no_optimizer_holds_is_a_remark_also_if_ops_are_followed() -> None:
    for cuts in (False, True):
        generator, critic = nn.Linear(3, 4), nn.Linear(4, 1)
        optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
        with hv.record(cuts=cuts) as trace:
            for _ in range(2):
                optimizer.zero_grad()
                critic(generator(torch.randn(2, 3)).detach()).sum().backward()
                optimizer.step()
        assert [(finding.kind, finding.severity) for finding in trace.findings] == [("cut", "remark")]


class Filling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        filled = torch.zeros(2, 1)
        filled.data[:] = self.layer(x)  # here
        return filled


def test_what_is_written_through_data_is_named_also_if_ops_are_followed() -> None:
    for cuts in (False, True):
        net, scale = Filling(), nn.Parameter(torch.ones(1))
        optimizer = torch.optim.SGD([*net.parameters(), scale], lr=0.1)
        with hv.record(cuts=cuts) as trace:
            (net(torch.ones(2, 3)) * scale).sum().backward()
            optimizer.step()
        (finding,) = trace.findings.parameters
        assert "filled.data" in finding.cause and finding.severity == "warning"


def test_a_leaf_that_a_call_returned_a_view_of_is_not_cut_off() -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(4, 1))
    x = torch.ones(2, 2, 2, requires_grad=True)
    with hv.record() as trace:
        for _ in range(2):
            net(x).sum().backward()
    assert not any(call.cut_from for call in trace._data.calls) and not trace.findings
