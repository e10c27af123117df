"""Recording does not change the call stack that a program sees: hookviz adds no frames."""

import inspect
import subprocess
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
at_every_place = pytest.mark.parametrize("place", PLACES)


def plain_and_recorded(observe: Callable[[Context], Any]) -> list[Any]:
    """The results of ``observe`` without and with a recording."""
    return [observe(context) for context in (nullcontext, hv.record)]


@at_every_place
def test_recording_does_not_change_the_stack(place: str) -> None:
    def observe(context: Context) -> list[Any]:
        frames: list[Any] = []
        with context():
            PLACES[place](lambda: frames.extend((frame[1:], frame.positions) for frame in inspect.stack(0)))
        return frames

    plain, recorded = plain_and_recorded(observe)
    assert len(plain) > 10
    assert recorded == plain


@pytest.mark.parametrize("place", ["forward", "full_backward_hook", "tensor_hook"])
def test_recording_does_not_change_line_and_count_of_warnings(place: str) -> None:
    def warn() -> None:
        for level in range(1, 12):
            warnings.warn(f"look here, {level}", stacklevel=level)

    def observe(context: Context) -> list[Any]:
        getattr(nn.modules.module, "__warningregistry__", {}).clear()
        with warnings.catch_warnings(record=True, action="default") as caught, context():
            for _ in range(2):
                PLACES[place](warn)
        return [(warning.filename, warning.lineno, str(warning.message)) for warning in caught]

    plain, recorded = plain_and_recorded(observe)
    assert len(plain) >= 11
    assert recorded == plain


@at_every_place
def test_recording_does_not_change_tracebacks(place: str) -> None:
    def observe(context: Context) -> str:
        def fail() -> None:
            raise ValueError("mine")

        with context():
            try:
                PLACES[place](fail)
            except ValueError:
                return traceback.format_exc()
        return ""

    plain, recorded = plain_and_recorded(observe)
    assert "mine" in plain
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
    functions: tuple[Any, ...] = (nn.Module._wrapped_call_impl, _engine_run_backward)
    before = [[getattr(function, name) for name in names] for function in functions]
    source = inspect.getsource(_engine_run_backward)
    with hv.record():
        assert nn.Module.__call__ is nn.Module._wrapped_call_impl is functions[0]
        assert torch.autograd._engine_run_backward is torch.autograd.graph._engine_run_backward is functions[1]
        assert [[getattr(function, name) for name in names] for function in functions] == before
        assert inspect.getsource(_engine_run_backward) == source
        assert [inspect.signature(function) for function in functions]
        code_attributes = ("co_name", "co_qualname", "co_filename", "co_firstlineno", "co_argcount", "co_freevars")
        codes = [function.__code__ for function in functions]
    for function, code in zip(functions, codes, strict=True):
        assert [getattr(code, name) for name in code_attributes] == [
            getattr(function.__code__, name) for name in code_attributes
        ]


# -- recursion depth


def nested_module(depth: int, hook: bool) -> nn.Module:
    module: nn.Module = nn.Identity()
    for _ in range(depth):
        module = nn.Sequential(module)
        if hook:
            module.register_forward_hook(lambda *_: None)
    return module


def deepest(succeeds: Callable[[int], Any], low: int, high: int) -> int:
    """The largest number from ``low`` to below ``high`` for which ``succeeds`` raises no RecursionError."""
    while high - low > 1:
        middle = (low + high) // 2
        try:
            succeeds(middle)
            low = middle
        except RecursionError:
            high = middle
    return low


NEEDED_CALLS = 60
"""How many calls of Python's limit hookviz needs for itself, at the most."""


@pytest.mark.parametrize("hook", [False, True])
def test_recording_needs_few_calls_of_the_recursion_limit(hook: bool) -> None:
    traces: dict[int, hv.Trace] = {}

    def run_recorded(depth: int) -> None:
        with hv.record() as traces[depth]:
            nested_module(depth, hook)(torch.ones(1))

    limit = sys.getrecursionlimit()
    plain_depth = deepest(lambda depth: nested_module(depth, hook)(torch.ones(1)), 50, limit)
    recorded_depth = deepest(run_recorded, 50, limit)
    assert plain_depth - NEEDED_CALLS <= recorded_depth <= plain_depth
    complete = [depth for depth, trace in traces.items() if depth <= recorded_depth and not trace.notes]
    assert [step.kind for step in traces[max(complete)].steps].count("forward") == max(complete) + 1
    assert sys.getrecursionlimit() == limit


# -- torch.export


@pytest.mark.slow
def test_torch_export_works_inside_a_recording() -> None:
    program = """
import warnings
warnings.simplefilter("ignore")
import torch, hookviz as hv
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
with hv.record(net) as trace:
    made = torch.export.export(net, (torch.ones(1, 2),), strict=True).module()
    ours = net(torch.ones(1, 2))
assert torch.equal(made(torch.ones(1, 2)), ours)
assert [step.on for step in trace.steps if step.kind == "forward"][-3:] == ["net.0", "net.1", "net"], trace.steps
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("cuts", "place", "count"), [(True, "tensor_hook", 1), (True, "forward_hook", 0), (False, "tensor_hook", 0)]
)
def test_following_ops_puts_one_frame_under_what_runs_inside_an_op(cuts: bool, place: str, count: int) -> None:
    found: list[int] = []
    package = hv.__file__.removesuffix("__init__.py")
    with hv.record(cuts=cuts):
        run_in_hook(place)(lambda: found.append(sum(one.filename.startswith(package) for one in inspect.stack())))
    assert found == [count]
