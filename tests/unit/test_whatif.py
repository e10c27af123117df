"""A what-if records real passes with every hook switched off and on."""

import random
import struct
import traceback
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from scenes import Doubled
from shown import shown_steps
from torch import nn
from torch.autograd.graph import register_multi_grad_hook
from torch.nn.modules import module as torch_modules
from torch.optim import optimizer as torch_optimizer

from hookviz import Trace
from hookviz.what_if import whatif
from hookviz.what_if.slider_panel import make_sliders


def c_hook(grad: torch.Tensor) -> torch.Tensor:
    return grad + 2


def look(grad: torch.Tensor) -> None:
    """Keeps the gradient."""


def times_two(grad: torch.Tensor) -> torch.Tensor:
    return grad * 2


def plus_hundred(grad: torch.Tensor) -> torch.Tensor:
    return grad + 100


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


def bits(x: float) -> bytes:
    return struct.pack("<d", x)


def gradients(trace: Trace) -> dict[str, bytes]:
    stored = [step for step in trace.steps if step.kind in ("accumulate", "retain_grad")]
    return {step.on: bits(step.after.tolist()) for step in stored}  # type: ignore[union-attr]


def test_all_sixteen_combinations_equal_fresh_runs_bit_for_bit() -> None:
    experiment = whatif(a_to_e)
    assert [hook.name for hook in experiment.hooks] == ["c_hook", "look", "plus_hundred", "times_two"]
    assert len(experiment.traces) == 16
    for on in product((True, False), repeat=4):
        fresh_run = a_to_e(on=on)
        trace = experiment.traces[frozenset(i for i, is_on in enumerate(on) if not is_on)]
        assert gradients(trace) == {name: bits(t.grad.item()) for name, t in fresh_run.items() if t.grad is not None}
        assert len(trace.firings) == sum(on)


def test_a_hook_that_is_off_is_not_registered() -> None:
    hook_dicts: list[Any] = []

    def run() -> None:
        x = torch.tensor(3.0, requires_grad=True)
        y = x * x
        handle = y.register_hook(look)
        hook_dicts.append((y._backward_hooks, y.grad_fn))
        y.backward()
        handle.remove()

    without = whatif(run).without("look")
    # The hook was removed from the dict of the first and of the last run.
    assert [hooks for hooks, _ in hook_dicts] == [{}, None, {}]
    assert not without._data.hook_rows


MODEL_HOOKS: dict[str, Callable[[nn.Module], Any]] = {
    "forward pre": lambda net: net.register_forward_pre_hook(lambda module, args: (args[0] + 1,)),
    "forward": lambda net: net.register_forward_hook(lambda module, args, output: output * 2),
    "full backward pre": lambda net: net.register_full_backward_pre_hook(lambda module, grad: (grad[0] * 3,)),
    "full backward": lambda net: net.register_full_backward_hook(lambda module, grad, _: (grad[0] * 5,)),
    "legacy": lambda net: net.register_backward_hook(lambda module, grad, _: tuple(g and g * 7 for g in grad)),
    "global forward pre": lambda net: torch_modules.register_module_forward_pre_hook(lambda m, args: (args[0] + 1,)),
    "global forward": lambda net: torch_modules.register_module_forward_hook(lambda m, args, output: output * 2),
    "global full backward pre": lambda net: torch_modules.register_module_full_backward_pre_hook(
        lambda module, grad: (grad[0] * 3,)
    ),
    "global full backward": lambda net: torch_modules.register_module_full_backward_hook(
        lambda module, grad, _: (grad[0] * 5,)
    ),
    "global legacy": lambda net: torch_modules.register_module_backward_hook(
        lambda module, grad, _: tuple(g and g * 7 for g in grad)
    ),
}


def module_pass(register: Callable[[nn.Module], Any] | None) -> tuple[torch.Tensor | None, ...]:
    net, x = Doubled(), torch.tensor(3.0, requires_grad=True)
    handle = None if register is None else register(net)
    try:
        net(x).backward()
    finally:
        if handle is not None:
            handle.remove()
    return x.grad, net.weight.grad


@pytest.mark.filterwarnings("ignore:Using a non-full backward hook", "ignore:Full backward hook is firing")
@pytest.mark.parametrize("register", MODEL_HOOKS.values(), ids=MODEL_HOOKS)
def test_module_hooks_can_be_switched(register: Callable[[nn.Module], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # Torch keeps the kind after the hooks are removed.
    monkeypatch.setattr(torch_modules, "_global_is_full_backward_hook", None)
    gradients_per_run: list[Any] = []
    experiment = whatif(lambda: gradients_per_run.append(module_pass(register)))
    assert len(experiment.hooks) == 1
    assert gradients_per_run == [module_pass(register), module_pass(None), module_pass(register)]
    assert gradients_per_run[0] != gradients_per_run[1]


def tensor_pass(register: Callable[[torch.Tensor, torch.Tensor], Any] | None) -> list[Any]:
    x, y = torch.tensor(3.0, requires_grad=True), torch.tensor(5.0, requires_grad=True)
    z = x * y
    called: list[str] = []
    if register is not None:
        register(x, z)(called.append)
    (z + x).backward()
    return [x.grad, y.grad, bool(called)]


TENSOR_HOOKS: dict[str, Callable[[torch.Tensor, torch.Tensor], Callable[[Any], Any]]] = {
    "leaf": lambda x, z: lambda log: x.register_hook(lambda grad: log("ran")),
    "intermediate": lambda x, z: lambda log: z.register_hook(lambda grad: log("ran")),
    "post-accumulate": lambda x, z: lambda log: x.register_post_accumulate_grad_hook(lambda leaf: log("ran")),
    "node pre": lambda x, z: lambda log: z.grad_fn.register_prehook(lambda grads: log("ran")),  # type: ignore[union-attr]
    "node post": lambda x, z: lambda log: z.grad_fn.register_hook(lambda *grads: log("ran")),  # type: ignore[union-attr]
    "multi-grad all": lambda x, z: lambda log: register_multi_grad_hook((x, z), lambda grads: log("ran")),
    "multi-grad any": lambda x, z: lambda log: register_multi_grad_hook((x, z), lambda g: log("ran"), mode="any"),
}


@pytest.mark.parametrize("register", TENSOR_HOOKS.values(), ids=TENSOR_HOOKS)
def test_tensor_and_node_hooks_can_be_switched(register: Callable[..., Any]) -> None:
    results: list[Any] = []
    experiment = whatif(lambda: results.append(tensor_pass(register)))
    assert len(experiment.hooks) == 1
    assert [ran for *_, ran in results] == [True, False, True]
    assert len({repr(gradients) for *gradients, _ in results}) == 1
    assert not experiment.without(0).firings


@pytest.mark.parametrize("is_global", [False, True], ids=["own", "of all"])
@pytest.mark.parametrize("when", ["pre", "post"])
def test_optimizer_hooks_can_be_switched(when: str, is_global: bool) -> None:
    ran: list[bool] = []

    def run() -> None:
        weight = nn.Parameter(torch.tensor(2.0))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        owner = torch_optimizer if is_global else optimizer
        register = getattr(owner, f"register_{'optimizer_' * is_global}step_{when}_hook")
        called: list[str] = []
        with register(lambda *given: called.append("ran")):
            weight.square().backward()
            optimizer.step()
        ran.append(bool(called))

    assert len(whatif(run).hooks) == 1
    assert ran == [True, False, True]


def test_equal_hooks_are_switched_separately() -> None:
    def run() -> None:
        x = torch.tensor(1.0, requires_grad=True)
        for _ in range(3):
            x.register_hook(times_two)
        (x * 1).backward()

    traces = whatif(run).traces
    assert len(traces) == 8
    for off, trace in traces.items():
        assert trace.steps[-1].after.tolist() == 2.0 ** (3 - len(off))  # type: ignore[union-attr]


def test_hooks_registered_by_a_hook_and_by_the_function_are_distinguished() -> None:
    def run() -> None:
        x = torch.tensor(1.0, requires_grad=True)
        y = x * 3
        y.register_hook(lambda grad: x.register_hook(times_two) and None)
        y.backward()
        z = torch.tensor(1.0, requires_grad=True)
        z.register_hook(times_two)
        (z * 5).backward()

    experiment = whatif(run)
    assert [(hook.label, hook.on) for hook in experiment.hooks][1:] == [("times_two", "x"), ("times_two", "z")]
    assert [step.on for step in experiment.without(0, 1).firings] == ["z"]
    assert [step.on for step in experiment.without(0, 2).firings] == []
    experiment.change()
    assert {hook["name"] for hook in experiment.content()["hooks"]} == {hook.label for hook in experiment.hooks}
    assert len(experiment.content()["hooks"]) == 3


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


def test_many_hooks_are_switched_off_one_at_a_time() -> None:
    def run() -> None:
        x = torch.tensor(1.0, requires_grad=True)
        for _ in range(7):
            x.register_hook(times_two)
        (x * 1).backward()

    experiment = whatif(run)
    assert len(experiment.traces) == 8
    assert "7 hooks: each was switched off alone" in repr(experiment)
    with pytest.raises(ValueError, match="with 7 hooks, each was switched off alone"):
        experiment.without(0, 1)


def test_a_note_states_that_only_the_first_hooks_can_be_switched() -> None:
    def run() -> None:
        x = torch.tensor(1.0, requires_grad=True)
        for _ in range(41):
            x.register_hook(look)
        (x * 1).backward()

    experiment = whatif(run)
    assert len(experiment.hooks) == 40
    assert "There are 41 hooks: the first 40 can be switched off." in experiment.notes


def test_a_note_names_hooks_registered_before_the_function_ran() -> None:
    net = Doubled()
    net.register_forward_hook(lambda module, args, output: output * 2)
    experiment = whatif(lambda: net(torch.tensor(3.0)).backward())
    assert experiment.hooks == []
    assert "registered before the function ran, and stay on: λ output * 2" in experiment.notes[0]


def test_a_note_names_state_kept_between_runs() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    experiment = whatif(lambda: (x * x).backward())
    assert "gives other results when it runs twice (see x)" in repr(experiment)


def test_each_run_has_the_same_random_numbers_and_the_state_after_one_run() -> None:
    def run() -> None:
        x = torch.rand(3, requires_grad=True)
        x.register_hook(lambda grad: grad * random.random())
        torch.nn.functional.dropout(x).sum().backward()

    torch.manual_seed(5)
    random.seed(5)
    experiment = whatif(run)
    after = torch.rand(1), random.random()
    torch.manual_seed(5)
    random.seed(5)
    run()
    assert (torch.rand(1), random.random()) == after
    assert experiment.notes == []


@pytest.mark.parametrize("place", ["forward", "backward"])
def test_an_interrupt_in_the_third_run_restores_everything(place: str) -> None:
    net, runs, should_interrupt = Doubled(), [0], [False]

    def stop(*_: Any) -> None:
        if should_interrupt[0]:
            raise KeyboardInterrupt

    def run(x: float = 3.0) -> None:
        runs[0] += 1
        should_interrupt[0] = x > 3 and runs[0] == 3
        inside = torch.rand(()) * x
        net.register_forward_hook(stop if place == "forward" else look_at)
        leaf = torch.tensor(2.0, requires_grad=True)
        leaf.register_hook(look)  # off in the third run
        y = net(inside) * leaf
        y.register_hook(stop if place == "backward" else look)
        y.backward()

    experiment = whatif(run, x=(0, 5))
    traces, hooks, notes = experiment.traces, [hook.label for hook in experiment.hooks], experiment.notes
    runs[0] = 0
    state = torch.random.get_rng_state(), random.getstate()
    with pytest.raises(KeyboardInterrupt):
        experiment.change(x=4)
    assert runs[0] == 3
    assert not net._forward_hooks
    assert torch.equal(torch.random.get_rng_state(), state[0]) and random.getstate() == state[1]
    assert (experiment.values, experiment.traces, experiment.notes) == ({"x": 3.0}, traces, notes)
    assert [hook.label for hook in experiment.hooks] == hooks
    experiment.change(x=2)
    assert experiment.values == {"x": 2.0}


def look_at(module: nn.Module, args: Any, output: Any) -> None:
    """Keeps the output."""


def test_a_run_that_raises_without_a_hook_is_kept_with_a_note() -> None:
    def run() -> None:
        x = torch.tensor(3.0, requires_grad=True)
        received: list[torch.Tensor] = []
        x.register_hook(received.append)
        (x * x).backward()
        received[0]

    experiment = whatif(run)
    trace = experiment.without(0)
    assert trace.steps[-1].kind == "accumulate"
    assert trace.notes == ["The function raised IndexError: list index out of range"]


def fails(module: nn.Module, args: Any, output: Any) -> None:
    raise RuntimeError("no")


def test_hooks_prevented_from_firing_by_an_error_can_be_switched() -> None:
    def run() -> None:
        net = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1), nn.Linear(1, 1))
        for layer, hook in zip(net, (fails, fails, look_at), strict=True):
            layer.register_forward_hook(hook)
        net[2].weight.register_hook(look)
        net(torch.ones(1)).backward()

    experiment = whatif(run)
    assert [(hook.name, hook.on) for hook in experiment.hooks] == [
        ("fails", "net.0"),
        ("fails", "net.1"),
        ("look_at", "net.2"),
        ("look", "net.2.weight"),
    ]
    fired = {off: [step.hook.name for step in trace.firings if step.hook] for off, trace in experiment.traces.items()}
    assert len(fired) == 16
    assert {off: names for off, names in fired.items() if names} == {
        frozenset({0, 1}): ["look_at", "look"],
        frozenset({0, 1, 2}): ["look"],
        frozenset({0, 1, 3}): ["look_at"],
    }


def test_the_switch_of_a_hook_that_did_not_fire_refers_to_its_pin() -> None:
    def run() -> None:
        net, x = nn.Sequential(nn.Identity(), nn.ReLU()), torch.tensor(3.0, requires_grad=True)
        x.register_hook(times_two)
        net[1].register_forward_hook(look_at)
        net[0].register_forward_hook(fails)
        net(x).backward()

    content = whatif(run).content()
    [hooks] = [switch["hooks"] for switch in content["switches"] if switch["label"] == "times_two"]
    runs = [shown_steps(content, run) for run in range(len(content["runs"]))]
    ran = {step["hook"] for steps in runs for step in steps if step["sentence"].startswith("times_two")}
    assert hooks == [*ran]


def test_labels_of_hooks_with_the_same_name_contain_the_tensor() -> None:
    def run() -> None:
        x, y = (torch.tensor(1.0, requires_grad=True) for _ in range(2))
        for tensor in (x, y):
            tensor.register_hook(times_two)
        x.register_hook(look)
        (x * y).backward()

    labels = [entry["label"] for entry in whatif(run).content()["runs"]]
    assert labels[1:5] == ["Without times_two on x", "Without times_two on y", "Without look", labels[4]]
    assert labels[4] == "Without times_two on x, times_two on y"


def test_the_error_of_an_empty_what_if_has_the_original_exception_as_cause() -> None:
    def run() -> None:
        raise LookupError("mine")

    with pytest.raises(ValueError, match="Nothing to show: LookupError: mine") as raised:
        whatif(run)
    cause = raised.value.__cause__
    assert isinstance(cause, LookupError) and cause.__traceback__ is not None
    assert traceback.extract_tb(cause.__traceback__)[-1].name == "run"


def test_a_failed_change_of_values_leaves_the_what_if_unchanged() -> None:
    def run(a: float = 1.0) -> None:
        (torch.tensor(a, requires_grad=True) * [2.0][int(a) - 1]).backward()

    experiment = whatif(run, a=(1, 2))
    traces = experiment.traces
    with pytest.raises(ValueError, match="Nothing to show: IndexError: list index out of range"):
        experiment.change(a=2.0)
    assert experiment.values == {"a": 1.0}
    assert experiment.traces == traces


def test_the_player_follows_values_that_change_the_number_of_hooks() -> None:
    def run(x: float = 1.0) -> None:
        x = torch.tensor(x, requires_grad=True)  # type: ignore[assignment]
        if x < 2:
            x.register_hook(look)  # type: ignore[attr-defined]
        y = x * 2
        y.register_hook(times_two)  # type: ignore[attr-defined]
        y.backward()  # type: ignore[attr-defined]

    experiment = whatif(run, x=(0, 3))
    player = experiment.player()
    (slider,) = make_sliders(experiment, player)
    player.shown, player.breakpoints = 3, [1]
    slider.value = 1.5
    assert (len(player.content["runs"]), player.shown, player.breakpoints) == (8, 3, [1])
    slider.value = 2.5
    assert (len(player.content["runs"]), player.shown, player.breakpoints) == (2, 0, [])


def test_moves_of_a_slider_are_compared_with_the_value_that_it_began_with() -> None:
    def run(x: float = 5.0) -> None:
        (torch.tensor(x, requires_grad=True) * 2).backward()

    experiment = whatif(run, x=(0, 10))
    (slider,) = make_sliders(experiment, experiment.player())
    slider.value = 6.0
    slider.value = 7.0
    [run_before] = experiment.before.values()
    [x] = [row for row in run_before.trace.tensors if row.leaf]
    assert run_before.trace.value(x.data).tolist() == 5.0


def test_a_slider_starts_at_the_clamped_default_or_in_the_middle() -> None:
    def run(a: float, b: float = 9.0) -> None:
        (torch.tensor(a, requires_grad=True) * b).backward()

    assert whatif(run, a=(0, 10), b=(0, 3)).values == {"a": 5.0, "b": 3.0}


@pytest.mark.parametrize("bounds", [(-3, 3), (0, 8), (0.1, 0.7), (-1e6, 2e6)])
@pytest.mark.parametrize("value", [2.0, 0.3, 1 / 3])
def test_a_slider_can_show_the_value_that_it_begins_with(bounds: tuple[float, float], value: float) -> None:
    def run(x: float = value) -> None:
        (torch.tensor(x, requires_grad=True) * 2).backward()

    experiment = whatif(run, x=bounds)
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
        (lambda a: None, {"b": (0, 1)}, TypeError, "has no argument b. It has: a."),
        (lambda a: None, {"a": 3}, ValueError, r"A range is two numbers, the smaller one first, .* a is 3."),
        (lambda a: None, {"a": (3, 1)}, ValueError, r"a is \(3, 1\)"),
        (lambda a: None, {"a": (0, float("inf"))}, ValueError, r"a is \(0, inf\)"),
    ],
)
def test_bad_input_raises_an_error_with_instructions(
    run: Any, ranges: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        whatif(run, **ranges)


def test_an_unknown_hook_or_value_raises_an_error_with_the_known_ones() -> None:
    experiment = whatif(a_to_e)
    with pytest.raises(
        ValueError, match=r"There is no hook x_hook to switch off. There are: c_hook, look, plus_hundred"
    ):
        experiment.without("x_hook")
    with pytest.raises(TypeError, match=r"has no argument q. It has: None"):
        experiment.change(q=1.0)


def test_runs_without_hooks_are_labelled_after_and_before_the_change() -> None:
    def square(x: float) -> None:
        leaf = torch.tensor(x, requires_grad=True)
        (leaf * leaf).backward()

    experiment = whatif(square, x=(0, 10))
    experiment.change(x=3)
    assert [entry["label"] for entry in experiment.content()["runs"]] == [
        "After the change",
        "Before the change",
    ]
