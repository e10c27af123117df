"""Each hook API of torch: a trace shows its hooks in order, or a note says why it cannot."""

import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.modules.module as torch_modules
import torch.optim.optimizer as torch_optimizer
from scenes import BACKWARD, Doubled, SumNet, describe_steps, firings, leaf, line, plain, silent, stored_gradients
from shown import shown_steps
from torch import nn
from torch.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks

import hookviz as hv

# -- tensors


def test_tensor_register_hook() -> None:
    a = leaf(2.0)
    c = a * 3
    c.register_hook(lambda grad: grad + 2)
    with hv.record() as trace:
        (c * 4).backward()
    assert firings(trace) == [("lambda grad: grad + 2", "c", 4, 6, "replaced")]
    around = [s.kind for s in trace.steps if s.on in ("c", "MulBackward0 (c)")]
    assert around == ["arrive", "tensor_hook", "compute"]
    assert trace.firings[0].hook.kept_in == "c._backward_hooks"


def test_tensor_register_post_accumulate_grad_hook() -> None:
    a = leaf(2.0)
    a.register_post_accumulate_grad_hook(lambda parameter: parameter.grad.mul_(10) and None)
    with hv.record() as trace:
        (a * 3).backward()
    assert [(before, after, effect) for _, _, before, after, effect in firings(trace)] == [(3, 30, "edited")]
    assert [s.kind for s in trace.steps if s.on == "a"] == ["arrive", "accumulate", "post_accumulate_hook"]
    assert trace.firings[0].hook.kept_in == "a._post_accumulate_grad_hooks"


def test_tensor_retain_grad() -> None:
    a = leaf(2.0)
    c = a * 3
    c.retain_grad()
    c.register_hook(lambda grad: grad * 10)
    with hv.record() as trace:
        c.backward()
    assert [s.kind for s in trace.steps if s.on == "c"] == ["seed", "tensor_hook", "retain_grad"]
    assert stored_gradients(trace, "retain_grad") == {"c": (None, 10)}


# -- modules


def test_module_register_forward_pre_hook() -> None:
    net = SumNet()
    net.register_forward_pre_hook(lambda module, args: (args[0] + 10, args[1]))
    with hv.record(net) as trace:
        assert net(leaf(1.0), leaf(2.0), c=leaf(3.0)).item() == 16
    assert describe_steps(trace) == [
        ("call", "net", None, (1, 2, 3)),
        ("forward_pre_hook", "net", (1, 2), (11, 2)),  # torch gives it the positional inputs only
        ("forward", "net", None, 16),
    ]
    (step,) = trace.firings
    assert (step.effect, step.row.labels[1]) == ("replaced", ("a", "b"))
    assert step.hook is not None and step.hook.kept_in == "net._forward_pre_hooks"


def test_module_register_forward_pre_hook_with_kwargs() -> None:
    def add_to_c(module: nn.Module, args: Any, kwargs: Any) -> Any:
        return args, {"c": kwargs["c"] * 2}

    net = SumNet()
    net.register_forward_pre_hook(add_to_c, with_kwargs=True)
    with hv.record(net) as trace:
        assert net(leaf(1.0), leaf(2.0), c=leaf(3.0)).item() == 9
    (step,) = trace.firings
    assert (plain(step.before), plain(step.after)) == ((1, 2, 3), (1, 2, 6))
    assert trace._data.hook_rows[step.row.hook or 0].flags == ("with_kwargs",)


def test_module_register_forward_hook() -> None:
    net = SumNet()
    net.register_forward_hook(lambda module, args, output: output + 100)
    with hv.record(net) as trace:
        assert net(leaf(1.0), leaf(2.0), leaf(3.0)).item() == 106
    assert describe_steps(trace)[1:] == [("forward", "net", None, 6), ("forward_hook", "net", 6, 106)]
    (step,) = trace.firings
    assert step.hook is not None and step.hook.kept_in == "net._forward_hooks"


def test_module_register_forward_hook_always_call() -> None:
    class RaisesInForward(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("broken inside")

    hook_calls: list[str] = []
    net = RaisesInForward()
    net.register_forward_hook(lambda module, args, output: hook_calls.append("always"), always_call=True)
    net.register_forward_hook(lambda module, args, output: hook_calls.append("only then"))
    with hv.record(net) as trace, pytest.raises(ValueError, match="broken inside"):
        net(leaf(1.0))
    assert hook_calls == ["always"]
    assert [step.kind for step in trace.firings] == ["forward_hook"]
    assert trace._data.hook_rows[trace.firings[0].row.hook or 0].flags == ("always_call",)


def test_prepend_runs_a_hook_before_earlier_registered_ones() -> None:
    net = Doubled()
    net.register_forward_hook(lambda module, args, output: output + 1)
    net.register_forward_hook(lambda module, args, output: output * 10, prepend=True)
    with hv.record(net) as trace:
        assert net(leaf(3.0)).item() == 61
    assert describe_steps(trace, "forward_hook") == [("forward_hook", "net", 6, 60), ("forward_hook", "net", 60, 61)]
    assert [step.hook.place for step in trace.firings if step.hook] == [0, 1]


def test_module_register_full_backward_pre_hook() -> None:
    net, x = Doubled(), leaf(3.0)
    net.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 5,))
    with hv.record(net) as trace:
        net(x).backward()
    assert x.grad is not None and x.grad.item() == 10
    assert describe_steps(trace, *BACKWARD) == [("full_backward_pre_hook", "net", 1, 5)]
    (step,) = trace.firings
    assert (step.effect, step.hook and step.hook.kept_in) == ("replaced", "net._backward_pre_hooks")


def test_module_register_full_backward_hook() -> None:
    net, x = Doubled(), leaf(3.0)
    net.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 5,))
    with hv.record(net) as trace:
        net(x).backward()
    assert x.grad is not None and x.grad.item() == 10
    assert describe_steps(trace, *BACKWARD) == [("full_backward_hook", "net", 2, 10)]
    (step,) = trace.firings
    assert (step.effect, step.hook and step.hook.kept_in) == ("replaced", "net._backward_hooks")


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


GLOBAL_MODULE_HOOKS = {
    "forward_pre": (torch_modules.register_module_forward_pre_hook, lambda m, args: (args[0] + 1,)),
    "forward": (torch_modules.register_module_forward_hook, lambda m, args, output: output + 1),
    "full_backward_pre": (torch_modules.register_module_full_backward_pre_hook, lambda m, g: (g[0] + 1,)),
    "full_backward": (torch_modules.register_module_full_backward_hook, lambda m, gi, go: (gi[0] + 1,)),
}


@pytest.mark.parametrize("name", GLOBAL_MODULE_HOOKS)
def test_global_module_hooks_run_before_local_ones(name: str) -> None:
    register, hook = GLOBAL_MODULE_HOOKS[name]
    net, x = Doubled(), leaf(3.0)
    getattr(net, f"register_{name}_hook")(lambda *given: None)
    handle = register(hook)
    try:
        with hv.record(net) as trace:
            net(x).backward()
    finally:
        handle.remove()
    first, second = trace.firings
    assert (first.kind, second.kind) == (f"{name}_hook",) * 2
    assert (first.effect, second.effect) == ("replaced", "kept")
    assert first.hook is not None and first.hook.kept_in.startswith("torch.nn.modules.module._global_")
    assert first.hook.on == "all modules" and first.on == "net"


REGISTRATION_HOOKS = {
    "parameter": (torch_modules.register_module_parameter_registration_hook, lambda m: m.register_parameter("p", None)),
    "buffer": (torch_modules.register_module_buffer_registration_hook, lambda m: m.register_buffer("b", torch.ones(1))),
    "module": (torch_modules.register_module_module_registration_hook, lambda m: m.add_module("m", nn.Identity())),
}


@pytest.mark.parametrize("name", REGISTRATION_HOOKS)
def test_module_registration_hooks_only_get_a_note(name: str) -> None:
    register, trigger = REGISTRATION_HOOKS[name]
    hook_calls: list[str] = []
    with register(lambda module, key, value: hook_calls.append(key)), hv.record() as trace:
        net = Doubled()
        trigger(net)
        net(leaf(3.0)).backward()
    assert len(hook_calls) >= 1
    assert len(trace.firings) == 0 and [note.count("not recorded") for note in trace.notes] == [1]


@pytest.mark.parametrize("name", ["register_state_dict_pre_hook", "register_state_dict_post_hook"])
def test_module_state_dict_hooks_only_get_a_note(name: str) -> None:
    hook_calls: list[str] = []
    net = Doubled()
    getattr(net, name)(lambda *given: hook_calls.append(name))
    with hv.record() as trace:
        state = net.state_dict()
        net(leaf(3.0)).backward()
    assert hook_calls == [name] and list(state) == ["weight"]
    assert len(trace.firings) == 0 and [note.count("not recorded") for note in trace.notes] == [1]


@pytest.mark.parametrize("name", ["register_load_state_dict_pre_hook", "register_load_state_dict_post_hook"])
def test_module_load_state_dict_hooks_only_get_a_note(name: str) -> None:
    hook_calls: list[str] = []
    net = Doubled()
    getattr(net, name)(lambda *given: hook_calls.append(name))
    with hv.record() as trace:
        net.load_state_dict({"weight": torch.tensor(5.0)})
        net(leaf(3.0)).backward()
    assert hook_calls == [name] and net.weight.item() == 5
    assert len(trace.firings) == 0 and [note.count("not recorded") for note in trace.notes] == [1]


def test_hooks_of_unrecorded_kinds_get_a_note_per_kind() -> None:
    net = nn.Sequential(*(nn.Linear(1, 1) for _ in range(5)))
    optimizer = torch.optim.SGD(net.parameters())
    for layer in net:
        layer.register_state_dict_pre_hook(silent("saves"))
    net.register_load_state_dict_post_hook(silent("loads"))
    optimizer.register_state_dict_post_hook(silent("keeps"))
    handle = torch.nn.modules.module.register_module_parameter_registration_hook(silent("sees"))
    try:
        with hv.record(net) as trace:
            net.load_state_dict(net.state_dict())
            optimizer.step()
    finally:
        handle.remove()
    notes = [note for note in trace.notes if "not recorded" in note]
    for kind, on in (
        ("state_dict pre-hook", "net.0, net.1, net.2, …"),
        ("load_state_dict hook", "net"),
        ("state_dict hook", "optimizer"),
        ("parameter registration hook", "torch.nn.Module"),
    ):
        assert any(f"({kind}, on {on})" in note for note in notes), (kind, notes)
    assert len(notes) == 4


# -- hooks of nodes and of several tensors


def test_node_register_prehook() -> None:
    a = leaf(2.0)
    c = a * 3
    c.grad_fn.register_prehook(lambda grads: (grads[0] * 10,))
    with hv.record() as trace:
        c.backward()
    assert [fired[2:] for fired in firings(trace)] == [(1, 10, "replaced")]
    assert [line(s)[:2] for s in trace.steps][:3] == [
        ("seed", "c"),
        ("node_pre_hook", "MulBackward0 (c)"),
        ("compute", "MulBackward0 (c)"),
    ]


def test_node_register_hook() -> None:
    a, b = leaf(2.0), leaf(5.0)
    c = a * b
    c.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, inputs[1]))
    with hv.record() as trace:
        c.backward()
    assert [fired[2:] for fired in firings(trace)] == [((5, 2), (50, 2), "replaced")]
    assert [s.kind for s in trace.steps][:3] == ["seed", "compute", "node_post_hook"]


@pytest.mark.parametrize("mode", ["all", "any"])
def test_register_multi_grad_hook(mode: Any) -> None:
    a, b = leaf(2.0), leaf(3.0)
    seen: list[Any] = []
    torch.autograd.graph.register_multi_grad_hook([a, b], seen.append, mode=mode)
    with hv.record() as trace:
        (a * b).backward()
    assert len(seen) == 1
    (step,) = trace.firings
    assert (step.kind, step.on) == ("multi_grad_hook", "b" if mode == "all" else "a")
    assert step.hook is not None and step.hook.name == "append"
    if mode == "any":
        assert step.sentence.endswith("on a looked at the gradient and left it unchanged: 3.")


def test_a_multi_grad_hook_shows_every_gradient_it_receives() -> None:
    a, b, z = leaf(2.0), leaf(3.0), leaf(4.0)
    c = a * b
    seen: list[Any] = []
    torch.autograd.graph.register_multi_grad_hook([a, c, z, b], lambda grads: seen.append(grads))
    with hv.record() as trace:
        (c * c).backward()
        (a * 5).backward()
    expected = [[None if grad is None else grad.item() for grad in grads] for grads in seen]
    assert expected == [[36, 12, None, 24], [5, None, None, None]]
    assert [[None if value is None else value.tolist() for value in step.after] for step in trace.firings] == expected
    first, second = trace.firings
    assert first.sentence.endswith("received the gradients of its tensors: a=36, c=12, tensor 3=None, b=24.")
    assert second.sentence.endswith("a=5, tensor 2=None, tensor 3=None, tensor 4=None.")
    assert first.effect == "kept"
    frame = shown_steps(trace.content())[first.index]
    assert frame["gradients"] == [["a", "36"], ["c", "12"], ["tensor 3", "None"], ["b", "24"]]


def test_in_place_edits_of_a_multi_grad_hook_are_recorded() -> None:
    a, b = leaf(2.0), leaf(3.0)
    c = a * b

    def multiply_in_place(grads: Any) -> None:
        for grad in grads:
            grad.mul_(10)

    torch.autograd.graph.register_multi_grad_hook([c, b], multiply_in_place)
    with hv.record() as trace:
        (c * 1).backward()
    (step,) = trace.firings
    assert (step.effect, [value.tolist() for value in step.before]) == ("edited", [1, 2])
    assert step.after[1].tolist() == 20 == b.grad


# -- saved-tensor hooks: a note gives the reason


def kept(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


REASON = r"hookviz does not observe them: torch runs only the pair"


@pytest.mark.parametrize(
    ("where", "make", "name"),
    [
        ("around everything", save_on_cpu, "pack_to_cpu|unpack_from_cpu"),
        ("around forward", lambda: saved_tensors_hooks(kept, kept), "kept"),
        ("around backward", lambda: saved_tensors_hooks(kept, kept), "kept"),
    ],
    ids=["around everything", "around forward", "around backward"],
)
def test_saved_tensors_hooks_and_save_on_cpu_get_a_note(where: str, make: Callable[[], Any], name: str) -> None:
    x = leaf(1.0, 2.0)
    with hv.record() as trace:
        with nullcontext() if where == "around backward" else make():
            y = (x * x).sum()
            if where == "around everything":
                y.backward()
        with make() if where == "around backward" else nullcontext():
            if where != "around everything":
                y.backward()
    assert x.grad.tolist() == [2, 4]
    assert len(trace.notes) in (1, 2)  # torch reported the pack hook, the unpack hook, or both
    for note in trace.notes:
        assert re.search(rf"\(({name})\)\. {REASON}", note), note
    assert trace.notes[0] in repr(trace)


def test_disable_saved_tensors_hooks_gets_a_note() -> None:
    with hv.record() as trace, disable_saved_tensors_hooks("not in my house"):
        leaf(3.0).sin().backward()
    assert trace.notes == [
        "Saved-tensor hooks are disabled here (not in my house), so there are none to observe.",
    ]


def test_saved_tensors_hooks_of_checkpoint_and_torch_func_get_no_note() -> None:
    net = Doubled()
    with hv.record() as trace:
        torch.utils.checkpoint.checkpoint(net, leaf(3.0), use_reentrant=False).backward()
        torch.func.grad(lambda x: net(x))(torch.tensor(2.0))
    assert trace.notes == []


def test_saved_tensors_hooks_run_as_often_as_without_recording() -> None:
    def run(watch: Any) -> list[str]:
        hook_calls: list[str] = []
        x = leaf(3.0)
        with (
            watch(),
            saved_tensors_hooks(lambda t: hook_calls.append("pack") or t, lambda t: hook_calls.append("unpack") or t),
        ):
            (x * x).sin().backward()
        return hook_calls

    assert run(nullcontext) == run(hv.record) != []


# -- optimizers


def optimizer_steps(trace: hv.Trace) -> list[tuple[Any, ...]]:
    return [(s.kind, s.on, s.effect) for s in trace.steps if s.row.optimizer >= 0]


@pytest.fixture
def opt() -> torch.optim.Optimizer:
    w = leaf(2.0)
    w.grad = torch.tensor(1.0)
    return torch.optim.SGD([w])


def test_optimizer_register_step_pre_hook(opt: torch.optim.Optimizer) -> None:
    opt.register_step_pre_hook(lambda opt, args, kwargs: opt.param_groups[0]["params"][0].grad.mul_(2) and None)
    with hv.record() as trace:
        opt.step()
    assert optimizer_steps(trace) == [("step_pre_hook", "opt", "edited"), ("optimizer_step", "opt", None)]
    assert trace.firings[0].hook.kept_in == "opt._optimizer_step_pre_hooks"


def test_optimizer_register_step_post_hook(opt: torch.optim.Optimizer) -> None:
    opt.register_step_post_hook(silent("after"))
    with hv.record() as trace:
        opt.step()
    assert optimizer_steps(trace) == [("optimizer_step", "opt", None), ("step_post_hook", "opt", "kept")]
    assert trace.firings[0].hook.kept_in == "opt._optimizer_step_post_hooks"


GLOBAL_STEP_HOOKS = {
    "pre": (torch_optimizer.register_optimizer_step_pre_hook, 0),
    "post": (torch_optimizer.register_optimizer_step_post_hook, -1),
}


@pytest.mark.parametrize("name", GLOBAL_STEP_HOOKS)
def test_register_optimizer_step_hook_for_all_optimizers(name: str, opt: torch.optim.Optimizer) -> None:
    """Global hooks run before the others before a step, and after the others after it."""
    register, place = GLOBAL_STEP_HOOKS[name]
    getattr(opt, f"register_step_{name}_hook")(silent("own"))
    with register(silent("global")), hv.record() as trace:
        opt.step()
    names = [step.hook.name for step in trace.firings]
    assert sorted(names) == ["global", "own"] and names[place] == "global"
    assert trace.firings[place].hook.kept_in == f"torch.optim.optimizer._global_optimizer_{name}_hooks"


@pytest.mark.parametrize(
    "name", [f"register_{what}_{when}_hook" for what in ("state_dict", "load_state_dict") for when in ("pre", "post")]
)
def test_optimizer_state_dict_hooks_only_get_a_note(name: str, opt: torch.optim.Optimizer) -> None:
    hook_calls: list[str] = []
    getattr(opt, name)(lambda *given: hook_calls.append(name))
    with hv.record() as trace:
        opt.load_state_dict(opt.state_dict())
        opt.step()
    assert hook_calls == [name]
    assert len(trace.firings) == 0 and [note.count("not recorded") for note in trace.notes] == [1]
