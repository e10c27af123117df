"""What a program sees of the stack it runs on is the same, recorded or not: nothing of ours stands between."""

import inspect
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import CodeType, FunctionType
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.graph import _engine_run_backward

import hookviz as hv
from hookviz.recorder import instrumentation
from hookviz.recorder.recursion_limit import EXTRA_CALLS

Watch = Callable[[], AbstractContextManager[Any]]
Act = Callable[[], None]


class Cube(torch.autograd.Function):
    """Its backward is Python, in the middle of a pass."""

    act: Act = staticmethod(lambda: None)

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        Cube.act()
        return 3 * ctx.saved_tensors[0] ** 2 * grad


class Inner(nn.Module):
    def __init__(self, act: Act) -> None:
        super().__init__()
        self.act = act

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.act()
        return x * 2


def forward(act: Act) -> None:
    nn.Sequential(nn.Sequential(Inner(act)))(torch.ones(1))


def hooked(place: str) -> Callable[[Act], None]:
    """A program in which ``act`` runs in a hook of this kind."""

    def run(act: Act) -> None:
        def hook(*_: Any) -> None:
            act()

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


def in_a_function(act: Act) -> None:
    x = torch.ones(1, requires_grad=True)
    y = Cube.apply(x)
    Cube.act = staticmethod(act)
    torch.autograd.grad(y, x)


KINDS = ("forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook")
KINDS += ("tensor_hook", "node_hook", "post_accumulate_hook")
PLACES: dict[str, Callable[[Act], None]] = {
    "forward": forward,
    "function": in_a_function,
    **{place: hooked(place) for place in KINDS},
}
everywhere = pytest.mark.parametrize("place", PLACES)


def both(see: Callable[[Watch], Any]) -> list[Any]:
    """What is seen plainly, and recorded."""
    return [see(watch) for watch in (nullcontext, hv.record)]


@everywhere
def test_stacks_are_the_same(place: str) -> None:
    def see(watch: Watch) -> list[Any]:
        seen: list[Any] = []
        with watch():
            PLACES[place](lambda: seen.extend((frame[1:], frame.positions) for frame in inspect.stack(0)))
        return seen

    plain, recorded = both(see)
    assert len(plain) > 10
    assert recorded == plain


@everywhere
def test_a_warning_is_of_the_same_line_and_comes_as_often(place: str) -> None:
    def warn() -> None:
        for level in range(1, 12):
            warnings.warn(f"look here, {level}", stacklevel=level)

    def see(watch: Watch) -> list[Any]:
        getattr(nn.modules.module, "__warningregistry__", {}).clear()
        with warnings.catch_warnings(record=True, action="default") as caught, watch():
            for _ in range(2):
                PLACES[place](warn)
        return [(one.filename, one.lineno, str(one.message)) for one in caught]

    plain, recorded = both(see)
    assert len(plain) >= 11
    assert recorded == plain


@everywhere
def test_a_frame_has_the_code_the_globals_and_the_names_of_torchs_function(place: str) -> None:
    seen: list[Any] = []

    def look() -> None:
        frame: Any = sys._getframe()
        while frame is not None:
            seen.append((frame.f_code, frame.f_globals))
            frame = frame.f_back

    with hv.record():
        PLACES[place](look)
        functions: tuple[Any, ...] = (nn.Module._wrapped_call_impl, _engine_run_backward)
        own = {function.__qualname__: (function.__code__, function.__globals__) for function in functions}
        found = [entry for entry in seen if entry[0].co_qualname in own]
        assert found and all(entry == own[entry[0].co_qualname] for entry in found)
    assert not [code for code, _ in seen if "hookviz/recorder" in code.co_filename]


@everywhere
def test_tracebacks_are_the_same_to_the_letter(place: str) -> None:
    def see(watch: Watch) -> str:
        def fail() -> None:
            raise ValueError("mine")

        with watch():
            try:
                PLACES[place](fail)
            except ValueError:
                return traceback.format_exc()
        return ""

    plain, recorded = both(see)
    assert "mine" in plain
    assert recorded == plain


def test_torchs_own_errors_have_the_same_tracebacks() -> None:
    def see(watch: Watch) -> list[str]:
        x = torch.ones(1, requires_grad=True)
        y = x * 2
        y.backward()
        wrong: list[Callable[[], Any]] = [y.backward, lambda: nn.Linear(2, 2)(torch.ones(3)), nn.Linear(1, 1)]
        texts = []
        for act in wrong:
            with watch():
                try:
                    act()
                except (RuntimeError, TypeError):
                    texts.append(traceback.format_exc())
        return texts

    plain, recorded = both(see)
    assert len(plain) == 3
    assert recorded == plain


def test_functions_are_the_ones_that_they_were() -> None:
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
        kept = ("co_name", "co_qualname", "co_filename", "co_firstlineno", "co_argcount", "co_freevars")
        codes = [function.__code__ for function in functions]
    for function, code in zip(functions, codes, strict=True):
        assert [getattr(code, name) for name in kept] == [getattr(function.__code__, name) for name in kept]


@pytest.mark.parametrize("before", [True, False])
def test_what_somebody_puts_over_a_modules_call_or_the_engine_stays_and_is_called(before: bool) -> None:
    called: list[str] = []

    def over(function: Any) -> Any:
        def mine(*given: Any, **options: Any) -> Any:
            called.append(function.__name__)
            return function(*given, **options)

        return mine

    def put(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(nn.Module, "__call__", over(nn.Module.__call__))
        patch.setattr(torch.autograd.graph, "_engine_run_backward", over(_engine_run_backward))
        patch.setattr(torch.autograd, "_engine_run_backward", torch.autograd.graph._engine_run_backward)

    net = nn.Linear(1, 1)
    with pytest.MonkeyPatch.context() as patch:
        if before:
            put(patch)
        with hv.record() as trace:
            if not before:
                put(patch)
            net(torch.ones(1)).backward()
        net(torch.ones(1)).backward()
        assert called == ["_wrapped_call_impl", "_engine_run_backward"] * 2
    assert [step.kind for step in trace.steps][:2] == ["call", "forward"] and len(trace.roots) == 1


# -- as deep as a program can go


def nested(depth: int, hook: bool) -> nn.Module:
    module: nn.Module = nn.Identity()
    for _ in range(depth):
        module = nn.Sequential(module)
        if hook:
            module.register_forward_hook(lambda *_: None)
    return module


def deepest(works: Callable[[int], Any], low: int, high: int) -> int:
    """The largest number for which it works."""
    while high - low > 1:
        middle = (low + high) // 2
        try:
            works(middle)
            low = middle
        except RecursionError:
            high = middle
    return low


@pytest.mark.parametrize("hook", [False, True])
def test_as_many_modules_may_be_nested(hook: bool) -> None:
    limit = sys.getrecursionlimit()
    traces: dict[int, hv.Trace] = {}

    def recorded(depth: int) -> None:
        with hv.record() as traces[depth]:
            nested(depth, hook)(torch.ones(1))
        assert [step.kind for step in traces[depth].steps].count("forward") == depth + 1

    plain = deepest(lambda depth: nested(depth, hook)(torch.ones(1)), 50, limit)
    assert plain - 2 <= deepest(recorded, 50, limit) <= plain
    assert sys.getrecursionlimit() == limit
    assert all(not trace.notes or "RecursionError" in trace.notes[0] for trace in traces.values())


@pytest.mark.parametrize("hook", [False, True])
def test_a_pass_may_begin_as_deep(hook: bool) -> None:
    def works(watch: Watch) -> Callable[[int], None]:
        def run(depth: int) -> None:
            x = torch.ones(1, requires_grad=True)
            y = x * 2
            if hook:
                y.register_hook(lambda grad: grad * 2)
            z = y * 3
            with watch() as trace:
                down(depth, z.backward)
            assert x.grad is not None and x.grad.item() == 6 * (1 + hook)
            assert trace is None or trace.steps[-1].kind == "accumulate"

        return run

    limit = sys.getrecursionlimit()
    plain = deepest(works(nullcontext), 10, limit + EXTRA_CALLS)
    # A hook of the program's may use the room that ours have in a pass.
    assert plain - 2 <= deepest(works(hv.record), 10, limit + EXTRA_CALLS) <= plain + 2
    assert sys.getrecursionlimit() == limit


def down(depth: int, act: Act) -> None:
    """Call ``act`` with so many calls around it."""
    if depth:
        down(depth - 1, act)
    else:
        act()


# -- where it cannot be done so


def test_without_its_source_a_function_runs_in_a_second_frame() -> None:
    told: list[Any] = []

    class Watcher:
        def enter(self, *given: Any) -> str:
            told.append(given)
            return "seen"

        def returning(self, seen: str, result: Any) -> Any:
            told.append((seen, result))
            return result

        def fail(self, seen: str, error: BaseException) -> None:
            told.append((seen, type(error)))

        def leave(self, seen: str) -> None:
            told.append((seen, "over"))

    space: dict[str, Any] = {}
    exec(compile("def half(x, *more, by=2, **rest):\n    return x / by", "<no file>", "exec"), space)
    half: FunctionType = space["half"]
    code: CodeType = half.__code__
    observed = instrumentation.Instrumented(half, Watcher())
    observed.install()
    assert half(8) == 4
    with pytest.raises(ZeroDivisionError):
        half(1, by=0)
    observed.restore()
    assert half(8) == 4 and half.__code__ is code
    assert told == [
        ((8,), {}), ("seen", 4.0), ("seen", "over"),
        ((1,), {"by": 0}), ("seen", ZeroDivisionError), ("seen", "over"),
    ]  # fmt: skip


# -- what reads torch's code


@pytest.mark.slow
def test_export_works_inside_a_recording() -> None:
    program = """
import warnings
warnings.simplefilter("ignore")
import torch, hookviz as hv
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
with hv.record() as trace:
    made = torch.export.export(net, (torch.ones(1, 2),), strict=True).module()
    ours = net(torch.ones(1, 2))
assert torch.equal(made(torch.ones(1, 2)), ours)
assert [step.on for step in trace.steps if step.kind == "forward"][-3:] == ["net.0", "net.1", "net"], trace.steps
"""
    subprocess.run([sys.executable, "-c", program], check=True)
