"""An exception of a backward pass names the line that began the pass, the op, and what happened to its graph."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD

import hookviz as hv
from hookviz.analysis.findings import Finding


def find_exception(run: Callable[[], Any]) -> Finding:
    with pytest.raises((RuntimeError, ValueError)), hv.record() as trace:
        run()
    finding = trace.findings[0]
    assert (finding.kind, finding.line_role) == ("exception", "raises")
    return finding


def line_of(function: Callable[..., Any], text: str) -> int:
    """Return the number of the only line of a function that contains a text."""
    lines, first = inspect.getsourcelines(function)
    (number,) = (first + index for index, line in enumerate(lines) if text in line)
    return number


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.clone().requires_grad_()
        gate = torch.sigmoid(self.layer(x))
        gate += 0.1
        return x * gate


def pass_a_gate() -> None:
    loss = Gate()(torch.ones(2, 3)).sum()
    loss.backward()


def test_an_edit_in_place_names_the_pass_the_op_and_the_code_that_edits() -> None:
    finding = find_exception(pass_a_gate)
    assert finding.line == line_of(pass_a_gate, "backward")
    assert f"line {line_of(Gate.forward, 'sigmoid')}." in finding.cause
    edit = f"gate += 0.1 (test_failed_nodes.py, line {line_of(Gate.forward, '+=')})"
    assert edit in finding.cause.replace("tests/unit/", "") and "requires_grad_" not in finding.cause


def step_before_another_pass() -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    optimizer = SGD(net.parameters(), lr=0.1)
    out = net(torch.ones(3, 3))
    out.sum().backward(retain_graph=True)
    optimizer.step()
    out.square().sum().backward()


def test_an_optimizer_that_steps_between_two_passes_is_named() -> None:
    finding = find_exception(step_before_another_pass)
    assert finding.line == line_of(step_before_another_pass, "square")
    assert f"line {line_of(step_before_another_pass, 'step()')})" in finding.cause
    assert "optimizer took a step" in finding.cause
    assert finding.advice.startswith("Take the step after all passes")


def walk_a_freed_graph(*, steps: bool = False) -> None:
    net = nn.Linear(3, 3)
    optimizer = SGD(net.parameters(), lr=0.1)
    state = net(torch.ones(1, 3)).tanh()
    state.sum().backward()
    if steps:
        optimizer.step()
    net(state).sum().backward()


@pytest.mark.parametrize("steps", [False, True])
def test_a_graph_that_is_walked_twice_names_the_pass_that_freed_it(steps: bool) -> None:
    finding = find_exception(lambda: walk_a_freed_graph(steps=steps))
    assert ("retain_graph=True" in finding.advice, "detach()" in finding.advice) == (not steps, steps)
    assert finding.line == line_of(walk_a_freed_graph, "net(state)")
    assert "Pass 1 (" in finding.cause
    assert f"line {line_of(walk_a_freed_graph, 'state.sum()')})" in finding.cause


def test_a_pass_that_retains_its_graph_gives_no_finding() -> None:
    net = nn.Linear(3, 3)
    with hv.record(net) as trace:
        state = net(torch.ones(1, 3)).tanh()
        state.sum().backward(retain_graph=True)
        net(state).sum().backward()
    assert not trace.findings


class Misshapen(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0][:1]


def pass_a_misshapen_gradient() -> None:
    y = Misshapen.apply(torch.ones(3, requires_grad=True))
    y.sum().backward()  # type: ignore[no-untyped-call]


def test_an_exception_of_torch_names_the_line_that_called_it_and_the_backward_of_a_custom_function() -> None:
    finding = find_exception(pass_a_misshapen_gradient)
    assert finding.line == line_of(pass_a_misshapen_gradient, "backward()")
    assert f"line {line_of(Misshapen.backward, 'staticmethod')}" in finding.cause


def test_an_exception_that_the_program_catches_is_a_remark_also_as_the_last_step() -> None:
    with hv.record() as caught, suppress(RuntimeError):
        walk_a_freed_graph()
    with suppress(RuntimeError), hv.record() as left:
        walk_a_freed_graph()
    assert [finding.severity for finding in caught.findings if finding.kind == "exception"] == ["remark"]
    assert [finding.severity for finding in left.findings if finding.kind == "exception"] == ["error"]
    assert not caught.notes and "The recording ended with an exception" in left.notes[0]


def step_without_update() -> None:
    parameter = nn.Parameter(torch.ones(2))
    optimizer, scaler = SGD([parameter], lr=0.1), torch.amp.GradScaler("cpu")
    for _ in range(2):
        scaler.scale(parameter.sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)


def hook_a_computed_tensor() -> None:
    (torch.ones(2, requires_grad=True) * 2).register_post_accumulate_grad_hook(lambda tensor: None)


@pytest.mark.parametrize(
    ("run", "cause", "advice"),
    [
        (step_without_update, "update() has not run since", "Call scaler.update()"),
        (lambda: SGD(iter(()), lr=0.1), "holds no parameter", "empty once it was walked"),
        (hook_a_computed_tensor, "for leaves only", "Use register_hook"),
        (lambda: torch.ones(2).register_hook(lambda grad: grad), "does not require grad", "requires_grad_()"),
    ],
)
def test_a_well_known_error_of_torch_says_why_it_came_and_what_to_do(
    run: Callable[[], object], cause: str, advice: str
) -> None:
    finding = find_exception(run)
    assert cause in finding.cause and advice in finding.advice


def test_the_exception_is_the_first_of_several_errors_and_ends_the_pass() -> None:
    def fail(_: torch.Tensor) -> None:
        raise ValueError("no")

    x = torch.tensor(-1.0, requires_grad=True)
    x.register_hook(fail)
    with hv.record() as trace, pytest.raises(ValueError, match="no"):
        x.log().backward()
    assert [finding.kind for finding in trace.findings] == ["exception", "nan"]
    assert trace.steps[-1].sentence == "fail on x raised ValueError: no: the pass ends here."
