"""``LeakWatch`` finds new hooks on what existed when a test began, and on nothing else."""

from typing import Any

import torch
from torch import nn

import hookviz as hv
from hookviz.testing.hook_leaks import LeakWatch


def look(*_: Any) -> None:
    """A hook that changes nothing."""


def found(watch: LeakWatch, **names: Any) -> list[tuple[str, str]]:
    """(kind, owner) of each hook that was left behind."""
    return sorted((hook.kind, hook.on) for hook in watch.find(names))


def test_new_hooks_on_modules_parameters_tensors_and_optimizers_are_found() -> None:
    net, x = nn.Sequential(nn.Linear(2, 2)), torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD(net.parameters())
    net.register_forward_hook(look)
    watch = LeakWatch()
    net[0].register_forward_pre_hook(look)
    net[0].bias.register_post_accumulate_grad_hook(look)
    x.register_hook(look)
    optimizer.register_step_pre_hook(look)
    assert found(watch, net=net, x=x) == [
        ("forward_pre_hook", "net.0"),
        ("post_accumulate_hook", "net.0.bias"),
        ("step_pre_hook", "SGD"),
        ("tensor_hook", "x"),
    ]


def test_owners_that_no_variable_names_get_their_class_or_shape() -> None:
    net, x = nn.Sequential(nn.Linear(2, 2)), torch.ones(2, 3, requires_grad=True)
    watch = LeakWatch()
    net[0].weight.register_hook(look)
    x.register_hook(look)
    assert found(watch) == [("tensor_hook", "Sequential.0.weight"), ("tensor_hook", "a tensor of shape (2, 3)")]


def test_hooks_that_were_removed_or_whose_owner_is_new_or_gone_do_not_count() -> None:
    net, gone = nn.Linear(2, 2), nn.Linear(2, 2)
    watch = LeakWatch()
    net.register_forward_hook(look).remove()
    gone.register_forward_hook(look)
    gone.cycle = [gone]
    made_since = nn.Linear(2, 2)
    made_since.register_forward_hook(look)
    del gone
    assert found(watch) == []


def test_hooks_and_objects_of_a_shared_setup_are_told_apart() -> None:
    net = nn.Linear(2, 2)
    watch = LeakWatch()
    watch.shared_setup_begins()
    made = nn.Linear(2, 2)
    made.register_forward_hook(look)
    net.register_forward_hook(look)
    watch.shared_setup_ends()
    assert found(watch) == []
    made.weight.register_hook(look)
    assert found(watch, made=made) == [("tensor_hook", "made.weight")]


def test_hooks_of_a_recording_do_not_count_even_while_it_runs() -> None:
    net = nn.Linear(2, 2)
    watch = LeakWatch()
    with hv.record(net):
        net(torch.ones(2)).sum().backward()
        assert found(watch) == []
    assert found(watch) == []


def test_watching_keeps_nothing_alive_and_tensors_can_still_be_swapped() -> None:
    import weakref

    net, a, b = nn.Linear(2, 2), torch.ones(1), torch.zeros(1)
    reference = weakref.ref(net)
    watch = LeakWatch()
    torch.utils.swap_tensors(a, b)
    del net
    assert reference() is None and found(watch) == []
