"""Module calls in difficult cases: unreadable fields, writes that bypass torch, hooks added behind torch's back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.modules.module as torch_modules
from scenes import Doubled, leaf, plain, silent, steps_of
from torch import nn

import hookviz as hv
from hookviz.recorder.modules import call_tracker, module_hooks


class CallsInner(nn.Module):
    """Calls another module with ``make(x)``."""

    def __init__(self, inner: nn.Module, make: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.inner, self.make = inner, make

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.inner(self.make(x))
        return x * 2


class UnreadableField:
    """A descriptor that raises when it is read."""

    def __get__(self, thing: Any, kind: Any) -> Any:
        if thing is None:
            return 0
        raise ZeroDivisionError("no")

    def __set__(self, thing: Any, value: Any) -> None:
        """Ignore the value."""


@dataclass
class Batch:
    """A dataclass with a readable and an unreadable field."""

    x: torch.Tensor
    broken: Any = UnreadableField()


def test_an_unreadable_field_is_not_shown_but_the_others_are() -> None:
    net = CallsInner(nn.Identity(), Batch)
    net.register_forward_hook(silent("look"))
    with hv.record(net) as trace:
        net(leaf(3.0))
    assert trace.notes == []
    inner = next(step for step in trace.steps if step.on == "net.inner")
    assert (
        inner.sentence == "net.inner is called with input.x=3, input.broken=not read: code of the program computes it."
    )
    assert [(s.on, s.effect, plain(s.after)) for s in trace.firings] == [("net", "kept", 6)]


@pytest.mark.parametrize(
    ("owner", "function_name"), [(call_tracker, "labelled_arguments"), (module_hooks.ModuleHooksObserver, "install")]
)
def test_a_call_that_cannot_be_observed_leaves_no_step_and_no_hook(
    monkeypatch: pytest.MonkeyPatch, owner: Any, function_name: str
) -> None:
    original = getattr(owner, function_name)

    def failing(thing: Any, *more: Any) -> Any:
        result = original(thing, *more)
        if thing is net.inner or getattr(thing, "dict", None) is net.inner._forward_hooks:
            raise OSError("out of order")
        return result

    net, later = CallsInner(Doubled(), lambda x: x), Doubled()
    net.inner.register_forward_hook(silent("lost"))
    for module in (net, later):
        module.register_forward_hook(silent("kept"))
    monkeypatch.setattr(owner, function_name, failing)
    with hv.record() as trace:
        with pytest.warns(hv.HookvizWarning, match="out of order"):
            net(leaf(3.0))
        assert len(net.inner._forward_hooks) == 1
        later(leaf(1.0))
    assert [(s.hook.name, s.on) for s in trace.firings if s.hook] == [("kept", "net"), ("kept", "later")]
    assert [(trace._data.call(i), row.parent) for i, row in enumerate(trace._data.calls)] == [
        ("net", None),
        ("later", None),
    ]
    assert [note.partition(" (")[0] for note in trace.notes] == ["A call of net.inner could not be observed"]


# -- writes that bypass torch


def write_past_version_counter(tensor: torch.Tensor, how: str) -> None:
    """Write into a tensor without incrementing its version counter."""
    if how == "data":
        tensor.data.fill_(3)
    else:
        tensor.detach().numpy().fill(3)


@pytest.mark.parametrize("how", ["data", "numpy"])
def test_an_untracked_write_of_a_pre_hook_into_a_large_tensor_is_detected(how: str) -> None:
    net = nn.Identity()
    net.register_forward_pre_hook(lambda module, args: write_past_version_counter(args[0], how))
    net.register_forward_pre_hook(silent("look"))
    with hv.record(net) as trace:
        net(torch.ones(100))
    assert [s.effect for s in trace.firings] == ["edited", "kept"]
    assert [s.after.mean for s in trace.steps] == [1, 3, 3, 3]


@pytest.mark.parametrize("always", [False, True])
def test_an_untracked_write_of_a_forward_hook_into_the_output_is_detected(always: bool) -> None:
    net = nn.Linear(100, 100)
    net.register_forward_hook(
        lambda module, args, output: write_past_version_counter(output, "data"), always_call=always
    )
    with hv.record(net) as trace:
        net(torch.ones(1, 100))
    (step,) = trace.firings
    assert step.effect == "edited" and step.after.mean == 3 and step.before.mean != 3


def test_a_call_without_hooks_measures_a_large_tensor_once() -> None:
    net = nn.Sequential(nn.Identity(), nn.Identity())
    with hv.record(net) as trace:
        net(torch.ones(100))
    assert len(trace._data.values) == 1
    assert len(steps_of(trace, "call")) == 3


# -- full backward hooks


@pytest.fixture
def _reset_backward_hook_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch remembers permanently which kind of global backward hook was registered first."""
    monkeypatch.setattr(torch_modules, "_global_is_full_backward_hook", None)


@pytest.mark.usefixtures("_reset_backward_hook_kind")
@pytest.mark.parametrize("kind", ["full_backward", "full_backward_pre"])
def test_a_function_registered_three_times_is_three_hooks(kind: str) -> None:
    look, net = silent("look"), Doubled()
    global_handle = getattr(torch_modules, f"register_module_{kind}_hook")(look)
    own_handles = [getattr(net, f"register_{kind}_hook")(look) for _ in range(2)]
    try:
        with hv.record() as trace:
            net(leaf(3.0)).backward()
            out = net(leaf(3.0))
            own_handles[0].remove()
            out.backward()
    finally:
        global_handle.remove()
    rows = [trace._data.hook_rows[s.row.hook] for s in trace.firings if s.row.hook is not None]
    assert [(row.key, row.flags) for row in rows[:3]] == [
        (global_handle.id, ("global",)),
        (own_handles[0].id, ()),
        (own_handles[1].id, ()),
    ]
    assert len(rows) == 6 and len(set(rows[3:])) == 3


# -- the legacy hook


def legacy_steps(net: nn.Module, end: Callable[[Any], torch.Tensor], a: torch.Tensor, b: torch.Tensor) -> list[hv.Step]:
    """The steps of a legacy hook on ``net``, in a pass that begins at ``end(output)``."""
    called: list[Any] = []
    net.register_backward_hook(lambda module, grad_input, grad_output: called.append(grad_input))
    with hv.record(net) as trace:
        end(net(a, b)).backward()
    found = [step for step in trace.steps if step.kind == "backward_hook"]
    assert [plain(step.before) for step in found] == [tuple(g if g is None else g.item() for g in c) for c in called]
    return found


class AppliesInner(nn.Module):
    """Applies its inner modules, if any, to its first input."""

    def __init__(self, *inner: nn.Module) -> None:
        super().__init__()
        self.inner = nn.ModuleList(inner)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> Any:
        for module in self.inner:
            a = module(a)
        return a, b * 3


@pytest.mark.usefixtures("_reset_backward_hook_kind")
@pytest.mark.filterwarnings("ignore:Using a non-full backward hook", "ignore:Using non-full backward hooks")
def test_a_legacy_hook_on_a_container_belongs_to_its_call_and_the_node_to_the_inner_call() -> None:
    (step,) = legacy_steps(AppliesInner(Doubled(), Doubled()), lambda out: out[0], leaf(5.0), leaf(7.0))
    assert step.on == "net" and step.row.call == 0
    assert step.trace.call(step.trace.owners[step.node]) == "net.inner.1"
    assert [step.trace.call(call) for call in range(len(step.trace.calls))] == ["net", "net.inner.0", "net.inner.1"]


def raising_hook(*given: Any) -> Any:
    raise KeyError("x")


@pytest.mark.parametrize("kind", ["full_backward", "full_backward_pre"])
@pytest.mark.parametrize("hook", [raising_hook, lambda *given: (torch.ones(7),)])
def test_an_exception_in_a_backward_hook_is_reported_on_the_module(kind: str, hook: Any) -> None:
    net = Doubled()
    getattr(net, f"register_{kind}_hook")(hook)
    with hv.record() as trace, pytest.raises((KeyError, RuntimeError)):
        net(leaf(3.0)).backward()
    last = trace.steps[-1]
    assert (last.kind, last.on) == ("exception", "net") and last.hook is not None


# -- forward hooks added without torch's functions


class AddsHooksInForward(nn.Module):
    """Puts forward hooks into the hook dicts while it runs, without torch's functions."""

    def __init__(self, hooks: Any, *adds: Callable[..., Any]) -> None:
        super().__init__()
        self.hooks, self.adds = self._forward_hooks if hooks is None else hooks, adds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hooks.update({f"added {i}": add for i, add in enumerate(self.adds)})
        return x * 2


def plus(module: nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
    return output + 1


def times(module: nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
    return output * 10


def steps_with_added_hooks(net: AddsHooksInForward, *registered: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """The steps of a call of ``net``: ``registered`` hooks use torch's functions, the hooks of ``net`` do not."""
    for hook in registered:
        net.register_forward_hook(hook)
    net.register_forward_pre_hook(silent("before"))
    with hv.record() as trace:
        net(leaf(1.0))
    trace.figure()
    trace.player()
    assert trace.notes == []
    steps = [s for s in trace.steps if s.kind not in ("call", "forward_pre_hook")]
    names = [s.hook.name if s.hook else s.sentence if s.row.note else None for s in steps]
    return [(s.kind, name, plain(s.before), plain(s.after)) for s, name in zip(steps, names, strict=True)]


def unobserved(hook: str) -> tuple[Any, ...]:
    sentence = f"{hook} was added while net ran, in a way that hookviz could not notice. It was not observed, and may"
    return "unobserved", f"{sentence} have changed the output of net.", None, None


def test_two_hooks_added_after_registered_ones_are_reported_as_unobserved() -> None:
    net = AddsHooksInForward(None, plus, times)
    assert steps_with_added_hooks(net, times) == [
        ("forward", None, None, 2),
        ("forward_hook", "times", 2, 20),
        unobserved("plus"),
        unobserved("times"),
    ]
