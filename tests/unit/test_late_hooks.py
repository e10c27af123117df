"""Hooks added and removed during a recording are reported as torch runs them: as often, and in the same order."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.modules.module as torch_modules
from scenes import Doubled, Net, accumulator, leaf
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


def call_twice(net: nn.Module) -> None:
    for _ in range(2):
        net(leaf(3.0)).backward()


def forward_adds_the_first_hook(log: HookLog) -> None:
    """Without hooks torch takes its fast path, which ignores a hook added in forward."""
    call_twice(ActsInForward(once(lambda self: self.register_forward_hook(log.hook("added")))))


def forward_adds_to_itself_and_to_all_modules(log: HookLog) -> None:
    """With a pre-hook torch skips the fast path and runs the hooks added in forward."""
    handles: list[Any] = []

    def add(net: nn.Module) -> None:
        net.register_forward_hook(log.hook("added"))
        net.register_forward_hook(log.hook("in front"), prepend=True, with_kwargs=True)
        handles.append(torch_modules.register_module_forward_hook(log.hook("global")))

    net = ActsInForward(once(add))
    net.register_forward_pre_hook(log.hook("pre"))
    call_twice(net)
    handles[0].remove()


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


def backward_hook_added_in_and_after_forward(log: HookLog) -> None:
    """Torch collects the backward hooks of a call when the module is called."""
    net = ActsInForward(once(lambda self: self.register_full_backward_hook(log.hook("added in forward"))))
    net.register_full_backward_hook(log.hook("there"))
    y = net(leaf(3.0))
    net.register_full_backward_hook(log.hook("from the next call on"))
    y.backward()
    net(leaf(3.0)).backward()


def hook_adds_to_tensors_and_nodes(log: HookLog) -> None:
    a, b = leaf(2.0), leaf(1.0)
    c = a * 3
    e = c * 5 * b
    node = accumulator(a)

    def add(grad: torch.Tensor) -> None:
        e.register_hook(log.hook("from the next pass on"))
        for name, tensor in {"c": c, "e": e}.items():
            tensor.grad_fn.register_prehook(log.hook(f"pre of {name}"))
            tensor.grad_fn.register_hook(log.hook(f"post of {name}"))
        c.register_hook(log.hook("further on"))
        node.register_prehook(log.hook("pre of a"))
        node.register_hook(log.hook("post of a"))
        a.register_hook(log.hook("of the leaf"))
        a.register_post_accumulate_grad_hook(log.hook("after"))
        torch.autograd.graph.register_multi_grad_hook([a, b], log.hook("both"))

    e.register_hook(log.hook("adds", once(add)))
    e.backward(retain_graph=True)
    e.backward()


def hooks_remove_hooks_of_tensors_and_nodes(log: HookLog) -> None:
    """Torch copies the hooks of a tensor before it runs them, so the next one still runs in this pass."""
    a = leaf(2.0)
    c = a * 3
    e = c * 5
    own = c.register_hook(log.hook("removes itself", lambda *given: own.remove()))
    c.register_hook(log.hook("removes the next", lambda *given: following.remove()))
    following = c.register_hook(log.hook("next"))
    of_leaf = a.register_hook(log.hook("never"))
    e.register_hook(log.hook("removes that of the leaf", lambda *given: of_leaf.remove()))
    own_pre = c.grad_fn.register_prehook(log.hook("node removes itself", lambda *given: own_pre.remove()))
    c.grad_fn.register_prehook(log.hook("node removes the next", lambda *given: following_pre.remove()))
    following_pre = c.grad_fn.register_prehook(log.hook("next of the node"))
    e.backward(retain_graph=True)
    e.backward()


def tensor_hook_in_forward(log: HookLog) -> None:
    net = Net()
    net.l1.register_forward_hook(lambda module, args, output: output.register_hook(log.hook("activation")) and None)
    call_twice(net)


SCENES = [
    forward_adds_the_first_hook,
    forward_adds_to_itself_and_to_all_modules,
    always_called_hook_adds_another_after_the_last_was_removed,
    backward_hook_added_in_and_after_forward,
    hook_adds_to_tensors_and_nodes,
    hooks_remove_hooks_of_tensors_and_nodes,
    tensor_hook_in_forward,
]


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
