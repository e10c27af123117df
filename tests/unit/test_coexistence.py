"""Patches of torch by other code survive a recording, and dispatch modes and profilers do not see the recorder."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from scenes import leaf
from torch import nn
from torch.autograd.function import _HookMixin
from torch.utils._python_dispatch import TorchDispatchMode

import hookviz as hv
from hookviz.recorder import torch_patches

# -- patches of torch by other code


@pytest.fixture(autouse=True)
def restore_patched_functions() -> Iterator[None]:
    """Restore the functions of torch that a test has patched."""
    before = [
        (replacement.owner, replacement.name, vars(replacement.owner).get(replacement.name))
        for replacement in torch_patches._REPLACEMENTS
    ]
    yield
    for owner, name, original in before:
        if original is not None:
            setattr(owner, name, original)
        elif name in vars(owner):
            delattr(owner, name)


def patch_function(owner: Any, name: str, calls: list[str]) -> Callable[..., Any]:
    """Patch a function of torch, as a profiler or a tracker does, and return the wrapper, which logs its calls."""
    original = getattr(owner, name)

    def wrapper(*given: Any, **options: Any) -> Any:
        calls.append(name)
        return original(*given, **options)

    setattr(owner, name, staticmethod(wrapper) if owner is _HookMixin else wrapper)
    return wrapper


def train_once() -> list[float]:
    """Train one step with each of the functions that a recording replaces; return the resulting numbers."""
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
    (replacement.owner, replacement.name)
    for replacement in torch_patches._REPLACEMENTS
    if callable(getattr(replacement.owner, replacement.name, None)) and replacement.owner is not torch.autograd.graph
]


def record_training() -> hv.Trace:
    with hv.record() as trace:
        train_once()
    return trace


@pytest.mark.parametrize(("owner", "name"), FUNCTIONS, ids=lambda x: getattr(x, "__name__", x))
def test_a_function_patched_during_a_recording_stays_patched(owner: Any, name: str) -> None:
    plain, calls = record_training(), list[str]()
    with hv.record():
        wrapper = patch_function(owner, name, calls)
        assert getattr(owner, name) is wrapper
        result = train_once()
    assert getattr(owner, name) is wrapper
    calls.clear()
    assert train_once() == result
    expected_calls = list(calls)
    calls.clear()
    trace = record_training()
    assert calls == expected_calls
    assert getattr(owner, name) is wrapper
    assert [step.sentence for step in trace.steps] == [step.sentence for step in plain.steps]


# -- observers of torch


class OperationLogger(TorchDispatchMode):
    """Logs the name of each operation that runs."""

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


@pytest.mark.parametrize(("program", "observer_outside"), [(many_numbers, True), (train_once, False)])
def test_a_dispatch_mode_sees_only_operations_of_the_program(
    program: Callable[[], Any], observer_outside: bool
) -> None:
    expected, actual = OperationLogger(), OperationLogger()
    with expected:
        program()
    contexts = (actual, hv.record()) if observer_outside else (hv.record(), actual)
    with contexts[0], contexts[1]:
        program()
    assert actual.operations == expected.operations


def test_listing_hooks_and_drawing_run_no_torch_operations() -> None:
    with OperationLogger() as logger:
        hidden = leaf(2.0).exp()
        hidden.register_hook(lambda grad: grad)
        count = len(logger.operations)
        assert len(hv.hooks(hidden)) == 1
        hv.draw(hidden)
    assert len(logger.operations) == count


def test_swapping_recorded_tensors_works_as_without_recording() -> None:
    """``module.to`` swaps parameters of a subclass this way; torch refuses if a weak reference to one exists."""
    net = nn.Linear(2, 2)
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        with hv.record() as trace:
            net(torch.ones(1, 2)).sum().backward()
            net.double()
            net(torch.ones(1, 2, dtype=torch.float64)).sum().backward()
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
    assert net.bias.grad.tolist() == [2, 2]
    leaves = {row.node: row.name for row in trace._data.tensors if row.leaf}
    assert list(leaves.values()) == ["net.weight", "net.bias"] * 2
