"""A stage for scripts: what a script names, hooks and logs on it is what two runs of it are compared by."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from .compare import Watch, bits, failure, gradient, hooks_left, plain, quiet, sharing, state, uncollected, warned

Change = Callable[..., Any]
Script = Callable[["Show"], None]


class Show:
    """What a script shows of itself."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.tensors: dict[str, Tensor] = {}
        self.log: list[Any] = []
        self.handles: list[Any] = []

    def watch(self) -> AbstractContextManager[Any]:
        """Return what to put around a pass."""
        return self._watch()

    def keep(self, **tensors: Tensor) -> None:
        """Name the tensors that are compared at the end."""
        self.tensors |= tensors

    def hook(self, name: str, change: Change | None = None) -> Change:
        """Return a hook that logs its name and what it sees, and then does what it is told."""

        def hook(*values: Any) -> Any:
            self.log.append((name, [visible(value) for value in values]))
            return change(*values) if change else None

        hook.__name__ = name
        return hook

    def on(self, tensor: Tensor, name: str, change: Change | None = None) -> Any:
        """Put such a hook on a tensor, and return its handle."""
        self.handles.append(tensor.register_hook(self.hook(name, change)))
        return self.handles[-1]

    def report(self) -> dict[str, Any]:
        """Return all that can be seen, and try the handles."""
        tensors = self.tensors
        seen = {"log": self.log, "tensors": {name: state(tensor) for name, tensor in tensors.items()}}
        seen["sharing"] = sharing(tensors | {f"{name}.grad": gradient(tensor) for name, tensor in tensors.items()})
        seen["hooks"] = hooks_left(tensors.values())
        for handle in self.handles:
            handle.remove()
        return seen | {"hooks after remove": hooks_left(tensors.values())}


def visible(value: Any) -> Any:
    """Return a hook's argument as plain data."""
    if isinstance(value, Tensor):
        return bits(value), value._version, value.requires_grad, value.is_leaf
    if isinstance(value, (tuple, list)):
        return tuple(visible(part) for part in value)
    return type(value).__name__ if value is not None else None


def perform(script: Script, watch: Watch, whole: bool) -> dict[str, Any]:
    """Run a script, with the watcher around all of it or around its passes, and report what it shows."""
    show = Show(plain if whole else watch)
    torch.manual_seed(0)
    error = None
    with quiet() as caught, uncollected():
        try:
            with watch() if whole else nullcontext():
                script(show)
        except (Exception, KeyboardInterrupt) as raised:
            error = raised
        report = show.report() | {"failure": failure(error), "warnings": warned(caught)}
    report["random"] = torch.rand(1).item()
    for tensor in show.tensors.values():
        tensor.grad = None
    return report


PLACES: tuple[Any, ...] = (
    *(torch, torch.autograd, torch.autograd.graph, torch.autograd.function, torch.utils.hooks, torch.utils.checkpoint),
    *(torch.Tensor, torch.nn.Parameter, torch.nn.Module, torch.nn.modules.module, torch.optim.Optimizer),
    *(torch.autograd.Function, torch.autograd.graph.Node, torch.utils.hooks.RemovableHandle, torch.overrides, warnings),
)


def surroundings() -> dict[str, Any]:
    """Return the state of the process that a recording might forget to put back."""
    names = {(place.__name__, name): value for place in PLACES for name, value in vars(place).items()}
    return {
        "torch": {key: id(value) for key, value in names.items() if callable(value)},
        "global hooks": [len(hooks) for hooks in global_hooks()],
        "modes": (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()),
        "grad mode": (torch.is_grad_enabled(), torch.is_anomaly_enabled(), torch.is_inference_mode_enabled()),
        "python": (gc.isenabled(), gc.get_threshold(), len(gc.callbacks), sys.getrecursionlimit()),
        "tracing": (sys.gettrace(), sys.getprofile(), sys.excepthook),
    }


def global_hooks() -> list[dict[int, Any]]:
    """Return the dicts of hooks that hold for all modules."""
    values = vars(torch.nn.modules.module).items()
    return [value for name, value in values if name.startswith("_global_") and isinstance(value, dict)]
