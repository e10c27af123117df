"""Optimizer steps and their hooks are recorded, and the optimizer is left unchanged."""

import copy
import pickle
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.optim.optimizer as torch_optimizer
from scenes import leaf, silent, steps_of
from torch import nn
from torch.optim import SGD, Optimizer

import hookviz as hv
from hookviz.recorder.followers.optimizer_steps import MAX_COMPARED
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


# -- order


@pytest.mark.parametrize("given", ["closure", "nothing"])
def test_a_step_pre_hook_belongs_to_the_pass_of_its_step_also_if_a_closure_runs_it(given: str) -> None:
    """Lightning gives each step a closure: a hook that clips gradients before the step clips those of the last one."""
    net = torch.nn.Linear(1, 1)
    opt = SGD(net.parameters(), lr=0.1)
    opt.register_step_pre_hook(silent("pre"))

    def closure() -> torch.Tensor:
        opt.zero_grad()
        loss: torch.Tensor = net(torch.ones(1, 1)).sum()
        loss.backward()
        return loss

    with hv.record(net) as trace:
        for _ in range(2):
            if given == "closure":
                opt.step(closure)
            else:
                closure()
                opt.step()
    assert [count.passes for count in trace.hooks] == [(1, 1)]
    assert [(row.cause, row.sentence) for row in reasons(trace)] == (
        [
            (
                "before_closure",
                "pre fired before the gradients of the step were computed: opt.step was given a closure, which runs "
                "the forward and backward pass.",
            )
        ]
        if given == "closure"
        else []
    )
    assert [step.pass_id for step in steps_of(trace, "optimizer_step")] == [0, 1]


# -- effects of step hooks

KEPT = ("kept", "ran and changed no parameter, gradient or setting.")
EDITED = ("edited", "edited the parameters or their gradients in place.")
SET = ("edited", "changed the settings of the optimizer.")
REPLACED = ("replaced", "replaced the arguments of step().")


@pytest.mark.parametrize(
    ("hook", "start", "effect"),
    [
        (silent("looks"), 2.0, KEPT),
        (silent("looks at NaN"), float("nan"), KEPT),
        (clip, 2.0, EDITED),
        (lambda opt, args, kwargs: opt.zero_grad(), 2.0, EDITED),
        (clamp, 2.0, EDITED),
        (lambda opt, args, kwargs: opt.param_groups[0].update(lr=0.5), 2.0, SET),
        (lambda opt, args, kwargs: opt.param_groups[0]["own"].fill_(1) > 1 or None, 2.0, SET),
        (lambda opt, args, kwargs: (args, dict(kwargs)), 2.0, REPLACED),
    ],
)
def test_the_effect_of_a_step_pre_hook_is_reported(hook: Any, start: float, effect: tuple[str, str]) -> None:
    opt = make_optimizer(start)
    opt.param_groups[0]["own"] = torch.zeros(1)
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


def test_no_effect_is_claimed_above_the_comparison_limit() -> None:
    opt = SGD([torch.ones(MAX_COMPARED + 1, requires_grad=True)], lr=0.1)
    opt.register_step_post_hook(clamp)
    with hv.record() as trace:
        opt.step()
    assert [step.effect for step in trace.firings] == ["ran"]
    assert trace.firings[0].sentence.endswith("ran at the step of opt.")
    assert "  ran  " in repr(trace.firings)


# -- hooks that change hooks


@pytest.mark.parametrize("context", [hv.record, nullcontext])
def test_a_hook_that_removes_another_gets_pythons_own_error(context: Any) -> None:
    opt = make_optimizer()
    opt.register_step_pre_hook(lambda *given: handle.remove())
    handle = opt.register_step_pre_hook(silent("second"))
    with context(), pytest.raises(RuntimeError, match="OrderedDict mutated during iteration") as raised:
        opt.step()
    folder = str(Path(hv.__file__).parent)
    assert not [entry for entry in raised.traceback if str(entry.path).startswith(folder)]


def test_hooks_registered_while_recording_run_and_can_be_removed_later() -> None:
    opt = make_optimizer()
    with hv.record() as trace:
        handles = [
            torch_optimizer.register_optimizer_step_pre_hook(silent("pre")),
            torch_optimizer.register_optimizer_step_post_hook(silent("post")),
            opt.register_step_post_hook(silent("own")),
        ]
        opt.step()
    assert [name for _, _, name, _ in optimizer_rows(trace)] == ["pre", None, "own", "post"]
    for handle in handles:
        handle.remove()
    assert len(opt._optimizer_step_post_hooks) == 0


# -- exceptions


def test_an_exception_in_the_step_names_the_optimizer_and_one_in_the_closure_the_module() -> None:
    class RaisesInStep(SGD):
        def step(self, closure: Any = None) -> Any:
            raise ArithmeticError("stuck")

    class Breaks(torch.nn.Module):
        def forward(self) -> None:
            raise KeyError("deep")

    opt, net = RaisesInStep([leaf(1.0)]), Breaks()
    with hv.record() as trace:
        for _ in range(2):  # the second exception may get the address of the first
            with pytest.raises(ArithmeticError):
                opt.step()
        with pytest.raises(KeyError):
            make_optimizer().step(net)  # type: ignore[arg-type]
    assert [(s.kind, s.on, s.row.error, s.hook) for s in trace.steps] == [
        ("exception", "opt", "ArithmeticError: stuck", None),
        ("exception", "opt", "ArithmeticError: stuck", None),
        ("call", "net", None, None),
        ("exception", "net", "KeyError: 'deep'", None),
    ]


# -- the optimizer is left unchanged


def test_recording_does_not_change_pickles_and_copies_of_an_optimizer() -> None:
    opt = make_optimizer()
    opt.register_step_pre_hook(clip)
    snapshots: list[Any] = []

    def take_snapshot(*given: Any) -> None:
        snapshots.append((len(pickle.dumps(opt)), repr(opt.state_dict()), sorted(vars(copy.deepcopy(opt)))))

    opt.register_step_post_hook(take_snapshot)
    pre_hooks, attributes = opt._optimizer_step_pre_hooks, dict(vars(opt))
    opt.step()
    opt.param_groups[0]["params"][0].data.fill_(2.0)
    with hv.record():
        assert opt._optimizer_step_pre_hooks is pre_hooks
        opt.step()
    assert snapshots[0] == snapshots[1]
    assert vars(opt) == attributes and list(pre_hooks.values()) == [clip]


def test_a_recording_begun_inside_a_step_does_not_record_that_step() -> None:
    opt = make_optimizer()
    recordings: list[Any] = []

    def start_recording(*given: Any) -> None:
        recordings.append(hv.record())
        recordings.append(recordings[0].__enter__())

    handle = opt.register_step_pre_hook(start_recording)
    after = opt.register_step_post_hook(silent("after"))
    opt.step()
    handle.remove()
    after.remove()
    opt.step()
    recordings[0].__exit__(None, None, None)
    assert [kind for kind, *_ in optimizer_rows(recordings[1])] == ["optimizer_step"]
    assert recordings[1].notes == []


# -- what an optimizer is given, and what it changes itself


def train(net: nn.Module, optimizer: Optimizer, change: Callable[[], object] = bool, **options: Any) -> hv.Trace:
    """Take three steps; ``change`` runs between each pass and its step, or in a closure after the pass."""

    def run() -> None:
        optimizer.zero_grad()
        net(torch.ones(3, 2)).square().mean().backward()
        change()

    with hv.record() as trace:
        for _ in range(3):
            if options:
                optimizer.step(run)  # type: ignore[arg-type]
            else:
                run()
                optimizer.step()
    return trace


def kinds(trace: hv.Trace) -> list[str]:
    return [finding.kind for finding in trace.findings]


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


@pytest.mark.parametrize("options", [{}, {"closure": True}], ids=["", "closure"])
@pytest.mark.parametrize("change", ["zeroes", "frees", "ends"])
def test_what_an_optimizer_itself_changes_is_not_what_it_was_given(change: str, options: dict[str, bool]) -> None:
    net = nn.Linear(2, 1)
    optimizer = Changing(net.parameters(), lr=0.1)
    optimizer.change = change
    assert kinds(train(net, optimizer, lambda: optimizer.param_groups[0].update(lr=0.1), **options)) == []


def test_what_was_broken_before_a_step_or_by_its_pre_hook_is_found() -> None:
    net = nn.Linear(2, 1)
    optimizer = SGD(net.parameters(), lr=0.1)
    assert kinds(train(net, optimizer, lambda: optimizer.zero_grad(set_to_none=False))) == ["zeroed"]
    assert kinds(train(net, optimizer, lambda: optimizer.param_groups[0].update(lr=0.0))) == ["lr_zero"]
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
