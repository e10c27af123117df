"""Optimizer steps and their hooks are recorded, and the optimizer is left unchanged."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from scenes import leaf, silent, steps_of
from torch import nn
from torch.optim import SGD, Optimizer

import hookviz as hv
from tests.reasons import reasons


def make_optimizer(start: float = 2.0) -> Optimizer:
    """An optimizer for a parameter with a gradient."""
    w = leaf(start)
    w.grad = torch.tensor(10.0)
    return SGD([w], lr=0.1)


def optimizer_rows(trace: hv.Trace) -> list[tuple[Any, ...]]:
    """(kind, optimizer, hook, effect) of each step on an optimizer."""
    return [(s.kind, s.on, s.hook and s.hook.name, s.effect) for s in trace.steps if s.row.optimizer >= 0]


def clip(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    torch.nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)


def clamp(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    optimizer.param_groups[0]["params"][0].data.clamp_(-0.5, 0.5)


def train(
    net: nn.Linear, optimizer: Optimizer, change: Callable[[], object] = bool, *, has_closure: bool = False
) -> hv.Trace:
    """Take three steps; ``change`` runs between each pass and its step, or in a closure after the pass."""

    def run() -> None:
        optimizer.zero_grad()
        net(torch.ones(3, net.in_features)).square().mean().backward()
        change()

    with hv.record() as trace:
        for _ in range(3):
            if has_closure:
                optimizer.step(run)  # type: ignore[arg-type]
            else:
                run()
                optimizer.step()
    return trace


def kinds(trace: hv.Trace) -> list[str]:
    return [finding.kind for finding in trace.findings]


# -- order


@pytest.mark.parametrize("has_closure", [True, False])
def test_a_step_pre_hook_belongs_to_the_pass_of_its_step_also_if_a_closure_runs_it(has_closure: bool) -> None:
    """Lightning gives each step a closure: a hook that clips gradients before the step clips those of the last one."""
    net = torch.nn.Linear(1, 1)
    opt = SGD(net.parameters(), lr=0.1)
    opt.register_step_pre_hook(silent("pre"))
    trace = train(net, opt, has_closure=has_closure)
    assert [count.passes for count in trace.hooks] == [(1, 1, 1)]
    assert [row.cause for row in reasons(trace)] == (["before_closure"] if has_closure else [])
    assert all("was given a closure, which runs the forward" in row.sentence for row in reasons(trace))
    assert [step.pass_id for step in steps_of(trace, "optimizer_step")] == [0, 1, 2]


# -- effects of step hooks

KEPT = ("kept", "ran and changed no parameter, gradient or setting.")
EDITED = ("edited", "edited the parameters or their gradients in place.")
SET = ("edited", "changed the settings of the optimizer.")
REPLACED = ("replaced", "replaced the arguments of step().")


@pytest.mark.parametrize(
    ("hook", "start", "effect"),
    [
        (silent("looks at NaN"), float("nan"), KEPT),
        (clip, 2.0, EDITED),
        (clamp, 2.0, EDITED),
        (lambda opt, args, kwargs: opt.param_groups[0].update(lr=0.5), 2.0, SET),
        (lambda opt, args, kwargs: (args, dict(kwargs)), 2.0, REPLACED),
    ],
)
def test_the_effect_of_a_step_pre_hook_is_reported(hook: Any, start: float, effect: tuple[str, str]) -> None:
    opt = make_optimizer(start)
    opt.register_step_pre_hook(hook)
    with hv.record() as trace:
        opt.step()
    assert [step.effect for step in trace.firings] == [effect[0]]
    assert trace.firings[0].sentence.endswith(effect[1])


def test_a_step_has_its_sentence_and_an_edit_of_a_post_hook_is_reported() -> None:
    opt = make_optimizer()
    opt.register_step_post_hook(clamp)
    with hv.record() as trace:
        opt.step()
    assert trace.steps[0].sentence == "opt (SGD) takes its step; it holds 1 parameter."
    assert optimizer_rows(trace)[1:] == [("step_post_hook", "opt", "clamp", "edited")]
    assert opt.param_groups[0]["params"][0].item() == 0.5


# -- exceptions


def test_an_exception_in_the_step_names_the_optimizer() -> None:
    class RaisesInStep(SGD):
        def step(self, closure: Any = None) -> Any:
            raise ArithmeticError("stuck")

    opt = RaisesInStep([leaf(1.0)])
    with hv.record() as trace, pytest.raises(ArithmeticError):
        opt.step()
    assert [(s.kind, s.on, s.row.error) for s in trace.steps] == [("exception", "opt", "ArithmeticError: stuck")]


# -- what an optimizer is given, and what it changes itself


def test_a_step_says_what_became_of_the_gradients_since_the_pass() -> None:
    net = nn.Linear(2, 30)
    opt = SGD(net.parameters(), lr=0.1)
    plain = "opt (SGD) takes its step; it holds 2 parameters."

    def change(number: int) -> None:
        if number == 1:
            nn.utils.clip_grad_norm_(net.parameters(), 0.01)
        elif number == 2:
            net.bias.grad.add_(1)  # type: ignore[union-attr]

    with hv.record(net) as trace:
        for number in range(3):
            opt.zero_grad()
            net(torch.ones(1, 2)).square().sum().backward()
            change(number)
            opt.step()
    untouched, clipped, noisy = (step.sentence for step in steps_of(trace, "optimizer_step"))
    assert untouched == plain
    assert clipped.startswith(f"{plain} Since the pass, the gradient of net.weight, net.bias ")
    assert re.search(r" multiplied by 0\.\d+\.$", clipped)
    assert noisy.startswith(f"{plain} Since the pass, gradients were changed: net.bias from (30,) norm ")


def test_the_picture_has_an_optimizer_with_hooks_and_says_what_they_did() -> None:
    net = torch.nn.Linear(1, 1)
    opt = SGD(net.parameters(), lr=0.1)
    opt.register_step_pre_hook(clip)
    with hv.record(net) as trace:
        net(torch.ones(1, 1)).sum().backward()
        opt.step()
    svg = trace.figure().svg()
    assert ">step pre-hook ① clip<" in svg and ">edited in place<" in svg and ">SGD<" in svg


class Changing(SGD):
    """Takes its step, and then changes what it was given: its gradients are cleared, or its rate falls."""

    change = ""

    def step(self, closure: Any = None) -> None:
        super().step(closure)
        [group] = self.param_groups
        for parameter in group["params"]:
            if self.change == "zeroes":
                parameter.grad.zero_()
            elif self.change == "frees":
                parameter.grad = None
        if self.change == "ends":
            group["lr"] = 0.0


@pytest.mark.parametrize(("change", "has_closure"), [("zeroes", False), ("frees", True), ("ends", True)])
def test_what_an_optimizer_itself_changes_is_not_what_it_was_given(change: str, has_closure: bool) -> None:
    net = nn.Linear(2, 1)
    optimizer = Changing(net.parameters(), lr=0.1)
    optimizer.change = change
    restore = lambda: optimizer.param_groups[0].update(lr=0.1)  # noqa: E731
    assert kinds(train(net, optimizer, restore, has_closure=has_closure)) == []


def test_what_a_pre_hook_broke_before_a_step_is_found() -> None:
    net = nn.Linear(2, 1)
    optimizer = SGD(net.parameters(), lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: optimizer.zero_grad(set_to_none=False))
    assert kinds(train(net, optimizer)) == ["zeroed"]


# -- steps inside a step


def test_a_step_that_calls_that_of_its_base_class_counts_once() -> None:
    net = nn.Linear(2, 1)
    optimizer = Changing(net.parameters(), lr=0.0)
    optimizer.register_step_post_hook(lambda *_: None)
    trace = train(net, optimizer)
    assert len(steps_of(trace, "optimizer_step")) == len(trace._data.updates) == 3
    [finding] = trace.findings
    assert finding.sentence.startswith("The learning rate of optimizer was 0 in 3 of 3 steps")


class Slow(Optimizer):
    """Takes the step of another optimizer inside its own, and halves what has moved."""

    def __init__(self, base: Optimizer) -> None:
        super().__init__(base.param_groups, {"lr": 0.1})
        self.base, self.param_groups = base, base.param_groups

    def step(self, closure: Any = None) -> None:
        before = [parameter.detach().clone() for group in self.param_groups for parameter in group["params"]]
        self.base.step(closure)
        for old, parameter in zip(before, self.param_groups[0]["params"], strict=True):
            parameter.data.lerp_(old, 0.5)


def test_two_optimizers_change_a_parameter_twice_unless_one_calls_the_other_or_the_gradient_is_another() -> None:
    net = nn.Linear(2, 2)
    base = SGD(net.parameters(), lr=0.1)
    optimizer = SGD(net.parameters(), lr=0.1)

    def step_twice() -> None:
        nn.utils.clip_grad_norm_(net.parameters(), 0.01)
        base.step()

    def exchange() -> None:
        step_twice()
        for parameter in net.parameters():
            parameter.grad = torch.ones_like(parameter)

    assert kinds(train(net, optimizer, step_twice)) == ["updated_twice"]
    assert kinds(train(net, optimizer, exchange)) == []
    assert kinds(train(net, Slow(base))) == []
