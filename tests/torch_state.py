"""What a recording must leave as it is: the state of the process, and the hook dicts of a model and its optimizer."""

import gc
import random
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.modules.module as torch_modules
import torch.optim.optimizer as torch_optimizer
from torch import nn

from hookviz.autograd.torch_internals import saved_tensor_hooks
from hookviz.recorder import open_recordings, torch_patches
from hookviz.what_if.switches import _FUNCTIONS, _METHODS


def process_state() -> dict[str, Any]:
    """Return all global state that a recording might change."""
    patched = [(replaced.owner, replaced.name) for replaced in torch_patches._REPLACEMENTS]
    return {
        "random": (torch.get_rng_state().tolist(), random.getstate(), np.random.get_state()[1].tolist()),
        "grad": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()),
        "dtype": (torch.get_default_dtype(), torch.empty(0).device),
        "modes": (torch._C._len_torch_function_stack(), torch._C._len_torch_dispatch_stack()),
        "functions": torch._C._is_torch_function_enabled(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "gc": (gc.isenabled(), gc.get_threshold(), len(gc.callbacks)),
        "switches": (sys.getswitchinterval(), sys.getrecursionlimit(), sys.gettrace(), sys.getprofile()),
        "threads": threading.active_count(),
        "interrupts": signal.getsignal(signal.SIGINT),
        "fast path": torch.backends.mha.get_fastpath_enabled(),
        "saved": saved_tensor_hooks(True),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "patches": [vars(owner).get(name) for owner, name in (*patched, *_METHODS, *_FUNCTIONS)],
        "recordings": (dict(open_recordings.recordings_by_thread), list(torch_patches._installed)),
        "functions of torch": [
            nn.Module.__call__, nn.Module.__call__.__code__, nn.Module.__getstate__,
            nn.Module.register_forward_hook, torch.compile,
            torch.Tensor.register_hook, torch.Tensor.retain_grad, torch.Tensor.register_post_accumulate_grad_hook,
            torch.autograd._engine_run_backward, torch.autograd.graph._engine_run_backward.__code__,
            torch_modules.register_module_forward_hook, torch.autograd.profiler.record_function.__exit__,
            torch.utils.hooks.RemovableHandle.__getstate__, torch.autograd.function._HookMixin._register_hook,
        ],
    }  # fmt: skip


def hook_dicts(net: nn.Module, opt: torch.optim.Optimizer) -> dict[str, Any]:
    """Return each hook dict by its name: its identity and its items."""
    found: dict[str, Any] = {}
    holders = {"all modules": vars(torch_modules), "all optimizers": vars(torch_optimizer), "opt": vars(opt)}
    holders.update((f"net.{path}", vars(module)) for path, module in net.named_modules())
    for holder, attributes in holders.items():
        for name, hooks in attributes.items():
            if isinstance(hooks, dict) and "hook" in name:
                found[f"{holder} {name}"] = (id(hooks), list(hooks.items()))
    for name, parameter in net.named_parameters():
        for hooks in (parameter._backward_hooks, parameter._post_accumulate_grad_hooks):
            found[f"{name} {len(found)}"] = None if hooks is None else (id(hooks), list(hooks.items()))
    return found


def keep_accumulator(layer: Any) -> Any:
    """Return the node of the weight of a layer, which then lives as long as the layer."""
    layer.node = torch.autograd.graph.get_gradient_edge(layer.weight).node
    return layer.node


def register_at(place: str, net: Any, opt: torch.optim.Optimizer, hook: Callable[..., Any]) -> Any:
    """Register a hook at a place of a net with a layer ``l1``, and return its handle."""
    special: dict[str, Callable[[Any], Any]] = {
        "tensor": net.l1.weight.register_hook,
        "post_accumulate": net.l1.weight.register_post_accumulate_grad_hook,
        "step_pre": opt.register_step_pre_hook,
        "step_post": opt.register_step_post_hook,
        "global forward": torch_modules.register_module_forward_hook,
        "global step": torch_optimizer.register_optimizer_step_post_hook,
        "forward always": lambda hook: net.l1.register_forward_hook(hook, always_call=True),
        "node": lambda hook: keep_accumulator(net.l1).register_prehook(hook),
    }
    return (special.get(place) or getattr(net.l1, f"register_{place}_hook"))(hook)


PLACES = (
    "forward_pre", "forward", "forward always", "full_backward_pre", "full_backward", "tensor", "post_accumulate",
    "node", "step_pre", "step_post", "global forward", "global step",
)  # fmt: skip
