"""Hooks added and removed during a recording are reported as torch runs them: as often, and in the same order."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.modules.module as torch_modules
from scenes import Doubled, Net, accumulator, leaf, lines, stored_gradients
from torch import nn

import hookviz as hv

Action = Callable[..., Any]


class HookLog(list[str]):
    """The names of the hooks that ran, in order; ``hook`` makes hooks that log their name and then act."""

    def hook(self, name: str, action: Action = lambda *given: None) -> Action:
        def logged(*given: Any) -> None:
            self.append(name)
            action(*given)

        logged.__name__ = name
        return logged


class ActsInForward(Doubled):
    """A module whose forward calls ``action`` first."""

    def __init__(self, action: Action) -> None:
        super().__init__()
        self.action = action

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.action(self)
        return super().forward(x)


def once(action: Action) -> Action:
    """``action``, run only the first time."""
    pending = [action]
    return lambda *given: pending.pop()(*given) if pending else None


def call_twice(net: nn.Module, backward: bool = False) -> None:
    for _ in range(2):
        y = net(leaf(3.0))
        if backward:
            y.backward()


# -- modules: forward hooks


def forward_adds_to_itself(log: HookLog) -> None:
    net = ActsInForward(once(lambda self: self.register_forward_hook(log.hook("added"))))
    net.register_forward_hook(log.hook("first"))
    call_twice(net)


def forward_adds_the_first_hook(log: HookLog) -> None:
    """Without hooks torch takes its fast path, which ignores a hook added in forward."""
    call_twice(ActsInForward(once(lambda self: self.register_forward_hook(log.hook("added")))))


def forward_adds_the_first_forward_hook(log: HookLog) -> None:
    """With a pre-hook torch skips the fast path and runs the hook added in forward."""
    net = ActsInForward(once(lambda self: self.register_forward_hook(log.hook("added"))))
    net.register_forward_pre_hook(log.hook("pre"))
    call_twice(net)


def forward_adds_one_in_front(log: HookLog) -> None:
    net = ActsInForward(
        once(lambda self: self.register_forward_hook(log.hook("added"), prepend=True, with_kwargs=True))
    )
    net.register_forward_hook(log.hook("first"))
    call_twice(net)


def forward_adds_to_all_modules(log: HookLog) -> None:
    handles: list[Any] = []
    add = once(lambda self: handles.append(torch_modules.register_module_forward_hook(log.hook("global"))))
    net = ActsInForward(add)
    net.register_forward_pre_hook(log.hook("pre"))
    call_twice(net)
    handles[0].remove()


def forward_adds_to_a_child(log: HookLog) -> None:
    net = Net()
    net.register_forward_pre_hook(once(lambda *given: net.l2.register_forward_hook(log.hook("of the child")) and None))
    net.l1.register_forward_hook(once(lambda *given: net.l2.register_forward_pre_hook(log.hook("pre")) and None))
    call_twice(net)


def a_child_adds_to_its_parent(log: HookLog) -> None:
    net = nn.Sequential(ActsInForward(once(lambda self: net.register_forward_hook(log.hook("of the parent")))))
    net.register_forward_hook(log.hook("first"))
    call_twice(net)


def pre_hook_adds_both(log: HookLog) -> None:
    net = Doubled()

    def add(module: nn.Module, args: Any) -> None:
        module.register_forward_pre_hook(log.hook("pre"))
        module.register_forward_hook(log.hook("post"))

    net.register_forward_pre_hook(log.hook("adds", once(add)))
    call_twice(net)


def hook_of_all_modules_adds_and_removes(log: HookLog) -> None:
    """Torch has copied the module's own hooks before it calls the global ones."""
    net = Doubled()
    removed = net.register_forward_pre_hook(log.hook("gone after this call"))
    net.register_forward_pre_hook(log.hook("stays"))

    def change(module: nn.Module, args: Any) -> None:
        removed.remove()
        module.register_forward_pre_hook(log.hook("from the next call on"))

    with torch_modules.register_module_forward_pre_hook(log.hook("global", once(change))):
        call_twice(net)


def hook_of_all_modules_adds_and_removes_after_forward(log: HookLog) -> None:
    net = Doubled()
    removed = net.register_forward_hook(log.hook("gone after this call"))
    net.register_forward_hook(log.hook("stays"))

    def change(module: nn.Module, *rest: Any) -> None:
        removed.remove()
        module.register_forward_hook(log.hook("from the next call on"))

    with torch_modules.register_module_forward_hook(log.hook("global", once(change))):
        call_twice(net)


def hooks_remove_themselves_and_each_other(log: HookLog) -> None:
    net = Doubled()
    first = net.register_forward_hook(log.hook("removes itself", lambda *given: first.remove()))
    net.register_forward_hook(log.hook("removes the last", lambda *given: last.remove()))
    last = net.register_forward_hook(log.hook("last"))
    call_twice(net)


def forward_removes(log: HookLog) -> None:
    net = ActsInForward(lambda self: handle.remove())
    handle = net.register_forward_hook(log.hook("never"))
    net.register_forward_hook(log.hook("stays"))
    call_twice(net)


def always_called_hook_adds_another(log: HookLog) -> None:
    net = ActsInForward(lambda self: 1 // 0)
    add = once(lambda module, *rest: module.register_forward_hook(log.hook("added"), always_call=True))
    net.register_forward_hook(log.hook("adds", add), always_call=True)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            net(leaf(3.0))


def always_called_hook_adds_another_after_the_last_was_removed(log: HookLog) -> None:
    """After an exception torch iterates the dict itself: the hook that adds must be the last one in it."""
    net = ActsInForward(lambda self: 1 // 0)
    add = once(lambda module, *rest: module.register_forward_hook(log.hook("added"), always_call=True))
    net.register_forward_hook(log.hook("adds", add), always_call=True)
    last = net.register_forward_hook(log.hook("never"))
    net.register_forward_pre_hook(log.hook("removes", lambda *given: last.remove()))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            net(leaf(3.0))


# -- modules: backward hooks


def backward_hook_added_after_forward(log: HookLog) -> None:
    """Torch collects the backward hooks of a call when the module is called."""
    net = Doubled()
    net.register_full_backward_hook(log.hook("there"))
    y = net(leaf(3.0))
    net.register_full_backward_hook(log.hook("from the next call on"))
    y.backward()
    net(leaf(3.0)).backward()


def backward_hook_added_in_forward(log: HookLog) -> None:
    net = ActsInForward(once(lambda self: self.register_full_backward_hook(log.hook("added"))))
    net.register_full_backward_hook(log.hook("there"))
    call_twice(net, backward=True)


def backward_hook_added_in_a_pre_hook(log: HookLog) -> None:
    net = Doubled()
    add = once(lambda module, args: module.register_full_backward_pre_hook(log.hook("added")))
    net.register_forward_pre_hook(log.hook("adds", add))
    call_twice(net, backward=True)


def backward_hook_removed_in_backward(log: HookLog) -> None:
    net = Doubled()
    first = net.register_full_backward_hook(log.hook("removes itself", lambda *given: first.remove()))
    net.register_full_backward_hook(log.hook("adds", once(lambda *given: add())))

    def add() -> None:
        net.register_full_backward_hook(log.hook("added"))

    call_twice(net, backward=True)


# -- tensors and nodes


def tensor_hooks_between_two_passes(log: HookLog) -> None:
    a = leaf(2.0)
    c = a * 3
    first = c.register_hook(log.hook("first"))
    c.backward(retain_graph=True)
    first.remove()
    c.register_hook(log.hook("second"))
    a.register_hook(log.hook("of the leaf"))
    c.backward(retain_graph=True)
    a.register_post_accumulate_grad_hook(log.hook("after"))
    c.backward()


def tensor_hooks_in_a_hook(log: HookLog) -> None:
    a = leaf(2.0)
    c = a * 3
    e = c * 5

    def add(grad: torch.Tensor) -> None:
        e.register_hook(log.hook("from the next pass on"))
        c.register_hook(log.hook("further on"))
        a.register_hook(log.hook("of the leaf"))
        a.register_post_accumulate_grad_hook(log.hook("after"))

    e.register_hook(log.hook("adds", once(add)))
    e.backward(retain_graph=True)
    e.backward()


def tensor_hooks_removed_in_a_hook(log: HookLog) -> None:
    """Torch copies the hooks of a tensor before it runs them, so the next one still runs in this pass."""
    a = leaf(2.0)
    c = a * 3
    e = c * 5
    own_handle = c.register_hook(log.hook("removes itself", lambda *given: own_handle.remove()))
    c.register_hook(log.hook("removes the next", lambda *given: next_handle.remove()))
    next_handle = c.register_hook(log.hook("next"))
    leaf_handle = a.register_hook(log.hook("never"))
    e.register_hook(log.hook("removes that of the leaf", lambda *given: leaf_handle.remove()))
    e.backward(retain_graph=True)
    e.backward()


def node_hooks_in_a_hook(log: HookLog) -> None:
    a = leaf(2.0)
    c = a * 3
    e = c * 5
    node = accumulator(a)

    def add(grad: torch.Tensor) -> None:
        e.grad_fn.register_prehook(log.hook("pre of e"))
        e.grad_fn.register_hook(log.hook("post of e"))
        c.grad_fn.register_prehook(log.hook("pre of c"))
        c.grad_fn.register_hook(log.hook("post of c"))
        node.register_prehook(log.hook("pre of a"))
        node.register_hook(log.hook("post of a"))

    e.register_hook(log.hook("adds", once(add)))
    e.backward(retain_graph=True)
    e.backward()


def node_hooks_removed_in_a_hook(log: HookLog) -> None:
    a = leaf(2.0)
    c = a * 3
    own_handle = c.grad_fn.register_prehook(log.hook("removes itself", lambda *given: own_handle.remove()))
    c.grad_fn.register_prehook(log.hook("removes the next", lambda *given: next_handle.remove()))
    next_handle = c.grad_fn.register_prehook(log.hook("next"))
    c.backward(retain_graph=True)
    c.backward()


def tensor_hook_in_forward(log: HookLog) -> None:
    net = Net()
    net.l1.register_forward_hook(lambda module, args, output: output.register_hook(log.hook("activation")) and None)
    call_twice(net, backward=True)


def multi_grad_hook_in_a_hook(log: HookLog) -> None:
    a, b = leaf(2.0), leaf(3.0)
    e = a * b
    e.register_hook(once(lambda grad: torch.autograd.graph.register_multi_grad_hook([a, b], log.hook("both")) and None))
    e.backward(retain_graph=True)
    e.backward()


SCENES = [
    forward_adds_to_itself, forward_adds_the_first_hook, forward_adds_the_first_forward_hook,
    forward_adds_one_in_front, forward_adds_to_all_modules, forward_adds_to_a_child, a_child_adds_to_its_parent,
    pre_hook_adds_both, hook_of_all_modules_adds_and_removes, hook_of_all_modules_adds_and_removes_after_forward,
    hooks_remove_themselves_and_each_other, forward_removes, always_called_hook_adds_another,
    always_called_hook_adds_another_after_the_last_was_removed,
    backward_hook_added_after_forward, backward_hook_added_in_forward, backward_hook_added_in_a_pre_hook,
    backward_hook_removed_in_backward,
    tensor_hooks_between_two_passes, tensor_hooks_in_a_hook, tensor_hooks_removed_in_a_hook, node_hooks_in_a_hook,
    node_hooks_removed_in_a_hook, tensor_hook_in_forward, multi_grad_hook_in_a_hook,
]  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_hooks_added_and_removed_during_a_recording_are_reported_as_torch_runs_them(
    scene: Callable[[HookLog], None],
) -> None:
    plain_log, recorded_log = HookLog(), HookLog()
    scene(plain_log)
    with hv.record() as trace:
        scene(recorded_log)
    assert plain_log == recorded_log
    fired = [step.hook.name for step in trace.firings if not step.hook.name.startswith("lambda")]
    assert fired == recorded_log
    assert trace.notes == []


def test_retain_grad_of_an_unnamed_tensor_is_recorded() -> None:
    """A forward hook calls ``retain_grad()`` on the output of its module."""
    activations: list[torch.Tensor] = []
    net = Net()
    net.l1.register_forward_hook(lambda module, args, output: (activations.append(output), output.retain_grad())[1])
    with hv.record(net) as trace:
        net(leaf(3.0)).backward()
    assert list(stored_gradients(trace, "retain_grad").values()) == [(None, 2)]
    assert activations[0].grad.item() == 2


def test_retain_grad_called_in_a_hook_is_recorded() -> None:
    a = leaf(2.0)
    c = a * 3
    e = c * 5
    e.register_hook(lambda grad: c.retain_grad())
    with hv.record() as trace:
        e.backward()
    assert ("retain_grad", "c") in lines(trace)
    assert c.grad.item() == 5


def test_torch_takes_its_fast_path_once_the_last_hook_is_removed() -> None:
    class Breaks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ArithmeticError("no")

    def frames(context: Callable[[], Any]) -> list[str]:
        net = nn.Sequential(Breaks())
        handle = torch_modules.register_module_forward_pre_hook(lambda *given: handle.remove())
        with pytest.raises(ArithmeticError) as raised, context():
            net(torch.ones(1))
        return [entry.name for entry in raised.traceback]

    assert frames(hv.record) == frames(nullcontext)
