"""Hooks that keep what they were given, and of which something else is left."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz as hv

Kept = dict[Any, Any]


def record_keeping(net: nn.Module, owner: nn.Module, hook: Callable[..., None]) -> hv.Trace:
    handle = owner.register_forward_hook(hook)
    with hv.record() as trace:
        net(torch.ones(2, 3)).sum().backward()
    handle.remove()
    return trace


def net_with_relu(*, inplace: bool) -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.LayerNorm(4)), nn.ReLU(inplace=inplace), nn.Linear(4, 1))


def test_a_kept_output_that_the_next_module_edits_is_found_and_a_copy_is_not() -> None:
    kept: Kept = {}

    def keep(module: nn.Module, args: Any, output: Tensor) -> None:
        kept["norm"] = output.detach()  # here

    def keep_copy(module: nn.Module, args: Any, output: Tensor) -> None:
        kept["norm"] = output.detach().clone()

    def keep_sometimes(module: nn.Module, args: Any, output: Tensor) -> None:
        if not module.training:
            kept["norm"] = output

    def copy_later(module: nn.Module, args: Any, output: Tensor) -> None:
        kept["norm"] = output.detach()
        kept["norm"] = kept["norm"].clone()

    net = net_with_relu(inplace=True)
    for owner in (net[1], net[1][0]):
        (finding,) = record_keeping(net, owner, keep).findings
        assert (finding.kind, finding.severity) == ("overwritten_output", "warning")
        assert finding.sentence.endswith("and net.2 edits it in place afterwards.")
        assert finding.line == keep.__code__.co_firstlineno + 1
        for other in (keep_copy, keep_sometimes, copy_later):
            assert not record_keeping(net, owner, other).findings
    other_net = net_with_relu(inplace=False)
    assert not record_keeping(other_net, other_net[1], keep).findings


class TwoUses(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.act = nn.Linear(3, 3), nn.Linear(3, 3), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.second(self.act(self.first(x))))


@pytest.mark.parametrize("times", [1, 2])
def test_a_hook_that_keeps_only_the_last_output_is_a_remark(times: int) -> None:
    kept: Kept = {"all": []}

    def by_name(module: nn.Module, args: Any, output: Tensor) -> None:
        kept["act"] = output.clone()

    def by_input(module: nn.Module, args: Any, output: Tensor) -> None:
        kept[args] = output.clone()

    def adds_up(module: nn.Module, args: Any, output: Tensor) -> None:
        kept["sum"] = kept.get("sum", 0) + output.sum()

    def all_of_them(module: nn.Module, args: Any, output: Tensor) -> None:
        kept["all"].append(output.clone())

    net = TwoUses()
    owner = net.act if times == 2 else net.first
    kinds = [(finding.kind, finding.severity) for finding in record_keeping(net, owner, by_name).findings]
    assert kinds == ([("kept_last", "remark")] if times == 2 else [])
    for hook in (by_input, adds_up, all_of_them):
        assert not record_keeping(net, owner, hook).findings
