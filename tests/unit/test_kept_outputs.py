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


class Meter:
    """Reads numbers at once."""

    def __init__(self) -> None:
        self.total = 0.0
        self.mean = torch.zeros(())
        self.queue: list[Tensor] = []

    def add(self, output: Tensor) -> None:
        self.total += output.sum().item()

    def flush(self) -> None:
        while self.queue:
            self.add(self.queue.pop())

    def average(self, _module: nn.Module, _args: Any, output: Tensor) -> None:
        self.mean = 0.9 * getattr(self, "mean", 0.0) + 0.1 * output.detach().mean()


def net_with_relu(*, inplace: bool) -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.LayerNorm(4)), nn.ReLU(inplace=inplace), nn.Linear(4, 1))


def test_a_kept_output_that_the_next_module_edits_is_found_and_a_copy_is_not() -> None:
    kept: Kept = {}

    def keep(module: nn.Module, args: Any, output: Tensor) -> None:
        kept["norm"] = output.detach()  # here

    def keep_copy(module: nn.Module, args: Any, output: Tensor) -> None:
        kept["norm"] = output.detach().clone()

    def keep_another(module: nn.Module, args: Any, output: Tensor) -> None:
        output = output.detach().clone()
        kept["norm"] = output

    def keep_sometimes(module: nn.Module, args: Any, output: Tensor) -> None:
        if not module.training:
            kept["norm"] = output

    def copy_later(module: nn.Module, args: Any, output: Tensor) -> None:
        kept["norm"] = output.detach()
        kept["norm"] = kept["norm"].clone()

    def measure(module: nn.Module, args: Any, output: Tensor) -> None:
        meter.add(output.detach())

    def keep_for_a_moment(module: nn.Module, args: Any, output: Tensor) -> None:
        meter.queue.append(output.detach())
        meter.flush()

    meter = Meter()
    net = net_with_relu(inplace=True)
    for owner in (net[1], net[1][0]):
        (finding,) = record_keeping(net, owner, keep).findings
        assert (finding.kind, finding.severity) == ("overwritten_output", "warning")
        assert finding.sentence.endswith("and net.2 edits it in place afterwards.")
        assert finding.line == keep.__code__.co_firstlineno + 1
        for other in (keep_copy, keep_another, keep_sometimes, copy_later, measure, keep_for_a_moment):
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

    def by_class(module: nn.Module, args: Any, output: Tensor) -> None:
        kept[type(module).__name__] = output.clone()

    def by_input(module: nn.Module, args: Any, output: Tensor) -> None:
        kept[args] = output.clone()

    def adds_up(module: nn.Module, args: Any, output: Tensor) -> None:
        kept["sum"] = kept.get("sum", 0) + output.sum()

    def keeps_the_first(module: nn.Module, args: Any, output: Tensor) -> None:
        if "first" not in kept:
            kept["first"] = output.clone()

    def by_time(module: nn.Module, args: Any, output: Tensor) -> None:
        kept[time] = output.clone()

    def count_time(module: nn.Module, args: Any, output: Tensor) -> None:
        nonlocal time
        time += 1

    def all_of_them(module: nn.Module, args: Any, output: Tensor) -> None:
        kept["all"].append(output.clone())

    time, net = 0, TwoUses()
    net.act.register_forward_hook(count_time)
    owner = net.act if times == 2 else net.first
    for hook in (by_name, by_class):
        kinds = [(finding.kind, finding.severity) for finding in record_keeping(net, owner, hook).findings]
        assert kinds == ([("kept_last", "remark")] if times == 2 else [])
    for hook in (by_input, by_time, adds_up, keeps_the_first, all_of_them, Meter().average):
        assert not record_keeping(net, owner, hook).findings
