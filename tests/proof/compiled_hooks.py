"""Runs a hook of each kind in compiled code, and prints whether torch calls it, and whether hookviz sees it.

``python -m tests.proof.compiled_hooks eager aot_eager inductor`` prints the table of ``site/recording.md``.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import groupby, product
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.modules.module as global_hooks
from torch import nn

import hookviz as hv

CALLS = 2
"""How often each program calls its model after the hook is registered."""

Place = Literal["outer", "inner"]
Register = Callable[[nn.Module, Callable[..., None]], Any]


class Inner(nn.Module):
    """A part of a model; its forward registers a hook on what it computes, if it was given one."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([2.0]))
        self.tensor_hook: Callable[..., None] | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x * self.weight
        if self.tensor_hook is not None:
            h.register_hook(self.tensor_hook)
        return h.sin()


class Net(Inner):
    """A model with one part."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(super().forward(x))


def _give_tensor_hook(module: nn.Module, hook: Callable[..., None]) -> None:
    module.tensor_hook = hook  # type: ignore[assignment]


KINDS: dict[str, Register] = {
    "forward pre-hook": lambda module, hook: module.register_forward_pre_hook(hook),
    "forward hook": lambda module, hook: module.register_forward_hook(hook),
    "full backward pre-hook": lambda module, hook: module.register_full_backward_pre_hook(hook),
    "full backward hook": lambda module, hook: module.register_full_backward_hook(hook),
    "tensor hook in forward": _give_tensor_hook,
    "hook on a parameter": lambda module, hook: module.weight.register_hook(hook),
    "post-accumulate-grad hook": lambda module, hook: module.weight.register_post_accumulate_grad_hook(hook),
    "forward hook of all modules": lambda _, hook: global_hooks.register_module_forward_hook(hook),
    "full backward hook of all modules": lambda _, hook: global_hooks.register_module_full_backward_hook(hook),
    "saved-tensors hooks": lambda _, hook: torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: (hook(), tensor)[1], lambda tensor: tensor
    ),
}
"""Kind of hook → what registers one."""


def _compile_module(net: nn.Module, backend: str) -> Any:
    return torch.compile(net, backend=backend)


def _compile_in_place(net: nn.Module, backend: str) -> Any:
    net.compile(backend=backend)
    return net


def _compile_function(net: nn.Module, backend: str) -> Any:
    return torch.compile(lambda x: net(x), backend=backend)


def _export(net: nn.Module, _: str) -> Any:
    return torch.export.export(net, (torch.ones(1, requires_grad=True),)).module()


WAYS: dict[str, Callable[[nn.Module, str], Any]] = {
    "torch.compile(net)": _compile_module,
    "net.compile()": _compile_in_place,
    "torch.compile(function)": _compile_function,
    "torch.export": _export,
}
WHEN = ("before", "after", "later")
"""When a hook is registered: before the model is compiled, after that, or after the first compiled call."""


class Case(NamedTuple):
    """A program with one hook."""

    kind: str
    place: Place
    way: str
    when: str
    backend: str


class Outcome(NamedTuple):
    """What came of it, in the calls after the hook was registered."""

    called: int
    """How often torch called the hook."""
    fired: int | None
    """How often the trace shows it; None without a recording."""


def run(case: Case, record: Callable[[nn.Module], AbstractContextManager[Any]]) -> Outcome:
    """Run a program, its calls inside ``record``."""
    torch._dynamo.reset()
    net, called = Net(), 0

    def probe(*_: Any) -> None:
        nonlocal called
        called += 1

    with ExitStack() as stack:

        def register() -> None:
            handle = KINDS[case.kind](net if case.place == "outer" else net.inner, probe)
            if hasattr(handle, "__exit__"):
                stack.enter_context(handle)

        if case.when == "before":
            register()
        run_net = WAYS[case.way](net, case.backend)
        if case.when == "later":
            run_net(torch.ones(1, requires_grad=True)).sum().backward()
        if case.when != "before":
            register()
        called = 0
        with record(net) as trace:
            for _ in range(CALLS):
                run_net(torch.ones(1, requires_grad=True)).sum().backward()
    fired = None if trace is None else sum(one.fired for one in trace.hooks if one.name == "probe")
    return Outcome(called, fired)


def record_plainly(net: nn.Module) -> Any:
    return hv.record()


def record_eagerly(net: nn.Module) -> Any:
    return hv.record(compiled="eager")


def alone(net: nn.Module) -> Any:
    return nullcontext()


if __name__ == "__main__":
    import time
    import warnings
    warnings.simplefilter("ignore")
    print(torch.__version__)
    start = time.time()
    for backend in sys.argv[1:]:
        for way, kind, place, when in product(WAYS, KINDS, ("outer", "inner"), WHEN):
            if "all modules" in kind and place == "inner" or kind.startswith("saved") and place == "inner":
                continue
            case = Case(kind, place, way, when, backend)
            row = []
            for rec in (alone, record_plainly, record_eagerly):
                try:
                    o = run(case, rec)
                    row.append(f"{o.called}/{o.fired}")
                except Exception as e:
                    row.append(f"{type(e).__name__}: {str(e).splitlines()[0][:60]}")
            print(*case, "|", *row, sep=" ; ", flush=True)
    print(time.time() - start)
