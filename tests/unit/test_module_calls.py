"""Module calls in difficult cases: unreadable fields, writes that bypass torch."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.modules.module as torch_modules
from scenes import Doubled, leaf, plain, silent
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
        tensor.data.fill_(5)
    else:
        tensor.detach().numpy().fill(3)


def test_an_untracked_write_of_a_hook_is_detected() -> None:
    net = nn.Identity()
    net.register_forward_pre_hook(lambda module, args: write_past_version_counter(args[0], "numpy"))
    net.register_forward_pre_hook(silent("look"))
    net.register_forward_hook(lambda module, args, output: write_past_version_counter(output, "data"))
    with hv.record(net) as trace:
        net(torch.ones(100))
    assert [s.effect for s in trace.firings] == ["edited", "kept", "edited"]
    assert [s.after.mean for s in trace.steps] == [1, 3, 3, 3, 5]


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


class AppliesInner(nn.Module):
    """Applies its inner modules to its first input."""

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
    net, called = AppliesInner(Doubled(), Doubled()), list[Any]()
    net.register_backward_hook(lambda module, grad_input, grad_output: called.append(grad_input))
    with hv.record(net) as trace:
        net(leaf(5.0), leaf(7.0))[0].backward()
    (step,) = [step for step in trace.steps if step.kind == "backward_hook"]
    assert [plain(step.before)] == [tuple(g if g is None else g.item() for g in given) for given in called]
    assert step.on == "net" and step.row.call == 0
    assert step.trace.call(step.trace.owners[step.node]) == "net.inner.1"
    assert [step.trace.call(call) for call in range(len(step.trace.calls))] == ["net", "net.inner.0", "net.inner.1"]
