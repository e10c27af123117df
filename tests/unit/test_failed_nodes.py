"""An exception of a backward pass names the line that began the pass, the op, and what happened to its graph."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch
from torch import nn

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
        gate = torch.sigmoid(self.layer(x))
        gate += 0.1
        return x * gate


class Misshapen(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0][:1]


def test_an_edit_in_place_names_the_pass_the_op_and_the_code_that_edits() -> None:
    def run() -> None:
        loss = Gate()(torch.ones(2, 3)).sum()
        loss.backward()

    finding = find_exception(run)
    assert finding.line == line_of(run, "backward")
    assert f"line {line_of(Gate.forward, 'sigmoid')}." in finding.cause
    assert f"gate += 0.1 (test_failed_nodes.py, line {line_of(Gate.forward, '+=')})" in finding.cause.replace(
        "tests/unit/", ""
    )


def test_an_optimizer_that_steps_between_two_passes_is_named() -> None:
    def run() -> None:
        net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4))
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        out = net(torch.ones(2, 3))
        out.sum().backward(retain_graph=True)
        optimizer.step()
        out.square().sum().backward()

    finding = find_exception(run)
    assert finding.line == line_of(run, "square")
    assert "optimizer took a step" in finding.cause and f"line {line_of(run, 'step()')}," in finding.cause
    assert finding.advice.startswith("Take the step after all passes")


def test_an_optimizer_that_steps_before_another_edit_is_not_blamed_for_it() -> None:
    def run() -> None:
        net = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        out = net(torch.ones(4, 4))
        out.sum().backward(retain_graph=True)
        optimizer.step()
        out += 1
        out.sum().backward()

    finding = find_exception(run)
    assert "took a step" not in finding.cause
    assert finding.advice.startswith("Make a new tensor instead")


def test_an_op_outside_of_all_modules_is_placed_with_a_may_and_a_dict_is_not_edited() -> None:
    sizes: dict[str, int] = {}

    def run() -> None:
        scores = nn.Linear(4, 3)(torch.ones(2, 4))
        weights = torch.exp(scores)
        weights /= weights.sum()
        sizes["all"] = len(weights)
        weights.square().sum().backward()

    finding = find_exception(run)
    assert "sizes[" not in finding.cause
    assert "ExpBackward0 may have been made at" in finding.cause and "weights /= weights.sum()" in finding.cause


def test_an_exception_about_a_file_is_not_said_to_follow_from_gradients() -> None:
    def run(error: Exception) -> Finding:
        layer = nn.Linear(2, 1)
        with suppress(type(error)), hv.record(layer) as trace:
            (layer(torch.ones(2)) * torch.inf).sum().backward()
            raise error
        return next(finding for finding in trace.findings if finding.kind == "exception")

    assert "It may follow" in run(ValueError("NaN")).advice
    assert "It may follow" not in run(FileNotFoundError("log.txt")).advice


@pytest.mark.parametrize("steps", [False, True])
def test_a_graph_that_is_walked_twice_names_the_pass_that_freed_it(steps: bool) -> None:
    def run() -> None:
        net = nn.Linear(3, 3)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        state = net(torch.ones(1, 3)).tanh()
        state.sum().backward()
        if steps:
            optimizer.step()
        net(state).sum().backward()

    finding = find_exception(run)
    assert ("retain_graph=True" in finding.advice, "detach()" in finding.advice) == (not steps, steps)
    assert finding.line == line_of(run, "net(state)")
    assert "Pass 1, begun at" in finding.cause and f"line {line_of(run, 'state.sum()')}," in finding.cause


def test_a_wrong_gradient_of_a_custom_function_names_its_backward() -> None:
    def run() -> None:
        x = torch.ones(3, requires_grad=True)
        y = Misshapen.apply(x)
        y.sum().backward()  # type: ignore[no-untyped-call]

    finding = find_exception(run)
    assert finding.line == line_of(run, "backward()")
    assert f"line {line_of(Misshapen.backward, 'staticmethod')}" in finding.cause


def test_an_exception_of_torch_in_a_forward_names_the_line_that_called_it() -> None:
    def run() -> None:
        net = nn.Linear(3, 3)
        net(torch.ones(1, 4))

    finding = find_exception(run)
    assert finding.line == line_of(run, "torch.ones")


def test_a_pass_that_retains_its_graph_gives_no_finding() -> None:
    net = nn.Linear(3, 3)
    with hv.record(net) as trace:
        state = net(torch.ones(1, 3)).tanh()
        state.sum().backward(retain_graph=True)
        net(state).sum().backward()
    assert not trace.findings


def walk_twice() -> None:
    loss = (torch.ones(2, requires_grad=True) * 2).exp().sum()
    loss.backward()
    loss.backward()


def test_an_exception_that_the_program_catches_is_a_remark_also_as_the_last_step() -> None:
    with hv.record() as caught, suppress(RuntimeError):
        walk_twice()
    with suppress(RuntimeError), hv.record() as left:
        walk_twice()
    assert [finding.severity for finding in caught.findings if finding.kind == "exception"] == ["remark"]
    assert [finding.severity for finding in left.findings if finding.kind == "exception"] == ["error"]
    assert not caught.notes and "The recording ended with an exception" in left.notes[0]


def step_without_update() -> None:
    parameter = nn.Parameter(torch.ones(2))
    optimizer, scaler = torch.optim.SGD([parameter], lr=0.1), torch.amp.GradScaler("cpu")
    for _ in range(2):
        scaler.scale(parameter.sum()).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)


def optimise_nothing() -> None:
    torch.optim.SGD(iter(()), lr=0.1)


def hook_a_computed_tensor() -> None:
    (torch.ones(2, requires_grad=True) * 2).register_post_accumulate_grad_hook(lambda tensor: None)


def hook_a_constant() -> None:
    torch.ones(2).register_hook(lambda grad: grad)


@pytest.mark.parametrize(
    ("run", "cause", "advice"),
    [
        (step_without_update, "update() has not run since", "Call scaler.update()"),
        (optimise_nothing, "holds no parameter", "empty once it was walked"),
        (hook_a_computed_tensor, "for leaves only", "Use register_hook"),
        (hook_a_constant, "does not require grad", "requires_grad_()"),
    ],
)
def test_a_well_known_error_of_torch_says_why_it_came_and_what_to_do(
    run: Callable[[], None], cause: str, advice: str
) -> None:
    finding = find_exception(run)
    assert cause in finding.cause and advice in finding.advice
