"""Module calls under hard conditions: what cannot be read, what is written past torch, what nobody announces."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import torch.nn.modules.module as torch_modules
from scenes import Doubled, leaf, plain, silent, steps_of
from torch import nn

import hookviz as hv
from hookviz.recorder import call_tracker, module_hooks


class Around(nn.Module):
    """Calls another module with whatever a function makes of the input."""

    def __init__(self, inner: nn.Module, make: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.inner, self.make = inner, make

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.inner(self.make(x))
        return x * 2


class Refuses:
    """A field that cannot be read."""

    def __get__(self, thing: Any, kind: Any) -> Any:
        if thing is None:
            return 0
        raise ZeroDivisionError("no")

    def __set__(self, thing: Any, value: Any) -> None:
        """Keep nothing."""


@dataclass
class Batch:
    """A field that can be read, and one that cannot."""

    x: torch.Tensor
    broken: Any = Refuses()


class Stubborn(list[Any]):
    """A list that does not let itself be taken apart."""

    def __iter__(self) -> Any:
        raise ValueError("no")


def test_a_field_that_cannot_be_read_is_not_shown_and_the_rest_is() -> None:
    net = Around(nn.Identity(), Batch)
    net.register_forward_hook(silent("look"))
    with hv.record(net) as trace:
        net(leaf(3.0))
    assert trace.notes == []
    inner = next(step for step in trace.steps if step.on == "net.inner")
    assert inner.sentence == "net.inner is called with input.x=3, input.broken=not shown (ZeroDivisionError)."
    assert [(s.on, s.effect, plain(s.after)) for s in trace.firings] == [("net", "kept", 6)]


def test_a_container_that_refuses_is_shown_whole() -> None:
    net = nn.Identity()
    with hv.record(net) as trace:
        net(Stubborn([1]))
    assert trace.notes == [] and trace.steps[0].sentence == "net is called with …."


@pytest.mark.parametrize(
    ("owner", "where"), [(call_tracker, "labelled_arguments"), (module_hooks.ModuleHooksObserver, "install")]
)
def test_a_call_that_cannot_be_observed_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, owner: Any, where: str
) -> None:
    theirs = getattr(owner, where)

    def fails(thing: Any, *more: Any) -> Any:
        result = theirs(thing, *more)
        if thing is net.inner or getattr(thing, "dict", None) is net.inner._forward_hooks:
            raise OSError("out of order")
        return result

    net, later = Around(Doubled(), lambda x: x), Doubled()
    net.inner.register_forward_hook(silent("lost"))
    for module in (net, later):
        module.register_forward_hook(silent("kept"))
    monkeypatch.setattr(owner, where, fails)
    with hv.record() as trace:
        with pytest.warns(hv.HookvizWarning, match="out of order"):
            net(leaf(3.0))
        assert len(net.inner._forward_hooks) == 1
        later(leaf(1.0))
    assert [(s.hook.name, s.on) for s in trace.firings if s.hook] == [("kept", "net"), ("kept", "later")]
    assert [(trace.call(i), row.parent) for i, row in enumerate(trace.calls)] == [("net", None), ("later", None)]


# -- what is written past torch


def past(tensor: torch.Tensor, how: str) -> None:
    """Write into a tensor so that its version does not tell."""
    if how == "data":
        tensor.data.fill_(3)
    else:
        tensor.detach().numpy().fill(3)


@pytest.mark.parametrize("how", ["data", "numpy"])
def test_a_hook_that_writes_past_torch_into_a_large_tensor_is_seen(how: str) -> None:
    net = nn.Identity()
    net.register_forward_pre_hook(lambda module, args: past(args[0], how))
    net.register_forward_pre_hook(silent("look"))
    with hv.record(net) as trace:
        net(torch.ones(100))
    assert [s.effect for s in trace.firings] == ["edited", "kept"]
    assert [s.after.mean for s in trace.steps] == [1, 3, 3, 3]


@pytest.mark.parametrize("always", [False, True])
def test_such_a_hook_of_the_output_is_seen(always: bool) -> None:
    net = nn.Linear(100, 100)
    net.register_forward_hook(lambda module, args, output: past(output, "data"), always_call=always)
    with hv.record(net) as trace:
        net(torch.ones(1, 100))
    (step,) = trace.firings
    assert step.effect == "edited" and step.after.mean == 3 and step.before.mean != 3


def test_a_call_without_hooks_measures_a_large_tensor_once() -> None:
    net = nn.Sequential(nn.Identity(), nn.Identity())
    with hv.record(net) as trace:
        net(torch.ones(100))
    assert len(trace.values) == 1
    assert len(steps_of(trace, "call")) == 3


# -- full backward hooks


@pytest.fixture
def _sort_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch remembers for ever which sort of backward hook all modules had first."""
    monkeypatch.setattr(torch_modules, "_global_is_full_backward_hook", None)


@pytest.mark.usefixtures("_sort_forgotten")
@pytest.mark.parametrize("kind", ["full_backward", "full_backward_pre"])
def test_a_function_registered_three_times_is_three_hooks(kind: str) -> None:
    look, net = silent("look"), Doubled()
    everywhere = getattr(torch_modules, f"register_module_{kind}_hook")(look)
    own = [getattr(net, f"register_{kind}_hook")(look) for _ in range(2)]
    try:
        with hv.record() as trace:
            net(leaf(3.0)).backward()
            out = net(leaf(3.0))
            own[0].remove()
            out.backward()
    finally:
        everywhere.remove()
    rows = [trace.hook_rows[s.row.hook] for s in trace.firings if s.row.hook is not None]
    assert [(row.key, row.flags) for row in rows[:3]] == [
        (everywhere.id, ("global",)),
        (own[0].id, ()),
        (own[1].id, ()),
    ]
    assert len(rows) == 6 and len(set(rows[3:])) == 3


@pytest.mark.usefixtures("_sort_forgotten")
@pytest.mark.filterwarnings("ignore:Using a non-full backward hook")
def test_a_function_on_a_module_and_on_all_modules_is_two_hooks() -> None:
    look, net = silent("look"), Doubled()
    everywhere = torch_modules.register_module_backward_hook(look)
    own = net.register_backward_hook(look)
    try:
        with hv.record() as trace:
            net(leaf(3.0)).backward()
    finally:
        everywhere.remove()
    rows = [trace.hook_rows[s.row.hook] for s in trace.firings if s.row.hook is not None]
    assert [(row.key, row.flags) for row in rows] == [(everywhere.id, ("global",)), (own.id, ())]


# -- the legacy hook


class Returns(nn.Module):
    """Makes two tensors, and returns them as ``pack`` likes."""

    def __init__(self, pack: Callable[[torch.Tensor, torch.Tensor], Any]) -> None:
        super().__init__()
        self.pack = pack

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> Any:
        u = a * 2
        v = b * 3  # the last node that this makes
        return self.pack(u, v)


def legacy_steps(net: nn.Module, end: Callable[[Any], torch.Tensor], a: torch.Tensor, b: torch.Tensor) -> list[hv.Step]:
    """The steps of a legacy hook on ``net``, in a pass that begins at what ``end`` makes of the output."""
    called: list[Any] = []
    net.register_backward_hook(lambda module, grad_input, grad_output: called.append(grad_input))
    with hv.record(net) as trace:
        end(net(a, b)).backward()
    found = [step for step in trace.steps if step.kind == "backward_hook"]
    assert [plain(step.before) for step in found] == [tuple(g if g is None else g.item() for g in c) for c in called]
    return found


FIRST: list[tuple[Any, Any, str]] = [
    (lambda u, v: (u, v), lambda out: (out[0], out[1]), "u"),
    (lambda u, v: (v, u), lambda out: (out[1], out[0]), "v"),
    (lambda u, v: [[u], v], lambda out: (out[0][0], out[1]), "u"),
    (lambda u, v: {"number": 1, "u": u, "v": v}, lambda out: (out["u"], out["v"]), "u"),
]
"""How a module returns u and v, how one takes them out again, and which of them stands first."""


@pytest.mark.usefixtures("_sort_forgotten")
@pytest.mark.filterwarnings("ignore:Using a non-full backward hook", "ignore:Using non-full backward hooks")
@pytest.mark.parametrize(("pack", "out", "first"), FIRST)
def test_a_legacy_hook_sits_on_the_node_of_the_first_output(pack: Any, out: Any, first: str) -> None:
    for end, fires in (("u", first == "u"), ("v", first == "v"), ("u + v", True)):
        net = Returns(pack)
        start = {"u": lambda got: out(got)[0], "v": lambda got: out(got)[1], "u + v": lambda got: sum(out(got))}[end]
        steps = legacy_steps(net, start, leaf(5.0), leaf(7.0))
        assert len(steps) == fires
        for step in steps:
            assert (step.on, plain(step.before)) == ("net", (2 if first == "u" else 3, None))
            assert "what the node of its first output sends" in step.sentence
            assert step.trace.ops[step.node] == "MulBackward0" and step.trace.owners[step.node] == step.row.call == 0


class Wraps(nn.Module):
    """Returns what a module inside it made, or what it was given."""

    def __init__(self, *inner: nn.Module) -> None:
        super().__init__()
        self.inner = nn.ModuleList(inner)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> Any:
        for module in self.inner:
            a = module(a)
        return a, b * 3


@pytest.mark.usefixtures("_sort_forgotten")
@pytest.mark.filterwarnings("ignore:Using a non-full backward hook", "ignore:Using non-full backward hooks")
def test_a_legacy_hook_on_a_container_belongs_to_its_call_and_leaves_the_node_where_it_was_made() -> None:
    (step,) = legacy_steps(Wraps(Doubled(), Doubled()), lambda out: out[0], leaf(5.0), leaf(7.0))
    assert step.on == "net" and step.row.call == 0
    assert step.trace.call(step.trace.owners[step.node]) == "net.inner.1"
    assert [step.trace.call(call) for call in range(len(step.trace.calls))] == ["net", "net.inner.0", "net.inner.1"]


@pytest.mark.usefixtures("_sort_forgotten")
@pytest.mark.filterwarnings("ignore:Using a non-full backward hook", "ignore:Using non-full backward hooks")
def test_a_legacy_hook_on_a_module_that_returns_what_it_was_given_belongs_to_its_call() -> None:
    (step,) = legacy_steps(Wraps(), lambda out: out[0], leaf(5.0) * 2, leaf(7.0))
    assert (step.on, step.row.call, len(step.trace.calls)) == ("net", 0, 1)
    assert step.node not in step.trace.owners


def refusing(*given: Any) -> Any:
    raise KeyError("x")


@pytest.mark.parametrize("kind", ["full_backward", "full_backward_pre"])
@pytest.mark.parametrize("hook", [refusing, lambda *given: (torch.ones(7),)])
def test_an_exception_in_a_backward_hook_is_on_the_module(kind: str, hook: Any) -> None:
    net = Doubled()
    getattr(net, f"register_{kind}_hook")(hook)
    with hv.record() as trace, pytest.raises((KeyError, RuntimeError)):
        net(leaf(3.0)).backward()
    last = trace.steps[-1]
    assert (last.kind, last.on) == ("exception", "net") and last.hook is not None


# -- forward hooks that are added without a sign


class Adds(nn.Module):
    """Puts forward hooks into dicts, past torch's functions, while it runs."""

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


@pytest.fixture
def everyone() -> Iterator[dict[Any, Any]]:
    """The forward hooks of all modules."""
    hooks: Any = torch_modules._global_forward_hooks
    yield hooks
    hooks.clear()
    torch_modules._global_forward_hooks_always_called.clear()


def added(net: Adds, *registered: Callable[..., Any]) -> list[tuple[Any, ...]]:
    """The steps of a call, in which the first hooks are known and the others are not."""
    for hook in registered:
        net.register_forward_hook(hook)
    net.register_forward_pre_hook(silent("before"))
    with hv.record() as trace:
        net(leaf(1.0))
    trace.figure()
    trace.player()
    assert trace.notes == []
    steps = [s for s in trace.steps if s.kind not in ("call", "forward_pre_hook")]
    told = [s.hook.name if s.hook else s.sentence if s.row.note else None for s in steps]
    return [(s.kind, name, plain(s.before), plain(s.after)) for s, name in zip(steps, told, strict=True)]


def unseen(hook: str) -> tuple[Any, ...]:
    sentence = f"{hook} was added while net ran, in a way that hookviz could not notice. It was not observed, and may"
    return "unobserved", f"{sentence} have changed the output of net.", None, None


def test_a_hook_added_behind_known_ones_is_seen() -> None:
    net = Adds(None, plus)
    assert added(net, times) == [
        ("forward", None, None, 2),
        ("forward_hook", "times", 2, 20),
        ("forward_hook", "plus", 20, 21),
    ]


def test_two_hooks_added_behind_known_ones_are_named() -> None:
    net = Adds(None, plus, times)
    assert added(net, times) == [
        ("forward", None, None, 2),
        ("forward_hook", "times", 2, 20),
        unseen("plus"),
        unseen("times"),
    ]


def test_hooks_added_where_none_was_are_named() -> None:
    net = Adds(None, plus, times)
    assert added(net) == [("forward", None, None, 30), unseen("plus"), unseen("times")]


def test_a_hook_of_all_modules_added_where_none_was_is_named(everyone: dict[Any, Any]) -> None:
    net = Adds(everyone, plus)
    assert added(net, times) == [
        ("forward", None, None, 3),
        unseen("plus"),
        ("forward_hook", "times", 3, 30),
    ]


@pytest.mark.parametrize("always", [False, True])
def test_a_last_hook_of_all_modules_is_told_from_the_modules_own(everyone: dict[Any, Any], always: bool) -> None:
    net = Adds(everyone, *([] if always else [plus]))
    torch_modules.register_module_forward_hook(plus if always else silent("look"), always_call=always)
    steps = added(net, times)
    assert steps[-2:] == [("forward_hook", "plus", 2, 3), ("forward_hook", "times", 3, 30)]


def test_a_hook_that_torch_does_not_run_is_not_named() -> None:
    net = Adds(None, plus)
    with hv.record() as trace:
        assert net(leaf(1.0)).item() == 2
    assert [s.kind for s in trace.steps] == ["call", "forward"]
