"""For each kind of step a small program that makes one."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.graph import register_multi_grad_hook
from torch.utils.checkpoint import checkpoint

import hookviz as hv
from hookviz.trace import KINDS
from tests.scenes import leaf


def look(*_: Any) -> None:
    """A hook that changes nothing."""


@cache
def train_with_hooks_everywhere() -> hv.Trace:
    layer, last, x = nn.Linear(2, 1), nn.Tanh(), leaf(1.0, 2.0)
    sgd, scaler = torch.optim.SGD(layer.parameters(), lr=0.1), torch.amp.GradScaler("cpu", growth_interval=1)
    for place in ("forward_pre", "forward", "full_backward_pre", "full_backward"):
        getattr(layer, f"register_{place}_hook")(look)
    last.register_backward_hook(look)
    sgd.register_step_pre_hook(look)
    sgd.register_step_post_hook(look)
    layer.weight.register_hook(look)
    layer.bias.register_post_accumulate_grad_hook(look)
    register_multi_grad_hook([layer.weight, layer.bias], look)
    with hv.record(layer, last) as trace:
        output = last(layer(x))
        output.retain_grad()
        output.grad_fn.register_prehook(look)
        output.grad_fn.register_hook(look)
        scaler.scale(output.sum()).backward()
        scaler.step(sgd)
        scaler.update()
    return trace


def ask_for_a_gradient() -> hv.Trace:
    x = leaf(3.0)
    with hv.record() as trace:
        torch.autograd.grad(x * x, x)
    return trace


def edit_a_shared_gradient_in_place() -> hv.Trace:
    x, y = leaf(3.0), leaf(4.0)
    x.register_hook(lambda grad: grad.mul_(10) and None)
    with hv.record() as trace:
        (x + y).backward()
    return trace


def hook_a_tensor_that_is_gone() -> hv.Trace:
    hidden = leaf(3.0) * 2
    hidden.register_hook(lambda grad: grad * 10)
    loss = hidden + 1
    del hidden
    with hv.record() as trace:
        loss.backward()
    return trace


def raise_in_a_hook() -> hv.Trace:
    def fail(grad: torch.Tensor) -> None:
        raise ValueError("it broke")

    x = leaf(3.0)
    x.register_hook(fail)
    with hv.record() as trace, pytest.raises(ValueError, match="it broke"):
        (x * x).backward()
    return trace


def checkpoint_a_module() -> hv.Trace:
    net = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2))
    with hv.record(net) as trace:
        checkpoint(net, leaf(1.0, 2.0), use_reentrant=False).sum().backward()
    return trace


def compile_a_module() -> hv.Trace:
    net = torch.compile(nn.Linear(2, 1), backend="eager")
    with hv.record(net) as trace:
        net(torch.ones(2)).sum().backward()
    return trace


def run_a_transformer_in_eval_mode() -> hv.Trace:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    with hv.record(layer) as trace, torch.no_grad():
        layer(torch.ones(1, 3, 8))
    return trace


def run_a_pass_over_too_many_nodes() -> hv.Trace:
    y = leaf(1.0)
    for _ in range(21_000):
        y = y * 1.0
    with pytest.warns(hv.HookvizWarning), hv.record() as trace:
        y.backward()
    return trace


PROGRAMS: dict[str, Callable[..., hv.Trace]] = {
    "returned": ask_for_a_gradient,
    "aliased": edit_a_shared_gradient_in_place,
    "unknown_hook": hook_a_tensor_that_is_gone,
    "exception": raise_in_a_hook,
    "cut_short": checkpoint_a_module,
    "compiled": compile_a_module,
    "fast_path": run_a_transformer_in_eval_mode,
    "unobserved": run_a_pass_over_too_many_nodes,
}
"""Kind → what makes a step of it; of all other kinds a training with hooks everywhere has one."""
IN_OTHER_PROCESSES = "synchronise"
"""Ranks are processes of their own in tests/unit/test_distributed.py: at the end of gloo, torch may wait for ever."""


@pytest.mark.filterwarnings("ignore:Using a non-full backward hook")
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != IN_OTHER_PROCESSES])
def test_program_makes_a_step_of_the_kind(kind: str, request: pytest.FixtureRequest) -> None:
    program = PROGRAMS.get(kind, train_with_hooks_everywhere)
    if kind == "compiled":
        request.getfixturevalue("compiler")
    trace = program()
    steps = [step for step in trace.steps if step.kind == kind]
    assert steps, trace.text()
    assert steps[0].sentence
