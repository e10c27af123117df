"""How often each hook fired, in each pass, in ``trace.hooks`` and in ``hooks(..., trace=...)``."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

import hookviz as hv


def watch(*_: Any) -> None: ...


def silent(*_: Any) -> None: ...


def fired(census: Any) -> dict[str, str]:
    """Hook → the cell of the column *fired*."""
    return {f"{cells[1]} on {cells[0]}": cells[-1] for cells in census.texts()}


@pytest.fixture
def net() -> nn.Sequential:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    net[0].register_forward_hook(watch)
    net[0].weight.register_hook(watch)
    net[1].register_full_backward_hook(silent)
    return net


def record(net: nn.Sequential) -> hv.Trace:
    """Run twice forward and once backward through the whole net, and once backward through its first layer."""
    with hv.record(net) as trace:
        net[1].forward(net[0](torch.ones(1, 2))).sum().backward()
        net[0](torch.ones(1, 2)).sum().backward()
        net[0](torch.ones(1, 2))
    return trace


def test_every_hook_is_counted_in_each_pass(net: nn.Sequential) -> None:
    trace = record(net)
    counts = {f"{row.name} on {row.on}": (row.fired, row.passes) for row in trace.hooks}
    assert counts == {
        "watch on net.0": (3, (1, 1, 1)),
        "watch on net.0.weight": (2, (1, 1, 0)),
        "silent on net.1": (0, (0, 0, 0)),
    }
    assert "1, 1, 1" in repr(trace.hooks)


def test_census_has_a_column_for_a_trace(net: nn.Sequential) -> None:
    trace = record(net)
    net[0].register_forward_hook(silent)
    assert fired(hv.hooks(net, trace=trace)) == {
        "watch on net.0": "3",
        "watch on net.0.weight": "2",
        "silent on net.1": "0",
        "silent on net.0": "unknown",  # registered after the recording
    }
    assert "fired" not in repr(hv.hooks(net))


def test_hook_of_a_copy_has_not_fired_though_it_has_the_same_number(net: nn.Sequential) -> None:
    trace, twin = record(net), copy.deepcopy(net)
    assert fired(hv.hooks(twin, trace=trace))["watch on twin.0"] == "unknown"


def test_anything_but_a_trace_is_refused(net: nn.Sequential) -> None:
    with pytest.raises(TypeError, match="takes a trace that record"):
        hv.hooks(net, trace=net)  # type: ignore[arg-type]


def test_counts_of_many_passes_are_summed_up() -> None:
    x = torch.ones(1, requires_grad=True)
    x.register_hook(watch)
    with hv.record() as trace:
        for _ in range(12):
            (x * x).backward()
    assert trace.hooks[0].passes == (1,) * 12 and "in 12 of 12" in repr(trace.hooks)


def test_trace_without_hooks_says_so() -> None:
    with hv.record() as trace:
        torch.ones(1, requires_grad=True).sum().backward()
    assert len(trace.hooks) == 0 and "No hook was registered" in repr(trace.hooks)
