"""Each hook API of torch: a trace shows its hooks in order, or a note says why it cannot."""

import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.modules.module as torch_modules
import torch.optim.optimizer as torch_optimizer
from scenes import BACKWARD, Doubled, SumNet, describe_steps, leaf, plain, silent, stored_gradients
from shown import shown_steps
from torch import nn
from torch.autograd.graph import (
    disable_saved_tensors_hooks,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)

import hookviz as hv


def fired(trace: hv.Trace) -> list[tuple[Any, ...]]:
    """Return (kind, on, before, after, effect, what keeps the hook) of each firing."""
    return [(s.kind, s.on, plain(s.before), plain(s.after), s.effect, s.hook.kept_in) for s in trace.firings]


# -- tensors and nodes

Register = Callable[[torch.Tensor, torch.Tensor], Any]
TENSOR_WAYS: dict[str, tuple[Register, tuple[Any, ...], tuple[str, ...]]] = {
    "register_hook": (
        lambda a, c: c.register_hook(lambda grad: grad + 2),
        ("tensor_hook", "c", 1, 3, "replaced", "c._backward_hooks"),
        ("seed", "tensor_hook", "compute"),
    ),
    "register_post_accumulate_grad_hook": (
        lambda a, c: a.register_post_accumulate_grad_hook(lambda parameter: parameter.grad.mul_(10) and None),
        ("post_accumulate_hook", "a", 5, 50, "edited", "a._post_accumulate_grad_hooks"),
        ("accumulate", "post_accumulate_hook", "arrive"),
    ),
    "node_register_prehook": (
        lambda a, c: c.grad_fn.register_prehook(lambda grads: (grads[0] * 10,)),
        ("node_pre_hook", "MulBackward0 (c)", 1, 10, "replaced", "pre-hooks of MulBackward0 (c)"),
        ("seed", "node_pre_hook", "compute"),
    ),
    "node_register_hook": (
        lambda a, c: c.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, inputs[1])),
        ("node_post_hook", "MulBackward0 (c)", (5, 2), (50, 2), "replaced", "hooks of MulBackward0 (c)"),
        ("compute", "node_post_hook", "arrive"),
    ),
}


@pytest.mark.parametrize("name", TENSOR_WAYS)
def test_hook_on_a_tensor_or_node_is_a_step(name: str) -> None:
    register, expected, around = TENSOR_WAYS[name]
    a, b = leaf(2.0), leaf(5.0)
    c = a * b
    register(a, c)
    with hv.record() as trace:
        c.backward()
    assert fired(trace) == [expected]
    index = trace.firings[0].index
    assert tuple(step.kind for step in trace.steps[index - 1 : index + 2]) == around


def test_tensor_retain_grad() -> None:
    c = leaf(2.0) * 3
    c.retain_grad()
    c.register_hook(lambda grad: grad * 10)
    with hv.record() as trace:
        c.backward()
    assert [s.kind for s in trace.steps if s.on == "c"] == ["seed", "tensor_hook", "retain_grad"]
    assert stored_gradients(trace, "retain_grad") == {"c": (None, 10)}


@pytest.mark.parametrize(("mode", "on"), [("all", "b"), ("any", "a")], ids=["all", "any"])
def test_register_multi_grad_hook(mode: Any, on: str) -> None:
    a, b = leaf(2.0), leaf(3.0)
    seen: list[Any] = []
    register_multi_grad_hook([a, b], seen.append, mode=mode)
    with hv.record() as trace:
        (a * b).backward()
    assert len(seen) == 1
    assert [(step.kind, step.on, step.hook.name) for step in trace.firings] == [("multi_grad_hook", on, "append")]


def test_a_multi_grad_hook_shows_every_gradient_it_receives() -> None:
    a, b, z = leaf(2.0), leaf(3.0), leaf(4.0)
    c = a * b
    seen: list[Any] = []
    register_multi_grad_hook([a, c, z, b], seen.append)
    with hv.record() as trace:
        (c * c).backward()
        (a * 5).backward()
    expected = [[None if grad is None else grad.item() for grad in grads] for grads in seen]
    assert expected == [[36, 12, None, 24], [5, None, None, None]]
    assert [[None if value is None else value.tolist() for value in step.after] for step in trace.firings] == expected
    first, second = trace.firings
    assert first.sentence.endswith("received the gradients of its tensors: a=36, c=12, tensor 3=None, b=24.")
    assert second.sentence.endswith("a=5, tensor 2=None, tensor 3=None, tensor 4=None.")
    frame = shown_steps(trace.content())[first.index]
    assert frame["gradients"] == [["a", "36"], ["c", "12"], ["tensor 3", "None"], ["b", "24"]]


# -- modules

MODULE_WAYS: dict[str, tuple[Callable[..., Any], list[tuple[int, int]], str]] = {
    "forward_pre": (lambda m, args: (args[0] + 1,), [(3, 4), (4, 5)], "forward_pre_hooks"),
    "forward": (lambda m, args, output: output + 1, [(6, 7), (7, 8)], "forward_hooks"),
    "full_backward_pre": (lambda m, grads: (grads[0] + 1,), [(1, 2), (2, 3)], "backward_pre_hooks"),
    "full_backward": (lambda m, grads, _: (grads[0] + 1,), [(2, 3), (3, 4)], "backward_hooks"),
}


@pytest.mark.parametrize("name", MODULE_WAYS)
def test_hooks_of_all_modules_and_then_those_of_one_are_steps(name: str) -> None:
    hook, changes, kept_in = MODULE_WAYS[name]
    net = Doubled()
    getattr(net, f"register_{name}_hook")(hook)
    with getattr(torch_modules, f"register_module_{name}_hook")(hook), hv.record(net) as trace:
        net(leaf(3.0)).backward()
    dicts = (f"torch.nn.modules.module._global_{kept_in}", f"net._{kept_in}")
    assert fired(trace) == [
        (f"{name}_hook", "net", before, after, "replaced", kept)
        for (before, after), kept in zip(changes, dicts, strict=True)
    ]
    assert [step.hook.on for step in trace.firings] == ["all modules", "net"]


def test_a_forward_pre_hook_gets_the_positional_inputs_only_and_one_with_kwargs_all() -> None:
    net = SumNet()
    net.register_forward_pre_hook(lambda module, args: (args[0] + 10, args[1]))
    net.register_forward_pre_hook(lambda module, args, kwargs: (args, {"c": kwargs["c"] * 2}), with_kwargs=True)
    with hv.record(net) as trace:
        assert net(leaf(1.0), leaf(2.0), c=leaf(3.0)).item() == 19
    assert describe_steps(trace) == [
        ("call", "net", None, (1, 2, 3)),
        ("forward_pre_hook", "net", (1, 2), (11, 2)),
        ("forward_pre_hook", "net", (11, 2, 3), (11, 2, 6)),
        ("forward", "net", None, 19),
    ]
    assert [step.row.labels[1] for step in trace.firings] == [("a", "b"), ("a", "b", "c")]
    assert [row.flags for row in trace._data.hook_rows] == [(), ("with_kwargs",)]


def test_module_register_forward_hook_always_call() -> None:
    class RaisesInForward(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("broken inside")

    net = RaisesInForward()
    net.register_forward_hook(silent("always"), always_call=True)
    net.register_forward_hook(silent("only then"))
    with hv.record(net) as trace, pytest.raises(ValueError, match="broken inside"):
        net(leaf(1.0))
    assert [(step.kind, step.hook.name) for step in trace.firings] == [("forward_hook", "always")]
    assert trace._data.hook_rows[trace.firings[0].row.hook or 0].flags == ("always_call",)


@pytest.mark.filterwarnings("ignore:Using a non-full backward hook")
def test_module_register_backward_hook() -> None:
    net, x = Doubled(), leaf(3.0)
    net.register_backward_hook(lambda module, grad_input, grad_output: None)
    with hv.record(net) as trace:
        net(x).backward()
    assert describe_steps(trace, *BACKWARD) == [("backward_hook", "net", (2, 3), (2, 3))]
    frame = shown_steps(trace.player().content)[trace.firings[0].index]
    assert frame["title"] == "legacy backward hook ① on net"
    assert "sees only what that node sends" in frame["registration"]


# -- optimizers


@pytest.mark.parametrize(
    ("when", "steps"),
    [
        ("pre", ["step_pre_hook everywhere", "step_pre_hook own", "optimizer_step"]),
        ("post", ["optimizer_step", "step_post_hook own", "step_post_hook everywhere"]),
    ],
    ids=["pre", "post"],
)
def test_hooks_of_all_optimizers_are_steps_around_those_of_one(when: str, steps: list[str]) -> None:
    weight = leaf(2.0)
    weight.grad = torch.tensor(1.0)
    optimizer = torch.optim.SGD([weight])

    def own(*_: Any) -> None:
        weight.grad.mul_(2)

    getattr(optimizer, f"register_step_{when}_hook")(own)
    register = getattr(torch_optimizer, f"register_optimizer_step_{when}_hook")
    with register(silent("everywhere")), hv.record() as trace:
        optimizer.step()
    own_steps = [step for step in trace.steps if step.row.optimizer >= 0]
    assert [step.kind if step.hook is None else f"{step.kind} {step.hook.name}" for step in own_steps] == steps
    assert {step.hook.name: step.hook.kept_in for step in trace.firings} == {
        "everywhere": f"torch.optim.optimizer._global_optimizer_{when}_hooks",
        "own": f"optimizer._optimizer_step_{when}_hooks",
    }
    effects = {step.hook.name: step.effect for step in trace.firings}
    assert effects == {"everywhere": "kept", "own": "edited"}


# -- hooks that a trace does not show

UNSEEN: dict[str, Callable[[nn.Module, torch.optim.Optimizer], Callable[..., Any]]] = {
    "parameter_registration": lambda *_: torch_modules.register_module_parameter_registration_hook,
    "buffer_registration": lambda *_: torch_modules.register_module_buffer_registration_hook,
    "module_registration": lambda *_: torch_modules.register_module_module_registration_hook,
    "state_dict_pre": lambda net, _: net.register_state_dict_pre_hook,
    "state_dict_post": lambda net, _: net.register_state_dict_post_hook,
    "load_state_dict_pre": lambda net, _: net.register_load_state_dict_pre_hook,
    "load_state_dict_post": lambda net, _: net.register_load_state_dict_post_hook,
    "optimizer_state_dict_pre": lambda _, optimizer: optimizer.register_state_dict_pre_hook,
    "optimizer_state_dict_post": lambda _, optimizer: optimizer.register_state_dict_post_hook,
    "optimizer_load_state_dict_pre": lambda _, optimizer: optimizer.register_load_state_dict_pre_hook,
    "optimizer_load_state_dict_post": lambda _, optimizer: optimizer.register_load_state_dict_post_hook,
}


@pytest.mark.parametrize("name", UNSEEN)
def test_hooks_of_registration_and_of_saving_run_unseen(name: str) -> None:
    way = UNSEEN[name]
    net, called = Doubled(), []
    optimizer = torch.optim.SGD(net.parameters())
    handle = way(net, optimizer)(lambda *_: called.append(name))
    with handle, hv.record(net) as trace:
        listed = [hook.kind for hook in hv.hooks(net, optimizer)]
        net.register_parameter("p", nn.Parameter(torch.ones(1)))
        net.register_buffer("b", torch.ones(1))
        net.add_module("m", nn.Identity())
        net.load_state_dict(net.state_dict())
        optimizer.load_state_dict(optimizer.state_dict())
        net(leaf(3.0)).backward()
        optimizer.step()
    assert set(called) == {name}
    assert listed == [f"{name.removeprefix('optimizer_')}_hook"]
    assert len(trace.firings) == 0 and trace.notes == []


# -- saved-tensor hooks: a note gives the reason


def kept(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


REASON = r"hookviz does not observe them: torch runs only the pair"


@pytest.mark.parametrize(
    ("around_forward", "around_backward", "name"),
    [
        (save_on_cpu, save_on_cpu, "pack_to_cpu|unpack_from_cpu"),
        (lambda: saved_tensors_hooks(kept, kept), nullcontext, "kept"),
        (nullcontext, lambda: saved_tensors_hooks(kept, kept), "kept"),
    ],
    ids=["everything", "forward", "backward"],
)
def test_saved_tensors_hooks_and_save_on_cpu_get_a_note(around_forward: Any, around_backward: Any, name: str) -> None:
    x = leaf(1.0, 2.0)
    with hv.record() as trace:
        with around_forward():
            y = (x * x).sum()
        with around_backward():
            y.backward()
    assert x.grad.tolist() == [2, 4]
    assert len(trace.notes) in (1, 2)  # torch reported the pack hook, the unpack hook, or both
    for note in trace.notes:
        assert re.search(rf"\(({name})\)\. {REASON}", note), note
    assert trace.notes[0] in repr(trace)


def test_where_saved_tensors_hooks_are_disabled_a_pass_is_recorded() -> None:
    with hv.record() as trace, disable_saved_tensors_hooks("not in my house"):
        leaf(3.0).sin().backward()
    assert trace.steps and trace.notes == []


def test_saved_tensors_hooks_of_checkpoint_and_torch_func_get_no_note() -> None:
    net = Doubled()
    with hv.record() as trace:
        torch.utils.checkpoint.checkpoint(net, leaf(3.0), use_reentrant=False).backward()
        torch.func.grad(lambda x: net(x))(torch.tensor(2.0))
    assert trace.notes == []
