"""Runs a hook of each kind in compiled code, and counts how often torch calls it and how often hookviz sees it.

``python -m tests.proof.compiled_hooks`` prints the table of ``site/recording.md``, and where a backend differs from it;
arguments choose the backends.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from itertools import product
from typing import Any, NamedTuple

import torch
import torch.nn.modules.module as all_modules
from torch import nn

import hookviz as hv

BACKENDS = ("eager", "aot_eager", "inductor")
CALLS = 2
"""How often each program calls its model after the hook is registered."""

Hook = Callable[..., None]
Recorder = Callable[[], AbstractContextManager[hv.Trace | None]]


class Part(nn.Module):
    """A part of a model: its forward registers a hook on what it computes, if it was given one."""

    def __init__(self, *, breaks: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([2.0]))
        self.breaks = breaks
        self.tensor_hook: Hook | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x * self.weight
        if self.breaks:
            torch._dynamo.graph_break()  # type: ignore[no-untyped-call]
        if self.tensor_hook is not None:
            h.register_hook(self.tensor_hook)
        return h.sin()


class Net(Part):
    """A model of your own class, with one part."""

    def __init__(self, *, breaks: bool = False) -> None:
        super().__init__()
        self.part = Part(breaks=breaks)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part(super().forward(x))  # type: ignore[no-any-return]


def _give_tensor_hook(module: nn.Module, hook: Hook) -> None:
    module.tensor_hook = hook  # type: ignore[assignment]


def _pack_with(hook: Hook) -> Any:
    def pack(tensor: torch.Tensor) -> torch.Tensor:
        hook()
        return tensor

    return torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)


MODULE_KINDS: Mapping[str, Callable[[Any, Hook], Any]] = {
    "forward pre-hook": lambda module, hook: module.register_forward_pre_hook(hook),
    "forward hook": lambda module, hook: module.register_forward_hook(hook),
    "full backward pre-hook": lambda module, hook: module.register_full_backward_pre_hook(hook),
    "full backward hook": lambda module, hook: module.register_full_backward_hook(hook),
}
KINDS: Mapping[str, Callable[[Any, Hook], Any]] = {
    **MODULE_KINDS,
    "forward hook of all modules": lambda _, hook: all_modules.register_module_forward_hook(hook),
    "full backward hook of all modules": lambda _, hook: all_modules.register_module_full_backward_hook(hook),
    "tensor hook, registered in forward": _give_tensor_hook,
    "tensor hook on a parameter": lambda module, hook: module.weight.register_hook(hook),
    "post-accumulate-grad hook": lambda module, hook: module.weight.register_post_accumulate_grad_hook(hook),
    "saved-tensors hooks": lambda _, hook: _pack_with(hook),
}
"""Kind of hook → what registers one on a module, or on what belongs to it."""
PLACES: Mapping[str, Callable[[], tuple[nn.Module, nn.Module]]] = {
    "your model": lambda: (net := Net(), net),
    "an `nn.Sequential`": lambda: (net := nn.Sequential(Part(), Part()), net),
    "a part": lambda: (net := Net(), net.part),
    "a part that breaks the graph": lambda: (net := Net(breaks=True), net.part),
}
"""What has the hook → a model, and that module in it."""


def _compile_in_place(net: nn.Module, backend: str) -> Any:
    net.compile(backend=backend)
    return net


WAYS: Mapping[str, Callable[[nn.Module, str], Any]] = {
    "torch.compile(net)": lambda net, backend: torch.compile(net, backend=backend),
    "net.compile()": _compile_in_place,
    "torch.compile(function)": lambda net, backend: torch.compile(lambda x: net(x), backend=backend),
    "torch.export": lambda net, _: torch.export.export(net, (make_input(),)).module(),
}
"""How the model is compiled."""
WHEN = ("before", "after", "later")
"""When a hook is registered: before the model is compiled, then, or after the first call of what was compiled."""


class Case(NamedTuple):
    """A program with one hook."""

    kind: str
    place: str
    way: str
    when: str
    backend: str


class Outcome(NamedTuple):
    """What came of a hook, in the calls after it was registered."""

    called: int
    """How often torch called it."""
    seen: int
    """How often a trace shows it."""
    error: str = ""
    """The class of the exception that the program raised, if it did."""


def list_cases(backend: str) -> Iterator[Case]:
    """Yield each program that there is for a backend."""
    for way, kind, place, when in product(WAYS, KINDS, PLACES, WHEN):
        is_possible = kind in MODULE_KINDS or place in ("your model", "a part")
        is_everywhere = "all modules" in kind or kind.startswith("saved")
        if is_possible and not (is_everywhere and place != "your model"):
            yield Case(kind, place, way, when, backend)


def make_input() -> torch.Tensor:
    return torch.ones(1, requires_grad=True)


def run(case: Case, record: Recorder = nullcontext) -> Outcome:  # type: ignore[assignment]
    """Run a program, its calls inside ``record``."""
    torch._dynamo.reset()
    net, module = PLACES[case.place]()
    called: list[int] = []

    def probe(*_: Any) -> None:
        called.append(1)

    with ExitStack() as stack:

        def register() -> None:
            handle = KINDS[case.kind](module, probe)
            if hasattr(handle, "__exit__"):
                stack.enter_context(handle)

        if case.when == "before":
            register()
        compiled = WAYS[case.way](net, case.backend)
        if case.when == "later":
            compiled(make_input()).sum().backward()
        if case.when != "before":
            register()
        called.clear()
        with record() as trace:
            for _ in range(CALLS):
                compiled(make_input()).sum().backward()
    return Outcome(len(called), 0 if trace is None else _count_firings(trace))


def _count_firings(trace: hv.Trace) -> int:
    return sum(hook.fired for hook in trace.hooks if "probe" in hook.name)


RECORDERS: tuple[Recorder, ...] = (nullcontext, hv.record, lambda: hv.record(compiled="eager"))  # type: ignore[assignment]


def try_to_run(case: Case, record: Recorder) -> Outcome:
    try:
        return run(case, record)
    except Exception as error:
        return Outcome(0, 0, f"{type(error).__name__} {str(error).splitlines()[0][:80]}")


if __name__ == "__main__":
    import time
    warnings.simplefilter("ignore")
    start = time.time()
    print(torch.__version__)
    for backend in sys.argv[1:] or BACKENDS:
        for case in list_cases(backend):
            if case.way == "torch.export" and backend != "eager": continue
            row = [try_to_run(case, r) for r in RECORDERS]
            print(*case, *[o.error or f"{o.called}/{o.seen}" for o in row], sep=";", flush=True)
    print(time.time() - start)
