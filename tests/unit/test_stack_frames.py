"""Recording does not change the call stack that a program sees: hookviz adds no frames."""

import inspect
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.graph import _engine_run_backward

import hookviz as hv

Context = Callable[[], AbstractContextManager[Any]]
Action = Callable[[], None]


class Cube(torch.autograd.Function):
    """A function whose backward calls ``Cube.action``."""

    action: Action = staticmethod(lambda: None)

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        Cube.action()
        return 3 * ctx.saved_tensors[0] ** 2 * grad


class Inner(nn.Module):
    def __init__(self, action: Action) -> None:
        super().__init__()
        self.action = action

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.action()
        return x * 2


def forward(action: Action) -> None:
    nn.Sequential(nn.Sequential(Inner(action)))(torch.ones(1))


def run_in_hook(place: str) -> Callable[[Action], None]:
    """A program in which ``action`` runs in a hook of kind ``place``."""

    def run(action: Action) -> None:
        def hook(*_: Any) -> None:
            action()

        net, x = nn.Sequential(nn.Linear(1, 1), nn.ReLU()), torch.ones(1, 1, requires_grad=True)
        if place in ("forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook"):
            getattr(net[0], f"register_{place}")(hook)
        y = net(x)
        if place == "tensor_hook":
            y.register_hook(hook)
        if place == "node_hook":
            y.grad_fn.register_hook(hook)
        if place == "post_accumulate_hook":
            net[0].weight.register_post_accumulate_grad_hook(hook)
        y.sum().backward()

    return run


def run_in_backward_of_function(action: Action) -> None:
    x = torch.ones(1, requires_grad=True)
    y = Cube.apply(x)
    Cube.action = staticmethod(action)
    torch.autograd.grad(y, x)


KINDS = ("forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook")
KINDS += ("tensor_hook", "node_hook", "post_accumulate_hook")
PLACES: dict[str, Callable[[Action], None]] = {
    "forward": forward,
    "function": run_in_backward_of_function,
    **{place: run_in_hook(place) for place in KINDS},
}


def plain_and_recorded(observe: Callable[[Context], Any]) -> list[Any]:
    """The results of ``observe`` without and with a recording."""
    return [observe(context) for context in (nullcontext, hv.record)]


@pytest.mark.parametrize("place", PLACES)
def test_recording_does_not_change_the_stack(place: str) -> None:
    def observe(context: Context) -> tuple[list[Any], str]:
        frames: list[Any] = []

        def fail() -> None:
            frames.extend((frame[1:], frame.positions) for frame in inspect.stack(0))
            raise ValueError("mine")

        with context():
            try:
                PLACES[place](fail)
            except ValueError:
                return frames, traceback.format_exc()
        return frames, ""

    (plain, plain_traceback), (recorded, recorded_traceback) = plain_and_recorded(observe)
    assert len(plain) > 10 and "mine" in plain_traceback
    assert recorded == plain
    assert recorded_traceback == plain_traceback


def test_recording_does_not_change_line_and_count_of_warnings() -> None:
    def warn() -> None:
        for level in range(1, 12):
            warnings.warn(f"look here, {level}", stacklevel=level)

    def observe(context: Context) -> list[Any]:
        getattr(nn.modules.module, "__warningregistry__", {}).clear()
        with warnings.catch_warnings(record=True, action="default") as caught, context():
            for _ in range(2):
                PLACES["full_backward_hook"](warn)
        return [(warning.filename, warning.lineno, str(warning.message)) for warning in caught]

    plain, recorded = plain_and_recorded(observe)
    assert len(plain) >= 11
    assert recorded == plain


def test_recording_does_not_change_tracebacks_of_torchs_errors() -> None:
    def observe(context: Context) -> list[str]:
        x = torch.ones(1, requires_grad=True)
        y = x * 2
        y.backward()
        failing_actions: list[Callable[[], Any]] = [y.backward, lambda: nn.Linear(2, 2)(torch.ones(3)), nn.Linear(1, 1)]
        texts = []
        for action in failing_actions:
            with context():
                try:
                    action()
                except (RuntimeError, TypeError):
                    texts.append(traceback.format_exc())
        return texts

    plain, recorded = plain_and_recorded(observe)
    assert len(plain) == 3
    assert recorded == plain


def test_instrumented_functions_keep_identity_attributes_and_source() -> None:
    names = ("__name__", "__qualname__", "__module__", "__defaults__", "__kwdefaults__", "__doc__", "__dict__")
    code_names = ("co_name", "co_qualname", "co_filename", "co_firstlineno", "co_argcount", "co_freevars")
    functions: tuple[Any, ...] = (nn.Module._wrapped_call_impl, _engine_run_backward)

    def describe() -> list[Any]:
        attributes = [getattr(function, name) for function in functions for name in names]
        attributes += [getattr(function.__code__, name) for function in functions for name in code_names]
        return [*attributes, inspect.getsource(_engine_run_backward), *map(inspect.signature, functions)]

    before = describe()
    with hv.record():
        assert nn.Module.__call__ is nn.Module._wrapped_call_impl is functions[0]
        assert torch.autograd._engine_run_backward is torch.autograd.graph._engine_run_backward is functions[1]
        assert describe() == before


# -- recursion depth


def run_nested(depth: int) -> None:
    module: nn.Module = nn.Identity()
    for _ in range(depth):
        module = nn.Sequential(module)
        module.register_forward_hook(lambda *_: None)
    module(torch.ones(1))


def find_depth() -> int:
    """Find the deepest nesting of modules that runs within Python's limit."""
    low, high = 50, sys.getrecursionlimit()
    while high - low > 1:
        middle = (low + high) // 2
        try:
            run_nested(middle)
            low = middle
        except RecursionError:
            high = middle
    return low


NEEDED_CALLS = 60
"""How many calls of Python's limit hookviz needs for itself, at the most."""


def test_recording_needs_few_calls_of_the_recursion_limit() -> None:
    limit, depth = sys.getrecursionlimit(), find_depth()
    with hv.record() as trace:
        run_nested(depth - NEEDED_CALLS)
    assert [step.kind for step in trace.steps].count("forward") == depth - NEEDED_CALLS + 1
    assert trace.notes == []
    with pytest.raises(RecursionError), hv.record():
        run_nested(depth + 1)
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize(
    ("cuts", "place", "count"), [(True, "tensor_hook", 1), (True, "forward_hook", 0), (False, "tensor_hook", 0)]
)
def test_following_ops_puts_one_frame_under_what_runs_inside_an_op(cuts: bool, place: str, count: int) -> None:
    found: list[int] = []
    package = hv.__file__.removesuffix("__init__.py")
    with hv.record(cuts=cuts):
        run_in_hook(place)(lambda: found.append(sum(one.filename.startswith(package) for one in inspect.stack())))
    assert found == [count]
