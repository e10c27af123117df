"""Recording does not change what it observes: copies, pickles, saved files, modes, process settings, hook dicts."""

import copy
import gc
import io
import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.modules.module as torch_modules
import torch.optim.optimizer as torch_optimizer
from scenes import Net, leaf
from torch import nn
from torch.utils.hooks import RemovableHandle

import hookviz as hv
from hookviz.autograd.torch_internals import saved_tensor_hooks
from hookviz.recorder.hook_observer import Observer

# -- copies


def named_hook(*given: Any) -> None:
    """A hook that can be pickled."""


def add_one(module: nn.Module, args: Any, output: torch.Tensor) -> torch.Tensor:
    return output + 1


class HoldsHandle(Net):
    """A net that holds the handle of its own hook."""

    def __init__(self) -> None:
        super().__init__()
        self.handle = self.register_forward_hook(add_one)


def net_with_hooks() -> HoldsHandle:
    """A net with hooks of several kinds, all picklable."""
    net = HoldsHandle()
    for kind in ("forward_pre", "forward", "full_backward_pre", "full_backward"):
        getattr(net.l1, f"register_{kind}_hook")(named_hook)
    net.l2.register_forward_pre_hook(named_hook, with_kwargs=True)
    net.l2.weight.register_hook(named_hook)
    net.l2.weight.register_post_accumulate_grad_hook(named_hook)
    return net


def torch_saved(thing: Any) -> bytes:
    file = io.BytesIO()
    torch.save(thing, file)
    return file.getvalue()


class Pickler(pickle.Pickler):
    """Pickles tensors as their numbers: torch would include the addresses of their storages."""

    def persistent_id(self, thing: Any) -> Any:
        return ("tensor", thing.tolist(), thing.requires_grad) if isinstance(thing, torch.Tensor) else None


def pickled_bytes(thing: Any) -> bytes:
    file = io.BytesIO()
    Pickler(file).dump(thing)
    return file.getvalue()


MOMENTS = ("between", "forward_pre", "forward", "full_backward_pre", "full_backward", "tensor", "post_accumulate")


def snapshots_at(take: Callable[[nn.Module], Any], moment: str, context: Any) -> tuple[list[Any], HoldsHandle]:
    """The results of ``take(net)`` at ``moment`` and after the pass, and the net."""
    RemovableHandle.next_id = 1000  # a hook's number is its key in the dict, and part of what is saved
    net, snapshots = net_with_hooks(), []

    def take_snapshot(*given: Any) -> None:
        handle.remove()  # this function cannot be pickled
        snapshots.append(take(net))

    if moment == "tensor":
        handle = net.l1.weight.register_hook(take_snapshot)
    elif moment == "post_accumulate":
        handle = net.l1.weight.register_post_accumulate_grad_hook(take_snapshot)
    elif moment != "between":
        handle = getattr(net.l1, f"register_{moment}_hook")(take_snapshot)
    with context():
        y = net(leaf(3.0))
        if moment == "between":
            snapshots.append(take(net))
        y.backward()
        net.l2.register_forward_hook(named_hook)
        snapshots.append(take(net))
    return snapshots, net


@pytest.mark.parametrize(
    ("take", "moment"),
    [
        *((pickled_bytes, moment) for moment in MOMENTS),
        (lambda net: pickled_bytes(copy.deepcopy(net)), "forward"),
        (torch_saved, "forward"),
    ],
)
@pytest.mark.filterwarnings("ignore:backward hook")
def test_copies_and_pickles_of_a_recorded_model_are_identical_in_every_byte(
    take: Callable[[nn.Module], Any], moment: str
) -> None:
    plain, _ = snapshots_at(take, moment, nullcontext)
    recorded, _ = snapshots_at(take, moment, hv.record)
    assert len(plain) == 2
    assert recorded == plain


def test_a_copy_made_while_recording_works_with_its_handle_and_a_shallow_one_shares_the_hooks() -> None:
    (first, _), _ = snapshots_at(copy.deepcopy, "forward", hv.record)
    assert first(leaf(3.0)).item() == 13
    first.handle.remove()
    assert first(leaf(3.0)).item() == 12
    assert not [key for module in first.modules() for key in module._forward_hooks if isinstance(key, Observer)]
    (shallow, _), net = snapshots_at(copy.copy, "forward", hv.record)
    assert shallow._forward_hooks is net._forward_hooks
    assert len(net._forward_hooks) == 1


def test_a_module_with_its_own_getstate_is_copied_with_inert_observers() -> None:
    class HasGetstate(Net):
        def __getstate__(self) -> dict[str, Any]:
            return vars(self).copy()

    net, copies = HasGetstate(), []
    net.register_forward_hook(lambda module, args, output: copies.append(copy.deepcopy(module)))
    with hv.record(net):
        net(leaf(3.0))
    assert copies[0](leaf(3.0)).item() == 12


def test_a_handle_of_a_recorded_node_is_pickled_without_hookviz() -> None:
    with hv.record():
        y = leaf(2.0) * 3
        y.backward(retain_graph=True)
    assert y.grad_fn is not None
    handle = y.grad_fn.register_hook(print)
    data = [pickle.dumps(handle)]
    with hv.record():
        y.register_hook(lambda grad: data.append(pickle.dumps(handle)))
        y.backward()
    assert len(data) == 2 and not any(b"hookviz" in pickled_handle for pickled_handle in data)
    assert pickle.loads(data[0]).hooks_dict_ref is not None
    handle.remove()


def test_a_model_pickled_while_recording_is_loaded_with_its_hooks() -> None:
    (first, _), _ = snapshots_at(pickle.dumps, "forward", hv.record)
    net = pickle.loads(first)
    assert list(net._forward_hooks.values()) == [add_one] and net(leaf(3.0)).item() == 13


# -- state of the process


def process_state() -> dict[str, Any]:
    """All global state that a recording might change."""
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
        "fast path": torch.backends.mha.get_fastpath_enabled(),
        "saved": saved_tensor_hooks(True),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
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
    """Each hook dict by its name: its identity and its items."""
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


class Boom(Exception):
    """Raised by a hook."""


PLACES = (
    "forward_pre", "forward", "forward always", "full_backward_pre", "full_backward", "tensor", "post_accumulate",
    "step_pre", "step_post", "global forward", "global step",
)  # fmt: skip


@contextmanager
def hook_at(place: str, net: nn.Module, opt: torch.optim.Optimizer, hook: Any) -> Iterator[None]:
    register: dict[str, Callable[[Any], Any]] = {
        "tensor": net.l1.weight.register_hook,
        "post_accumulate": net.l1.weight.register_post_accumulate_grad_hook,
        "step_pre": opt.register_step_pre_hook,
        "step_post": opt.register_step_post_hook,
        "global forward": torch_modules.register_module_forward_hook,
        "global step": torch_optimizer.register_optimizer_step_post_hook,
        "forward always": lambda hook: net.l1.register_forward_hook(hook, always_call=True),
    }
    handle = (register.get(place) or getattr(net.l1, f"register_{place}_hook"))(hook)
    try:
        yield
    finally:
        handle.remove()


@pytest.mark.parametrize(
    ("place", "error"),
    [*((place, Boom) for place in PLACES), ("forward", None), ("forward", SystemExit), ("tensor", KeyboardInterrupt)],
)
def test_state_is_unchanged_after_any_exception_in_a_hook(place: str, error: type[BaseException] | None) -> None:
    net = net_with_hooks()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def act(*given: Any) -> None:
        if error is not None:
            raise error("out of the hook")

    with hook_at(place, net, opt, act):
        before, dicts = process_state(), hook_dicts(net, opt)
        caught = None
        with hv.record(net) as trace:
            try:
                net(leaf(3.0)).backward()
                opt.step()
            except BaseException as raised:
                caught = type(raised)
        assert caught is error
        assert hook_dicts(net, opt) == dicts
        assert process_state() == before
        last = trace.steps[-1]
        named = last.hook is not None and last.hook.name.endswith("act")
        assert (last.kind == "exception" and named) is (error is not None)
        assert trace.notes == []


def test_state_is_unchanged_after_an_exception_in_the_block() -> None:
    net = net_with_hooks()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    before, dicts = process_state(), hook_dicts(net, opt)
    with suppress(KeyboardInterrupt), hv.record(net):
        net(leaf(3.0))
        raise KeyboardInterrupt
    assert (hook_dicts(net, opt), process_state()) == (dicts, before)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_keeps_its_setting(enabled: bool) -> None:
    if not enabled:
        gc.disable()
    enabled_in_hook: list[bool] = []
    try:
        x = leaf(3.0)
        x.register_hook(lambda grad: enabled_in_hook.append(gc.isenabled()))
        with hv.record():
            (x * 2).backward()
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
    assert enabled_in_hook == [enabled]


def test_grad_modes_and_autocast_stay_active() -> None:
    net = Net()
    with torch.inference_mode(), hv.record(net) as trace:
        assert net(torch.tensor(3.0)).is_inference()
    with torch.no_grad(), hv.record(net):
        assert not net(leaf(3.0)).requires_grad and not torch.is_grad_enabled()
    with torch.autocast("cpu", torch.bfloat16), hv.record():
        assert nn.Linear(2, 2)(torch.ones(1, 2)).dtype is torch.bfloat16
    assert trace.notes == []
