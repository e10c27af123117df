"""A what-if records real passes with every hook switched off and on."""

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from scenes import Doubled, c_hook
from torch.autograd.graph import register_multi_grad_hook
from torch.nn.modules import module as torch_modules
from torch.optim import optimizer as torch_optimizer

from hookviz import Trace
from hookviz.what_if import whatif
from hookviz.what_if.slider_panel import make_sliders


def look(*_: Any) -> None:
    """Keeps the gradient, or the output."""


def times_two(grad: torch.Tensor) -> torch.Tensor:
    return grad * 2


def plus_hundred(grad: torch.Tensor) -> torch.Tensor:
    return grad + 100


def leaf(number: Any = 1.0) -> Any:
    return torch.tensor(number, requires_grad=True)


def a_to_e(a: Any = 2.0, d: Any = 4.0, on: tuple[bool, ...] = (True,) * 4) -> dict[str, torch.Tensor]:
    """Run the shared scene with those of its four hooks that ``on`` selects."""
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (a, 3.0, d))
    c = a * b
    for is_on, (tensor, hook) in zip(on, [(c, c_hook), (c, look), (d, plus_hundred)], strict=False):
        if is_on:
            tensor.register_hook(hook)
    c.retain_grad()
    e = c * d
    e.retain_grad()
    if on[3]:
        e.register_hook(times_two)
    e.backward()
    return {"a": a, "b": b, "c": c, "d": d, "e": e}


def gradients(trace: Trace) -> dict[str, str]:
    """The stored gradients, written so that all their digits and the sign of a zero count."""
    stored = [step for step in trace.steps if step.kind in ("accumulate", "retain_grad")]
    return {step.on: repr(step.after.tolist()) for step in stored}  # type: ignore[union-attr]


def test_all_sixteen_combinations_equal_fresh_runs_bit_for_bit() -> None:
    experiment = whatif(a_to_e)
    assert [hook.name for hook in experiment.hooks] == ["c_hook", "look", "plus_hundred", "times_two"]
    assert len(experiment.traces) == 16
    for on in product((True, False), repeat=4):
        fresh_run = a_to_e(on=on)
        trace = experiment.traces[frozenset(i for i, is_on in enumerate(on) if not is_on)]
        assert gradients(trace) == {name: repr(t.grad.item()) for name, t in fresh_run.items() if t.grad is not None}
        assert len(trace.firings) == sum(on)


def test_a_hook_that_is_off_is_not_registered() -> None:
    hook_dicts: list[Any] = []

    def run() -> None:
        x = leaf(3.0)
        y = x * x
        handle = y.register_hook(look)
        hook_dicts.append((y._backward_hooks, y.grad_fn))
        y.backward()
        handle.remove()

    without = whatif(run).without("look")
    # The hook was removed from the dict of the first and of the last run.
    assert [hooks for hooks, _ in hook_dicts] == [{}, None, {}]
    assert not without._data.hook_rows


# -- the ways to register a hook

TENSOR_WAYS: dict[str, Callable[..., Any]] = {
    "leaf": lambda x, z, hook: x.register_hook(hook),
    "intermediate": lambda x, z, hook: z.register_hook(hook),
    "post-accumulate": lambda x, z, hook: x.register_post_accumulate_grad_hook(hook),
    "node pre": lambda x, z, hook: z.grad_fn.register_prehook(hook),
    "node post": lambda x, z, hook: z.grad_fn.register_hook(hook),
    "multi-grad all": lambda x, z, hook: register_multi_grad_hook((x, z), hook),
    "multi-grad any": lambda x, z, hook: register_multi_grad_hook((x, z), hook, mode="any"),
}
MODULE_KINDS = ("forward_pre", "forward", "full_backward_pre", "full_backward", "backward")
OWNER_WAYS: dict[str, Callable[..., Any]] = {
    **{kind: lambda net, _, hook, kind=kind: getattr(net, f"register_{kind}_hook")(hook) for kind in MODULE_KINDS},
    **{
        f"global {kind}": lambda _net, _, hook, kind=kind: getattr(torch_modules, f"register_module_{kind}_hook")(hook)
        for kind in MODULE_KINDS
    },
    "step pre": lambda _, optimizer, hook: optimizer.register_step_pre_hook(hook),
    "step post": lambda _, optimizer, hook: optimizer.register_step_post_hook(hook),
    "global step pre": lambda _net, _, hook: torch_optimizer.register_optimizer_step_pre_hook(hook),
    "global step post": lambda _net, _, hook: torch_optimizer.register_optimizer_step_post_hook(hook),
}


@pytest.mark.filterwarnings("ignore:Using a non-full backward hook", "ignore:Full backward hook is firing")
@pytest.mark.parametrize("way", [*TENSOR_WAYS, *OWNER_WAYS])
def test_hook_can_be_switched_however_it_is_registered(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Torch keeps the kind after the hooks are removed.
    monkeypatch.setattr(torch_modules, "_global_is_full_backward_hook", None)
    ran: list[bool] = []

    def run() -> None:
        called: list[str] = []
        hook = lambda *_: called.append("ran")  # noqa: E731
        net, x = Doubled(), leaf(3.0)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        if way in OWNER_WAYS:
            OWNER_WAYS[way](net, optimizer, hook)
        z = net(x)
        if way in TENSOR_WAYS:
            TENSOR_WAYS[way](x, z, hook)
        (z + x).backward()
        optimizer.step()
        ran.append(bool(called))

    experiment = whatif(run)
    assert len(experiment.hooks) == 1
    assert ran == [True, False, True]
    assert not experiment.without(0).firings


def test_hooks_left_registered_by_the_function_are_removed() -> None:
    net = Doubled()
    outputs = []

    def run() -> None:
        net.register_forward_hook(lambda module, args, output: output * 2)
        torch_modules.register_module_forward_hook(lambda module, args, output: output + 1)
        outputs.append(net(torch.tensor(3.0)).item())

    experiment = whatif(run)
    assert outputs == [14.0, 7.0, 12.0, 6.0, 14.0]  # the hooks of all modules run first
    assert experiment.notes == []
    assert not net._forward_hooks
    assert not torch_modules._global_forward_hooks


# -- many hooks, and what cannot be switched


def run_with_hooks(count: int) -> Callable[[], None]:
    def run() -> None:
        x = leaf()
        for _ in range(count):
            x.register_hook(times_two)
        (x * 1).backward()

    return run


def test_many_hooks_are_switched_off_one_at_a_time_and_only_the_first_forty() -> None:
    experiment = whatif(run_with_hooks(7))
    assert len(experiment.traces) == 8
    assert "7 hooks: each was switched off alone" in repr(experiment)
    with pytest.raises(ValueError, match="with 7 hooks, each was switched off alone"):
        experiment.without(0, 1)
    experiment = whatif(run_with_hooks(41))
    assert len(experiment.hooks) == 40
    assert "There are 41 hooks: the first 40 can be switched off." in experiment.notes


def test_a_note_names_hooks_registered_before_the_function_ran_and_state_kept_between_runs() -> None:
    net, x = Doubled(), leaf(3.0)
    net.register_forward_hook(lambda module, args, output: output * 2)
    experiment = whatif(lambda: net(x).backward())
    assert experiment.hooks == []
    assert "registered before the function ran, and stay on: λ output * 2" in repr(experiment)
    assert "gives other results when it runs twice (see x" in repr(experiment)


# -- every run starts alike, and what ends early leaves nothing behind


def test_each_run_has_the_same_random_numbers_and_the_state_after_one_run() -> None:
    def run() -> None:
        x = torch.rand(3, requires_grad=True)
        x.register_hook(lambda grad: grad * random.random())
        torch.nn.functional.dropout(x).sum().backward()

    def run_seeded(work: Callable[[], Any]) -> Any:
        torch.manual_seed(5)
        random.seed(5)
        return work(), torch.rand(1), random.random()

    experiment, *after = run_seeded(lambda: whatif(run))
    assert run_seeded(run)[1:] == tuple(after)
    assert experiment.notes == []


def test_an_interrupt_in_the_third_run_restores_everything() -> None:
    net, runs = Doubled(), [0]

    def run(x: float = 3.0) -> None:
        runs[0] += 1
        net.register_forward_hook(look)
        y = net(torch.rand(()) * x)
        y.register_hook(look)
        if x > 3 and runs[0] == 3:
            raise KeyboardInterrupt
        y.backward()

    experiment = whatif(run, x=(0, 5))
    traces = experiment.traces
    runs[0] = 0
    state = torch.random.get_rng_state(), random.getstate()
    with pytest.raises(KeyboardInterrupt):
        experiment.change(x=4)
    assert runs[0] == 3
    assert not net._forward_hooks
    assert torch.equal(torch.random.get_rng_state(), state[0]) and random.getstate() == state[1]
    assert (experiment.values, experiment.traces) == ({"x": 3.0}, traces)
    experiment.change(x=2)
    assert experiment.values == {"x": 2.0}


def test_a_run_that_raises_without_a_hook_is_kept_with_a_note() -> None:
    def run() -> None:
        x = leaf(3.0)
        received: list[torch.Tensor] = []
        x.register_hook(received.append)
        (x * x).backward()
        received[0]

    trace = whatif(run).without(0)
    assert trace.steps[-1].kind == "accumulate"
    assert trace.notes == ["The function raised IndexError: list index out of range"]


# -- players, sliders and labels


def test_the_player_follows_values_that_change_the_number_of_hooks() -> None:
    def run(x: float = 1.0) -> None:
        start = leaf(x)
        if x < 2:
            start.register_hook(look)
        y = start * 2
        y.register_hook(times_two)
        y.backward()

    experiment = whatif(run, x=(0, 3))
    player = experiment.player()
    (slider,) = make_sliders(experiment, player)
    player.shown, player.breakpoints = 3, [1]
    slider.value = 1.5
    assert (len(player.content["runs"]), player.shown, player.breakpoints) == (8, 3, [1])
    slider.value = 2.5
    assert (len(player.content["runs"]), player.shown, player.breakpoints) == (2, 0, [])


def double(x: float = 5.0) -> None:
    x = leaf(x)
    (x * 2).backward()  # type: ignore[attr-defined]


def test_a_slider_can_show_the_value_that_it_begins_with() -> None:
    experiment = whatif(lambda x=1 / 3: double(x), x=(0.1, 0.7))
    (slider,) = make_sliders(experiment, experiment.player())
    count = (slider.value - slider.min) / slider.step
    assert count == pytest.approx(round(count), rel=1e-9)
    assert 50 <= (slider.max - slider.min) / slider.step <= 2000


@pytest.mark.parametrize(
    ("run", "ranges", "error", "message"),
    [
        (3, {}, TypeError, "takes a function that builds and runs a pass; this is an int"),
        (lambda: None, {}, ValueError, "Nothing to show: the function called no module and ran no backward pass."),
        (lambda a: None, {}, TypeError, r"needs a value for a: give it a default, or a range such as a=\(-3, 3\)"),
        (lambda a: None, {"a": (3, 1)}, ValueError, r"A range is two numbers, the smaller one first, .* a is \(3, 1\)"),
    ],
)
def test_bad_input_raises_an_error_with_instructions(
    run: Any, ranges: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        whatif(run, **ranges)


def test_an_unknown_hook_or_value_is_refused_and_what_fails_changes_nothing() -> None:
    def run(a: float = 1.0) -> None:
        x = leaf(a)
        x.register_hook(look)
        (x * [2.0][int(a) - 1]).backward()

    experiment = whatif(run, a=(1, 2))
    traces = experiment.traces
    with pytest.raises(ValueError, match=r"no hook x_hook to switch off. There are: look"):
        experiment.without("x_hook")
    with pytest.raises(TypeError, match=r"has no argument q. It has: a"):
        experiment.change(q=1.0)
    with pytest.raises(ValueError, match="Nothing to show: IndexError: list index out of range") as raised:
        experiment.change(a=2.0)
    assert isinstance(raised.value.__cause__, IndexError)
    assert experiment.values == {"a": 1.0}
    assert experiment.traces == traces
