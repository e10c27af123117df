"""What other code puts on torch stays there, and nobody who looks at torch while something is recorded sees us."""

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from scenes import leaf
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.function import _HookMixin
from torch.profiler import profile
from torch.utils._python_dispatch import TorchDispatchMode

import hookviz as hv
from hookviz.recorder import call_tracker, torch_patches

# -- what other code puts on torch


@pytest.fixture(autouse=True)
def torch_as_it_was() -> Iterator[None]:
    """What the tests put on torch is taken off again, whatever a recording has made of it."""
    before = [(one.owner, one.name, vars(one.owner).get(one.name)) for one in torch_patches._REPLACEMENTS]
    yield
    for owner, name, theirs in before:
        if theirs is not None:
            setattr(owner, name, theirs)
        elif name in vars(owner):
            delattr(owner, name)


def wrapped(owner: Any, name: str, calls: list[str]) -> Callable[..., Any]:
    """A function that somebody puts over one of torch's, as a profiler or a tracker does; it is in place."""
    theirs = getattr(owner, name)

    def mine(*given: Any, **options: Any) -> Any:
        calls.append(name)
        return theirs(*given, **options)

    setattr(owner, name, staticmethod(mine) if owner is _HookMixin else mine)
    return mine


def work() -> list[float]:
    """Uses each of the functions that a recording replaces; what comes of it."""
    torch.manual_seed(0)
    net, scaler = nn.Linear(2, 1), torch.amp.GradScaler("cpu")
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    net.register_forward_hook(lambda module, args, output: output * 2)
    net.weight.register_post_accumulate_grad_hook(lambda weight: None)
    hidden = net(torch.ones(1, 2))
    hidden.register_hook(lambda grad: grad * 3)
    hidden.retain_grad()
    hidden.grad_fn.register_hook(lambda *grads: None)
    scaler.scale(hidden.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return [*net.weight.flatten().tolist(), hidden.grad.item()]


FUNCTIONS = [
    (one.owner, one.name)
    for one in torch_patches._REPLACEMENTS
    if callable(getattr(one.owner, one.name, None)) and one.owner is not torch.autograd.graph
]


@pytest.mark.parametrize(("owner", "name"), FUNCTIONS, ids=lambda x: getattr(x, "__name__", x))
def test_what_is_put_on_torch_in_the_block_stays(owner: Any, name: str) -> None:
    calls: list[str] = []
    with hv.record():
        mine = wrapped(owner, name, calls)
        assert getattr(owner, name) is mine
        inside = work()
    assert getattr(owner, name) is mine
    calls.clear()
    assert work() == inside
    alone = list(calls)
    calls.clear()
    with hv.record() as trace:
        assert work() == inside
    assert calls == alone
    assert getattr(owner, name) is mine
    assert [step.kind for step in trace.firings] == [step.kind for step in recorded().firings]


def recorded() -> hv.Trace:
    with hv.record() as trace:
        work()
    return trace


@pytest.mark.parametrize(("owner", "name"), FUNCTIONS, ids=lambda x: getattr(x, "__name__", x))
def test_what_was_put_on_torch_before_is_called_and_stays(owner: Any, name: str) -> None:
    plain, calls = recorded(), []
    mine = wrapped(owner, name, calls)
    work()
    alone = list(calls)
    calls.clear()
    trace = recorded()
    assert calls == alone
    assert getattr(owner, name) is mine
    assert [step.sentence for step in trace.steps] == [step.sentence for step in plain.steps]


def test_a_function_of_ours_that_somebody_puts_back_later_only_passes_on_until_the_next_recording() -> None:
    theirs = torch.Tensor.register_hook
    with hv.record():
        ours = torch.Tensor.register_hook
        torch.Tensor.register_hook = wrapped(torch.Tensor, "register_hook", [])  # type: ignore[method-assign]
    torch.Tensor.register_hook = ours  # type: ignore[method-assign]
    hidden = leaf(2.0) * 3
    hidden.register_hook(lambda grad: grad * 2)
    assert torch.Tensor.register_hook is ours and len(hv.hooks(hidden)) == 1
    with hv.record() as trace:
        hidden.backward()
    assert torch.Tensor.register_hook is theirs and len(trace.firings) == 1


# -- who looks at torch


class Sees(TorchDispatchMode):
    """Notes each operation that is carried out."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operations.append(str(function))
        return function(*args, **(kwargs or {}))


def many_numbers() -> None:
    net = nn.Sequential(nn.Linear(40, 100), nn.BatchNorm1d(100), nn.ReLU(), nn.LayerNorm(100), nn.Softmax(1))
    net[0].register_full_backward_hook(lambda *given: None)
    (net(torch.ones(3, 40, requires_grad=True)) ** 2).exp().sum().backward()


def gradient_of_a_gradient() -> None:
    x = torch.ones(3, requires_grad=True)
    (gradient,) = torch.autograd.grad(x.exp().sum(), x, create_graph=True)
    gradient.sigmoid().sum().backward(inputs=[x])


@pytest.mark.parametrize("program", [many_numbers, gradient_of_a_gradient, work])
@pytest.mark.parametrize("around", [False, True])
def test_a_dispatch_mode_sees_the_operations_of_the_program_alone(program: Callable[[], Any], around: bool) -> None:
    seen, recorded = Sees(), Sees()
    with seen:
        program()
    if around:
        with recorded, hv.record():
            program()
    else:
        with hv.record(), recorded:
            program()
    assert recorded.operations == seen.operations


@pytest.mark.parametrize("program", [many_numbers, gradient_of_a_gradient, work])
@pytest.mark.parametrize("around", [False, True])
def test_a_profiler_sees_the_operations_of_the_program_alone(program: Callable[[], Any], around: bool) -> None:
    def profiled(recording: AbstractContextManager[Any]) -> list[str]:
        profiler = profile()
        first, second = (profiler, recording) if around else (recording, profiler)
        with first, second:
            program()
        return [event.name for event in profiler.events() or ()]

    assert profiled(hv.record()) == profiled(nullcontext())


def test_a_dispatch_mode_does_not_see_that_hooks_are_listed() -> None:
    with Sees() as seen:
        hidden = leaf(2.0).exp()
        hidden.register_hook(lambda grad: grad)
        count = len(seen.operations)
        assert len(hv.hooks(hidden)) == 1
        hv.draw(hidden)
    assert len(seen.operations) == count


def test_the_metadata_of_a_node_stays_empty() -> None:
    found = []
    net, scaler = nn.Linear(2, 2), torch.amp.GradScaler("cpu")
    with hv.record(net):
        hidden = net(torch.ones(1, 2))
        hidden.register_hook(lambda grad: found.append(dict(hidden.grad_fn.metadata)))
        loss = scaler.scale(hidden.sum())
        found += [dict(tensor.grad_fn.metadata) for tensor in (hidden, loss)]
        loss.backward()
    assert found == [{}, {}, {}]


def test_the_address_of_a_fake_tensor_is_not_asked_for() -> None:
    with FakeTensorMode(), warnings.catch_warnings():
        warnings.simplefilter("error")
        net = nn.Sequential(nn.Linear(4, 100), nn.BatchNorm1d(100), nn.Linear(100, 1))
        with hv.record(net) as trace:
            hidden = net(torch.randn(3, 4, requires_grad=True)[1:])
            hidden.register_hook(lambda grad: grad.mul_(2))
            hidden.sum().backward()
    assert trace.notes == []
    assert [(step.hook.kind, step.effect) for step in trace.firings if step.hook] == [("tensor_hook", "edited")]
    assert "FakeTensor" in trace.steps[0].sentence


def test_many_gradients_can_be_computed_at_once() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with hv.record() as trace:
            y = x * x
            (rows,) = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
            torch.autograd.functional.jacobian(lambda x: (x * x).sum(), x.detach(), vectorize=True)
    assert rows.tolist() == [[2, 0, 0], [0, 4, 0], [0, 0, 6]]
    assert [step.kind for step in trace.steps][:3] == ["seed", "compute", "arrive"]
    assert not trace.notes


@pytest.mark.parametrize("recorded", [False, True])
def test_a_hook_put_behind_a_node_that_unpacks_is_given_what_torch_has_let_go_of(recorded: bool) -> None:
    """torch keeps a node's gradients for the hooks that are behind it when it begins to compute, as our observer is."""
    given: list[Any] = []

    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        node = torch._C._current_autograd_node()
        node.register_hook(lambda sent, received: given.append(received))
        return tensor

    with hv.record() if recorded else nullcontext(), torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        sum(torch.var_mean(torch.eye(3, requires_grad=True), dim=0)).sum().backward()
    (received,) = given
    assert len(received) == (2 if recorded else 0)


@pytest.mark.parametrize("moment", ["before a pass", "after a pass", "between forward and backward"])
def test_tensors_of_a_recording_can_change_places(moment: str) -> None:
    """As ``module.to`` does it with parameters of a subclass; torch refuses where somebody refers to one weakly."""

    def run() -> tuple[list[torch.Tensor], str]:
        torch.manual_seed(0)
        net, inner = nn.Linear(2, 2), nn.Identity()
        try:
            inner(net.weight)
            loss = None if moment == "before a pass" else net(torch.ones(1, 2)).sum()
            if loss is not None and moment == "after a pass":
                loss.backward()
            net.double()
            if loss is not None and moment != "after a pass":
                loss.backward()
            net(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
        except RuntimeError as error:
            return [], str(error)
        return [net.weight.grad, net.bias.grad], ""

    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        plain, refused = run()
        with hv.record() as trace:
            recorded, said = run()
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert said == refused
    assert all(torch.equal(*pair) for pair in zip(plain, recorded, strict=True))
    leaves = {row.node: row.name for row in trace.tensors if row.leaf}
    if refused:  # the pass goes to the tensors of before, which nobody holds
        assert list(leaves.values()) == ["", ""]
    else:
        assert list(leaves.values()) == ["net.weight", "net.bias"] * (2 if moment == "after a pass" else 1)


# -- modules that are not like others


@dataclasses.dataclass
class Settings(nn.Module):
    """As a dataclass it has ``__eq__``, and so no ``__hash__``: torch's own ``named_modules`` refuses it."""

    factor: float = 2.0

    def __post_init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) * self.factor


@pytest.mark.parametrize("given", [False, True])
def test_a_module_that_cannot_be_hashed_is_recorded_as_any_other(given: bool) -> None:
    net = nn.Sequential(Settings(), nn.Linear(1, 1))
    net[0].inner.register_forward_hook(lambda *_: None)
    with pytest.raises(TypeError, match="unhashable"):
        list(net.named_modules())
    with hv.record(*[net] * given, **{"only": "*"} if given else {}) as trace:
        net(torch.ones(1, 1)).sum().backward()
    assert {trace.call(i) for i in range(len(trace.calls))} == {"net", "net.0", "net.0.inner", "net.1"}
    assert {"net.0.inner.weight", "net.1.bias"} <= {row.name for row in trace.tensors}
    assert not [step for step in trace.steps if step.kind == "unobserved"]
    assert [hook.on for hook in hv.hooks(net)] == ["net.0.inner"]


def test_a_module_that_cannot_be_observed_is_named_once_and_the_rest_is_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net, arguments = nn.Sequential(nn.ReLU(), nn.Linear(1, 1)), call_tracker.labelled_arguments

    def fails(module: nn.Module, *given: Any) -> Any:
        if isinstance(module, nn.ReLU):
            raise OSError("out of order")
        return arguments(module, *given)

    monkeypatch.setattr(call_tracker, "labelled_arguments", fails)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with hv.record(net) as trace:
            for _ in range(3):
                net(torch.ones(1, 1)).sum().backward()
    assert [str(warning.message) for warning in caught] == trace.notes
    assert trace.notes == [
        "A call of net.0 could not be observed (OSError: out of order). The call itself ran unchanged."
    ]
    assert len([step for step in trace.steps if step.kind == "call" and step.on.startswith("net.1")]) == 3
