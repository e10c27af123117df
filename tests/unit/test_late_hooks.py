"""Hooks that come and go while something is recorded: each is reported as torch runs it, as often and in its order."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.modules.module as torch_modules
from scenes import Doubled, Net, accumulator, leaf, lines, stored_gradients
from torch import nn

import hookviz as hv

Act = Callable[..., Any]


class Ran(list[str]):
    """The names of the hooks that ran, in order; makes hooks that note themselves and then act."""

    def hook(self, name: str, act: Act = lambda *given: None) -> Act:
        def noted(*given: Any) -> None:
            self.append(name)
            act(*given)

        noted.__name__ = name
        return noted


class Acts(Doubled):
    """A module whose forward does something first."""

    def __init__(self, act: Act) -> None:
        super().__init__()
        self.act = act

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.act(self)
        return super().forward(x)


def once(act: Act) -> Act:
    """An act that happens the first time only."""
    left = [act]
    return lambda *given: left.pop()(*given) if left else None


def twice(net: nn.Module, backward: bool = False) -> None:
    for _ in range(2):
        y = net(leaf(3.0))
        if backward:
            y.backward()


# -- modules: forward hooks


def forward_adds_to_itself(ran: Ran) -> None:
    net = Acts(once(lambda self: self.register_forward_hook(ran.hook("added"))))
    net.register_forward_hook(ran.hook("first"))
    twice(net)


def forward_adds_the_first_hook(ran: Ran) -> None:
    """Without any hook torch takes a short cut, and runs none in that call."""
    twice(Acts(once(lambda self: self.register_forward_hook(ran.hook("added")))))


def forward_adds_the_first_forward_hook(ran: Ran) -> None:
    """With a pre-hook it takes no short cut, and runs the hook that forward added."""
    net = Acts(once(lambda self: self.register_forward_hook(ran.hook("added"))))
    net.register_forward_pre_hook(ran.hook("pre"))
    twice(net)


def forward_adds_one_in_front(ran: Ran) -> None:
    net = Acts(once(lambda self: self.register_forward_hook(ran.hook("added"), prepend=True, with_kwargs=True)))
    net.register_forward_hook(ran.hook("first"))
    twice(net)


def forward_adds_to_all_modules(ran: Ran) -> None:
    handles: list[Any] = []
    add = once(lambda self: handles.append(torch_modules.register_module_forward_hook(ran.hook("global"))))
    net = Acts(add)
    net.register_forward_pre_hook(ran.hook("pre"))
    twice(net)
    handles[0].remove()


def forward_adds_to_a_child(ran: Ran) -> None:
    net = Net()
    net.register_forward_pre_hook(once(lambda *given: net.l2.register_forward_hook(ran.hook("of the child")) and None))
    net.l1.register_forward_hook(once(lambda *given: net.l2.register_forward_pre_hook(ran.hook("pre")) and None))
    twice(net)


def a_child_adds_to_its_parent(ran: Ran) -> None:
    net = nn.Sequential(Acts(once(lambda self: net.register_forward_hook(ran.hook("of the parent")))))
    net.register_forward_hook(ran.hook("first"))
    twice(net)


def pre_hook_adds_both(ran: Ran) -> None:
    net = Doubled()

    def add(module: nn.Module, args: Any) -> None:
        module.register_forward_pre_hook(ran.hook("pre"))
        module.register_forward_hook(ran.hook("post"))

    net.register_forward_pre_hook(ran.hook("adds", once(add)))
    twice(net)


def hook_of_all_modules_adds_and_removes(ran: Ran) -> None:
    """When torch calls the hooks of all modules it has taken the module's own already."""
    net = Doubled()
    gone = net.register_forward_pre_hook(ran.hook("gone after this call"))
    net.register_forward_pre_hook(ran.hook("stays"))

    def change(module: nn.Module, args: Any) -> None:
        gone.remove()
        module.register_forward_pre_hook(ran.hook("from the next call on"))

    with torch_modules.register_module_forward_pre_hook(ran.hook("global", once(change))):
        twice(net)


def hook_of_all_modules_adds_and_removes_after_forward(ran: Ran) -> None:
    net = Doubled()
    gone = net.register_forward_hook(ran.hook("gone after this call"))
    net.register_forward_hook(ran.hook("stays"))

    def change(module: nn.Module, *rest: Any) -> None:
        gone.remove()
        module.register_forward_hook(ran.hook("from the next call on"))

    with torch_modules.register_module_forward_hook(ran.hook("global", once(change))):
        twice(net)


def hooks_remove_themselves_and_each_other(ran: Ran) -> None:
    net = Doubled()
    first = net.register_forward_hook(ran.hook("removes itself", lambda *given: first.remove()))
    net.register_forward_hook(ran.hook("removes the last", lambda *given: last.remove()))
    last = net.register_forward_hook(ran.hook("last"))
    twice(net)


def forward_removes(ran: Ran) -> None:
    net = Acts(lambda self: handle.remove())
    handle = net.register_forward_hook(ran.hook("never"))
    net.register_forward_hook(ran.hook("stays"))
    twice(net)


def always_called_hook_adds_another(ran: Ran) -> None:
    net = Acts(lambda self: 1 // 0)
    add = once(lambda module, *rest: module.register_forward_hook(ran.hook("added"), always_call=True))
    net.register_forward_hook(ran.hook("adds", add), always_call=True)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            net(leaf(3.0))


def always_called_hook_adds_another_after_the_last_was_removed(ran: Ran) -> None:
    """After an exception torch goes through the dict itself: then nothing may stand behind the hook that adds."""
    net = Acts(lambda self: 1 // 0)
    add = once(lambda module, *rest: module.register_forward_hook(ran.hook("added"), always_call=True))
    net.register_forward_hook(ran.hook("adds", add), always_call=True)
    last = net.register_forward_hook(ran.hook("never"))
    net.register_forward_pre_hook(ran.hook("removes", lambda *given: last.remove()))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            net(leaf(3.0))


# -- modules: backward hooks


def backward_hook_added_after_forward(ran: Ran) -> None:
    """torch takes the backward hooks of a call when the module is called."""
    net = Doubled()
    net.register_full_backward_hook(ran.hook("there"))
    y = net(leaf(3.0))
    net.register_full_backward_hook(ran.hook("from the next call on"))
    y.backward()
    net(leaf(3.0)).backward()


def backward_hook_added_in_forward(ran: Ran) -> None:
    net = Acts(once(lambda self: self.register_full_backward_hook(ran.hook("added"))))
    net.register_full_backward_hook(ran.hook("there"))
    twice(net, backward=True)


def backward_hook_added_in_a_pre_hook(ran: Ran) -> None:
    net = Doubled()
    add = once(lambda module, args: module.register_full_backward_pre_hook(ran.hook("added")))
    net.register_forward_pre_hook(ran.hook("adds", add))
    twice(net, backward=True)


def backward_hook_removed_in_backward(ran: Ran) -> None:
    net = Doubled()
    first = net.register_full_backward_hook(ran.hook("removes itself", lambda *given: first.remove()))
    net.register_full_backward_hook(ran.hook("adds", once(lambda *given: add())))

    def add() -> None:
        net.register_full_backward_hook(ran.hook("added"))

    twice(net, backward=True)


# -- tensors and nodes


def tensor_hooks_between_two_passes(ran: Ran) -> None:
    a = leaf(2.0)
    c = a * 3
    first = c.register_hook(ran.hook("first"))
    c.backward(retain_graph=True)
    first.remove()
    c.register_hook(ran.hook("second"))
    a.register_hook(ran.hook("of the leaf"))
    c.backward(retain_graph=True)
    a.register_post_accumulate_grad_hook(ran.hook("after"))
    c.backward()


def tensor_hooks_in_a_hook(ran: Ran) -> None:
    a = leaf(2.0)
    c = a * 3
    e = c * 5

    def add(grad: torch.Tensor) -> None:
        e.register_hook(ran.hook("from the next pass on"))
        c.register_hook(ran.hook("further on"))
        a.register_hook(ran.hook("of the leaf"))
        a.register_post_accumulate_grad_hook(ran.hook("after"))

    e.register_hook(ran.hook("adds", once(add)))
    e.backward(retain_graph=True)
    e.backward()


def node_hooks_in_a_hook(ran: Ran) -> None:
    a = leaf(2.0)
    c = a * 3
    e = c * 5
    node = accumulator(a)

    def add(grad: torch.Tensor) -> None:
        e.grad_fn.register_prehook(ran.hook("pre of e"))
        e.grad_fn.register_hook(ran.hook("post of e"))
        c.grad_fn.register_prehook(ran.hook("pre of c"))
        c.grad_fn.register_hook(ran.hook("post of c"))
        node.register_prehook(ran.hook("pre of a"))
        node.register_hook(ran.hook("post of a"))

    e.register_hook(ran.hook("adds", once(add)))
    e.backward(retain_graph=True)
    e.backward()


def node_hooks_removed_in_a_hook(ran: Ran) -> None:
    a = leaf(2.0)
    c = a * 3
    own = c.grad_fn.register_prehook(ran.hook("removes itself", lambda *given: own.remove()))
    c.grad_fn.register_prehook(ran.hook("removes the next", lambda *given: later.remove()))
    later = c.grad_fn.register_prehook(ran.hook("next"))
    c.backward(retain_graph=True)
    c.backward()


def tensor_hook_in_forward(ran: Ran) -> None:
    net = Net()
    net.l1.register_forward_hook(lambda module, args, output: output.register_hook(ran.hook("activation")) and None)
    twice(net, backward=True)


def multi_grad_hook_in_a_hook(ran: Ran) -> None:
    a, b = leaf(2.0), leaf(3.0)
    e = a * b
    e.register_hook(once(lambda grad: torch.autograd.graph.register_multi_grad_hook([a, b], ran.hook("both")) and None))
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
    tensor_hooks_between_two_passes, tensor_hooks_in_a_hook, node_hooks_in_a_hook, node_hooks_removed_in_a_hook,
    tensor_hook_in_forward, multi_grad_hook_in_a_hook,
]  # fmt: skip


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_hooks_that_come_and_go_are_reported_as_torch_runs_them(scene: Callable[[Ran], None]) -> None:
    plain, recorded = Ran(), Ran()
    scene(plain)
    with hv.record() as trace:
        scene(recorded)
    assert plain == recorded
    fired = [step.hook.name for step in trace.firings if not step.hook.name.startswith("lambda")]
    assert fired == recorded
    assert trace.notes == []


def test_retain_grad_of_a_tensor_without_a_name_is_seen() -> None:
    """As an activation that a forward hook asks to keep its gradient."""
    kept: list[torch.Tensor] = []
    net = Net()
    net.l1.register_forward_hook(lambda module, args, output: (kept.append(output), output.retain_grad())[1])
    with hv.record(net) as trace:
        net(leaf(3.0)).backward()
    assert list(stored_gradients(trace, "retain_grad").values()) == [(None, 2)]
    assert kept[0].grad.item() == 2


def test_retain_grad_in_a_hook_is_seen_from_there_on() -> None:
    a = leaf(2.0)
    c = a * 3
    e = c * 5
    e.register_hook(lambda grad: c.retain_grad())
    with hv.record() as trace:
        e.backward()
    assert ("retain_grad", "c") in lines(trace)
    assert c.grad.item() == 5


@pytest.mark.parametrize("watch", [nullcontext, hv.record])
def test_a_handle_made_in_one_recording_works_in_the_next(watch: Any) -> None:
    net, ran = Doubled(), Ran()
    with watch():
        handle = net.register_forward_hook(ran.hook("h"))
        net(leaf(1.0))
    with hv.record() as trace:
        net(leaf(1.0))
        handle.remove()
        net(leaf(1.0))
    assert len(trace.firings) == 1 and ran == ["h", "h"]


def test_where_the_last_hook_has_gone_torch_takes_its_short_cut_as_it_would() -> None:
    class Breaks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ArithmeticError("no")

    def frames(watch: Callable[[], Any]) -> list[str]:
        net = nn.Sequential(Breaks())
        handle = torch_modules.register_module_forward_pre_hook(lambda *given: handle.remove())
        with pytest.raises(ArithmeticError) as raised, watch():
            net(torch.ones(1))
        return [entry.name for entry in raised.traceback]

    assert frames(hv.record) == frames(nullcontext)
