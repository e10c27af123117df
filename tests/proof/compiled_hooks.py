"""Runs a hook of each kind in compiled code, and counts how often torch calls it and how often a trace shows it.

``python -m tests.proof.compiled_hooks`` prints the table of ``site/recording.md`` for each backend, with the installed
PyTorch; arguments choose the backends. That takes some minutes for ``eager`` and ``aot_eager`` each; ``inductor`` takes
an hour, and needs a C++ compiler.
"""

import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
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
    "tensor hook registered in forward": _give_tensor_hook,
    "tensor hook on a parameter": lambda module, hook: module.weight.register_hook(hook),
    "post-accumulate-grad hook": lambda module, hook: module.weight.register_post_accumulate_grad_hook(hook),
    "saved-tensors hooks": lambda _, hook: _pack_with(hook),
}
"""Kind of hook → what registers one on a module, or on what belongs to it."""
PLACES: Mapping[str, Callable[[], tuple[nn.Module, nn.Module]]] = {
    "the compiled model": lambda: (net := Net(), net),
    "an `nn.Sequential` that is compiled": lambda: (net := nn.Sequential(Part(), Part()), net),
    "a module inside": lambda: (net := Net(), net.part),
    "a module inside that breaks the graph": lambda: (net := Net(breaks=True), net.part),
}
"""What has the hook → a model, and that module in it."""


def _compile_in_place(net: nn.Module, backend: str) -> Any:
    net.compile(backend=backend)
    return net


WAYS: Mapping[str, Callable[[nn.Module, str], Any]] = {
    "torch.compile(net)": lambda net, backend: torch.compile(net, backend=backend),
    "net.compile()": _compile_in_place,
    "torch.compile(function)": lambda net, backend: torch.compile(lambda x: net(x), backend=backend),
}
"""How the model is compiled."""


class Case(NamedTuple):
    kind: str
    place: str
    way: str
    when: str
    """When the hook is registered: before the model is compiled, after it, or later: after the first call."""
    backend: str = "eager"


class Outcome(NamedTuple):
    """What comes of a hook in the calls after it was registered."""

    called: str
    """Whether torch calls it, in words of the table."""
    shown: str
    """Whether a trace shows the calls."""
    shown_eagerly: str
    """Whether a trace of ``record(compiled="eager")`` does."""


def list_rows() -> Iterator[tuple[str, str]]:
    for kind, place in product(KINDS, PLACES):
        is_possible = kind in MODULE_KINDS or place in ("the compiled model", "a module inside")
        is_everywhere = "all modules" in kind or kind.startswith("saved")
        if is_possible and not (is_everywhere and place != "the compiled model"):
            yield kind, place


def make_input() -> torch.Tensor:
    return torch.ones(1, requires_grad=True)


def count(case: Case, record: Callable[[], Any] = nullcontext) -> tuple[int, int]:
    """Run a program, its calls inside ``record``; return how often its hook was called, and was shown."""
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
    shown = [] if trace is None else [hook.fired for hook in trace.hooks if hook.name == "probe"]
    return len(called), sum(shown)


def find_outcome(case: Case) -> Outcome:
    """Run a program alone, recorded, and recorded eagerly.

    Raises:
        AssertionError: torch calls the hook another number of times in a recorded program.
    """
    called, _ = count(case)
    recorded, shown = count(case, hv.record)
    assert recorded == called, f"{case}: called {called} times, and {recorded} times in a recording"
    everything, shown_eagerly = count(case, lambda: hv.record(compiled="eager"))
    return Outcome(_say(called, everything), _say(shown, called), _say(shown_eagerly, everything))


def _say(number: int, of: int) -> str:
    return "yes" if number == of else "in part" if number else "no"


def make_cells(kind: str, place: str, backend: str) -> tuple[str, ...]:
    """Make the cells of a row: what torch calls, what a trace shows."""
    early = {find_outcome(Case(kind, place, way, when, backend)) for way in WAYS for when in ("before", "after")}
    later = [find_outcome(Case(kind, place, way, "later", backend)) for way in WAYS]
    shown = join_words(outcome.shown for outcome in early)
    return (
        join_words(outcome.called for outcome in early),
        *(outcome.called for outcome in later),
        shown,
        join_words(outcome.shown_eagerly for outcome in (*early, *later)),
    )


def join_words(words: Any) -> str:
    return " or ".join(sorted(set(words), reverse=True))


def make_table(backend: str) -> str:
    kinds: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for kind, place in list_rows():
        kinds.setdefault((place, make_cells(kind, place, backend)), []).append(kind)
    lines = [f"| {', '.join(names)} | {place} | {' | '.join(cells)} |" for (place, cells), names in kinds.items()]
    return "\n".join((HEADER, "|" + "---|" * HEADER.count(" | ") + "---|", *lines))


HEADER = (
    "| hook | on | called if it is there at the first call | registered later: `torch.compile(net)` | `net.compile()` "
    '| `torch.compile(function)` | the trace shows it | with `compiled="eager"` |'
)
"""In the columns of the ways stands whether torch calls a hook that was registered after the first call."""


def main() -> None:
    warnings.simplefilter("ignore")
    for backend in sys.argv[1:] or BACKENDS:
        print(f"{backend}, torch {torch.__version__}\n\n{make_table(backend)}\n", flush=True)


if __name__ == "__main__":
    main()
