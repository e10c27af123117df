"""What if: every hook switched off and on, in real passes."""

import gc
import random
import struct
import traceback
import weakref
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from scenes import Doubled
from shown import in_english, shown_steps
from torch import nn
from torch.autograd.graph import register_multi_grad_hook
from torch.nn.modules import module as torch_modules
from torch.optim import optimizer as torch_optimizer

from hookviz import Trace
from hookviz.what_if import slider_panel, whatif
from hookviz.what_if.combinations import subsets
from hookviz.what_if.slider_panel import make_sliders
from hookviz.what_if.switches import Switches, _replacements


def c_hook(grad: torch.Tensor) -> torch.Tensor:
    return grad + 2


def look(grad: torch.Tensor) -> None:
    """Keeps the gradient."""


def times_two(grad: torch.Tensor) -> torch.Tensor:
    return grad * 2


def plus_hundred(grad: torch.Tensor) -> torch.Tensor:
    return grad + 100


def a_to_e(a: Any = 2.0, d: Any = 4.0, on: tuple[bool, ...] = (True,) * 4) -> dict[str, torch.Tensor]:
    """The picture with four hooks, of which some may be left out."""
    a, b, d = (torch.tensor(number, requires_grad=True) for number in (a, 3.0, d))
    c = a * b
    for wanted, (tensor, hook) in zip(on, [(c, c_hook), (c, look), (d, plus_hundred)], strict=False):
        if wanted:
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


def test_all_sixteen_states_are_sixteen_fresh_runs_bit_for_bit() -> None:
    both = whatif(a_to_e)
    assert [hook.name for hook in both.hooks] == ["c_hook", "look", "plus_hundred", "times_two"]
    assert len(both.traces) == 16
    for on in product((True, False), repeat=4):
        fresh = a_to_e(on=on)
        trace = both.traces[frozenset(i for i, wanted in enumerate(on) if not wanted)]
        assert gradients(trace) == {name: bits(t.grad.item()) for name, t in fresh.items() if t.grad is not None}
        assert len(trace.firings) == sum(on)


def test_a_whole_number_is_as_good_as_one_with_a_point() -> None:
    both = whatif(a_to_e, d=(0, 10))
    both.change(d=0)
    assert (both.values, both.without().steps[-1].after.tolist()) == ({"d": 0.0}, 4.0)  # type: ignore[union-attr]


def test_without_hooks_the_values_are_what_it_is_about() -> None:
    def run(x: float = 3.0) -> None:
        (torch.tensor(x, requires_grad=True) * 2).backward()

    about = "What if: one recorded pass, without hooks to switch off."
    assert repr(whatif(run, x=(0, 4.5))) == f"{about} Values: x=3."
    assert repr(whatif(run)) == about


def test_a_hook_that_is_off_leaves_nothing_behind() -> None:
    kept: list[Any] = []

    def run() -> None:
        x = torch.tensor(3.0, requires_grad=True)
        y = x * x
        handle = y.register_hook(look)
        kept.append((y._backward_hooks, y.grad_fn))
        y.backward()
        handle.remove()

    without = whatif(run).without("look")
    assert [hooks for hooks, _ in kept] == [{}, None, {}]  # removed from the dict of the first and of the last run
    assert not without.hook_rows


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
def test_hooks_of_modules_are_switches(register: Callable[[nn.Module], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_modules, "_global_is_full_backward_hook", None)  # torch keeps it when the hooks are gone
    seen: list[Any] = []
    both = whatif(lambda: seen.append(module_pass(register)))
    assert len(both.hooks) == 1
    assert seen == [module_pass(register), module_pass(None), module_pass(register)]
    assert seen[0] != seen[1]


def tensor_pass(register: Callable[[torch.Tensor, torch.Tensor], Any] | None) -> list[Any]:
    x, y = torch.tensor(3.0, requires_grad=True), torch.tensor(5.0, requires_grad=True)
    z = x * y
    called: list[str] = []
    if register is not None:
        register(x, z)(called.append)
    (z + x).backward()
    return [x.grad, y.grad, bool(called)]


TENSOR_HOOKS: dict[str, Callable[[torch.Tensor, torch.Tensor], Callable[[Any], Any]]] = {
    "leaf": lambda x, z: lambda tell: x.register_hook(lambda grad: tell("ran")),
    "intermediate": lambda x, z: lambda tell: z.register_hook(lambda grad: tell("ran")),
    "post-accumulate": lambda x, z: lambda tell: x.register_post_accumulate_grad_hook(lambda leaf: tell("ran")),
    "node pre": lambda x, z: lambda tell: z.grad_fn.register_prehook(lambda grads: tell("ran")),  # type: ignore[union-attr]
    "node post": lambda x, z: lambda tell: z.grad_fn.register_hook(lambda *grads: tell("ran")),  # type: ignore[union-attr]
    "multi-grad all": lambda x, z: lambda tell: register_multi_grad_hook((x, z), lambda grads: tell("ran")),
    "multi-grad any": lambda x, z: lambda tell: register_multi_grad_hook((x, z), lambda g: tell("ran"), mode="any"),
}


@pytest.mark.parametrize("register", TENSOR_HOOKS.values(), ids=TENSOR_HOOKS)
def test_hooks_of_tensors_and_nodes_are_switches(register: Callable[..., Any]) -> None:
    seen: list[Any] = []
    both = whatif(lambda: seen.append(tensor_pass(register)))
    assert len(both.hooks) == 1
    assert [ran for *_, ran in seen] == [True, False, True]
    assert len({repr(gradients) for *gradients, _ in seen}) == 1
    assert not both.without(0).firings


@pytest.mark.parametrize("shared", [False, True], ids=["own", "of all"])
@pytest.mark.parametrize("when", ["pre", "post"])
def test_hooks_of_optimizers_are_switches(when: str, shared: bool) -> None:
    ran: list[bool] = []

    def run() -> None:
        weight = nn.Parameter(torch.tensor(2.0))
        optimizer = torch.optim.SGD([weight], lr=0.1)
        owner = torch_optimizer if shared else optimizer
        register = getattr(owner, f"register_{'optimizer_' * shared}step_{when}_hook")
        called: list[str] = []
        with register(lambda *given: called.append("ran")):
            weight.square().backward()
            optimizer.step()
        ran.append(bool(called))

    assert len(whatif(run).hooks) == 1
    assert ran == [True, False, True]


def test_equal_hooks_are_told_apart() -> None:
    def run() -> None:
        x = torch.tensor(1.0, requires_grad=True)
        for _ in range(3):
            x.register_hook(times_two)
        (x * 1).backward()

    both = whatif(run)
    assert {off: trace.steps[-1].after.tolist() for off, trace in both.traces.items()} == {  # type: ignore[union-attr]
        off: 2.0 ** (3 - len(off)) for off in subsets(3)
    }


def test_a_hook_that_registers_another_is_not_mistaken_for_the_function() -> None:
    def run() -> None:
        x = torch.tensor(1.0, requires_grad=True)
        y = x * 3
        y.register_hook(lambda grad: x.register_hook(times_two) and None)
        y.backward()
        z = torch.tensor(1.0, requires_grad=True)
        z.register_hook(times_two)
        (z * 5).backward()

    both = whatif(run)
    assert [(hook.label, hook.on) for hook in both.hooks][1:] == [("times_two", "x"), ("times_two", "z")]
    assert [step.on for step in both.without(0, 1).firings] == ["z"]
    assert [step.on for step in both.without(0, 2).firings] == []
    both.change()
    assert {hook["name"] for hook in both.content()["hooks"]} == {hook.label for hook in both.hooks}
    assert len(both.content()["hooks"]) == 3


def test_what_the_function_leaves_registered_is_removed() -> None:
    net = Doubled()
    outputs = []

    def run() -> None:
        net.register_forward_hook(lambda module, args, output: output * 2)
        torch_modules.register_module_forward_hook(lambda module, args, output: output + 1)
        outputs.append(net(torch.tensor(3.0)).item())

    both = whatif(run)
    assert outputs == [14.0, 7.0, 12.0, 6.0, 14.0]  # the hooks of all modules run first
    assert both.notes == []
    assert not net._forward_hooks
    assert not torch_modules._global_forward_hooks


def test_of_many_hooks_each_is_switched_off_alone() -> None:
    def run() -> None:
        x = torch.tensor(1.0, requires_grad=True)
        for _ in range(7):
            x.register_hook(times_two)
        (x * 1).backward()

    both = whatif(run)
    assert len(both.traces) == 8
    assert "7 hooks: each was switched off alone" in repr(both)
    with pytest.raises(ValueError, match="with 7 hooks, each was switched off alone"):
        both.without(0, 1)


def test_more_hooks_than_can_be_switched_are_said() -> None:
    def run() -> None:
        x = torch.tensor(1.0, requires_grad=True)
        for _ in range(41):
            x.register_hook(look)
        (x * 1).backward()

    both = whatif(run)
    assert len(both.hooks) == 40
    assert "There are 41 hooks: the first 40 can be switched off." in both.notes


def test_a_hook_from_before_stays_on_and_is_named() -> None:
    net = Doubled()
    net.register_forward_hook(lambda module, args, output: output * 2)
    both = whatif(lambda: net(torch.tensor(3.0)).backward())
    assert both.hooks == []
    assert "registered before the function ran, and stay on: λ output * 2" in both.notes[0]


def test_a_function_that_keeps_something_between_its_runs_is_named() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    both = whatif(lambda: (x * x).backward())
    assert "gives other results when it runs twice (see x)" in repr(both)


def test_random_numbers_begin_anew_and_go_on_as_after_one_run() -> None:
    def run() -> None:
        x = torch.rand(3, requires_grad=True)
        x.register_hook(lambda grad: grad * random.random())
        torch.nn.functional.dropout(x).sum().backward()

    torch.manual_seed(5)
    random.seed(5)
    both = whatif(run)
    after = torch.rand(1), random.random()
    torch.manual_seed(5)
    random.seed(5)
    run()
    assert (torch.rand(1), random.random()) == after
    assert both.notes == []


def torchs_own() -> list[Any]:
    """What stands where a recording or the switches put something of theirs."""
    replaced = {(owner, name) for owner, name, _ in _replacements(Switches())}
    inside = [nn.Module.__call__.__code__, torch.autograd.graph._engine_run_backward.__code__]
    return [vars(owner)[name] for owner, name in sorted(replaced, key=str)] + inside


@pytest.mark.parametrize("place", ["forward", "backward"])
def test_an_interrupt_in_the_third_run_leaves_all_as_it_was(place: str) -> None:
    net, runs, interrupted = Doubled(), [0], [False]

    def stop(*_: Any) -> None:
        if interrupted[0]:
            raise KeyboardInterrupt

    def run(x: float = 3.0) -> None:
        runs[0] += 1
        interrupted[0] = x > 3 and runs[0] == 3
        inside = torch.rand(()) * x
        net.register_forward_hook(stop if place == "forward" else look_at)
        leaf = torch.tensor(2.0, requires_grad=True)
        leaf.register_hook(look)  # off in the third run
        y = net(inside) * leaf
        y.register_hook(stop if place == "backward" else look)
        y.backward()

    before = torchs_own()
    both = whatif(run, x=(0, 5))
    traces, hooks, notes = both.traces, [hook.label for hook in both.hooks], both.notes
    runs[0] = 0
    state = torch.random.get_rng_state(), random.getstate()
    with pytest.raises(KeyboardInterrupt):
        both.change(x=4)
    assert runs[0] == 3
    assert torchs_own() == before
    assert not net._forward_hooks
    assert torch.equal(torch.random.get_rng_state(), state[0]) and random.getstate() == state[1]
    assert (both.values, both.traces, both.notes) == ({"x": 3.0}, traces, notes)
    assert [hook.label for hook in both.hooks] == hooks
    both.change(x=2)
    assert both.values == {"x": 2.0}


def look_at(module: nn.Module, args: Any, output: Any) -> None:
    """Keeps the output."""


def test_what_a_hook_prevents_is_kept_and_said() -> None:
    def run() -> None:
        x = torch.tensor(3.0, requires_grad=True)
        seen: list[torch.Tensor] = []
        x.register_hook(seen.append)
        (x * x).backward()
        seen[0]

    both = whatif(run)
    trace = both.without(0)
    assert trace.steps[-1].kind == "accumulate"
    assert trace.notes == ["The function raised IndexError: list index out of range"]


def fails(module: nn.Module, args: Any, output: Any) -> None:
    raise RuntimeError("no")


def test_hooks_that_an_error_keeps_from_firing_are_switches_too() -> None:
    def run() -> None:
        net = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1), nn.Linear(1, 1))
        for layer, hook in zip(net, (fails, fails, look_at), strict=True):
            layer.register_forward_hook(hook)
        net[2].weight.register_hook(look)
        net(torch.ones(1)).backward()

    both = whatif(run)
    assert [(hook.name, hook.on) for hook in both.hooks] == [
        ("fails", "net.0"),
        ("fails", "net.1"),
        ("look_at", "net.2"),
        ("look", "net.2.weight"),
    ]
    fired = {off: [step.hook.name for step in trace.firings if step.hook] for off, trace in both.traces.items()}
    assert len(fired) == 16
    assert {off: names for off, names in fired.items() if names} == {
        frozenset({0, 1}): ["look_at", "look"],
        frozenset({0, 1, 2}): ["look"],
        frozenset({0, 1, 3}): ["look_at"],
    }


def test_the_switch_of_such_a_hook_is_its_pin() -> None:
    def run() -> None:
        net, x = nn.Sequential(nn.Identity(), nn.ReLU()), torch.tensor(3.0, requires_grad=True)
        x.register_hook(times_two)
        net[1].register_forward_hook(look_at)
        net[0].register_forward_hook(fails)
        net(x).backward()

    shown = whatif(run).content()
    [hooks] = [switch["hooks"] for switch in shown["switches"] if switch["label"] == "times_two"]
    runs = [shown_steps(shown, run) for run in range(len(shown["runs"]))]
    ran = {step["hook"] for steps in runs for step in steps if step["sentence"].startswith("times_two")}
    assert hooks == [*ran]


def test_other_values_are_recorded_afresh() -> None:
    both = whatif(a_to_e, a=(-3, 3), d=(0, 10))
    assert both.values == {"a": 2.0, "d": 4.0}
    both.change(d=5.0)
    for on in product((True, False), repeat=4):
        fresh = a_to_e(d=5.0, on=on)
        trace = both.traces[frozenset(i for i, wanted in enumerate(on) if not wanted)]
        assert gradients(trace) == {name: bits(t.grad.item()) for name, t in fresh.items() if t.grad is not None}


def test_hooks_of_one_name_are_told_apart_in_words() -> None:
    def run() -> None:
        x, y = (torch.tensor(1.0, requires_grad=True) for _ in range(2))
        for tensor in (x, y):
            tensor.register_hook(times_two)
        x.register_hook(look)
        (x * y).backward()

    shown = [in_english(one["label"]) for one in whatif(run).content()["runs"]]
    assert shown[1:5] == ["Without times_two on x", "Without times_two on y", "Without look", shown[4]]
    assert shown[4] == "Without times_two on x, times_two on y"


def test_where_nothing_is_to_be_shown_the_error_leads_to_the_line_that_raised() -> None:
    def run() -> None:
        raise LookupError("mine")

    with pytest.raises(ValueError, match="Nothing to show: LookupError: mine") as told:
        whatif(run)
    cause = told.value.__cause__
    assert isinstance(cause, LookupError) and cause.__traceback__ is not None
    assert traceback.extract_tb(cause.__traceback__)[-1].name == "run"


def test_what_a_run_raised_keeps_nothing_alive_once_something_was_recorded() -> None:
    held: list[weakref.ref[torch.Tensor]] = []

    def run() -> None:
        x = torch.tensor(2.0, requires_grad=True)
        held.append(weakref.ref(x))
        (x * x).backward()
        raise LookupError("mine")

    gc.collect()
    gc.disable()
    try:
        whatif(run)
        assert held and [reference() for reference in held] == [None] * len(held)
    finally:
        gc.enable()


def test_where_other_values_show_nothing_all_stays_as_it_was() -> None:
    def run(a: float = 1.0) -> None:
        (torch.tensor(a, requires_grad=True) * [2.0][int(a) - 1]).backward()

    both = whatif(run, a=(1, 2))
    traces = both.traces
    with pytest.raises(ValueError, match="Nothing to show: IndexError: list index out of range"):
        both.change(a=2.0)
    assert both.values == {"a": 1.0}
    assert both.traces == traces


def test_other_values_with_which_there_are_other_hooks() -> None:
    def run(x: float = 1.0) -> None:
        x = torch.tensor(x, requires_grad=True)  # type: ignore[assignment]
        if x < 2:
            x.register_hook(look)  # type: ignore[attr-defined]
        y = x * 2
        y.register_hook(times_two)  # type: ignore[attr-defined]
        y.backward()  # type: ignore[attr-defined]

    both = whatif(run, x=(0, 3))
    player = both.player()
    (slider,) = make_sliders(both, player)
    player.shown, player.breakpoints = 3, [1]
    slider.value = 1.5
    assert (len(player.content["runs"]), player.shown, player.breakpoints) == (8, 3, [1])
    slider.value = 2.5
    assert (len(player.content["runs"]), player.shown, player.breakpoints) == (2, 0, [])


@pytest.mark.parametrize(("pause", "before"), [(1.0, 5.0), (0.0, 6.0)])
def test_what_a_drag_changed_is_compared_with_where_it_began(
    pause: float, before: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slider_panel, "DRAG", pause)

    def run(x: float = 5.0) -> None:
        (torch.tensor(x, requires_grad=True) * 2).backward()

    slid = whatif(run, x=(0, 10))
    (slider,) = make_sliders(slid, slid.player())
    slider.value = 6.0
    slider.value = 7.0
    [run_before] = slid.before.values()
    [x] = [row for row in run_before.trace.tensors if row.leaf]
    assert run_before.trace.value(x.data).tolist() == before


def test_a_slider_begins_at_the_default_or_in_the_middle() -> None:
    def run(a: float, b: float = 9.0) -> None:
        (torch.tensor(a, requires_grad=True) * b).backward()

    assert whatif(run, a=(0, 10), b=(0, 3)).values == {"a": 5.0, "b": 3.0}


@pytest.mark.parametrize(
    ("run", "ranges", "error", "message"),
    [
        (3, {}, TypeError, "takes a function that builds and runs a pass; this is an int"),
        (lambda: None, {}, ValueError, "Nothing to show: the function called no module and ran no backward pass."),
        (lambda: 1 / 0, {}, ValueError, "Nothing to show: ZeroDivisionError: division by zero"),
        (lambda a: None, {}, TypeError, r"needs a value for a: give it a default, or a range such as a=\(-3, 3\)"),
        (lambda a: None, {"b": (0, 1)}, TypeError, "has no argument b. It has: a."),
        (lambda a: None, {"a": 3}, ValueError, r"A range is two numbers, the smaller one first, .* a is 3."),
        (lambda a: None, {"a": (3, 1)}, ValueError, r"a is \(3, 1\)"),
        (lambda a: None, {"a": (0, float("inf"))}, ValueError, r"a is \(0, inf\)"),
    ],
)
def test_bad_input_is_told_what_to_do(run: Any, ranges: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        whatif(run, **ranges)


def test_an_unknown_hook_or_value_is_told_what_there_is() -> None:
    both = whatif(a_to_e)
    with pytest.raises(
        ValueError, match=r"There is no hook x_hook to switch off. There are: c_hook, look, plus_hundred"
    ):
        both.without("x_hook")
    with pytest.raises(TypeError, match=r"has no argument q. It has: None"):
        both.change(q=1.0)


def test_torch_is_as_before_afterwards() -> None:
    before = torchs_own()
    whatif(a_to_e)
    with pytest.raises(KeyboardInterrupt):
        whatif(interrupted)
    assert torchs_own() == before


def interrupted() -> None:
    a_to_e()
    raise KeyboardInterrupt


def test_without_hooks_the_pass_is_called_after_what_changed_it() -> None:
    def square(x: float) -> None:
        leaf = torch.tensor(x, requires_grad=True)
        (leaf * leaf).backward()

    slid = whatif(square, x=(0, 10))
    slid.change(x=3)
    assert [in_english(one["label"]) for one in slid.content()["runs"]] == ["After the change", "Before the change"]
