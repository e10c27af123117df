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

ParameterAndOptimizer = tuple[torch.Tensor, Optimizer]


def make_optimizer() -> ParameterAndOptimizer:
    """A parameter with a gradient, and an optimizer for it."""
    w = leaf(2.0)
    w.grad = torch.tensor(10.0)
    return w, SGD([w], lr=0.1)


def optimizer_rows(trace: hv.Trace) -> list[tuple[Any, ...]]:
    """(kind, optimizer, hook, effect) of each step on an optimizer."""
    return [(s.kind, s.on, s.hook and s.hook.name, s.effect) for s in trace.steps if s.row.optimizer >= 0]


def clip(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
    for group in optimizer.param_groups:
        torch.nn.utils.clip_grad_norm_(group["params"], 1.0)


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
    assert [row.cause for row in reasons(trace)] == (["before_closure"] if given == "closure" else [])
    for row in reasons(trace):
        assert row.sentence == (
            "pre fired before the gradients of the step were computed: opt.step was given a closure, which runs the "
            "forward and backward pass."
        )
    assert [step.pass_id for step in steps_of(trace, "optimizer_step")] == [0, 1]


# -- effects of step hooks

EFFECTS: dict[str, tuple[Callable[..., Any], str]] = {
    "looks": (silent("looks"), "kept"),
    "clips": (clip, "edited"),
    "drops a gradient": (lambda opt, args, kwargs: opt.zero_grad(), "edited"),
    "writes through .data": (lambda opt, args, kwargs: clamp(opt), "edited"),
    "changes a rate": (lambda opt, args, kwargs: opt.param_groups[0].update(lr=0.5), "settings"),
    "writes a setting that is a tensor": (
        lambda opt, args, kwargs: opt.param_groups[0]["own"].fill_(1) > 1 or None,
        "settings",
    ),
    "replaces the arguments": (lambda opt, args, kwargs: (args, dict(kwargs)), "replaced"),
}


@pytest.mark.parametrize(("hook", "effect"), EFFECTS.values(), ids=EFFECTS)
def test_the_effect_of_a_step_pre_hook_is_reported(hook: Any, effect: str) -> None:
    _, opt = make_optimizer()
    opt.param_groups[0]["own"] = torch.zeros(1)
    opt.register_step_pre_hook(hook)
    with hv.record() as trace:
        opt.step()
    assert [step.effect for step in trace.firings] == [effect if effect != "settings" else "edited"]
    assert trace.firings[0].sentence.endswith(
        {
            "kept": "ran and changed no parameter, gradient or setting.",
            "settings": "changed the settings of the optimizer.",
            "edited": "edited the parameters or their gradients in place.",
            "replaced": "replaced the arguments of step().",
        }[effect]
    )


def clamp(opt: Optimizer) -> None:
    for group in opt.param_groups:
        for parameter in group["params"]:
            parameter.data.clamp_(-0.5, 0.5)


def test_no_effect_is_claimed_above_the_comparison_limit() -> None:
    w = torch.ones(MAX_COMPARED + 1, requires_grad=True)
    opt = SGD([w], lr=0.1)
    opt.register_step_post_hook(lambda opt, args, kwargs: clamp(opt))
    with hv.record() as trace:
        opt.step()
    assert [step.effect for step in trace.firings] == ["ran"]
    assert trace.firings[0].sentence.endswith("ran at the step of opt.")
    assert "  ran  " in repr(trace.firings)


def test_an_unchanged_nan_parameter_is_not_reported_as_edited() -> None:
    w, opt = make_optimizer()
    w.data.fill_(float("nan"))
    opt.register_step_pre_hook(silent("looks"))
    with hv.record() as trace:
        opt.step()
    assert [step.effect for step in trace.firings] == ["kept"]


def test_an_edit_of_a_parameter_by_a_post_hook_is_reported() -> None:
    w, opt = make_optimizer()

    def bound(*given: Any) -> None:
        with torch.no_grad():
            w.clamp_(-0.5, 0.5)

    opt.register_step_post_hook(bound)
    with hv.record() as trace:
        opt.step()
    assert optimizer_rows(trace)[1:] == [("step_post_hook", "opt", "bound", "edited")]
    assert w.item() == 0.5


def test_the_sentence_of_a_step_states_optimizer_class_and_parameter_count() -> None:
    _, opt = make_optimizer()
    with hv.record() as trace:
        opt.step()
    assert trace.steps[0].sentence == "opt (SGD) takes its step; it holds 1 parameter."


# -- hooks that change hooks


@pytest.mark.parametrize("context", [hv.record, nullcontext])
def test_a_hook_that_removes_another_gets_pythons_own_error(context: Any) -> None:
    _, opt = make_optimizer()
    opt.register_step_pre_hook(lambda *given: handle.remove())
    handle = opt.register_step_pre_hook(silent("second"))
    with context(), pytest.raises(RuntimeError, match="OrderedDict mutated during iteration") as raised:
        opt.step()
    folder = str(Path(hv.__file__).parent)
    assert not [entry for entry in raised.traceback if str(entry.path).startswith(folder)]


def test_hooks_registered_while_recording_run_and_can_be_removed_later() -> None:
    _, opt = make_optimizer()
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


def test_an_exception_in_the_step_names_the_optimizer() -> None:
    class RaisesInStep(SGD):
        def step(self, closure: Any = None) -> Any:
            raise ArithmeticError("stuck")

    opt = RaisesInStep([leaf(1.0)])
    with hv.record() as trace:
        for _ in range(2):  # the second exception may get the address of the first
            with pytest.raises(ArithmeticError):
                opt.step()
    assert [(s.kind, s.on, s.row.error, s.hook) for s in trace.steps] == [
        ("exception", "opt", "ArithmeticError: stuck", None)
    ] * 2


def test_an_exception_in_the_closure_is_recorded_once() -> None:
    _, opt = make_optimizer()

    class Breaks(torch.nn.Module):
        def forward(self) -> None:
            raise KeyError("deep")

    net = Breaks()
    with hv.record() as trace, pytest.raises(KeyError):
        opt.step(net)
    assert [(s.kind, s.on) for s in trace.steps] == [("call", "net"), ("exception", "net")]


# -- the optimizer is left unchanged


def test_recording_does_not_change_pickles_and_copies_of_an_optimizer() -> None:
    _, opt = make_optimizer()
    opt.register_step_pre_hook(clip)
    snapshots: list[Any] = []

    def take_snapshot(*given: Any) -> None:
        snapshots.append((pickle.dumps(opt), repr(opt.state_dict()), sorted(vars(copy.deepcopy(opt)))))

    opt.register_step_post_hook(take_snapshot)
    pre_hooks, attributes = opt._optimizer_step_pre_hooks, dict(vars(opt))
    opt.step()
    opt.param_groups[0]["params"][0].data.fill_(2.0)
    snapshots.append(None)
    with hv.record():
        assert opt._optimizer_step_pre_hooks is pre_hooks
        opt.step()
    without_recording, _, while_recording = snapshots
    assert without_recording[1:] == while_recording[1:] and len(without_recording[0]) == len(while_recording[0])
    assert vars(opt) == attributes and list(pre_hooks.values()) == [clip]


def test_a_recording_begun_inside_a_step_does_not_record_that_step() -> None:
    _, opt = make_optimizer()
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


def train_with(change: Callable[[nn.Module], object]) -> list[str]:
    """Take two steps of a net; ``change`` runs between each pass and its step."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    with hv.record(net) as trace:
        for _ in range(2):
            opt.zero_grad()
            net(torch.randn(4, 20)).square().sum().backward()
            change(net)
            opt.step()
    return [step.sentence for step in trace.steps if step.kind == "optimizer_step"]


def add_noise(net: nn.Module) -> None:
    bias = next(parameter for parameter in net.parameters() if parameter.dim() == 1)
    assert bias.grad is not None
    bias.grad.add_(1)


def test_a_step_says_what_became_of_the_gradients_since_the_pass() -> None:
    plain = "opt (SGD) takes its step; it holds 4 parameters."
    assert train_with(lambda _net: None) == [plain, plain]
    clipped = train_with(lambda net: nn.utils.clip_grad_norm_(net.parameters(), 0.01))
    for sentence in clipped:
        assert sentence.startswith(
            f"{plain} Since the pass, the gradient of net.0.weight, net.0.bias, net.2.weight, 1 m"
        )
        assert re.search(r"was multiplied by 0\.0\d+\.$", sentence)
    noisy = train_with(add_noise)
    assert all("Since the pass, gradients were changed: net.0.bias from (30,) norm " in one for one in noisy)


def test_the_picture_has_an_optimizer_with_hooks_and_says_what_they_did() -> None:
    net = torch.nn.Linear(1, 1)
    opt = SGD(net.parameters(), lr=0.1)
    opt.register_step_pre_hook(clip)
    with hv.record(net) as trace:
        net(torch.ones(1, 1)).sum().backward()
        opt.step()
    svg = trace.figure().svg()
    assert ">step pre-hook ① clip<" in svg and ">edited in place<" in svg and ">SGD<" in svg


# -- an optimizer that changes gradients and rates itself


class Changing(Optimizer):
    """Takes a plain step, and then changes what it was given: its gradients are cleared, or its rate falls."""

    def __init__(self, parameters: Any, *, change: str = "") -> None:
        super().__init__(parameters, {"lr": 0.1})
        self.change = change

    def step(self, closure: Any = None) -> None:
        if closure is not None:
            closure()
        [group] = self.param_groups
        for parameter in group["params"]:
            parameter.data.add_(parameter.grad, alpha=-group["lr"])
            if self.change == "zeroes":
                parameter.grad.zero_()
            elif self.change == "frees":
                parameter.grad = None
        if self.change == "ends":
            group["lr"] = 0.0


def train_changing(change: str, *, with_closure: bool, breaks: str = "") -> list[str]:
    """Train, and perhaps break before each step what the optimizer is given."""
    net = nn.Linear(2, 1)
    optimizer = Changing(net.parameters(), change=change)

    def run() -> None:
        optimizer.param_groups[0]["lr"] = 0.0 if breaks == "ends" else 0.1
        optimizer.zero_grad()
        net(torch.ones(3, 2)).square().mean().backward()
        for parameter in net.parameters() if breaks == "zeroes" else ():
            torch.Tensor.zero_(parameter.grad)  # type: ignore[arg-type]

    with hv.record() as trace:
        for _ in range(3):
            if not with_closure:
                run()
            optimizer.step(run if with_closure else None)
    return [finding.kind for finding in trace.findings]


@pytest.mark.parametrize("with_closure", [False, True])
@pytest.mark.parametrize("change", ["zeroes", "frees", "ends"])
def test_what_an_optimizer_itself_changes_is_not_what_it_was_given(change: str, with_closure: bool) -> None:
    assert train_changing(change, with_closure=with_closure) == []


@pytest.mark.parametrize(("breaks", "kind"), [("zeroes", "zeroed"), ("ends", "lr_zero")])
def test_what_was_broken_before_a_step_is_found(breaks: str, kind: str) -> None:
    assert train_changing("", with_closure=False, breaks=breaks) == [kind]


def test_a_step_pre_hook_changes_what_the_optimizer_is_given() -> None:
    net = nn.Linear(2, 1)
    optimizer = SGD(net.parameters(), lr=0.1)
    optimizer.register_step_pre_hook(lambda *_: optimizer.zero_grad(set_to_none=False))
    with hv.record() as trace:
        for _ in range(2):
            net(torch.ones(3, 2)).square().mean().backward()
            optimizer.step()
    assert [finding.kind for finding in trace.findings] == ["zeroed"]


# -- steps inside a step


class Clipped(SGD):
    """Takes its step by ``super().step()``."""

    def step(self, closure: Any = None) -> Any:
        nn.utils.clip_grad_norm_(self.param_groups[0]["params"], 1.0)
        return super().step(closure)


def test_a_step_that_calls_that_of_its_base_class_counts_once() -> None:
    net = nn.Linear(2, 1)
    optimizer = Clipped(net.parameters(), lr=0.0)
    optimizer.register_step_post_hook(lambda *_: None)
    with hv.record() as trace:
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(3, 2)).square().mean().backward()
            optimizer.step()
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


def train_twice(kind: str) -> list[str]:
    net = nn.Linear(2, 2)
    base = SGD(net.parameters(), lr=0.1)
    optimizer = Slow(base) if kind == "nested" else SGD(net.parameters(), lr=0.1)
    with hv.record() as trace:
        for _ in range(3):
            optimizer.zero_grad()
            net(torch.ones(3, 2)).square().mean().backward()
            if kind != "nested":
                nn.utils.clip_grad_norm_(net.parameters(), 0.01)
                base.step()
            for parameter in net.parameters() if kind == "exchanged" else ():
                parameter.grad = torch.ones_like(parameter)
            optimizer.step()
    return [finding.kind for finding in trace.findings]


def test_two_optimizers_change_a_parameter_twice_unless_one_calls_the_other_or_the_gradient_is_another() -> None:
    assert train_twice("twice") == ["updated_twice"]
    assert train_twice("nested") == []
    assert train_twice("exchanged") == []
