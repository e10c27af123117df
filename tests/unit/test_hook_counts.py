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


def test_census_has_a_column_for_a_trace() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    net[0].register_forward_hook(watch)
    net[0].weight.register_hook(watch)
    net[1].register_full_backward_hook(silent)
    with hv.record(net) as trace:
        net[1].forward(net[0](torch.ones(1, 2))).sum().backward()
        net[0](torch.ones(1, 2)).sum().backward()
        net[0](torch.ones(1, 2))
    assert {f"{row.name} on {row.on}": (row.fired, row.passes) for row in trace.hooks} == {
        "watch on net.0": (3, (1, 1, 1)),
        "watch on net.0.weight": (2, (1, 1, 0)),
        "silent on net.1": (0, (0, 0, 0)),
    }
    assert "1, 1, 1" in repr(trace.hooks)
    net[0].register_forward_hook(silent)
    twin = copy.deepcopy(net)
    assert fired(hv.hooks(net, trace=trace)) == {
        "watch on net.0": "3",
        "watch on net.0.weight": "2",
        "silent on net.1": "0",
        "silent on net.0": "unknown",  # registered after the recording
    }
    assert fired(hv.hooks(twin, trace=trace))["watch on twin.0"] == "unknown"  # though it has the same number
    assert "fired" not in repr(hv.hooks(net))
    with pytest.raises(TypeError, match="takes a trace that record"):
        hv.hooks(net, trace=net)  # type: ignore[arg-type]


def test_counts_of_many_passes_are_summed_up_and_a_trace_without_hooks_says_so() -> None:
    x = torch.ones(1, requires_grad=True)
    with hv.record() as empty:
        (x * x).backward()
    assert len(empty.hooks) == 0 and "No hook was registered" in repr(empty.hooks)
    x.register_hook(watch)
    with hv.record() as trace:
        for _ in range(12):
            (x * x).backward()
    assert trace.hooks[0].passes == (1,) * 12 and "in 12 of 12" in repr(trace.hooks)
