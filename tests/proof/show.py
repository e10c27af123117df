"""The context in which scripts run: it collects their tensors, hooks and logs, to compare two runs."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from .compare import (
    Watch,
    bits,
    collect_warnings,
    describe_error,
    describe_warnings,
    garbage_collection_off,
    gradient,
    plain,
    remaining_hooks,
    shared_storage_groups,
    tensor_state,
)

Change = Callable[..., Any]
Script = Callable[["ScriptContext"], None]


class ScriptContext:
    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.tensors: dict[str, Tensor] = {}
        self.log: list[Any] = []
        self.handles: list[Any] = []

    def watch(self) -> AbstractContextManager[Any]:
        return self._watch()

    def keep(self, **tensors: Tensor) -> None:
        """Name the tensors that are compared at the end."""
        self.tensors |= tensors

    def hook(self, name: str, change: Change | None = None) -> Change:
        """Return a hook that logs its name and arguments, and then calls ``change``."""

        def hook(*values: Any) -> Any:
            self.log.append((name, [as_plain_data(value) for value in values]))
            return change(*values) if change else None

        hook.__name__ = name
        return hook

    def on(self, tensor: Tensor, name: str, change: Change | None = None) -> Any:
        self.handles.append(tensor.register_hook(self.hook(name, change)))
        return self.handles[-1]

    def report(self) -> dict[str, Any]:
        """Return everything visible, before and after removing the handles."""
        tensors = self.tensors
        visible_state = {"log": self.log, "tensors": {name: tensor_state(tensor) for name, tensor in tensors.items()}}
        visible_state["sharing"] = shared_storage_groups(
            tensors | {f"{name}.grad": gradient(tensor) for name, tensor in tensors.items()}
        )
        visible_state["hooks"] = remaining_hooks(tensors.values())
        for handle in self.handles:
            handle.remove()
        return visible_state | {"hooks after remove": remaining_hooks(tensors.values())}


def as_plain_data(value: Any) -> Any:
    """Return a hook's argument as plain data."""
    if isinstance(value, Tensor):
        return bits(value), value._version, value.requires_grad, value.is_leaf
    if isinstance(value, (tuple, list)):
        return tuple(as_plain_data(part) for part in value)
    return type(value).__name__ if value is not None else None


def run_script(script: Script, watch: Watch, whole: bool) -> dict[str, Any]:
    """Run a script, with the watch around all of it or around its passes, and report what is visible."""
    context = ScriptContext(plain if whole else watch)
    torch.manual_seed(0)
    error = None
    with collect_warnings() as caught, garbage_collection_off():
        try:
            with watch() if whole else nullcontext():
                script(context)
        except (Exception, KeyboardInterrupt) as caught_error:
            error = caught_error
        report = context.report() | {"failure": describe_error(error), "warnings": describe_warnings(caught)}
    report["random"] = torch.rand(1).item()
    for tensor in context.tensors.values():
        tensor.grad = None
    return report


NAMESPACES: tuple[Any, ...] = (
    *(torch, torch.autograd, torch.autograd.graph, torch.autograd.function, torch.utils.hooks, torch.utils.checkpoint),
    *(torch.Tensor, torch.nn.Parameter, torch.nn.Module, torch.nn.modules.module, torch.optim.Optimizer),
    *(torch.autograd.Function, torch.autograd.graph.Node, torch.utils.hooks.RemovableHandle, torch.overrides, warnings),
)


def process_state() -> dict[str, Any]:
    """Return the global state that a recording must restore."""
    names = {(namespace.__name__, name): value for namespace in NAMESPACES for name, value in vars(namespace).items()}
    return {
        "torch": {key: id(value) for key, value in names.items() if callable(value)},
        "global hooks": [len(hooks) for hooks in global_hooks()],
        "modes": (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()),
        "grad mode": (torch.is_grad_enabled(), torch.is_anomaly_enabled(), torch.is_inference_mode_enabled()),
        "python": (gc.isenabled(), gc.get_threshold(), len(gc.callbacks), sys.getrecursionlimit()),
        "tracing": (sys.gettrace(), sys.getprofile(), sys.excepthook),
    }


def global_hooks() -> list[dict[int, Any]]:
    values = vars(torch.nn.modules.module).items()
    return [value for name, value in values if name.startswith("_global_") and isinstance(value, dict)]
