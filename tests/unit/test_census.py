"""``hooks()`` lists the hooks of modules and optimizers, and the difference of two censuses."""

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from scenes import c_hook, leaf, silent
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

import hookviz as hv
from hookviz.hook_listing.unreachable_hooks import FEW_DICTS


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.l1 = nn.Linear(2, 3)
        self.l2 = nn.Linear(3, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.l2(self.l1(x))


def describe_hooks(census: Any) -> list[tuple[str, str, str, str]]:
    return [(hook.on, hook.name, hook.kind, hook.kept_in) for hook in census]


# -- the contents of a row


def test_flags_and_order_are_listed() -> None:
    net = Net()
    net.register_forward_pre_hook(silent("second"))
    net.register_forward_pre_hook(silent("first"), prepend=True, with_kwargs=True)
    net.register_forward_hook(silent("last"), with_kwargs=True, always_call=True)
    assert [(h.name, h.place, h.total, h.flags) for h in hv.hooks(net)] == [
        ("first", 0, 2, ("with_kwargs",)),
        ("second", 1, 2, ()),
        ("last", 0, 1, ("with_kwargs", "always_call")),
    ]
    assert hv.hooks(net).texts()[0][2] == "forward pre-hook (with_kwargs)"


def test_the_census_and_a_trace_list_equal_hooks() -> None:
    net = Net()
    sgd = torch.optim.SGD(net.parameters())
    net.l1.register_forward_pre_hook(silent("a"), with_kwargs=True)
    net.l1.register_forward_hook(silent("b"), always_call=True)
    net.l2.register_full_backward_pre_hook(silent("c"))
    net.l2.register_full_backward_hook(silent("d"))
    net.l1.weight.register_hook(silent("e"))
    net.l1.weight.register_post_accumulate_grad_hook(silent("f"))
    sgd.register_step_pre_hook(silent("g"))
    sgd.register_step_post_hook(silent("h"))
    with register_module_forward_hook(silent("i")), hv.record(net) as trace:
        census = hv.hooks(net, sgd)
        assert describe_hooks(hv.hooks()) == [
            ("all modules", "i", "forward_hook", "torch.nn.modules.module._global_forward_hooks")
        ]
        net(torch.ones(1, 2, requires_grad=True)).sum().backward()
        sgd.step()
    assert len(census) == 9
    assert {hook.name: hook for hook in census} == {step.hook.name: step.hook for step in trace.firings}


def test_a_census_inside_a_hook_does_not_list_the_recorders_hooks() -> None:
    net, seen = Net(), []

    def take_census(*_: Any) -> None:
        seen.append(describe_hooks(hv.hooks(net)))

    net.l1.register_forward_hook(take_census)
    expected = describe_hooks(hv.hooks(net))
    with hv.record(net):
        net(torch.ones(2))
    assert len(expected) == 1
    assert seen == [expected]


def test_a_census_of_mixed_objects_lists_each_hook_once() -> None:
    net = Net()
    sgd = torch.optim.SGD(net.parameters())
    loss = net(torch.ones(2)).sum()
    net.l1.weight.register_hook(silent("of the weight"))
    loss.register_hook(silent("of the loss"))
    sgd.register_step_post_hook(silent("of the step"))
    expected = {("net.l1.weight", "of the weight"), ("loss", "of the loss"), ("sgd", "of the step")}
    for things in [(net, loss, sgd), (sgd, loss, net), (loss.grad_fn, loss, net, net.l1, sgd, sgd)]:
        rows = describe_hooks(hv.hooks(*things))
        assert len(rows) == 3
        assert {row[:2] for row in rows} == expected


# -- the difference of two censuses


def changes(difference: Any) -> list[tuple[str, str, str]]:
    return [(row.change, row.hook.on, row.hook.name) for row in difference]


def test_the_difference_shows_added_and_removed_hooks() -> None:
    net = Net()
    removed_handle = net.l1.register_forward_hook(silent("gone"))
    net.l1.register_forward_hook(silent("stays"))
    before = hv.hooks(net)
    net.l2.register_forward_pre_hook(silent("left"))
    removed_handle.remove()
    after = hv.hooks(net)
    assert changes(before - after) == [("left", "net.l2", "left"), ("gone", "net.l1", "gone")]
    assert [row[0] for row in (before - after).texts()] == ["left behind", "gone"]
    assert "left behind" in (before - after)._repr_html_()
    assert changes(after - before) == changes(before - after)


def test_a_difference_without_changes_says_so() -> None:
    net, c = Net(), leaf(2.0) * 3
    c.register_hook(c_hook)
    before = hv.hooks(net, c)
    with net.register_forward_hook(c_hook), c.register_hook(c_hook), c.grad_fn.register_hook(silent("another")):
        assert len(before - hv.hooks(net, c)) == 3
    difference = before - hv.hooks(net, c)
    assert len(difference) == 0
    assert repr(difference).startswith("The same hooks are registered as before")


def test_a_census_keeps_nothing_alive() -> None:
    net, a = Net(), leaf(2.0)
    c = a * 3
    sgd = torch.optim.SGD(net.parameters())
    hook = silent("mine")
    for register in (net.l1.register_forward_hook, net.l1.weight.register_hook, c.register_hook):
        register(hook)
    sgd.register_step_pre_hook(hook)
    census = hv.hooks(net, c, sgd)
    alive = [weakref.ref(thing) for thing in (net, net.l1.weight, a, c, sgd, hook)]
    del net, a, c, sgd, hook, register
    gc.collect()
    assert len(census) == 4
    assert [reference() for reference in alive] == [None] * 6


@pytest.fixture(autouse=True)
def assert_no_global_hooks_remain() -> Iterator[None]:
    """Fail a test that leaves a global hook, which would affect the tests after it."""
    yield
    assert describe_hooks(hv.hooks()) == []


# -- hooks that cannot be reached through a variable


def test_a_hook_on_a_tensor_changed_in_place_afterwards_is_reported() -> None:
    x = leaf(2.0)
    ran: list[float] = []
    h = x * 3
    h.register_hook(lambda grad: ran.append(grad.item()))
    h.mul_(5)
    census = hv.hooks(h)
    assert not census and "λ ran.append(grad.item()) (tests/unit/test_census.py, line" in str(census)
    assert "changed in place after the hook was registered" in census._repr_html_()
    h.register_hook(silent("later"))
    census = hv.hooks(h)
    assert [hook.name for hook in census] == ["later"]
    assert "ran.append" in str(census) and "ran.append" in census._repr_html_()
    h.backward()
    assert ran == [5]


def test_a_hook_on_a_deleted_tensor_is_reported_while_its_graph_lives() -> None:
    x = leaf(2.0)

    def make_graph() -> torch.Tensor:
        h = x * 3
        h.register_hook(silent("lost_with_h"))
        return h * 4

    y = make_graph()
    assert "lost_with_h" in str(hv.hooks(y))
    del y
    assert "lost_with_h" not in str(hv.hooks(x * 3))


def test_hooks_of_other_graphs_and_modules_are_not_reported() -> None:
    tensors = [leaf(2.0) * 3 for _ in range(3 * FEW_DICTS)]
    for tensor in tensors:
        tensor.register_hook(silent("elsewhere"))
    modules = [nn.Linear(1, 1) for _ in tensors]
    for module in modules:
        module.register_forward_hook(lambda *_: None)
    h = leaf(2.0) * 3
    h.register_hook(silent("changed_since"))
    h.mul_(5)
    census = hv.hooks(h)
    assert not census and "changed_since" in str(census) and "elsewhere" not in str(census)


def test_a_hook_on_a_tensor_that_only_an_object_holds_is_listed() -> None:
    class Holder:
        def __init__(self, tensor: torch.Tensor) -> None:
            self.tensor = tensor

    holder = Holder(leaf(2.0) * 3)
    holder.tensor.register_hook(silent("held"))
    (hook,) = hv.hooks(holder.tensor * 4)
    assert hook.name == "held"


def test_what_torch_registers_to_call_hooks_of_modules_is_not_listed_but_said() -> None:
    layer = nn.Linear(2, 1)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    layer.register_full_backward_pre_hook(lambda module, grad_output: None)
    out = layer(torch.ones(1, 2, requires_grad=True))
    census = hv.hooks(out)
    assert list(census) == []
    assert "Backward hooks of modules run in this graph" in repr(census)
    assert repr(census).count("λ module, grad_") == 2
    assert {hook.kind for hook in hv.hooks(layer)} == {"full_backward_hook", "full_backward_pre_hook"}
